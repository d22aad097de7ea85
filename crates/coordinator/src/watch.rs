//! Rules over shared memory: what an entry is held against, the alerts that follow, and the verbs of the API.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concord_domain::aggregates::alert::{AlertInput, AlertMachine, FiredAlert};
use concord_domain::aggregates::case::{CaseInput, CaseMachine, flag_of, says_over};
use concord_domain::aggregates::memory::ReceivedMemory;
use concord_domain::aggregates::watch::{RegimeChange, WatchInput, WatchMachine, id};
use concord_domain::rules::alerting::{Watched, alert_id, alert_of};
use concord_events::{
    Aggregate, AlertEvent, AlertRaised, CaseEvent, DeadlineElapsed, EventMeta, MemoryEvent,
    StoredEvent,
};
use concord_runtime::Ports;
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Ack, Delivery, HandleError};
use concord_runtime::event_store::Consistency;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_wire::envelope::from_json;
use concord_wire::payload::{AlertRules, REGIME_CHANGE, RegimeTerms};
use concord_wire::{AgentId, Fault, Token};
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::json;

use crate::shared::Shared;

/// Cases that are looked at side by side when the regime has changed. Most are over, and cost one read.
const CASES_AT_ONCE: usize = 32;

/// The event by which it is known which cases there are.
const OPENED: &str = "opened";

/// How far cases were flagged: by alert, the sequence from which on they are still to be.
#[derive(Debug, Default)]
pub(crate) struct Flagging(Mutex<BTreeMap<Token, u64>>);

impl Flagging {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Token, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reached(&self, alert: &Token) -> u64 {
        self.known().get(alert).copied().unwrap_or(1)
    }

    fn set(&self, alert: &Token, next: Option<u64>) {
        let mut known = self.known();
        match next {
            Some(next) => known.insert(alert.clone(), next),
            None => known.remove(alert),
        };
    }
}

impl<P: Ports> Shared<P> {
    /// The rules that an entry is held against. Who its agent is, is asked only where a rule is about its topic.
    pub(crate) async fn watched(&self, received: &ReceivedMemory) -> Result<Watched, HandleError> {
        let (who, topic) = (&received.heard.agent_id, &received.entry.topic);
        if received.case_id.is_some() {
            return Ok(Watched::default());
        }
        let known = self.watch.load(&id()).await?.state;
        let Some(stands) = known.last() else {
            return Ok(Watched::default());
        };
        let rules = &stands.0.rules;
        if rules.about(topic).next().is_none() {
            return Ok(Watched::default());
        }
        let authority = self.people.authority(who).await?;
        Ok(known.watched(topic, who, &authority))
    }

    /// Raises the alerts that follow from an entry. Their ids follow from it, so that it can be repeated.
    pub(crate) async fn raise_fired(
        &self,
        record: &StoredEvent<MemoryEvent>,
    ) -> Result<(), HandleError> {
        let MemoryEvent::Put(put) = &record.event;
        for fired in put.fired.iter().filter(|fired| !fired.withheld) {
            let context = self.service.of_event(record.meta.event_id.clone());
            let alert = FiredAlert {
                heard: put.heard.clone(),
                priority: fired.priority,
                alert: alert_of(put, fired),
                registered: self.directory.names(),
                terms: self.regime_terms().await?,
            };
            let (id, input) = (alert_id(put, fired), AlertInput::Fire(Box::new(alert)));
            let outcome = self.alerts.step(&id, &context, &input, None).await?;
            self.service.count_step::<AlertMachine>(&outcome);
        }
        Ok(())
    }

    /// What follows from a change of regime, as the rules say it.
    pub(crate) async fn regime_terms(&self) -> Result<Option<RegimeTerms>, HandleError> {
        Ok(self.watch.load(&id()).await?.state.terms())
    }

    /// What an alert changes, once everybody is told: the present regime, and the cases that are open. It can be repeated: the later
    /// alert counts, and a case is flagged once.
    pub(crate) async fn follow_alert(
        &self,
        record: &StoredEvent<AlertEvent>,
    ) -> Result<(), HandleError> {
        let AlertEvent::Raised(raised) = &record.event else {
            return Ok(());
        };
        let regime = raised.alert.new_regime.as_ref();
        let Some(regime) = regime.filter(|_| raised.alert.event_type == REGIME_CHANGE) else {
            return Ok(());
        };
        let (alert, raised_at) = (&record.meta.id, record.meta.at);
        let context = self.service.of_event(record.meta.event_id.clone());
        let change = WatchInput::RegimeChange(Box::new(RegimeChange {
            regime: regime.clone(),
            alert: alert.clone(),
            raised_at,
            sequence: record.sequence,
        }));
        let outcome = self.watch.step(&id(), &context, &change, None).await?;
        self.service.count_step::<WatchMachine>(&outcome);
        self.flag_cases(record, raised).await
    }

