//! The contents of `docs/configuration.md`: every setting of every service.

use concord_agent_adapter::{AdapterSettings, BudgetSettings, HostedAgent};
use concord_conflict_detector::DetectorSettings;
use concord_coordinator::CoordinatorSettings;
use concord_debate_facilitator::FacilitatorSettings;
use concord_escalation_timer::TimerSettings;
use concord_runtime::service::settings::reference;

/// The page: the settings that all services share, then those of single services.
pub fn configuration() -> String {
    // A service's own settings stand under `service` in the settings of all.
    let coordinator = reference::own_rows::<CoordinatorSettings>();
    let detector = reference::own_rows::<DetectorSettings>();
    let facilitator = reference::own_rows::<FacilitatorSettings>();
    let timer = reference::own_rows::<TimerSettings>();
    let mut adapter = reference::own_rows::<AdapterSettings>();
    adapter.extend(reference::element_rows::<HostedAgent>("service.agents"));
    adapter.extend(reference::rows_at::<BudgetSettings>(
        "service.budgets.<provider>",
    ));
    reference::page(&[
        ("coordinator", "The coordinator alone.", coordinator),
        (
            "conflict-detector",
            "The conflict detector alone.",
            detector,
        ),
        (
            "debate-facilitator",
            "The debate facilitator alone.",
            facilitator,
        ),
        ("escalation-timer", "The escalation timer alone.", timer),
        (
            "agent-adapter",
            "The agent adapter alone: notifications of people, `[service.notify.email]` and `[service.notify.webhook]` in the \
             file, and a list of hosted agents, `[[service.agents]]`.",
            adapter,
        ),
    ])
}