    /// Flags the cases that were opened before the alert and are open. All that are stored are looked at, some at the same time; a
    /// delivery that fails is tried again from where this process has come to.
    async fn flag_cases(
        &self,
        record: &StoredEvent<AlertEvent>,
        raised: &AlertRaised,
    ) -> Result<(), HandleError> {
        let (alert, end) = (&record.meta.id, record.sequence);
        let mut next = self.flagging.reached(alert);
        while next < end {
            let ports = &self.service.ports;
            let cases = ports.ids_by(Aggregate::Case, OPENED, &mut next, end);
            for some in cases.await?.chunks(CASES_AT_ONCE) {
                try_join_all(some.iter().map(|case| self.flag(case, record, raised))).await?;
            }
            self.flagging.set(alert, (next < end).then_some(next));
        }
        Ok(())
    }

    async fn flag(
        &self,
        case: &Token,
        record: &StoredEvent<AlertEvent>,
        raised: &AlertRaised,
    ) -> Result<(), HandleError> {
        if self.is_surely_over(case).await? {
            return Ok(());
        }
        let state = self.cases.load(case).await?.state;
        let is_begun = state.opened.is_some() && state.opened_sequence < record.sequence;
        if !is_begun || state.is_over() {
            return Ok(());
        }
        let analyses = self.analyses.load(case).await?.state;
        let alert = (&record.meta.id, record.meta.at, raised);
        let flag = flag_of(alert, &state, &analyses);
        let input = CaseInput::Flag(Box::new(flag));
        let context = self.service.of_event(record.meta.event_id.clone());
        let outcome = self.cases.step(case, &context, &input, None).await?;
        self.service.count_step::<CaseMachine>(&outcome);
        Ok(())
    }

    /// Whether the last event of a case says that it is over. Most cases that are stored are, and one event is read in place of all.
    async fn is_surely_over(&self, case: &Token) -> Result<bool, HandleError> {
        let (ports, kind) = (&self.service.ports, Aggregate::Case);
        let Some(last) = ports.last(kind, case, Consistency::Any).await? else {
            return Ok(false);
        };
        let last = StoredEvent::<CaseEvent>::decode(&last.payload, last.sequence)?;
        Ok(says_over(&last.event))
    }

    /// The time for the report that was to follow an alert is over.
    pub(crate) async fn report_elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let event_id = EventMeta::decode(&delivery.payload)?.event_id;
        let (id, context) = (elapsed.id.clone(), self.service.of_event(event_id));
        let (input, trace) = (AlertInput::Elapsed(elapsed), delivery.trace.clone());
        handlers::step(&self.service, &self.alerts, id, context, &input, trace).await
    }
}

/// `put_alert_rules`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    rules: AlertRules,
    by: AgentId,
    why: String,
}

/// The rules that an operator stores.
pub(crate) fn read_put(request: &[u8]) -> Result<(Token, WatchInput), Fault> {
    let Put { rules, by, why } = from_json(request, "")?;
    let rules = Box::new(rules);
    Ok((id(), WatchInput::Put { rules, by, why }))
}

/// `alert_rules`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    version: Option<u32>,
}

/// Answers `alert_rules`: `{"version": ..., "rules": {...}, "by": ..., "why": ..., "at": ..., "regime": {...}}`; version 0 without by, why
/// and at where none were stored, and no regime where no alert has named one.
pub(crate) fn show_verb<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(shared.clone(), |shared, call| async move {
        let Asked { version } = from_json(&call.body, "")?;
        let known = shared.watch.load(&id()).await;
        let known = known.map_err(|error| unread(&error))?.state;
        let found = match version {
            None => known.last(),
            Some(asked) => known.versions.iter().find(|one| one.0.version == asked),
        };
        match (found, version.unwrap_or_default()) {
            (Some(found), _) => {
                let (put, at) = &**found;
                answer(&json!({
                    "version": put.version, "rules": put.rules, "by": put.by, "why": put.why, "at": at,
                    "regime": known.regime.as_deref(),
                }))
            }
            (None, 0) => answer(&json!({
                "version": 0, "rules": AlertRules::default(), "regime": known.regime.as_deref(),
            })),
            (None, asked) => Err(Fault::invalid(
                "/version",
                format!("There is no version {asked} of the rules."),
                format!(
                    "The last one is {}.",
                    known.last().map_or(0, |last| last.0.version)
                ),
            )),
        }
    })
}
