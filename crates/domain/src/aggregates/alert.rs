//! An alert: news of which everybody is told at once. Owned by the coordinator; its id follows from the sender and the message,
//! or from the rule and the entry of memory that have raised it.
//!
//! | state      | Raise by whoever may alert | Raise by anybody else | Fire: a rule is fulfilled | Report by whoever raised it, or may alert | report due |
//! |------------|----------------------------|-----------------------|---------------------------|-------------------------------------------|------------|
//! | not raised | raised                     | refused: unauthorized | raised                    | refused                                   | -          |
//! | raised     | ignored: repetition [1]    | refused [1]           | ignored                   | reported                                  | report_missed |
//! | missed     | ignored: repetition [1]    | refused [1]           | ignored                   | reported                                  | ignored    |
//! | reported   | ignored: repetition [1]    | refused [1]           | ignored                   | refused, or ignored: repetition           | ignored    |
//!
//! [1] Another alert under the same message id is refused.
//!
//! **Told once.** Everybody is told by one message that follows from `raised`, at the alert's priority. Its id follows from the event, so
//! that publishing it again changes nothing.

use concord_events::{
    AlertEvent, AlertRaised, AlertReported, Deadline, DeadlineElapsed, Heard, ReportMissed,
    StoredEvent, TOLD_MAX,
};
use concord_wire::payload::{Alert, REGIME_CHANGE, RegimeTerms};
use concord_wire::{AgentId, CaseId, Fault, Priority, Timestamp, Token};
use serde_json::json;

use super::case::reused_message_id;
use super::person::{Act, Authority};
use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine};

/// The name of the deadline of the report.
pub const REPORT: &str = "report";

/// The state machine of an alert.
#[derive(Debug, Clone, Copy)]
pub struct AlertMachine;

/// An alert.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertState {
    /// What was raised; `None` before.
    pub raised: Option<Box<AlertRaised>>,
    /// The report that has followed.
    pub report: Option<Box<AlertReported>>,
    /// Whether it did not follow in time.
    pub is_missed: bool,
}

/// One input of an alert.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertInput {
    /// Somebody alerts everybody.
    Raise(Box<ReceivedAlert>),
    /// An entry of memory fulfils a rule; its event says so.
    Fire(Box<FiredAlert>),
    /// Somebody reports what follows from the alert.
    Report(Box<ReceivedReport>),
    /// The time for the report is over.
    Elapsed(DeadlineElapsed),
}

/// A report, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedReport {
    /// The message that brought it, and its sender.
    pub heard: Heard,
    /// The report. The caller has checked its form.
    pub report: String,
    /// What is known of the sender.
    pub sender: Authority,
}

/// An alert that follows from an entry of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct FiredAlert {
    /// The message that brought the entry, and its sender.
    pub heard: Heard,
    /// At which priority everybody is to be told.
    pub priority: Priority,
    /// What is told.
    pub alert: Alert,
    /// Who is on the register.
    pub registered: Vec<AgentId>,
    /// What follows from a change of regime; none where operators have stored no rules.
    pub terms: Option<RegimeTerms>,
}

/// An alert, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedAlert {
    /// The message that brought it, and its sender.
    pub heard: Heard,
    /// The case in which it was said, if in one.
    pub case_id: Option<CaseId>,
    /// At which priority everybody is to be told.
    pub priority: Priority,
    /// What is told. The caller has checked its form.
    pub alert: Alert,
    /// What is known of the sender.
    pub sender: Authority,
    /// Who is on the register.
    pub registered: Vec<AgentId>,
    /// What follows from a change of regime; none where operators have stored no rules.
    pub terms: Option<RegimeTerms>,
}

/// The id of the alert that a message is.
pub fn id_of(from: &AgentId, message_id: &str) -> Token {
    Token::derived(&format!("alert/{from}/{message_id}"))
}

/// The time until which a report is to follow, and the gates that show the alert.
fn due(
    now: Timestamp,
    alert: &Alert,
    terms: Option<&RegimeTerms>,
) -> (Option<Timestamp>, Vec<String>) {
    let Some(terms) = terms.filter(|_| alert.event_type == REGIME_CHANGE) else {
        return (None, Vec::new());
    };
    let within = Some(terms.report_within_ms).filter(|millis| *millis > 0);
    (
        within.map(|millis| now.plus_millis(millis)),
        terms.gates.clone(),
    )
}

fn raised(
    (heard, case_id): (&Heard, Option<&CaseId>),
    (priority, registered): (Priority, &[AgentId]),
    alert: &Alert,
    (report_due, gates): (Option<Timestamp>, Vec<String>),
) -> AlertEvent {
    AlertEvent::Raised(AlertRaised {
        alert: alert.clone(),
        priority,
        case_id: case_id.cloned(),
        registered: registered.len() as u64,
        told: registered.iter().take(TOLD_MAX).cloned().collect(),
        heard: heard.clone(),
        report_due,
        gates,
    })
}

fn report(state: &AlertState, received: &ReceivedReport) -> Decision<AlertEvent> {
    let who = &received.heard.agent_id;
    let Some(raised) = &state.raised else {
        return Decision::Reject(Fault::invalid(
            "/payload/parameters/alert",
            "There is no such alert.",
            "Name one of `concord alert list`.",
        ));
    };
    if let Some(report) = &state.report {
        return if report.heard == received.heard {
            Decision::Ignore(Ignored::Repetition)
        } else {
            Decision::Reject(Fault::invalid(
                "/payload/parameters/alert",
                format!("{} has reported already.", report.heard.agent_id),
                "Write what is new into your memory, or alert again.",
            ))
        };
    }
    let has_raised = raised.heard.agent_id == *who;
    let checked = match has_raised {
        true => received.sender.check_active(who),
        false => received.sender.allow(who, &Act::Alert),
    };
    match checked {
        Err(fault) => Decision::Reject(fault),
        Ok(()) => Decision::Append(AlertEvent::Reported(AlertReported {
            report: received.report.clone(),
            heard: received.heard.clone(),
        })),
    }
}

fn missed(state: &AlertState, elapsed: &DeadlineElapsed) -> Decision<AlertEvent> {
    let open = AlertMachine::deadlines(state);
    let is_open = open
        .iter()
        .any(|one| one.name == elapsed.name && one.due == elapsed.due);
    match state.raised.as_ref().filter(|_| is_open) {
        None => Decision::Ignore(Ignored::DeadlineNotOpen),
        Some(raised) => Decision::Append(AlertEvent::ReportMissed(ReportMissed {
            due: elapsed.due,
            by: raised.heard.agent_id.clone(),
            event_type: raised.alert.event_type.clone(),
        })),
    }
}

impl Machine for AlertMachine {
    type State = AlertState;
    type Event = AlertEvent;
    type Input = AlertInput;

    fn decide(state: &AlertState, context: &Context, input: &AlertInput) -> Decision<AlertEvent> {
        let now = context.now;
        let received = match input {
            AlertInput::Raise(received) => received,
            AlertInput::Fire(_) if state.raised.is_some() => {
                return Decision::Ignore(Ignored::AlreadyDone);
            }
            AlertInput::Fire(fired) => {
                let FiredAlert {
                    heard,
                    priority,
                    alert,
                    registered,
                    terms,
                } = &**fired;
                let terms = due(now, alert, terms.as_ref());
                let told = (*priority, registered.as_slice());
                return Decision::Append(raised((heard, None), told, alert, terms));
            }
            AlertInput::Report(received) => return report(state, received),
            AlertInput::Elapsed(elapsed) => return missed(state, elapsed),
        };
        if let Some(raised) = &state.raised {
            return if raised.heard.digest == received.heard.digest {
                Decision::Ignore(Ignored::Repetition)
            } else {
                Decision::Reject(reused_message_id())
            };
        }
        let who = &received.heard.agent_id;
        if let Err(fault) = received.sender.allow(who, &Act::Alert) {
            return Decision::Reject(fault);
        }
        let said = (&received.heard, received.case_id.as_ref());
        let ReceivedAlert {
            priority,
            alert,
            registered,
            terms,
            ..
        } = &**received;
        let terms = due(now, alert, terms.as_ref());
        Decision::Append(raised(
            said,
            (*priority, registered.as_slice()),
            alert,
            terms,
        ))
    }

    fn apply(state: &mut AlertState, record: StoredEvent<AlertEvent>) {
        match record.event {
            AlertEvent::Raised(raised) => state.raised = Some(Box::new(raised)),
            AlertEvent::Reported(report) => state.report = Some(Box::new(report)),
            AlertEvent::ReportMissed(_) => state.is_missed = true,
        }
    }

    fn deadlines(state: &AlertState) -> Vec<Deadline> {
        let awaited = state.report.is_none() && !state.is_missed;
        let raised = state.raised.as_ref().filter(|_| awaited);
        let due = raised.and_then(|raised| raised.report_due);
        let open = due.map(|due| Deadline {
            name: Token::fixed(REPORT),
            due,
        });
        open.into_iter().collect()
    }

    fn effects(record: &StoredEvent<AlertEvent>) -> Vec<Effect> {
        let raised = match &record.event {
            AlertEvent::Raised(raised) => raised,
            AlertEvent::Reported(reported) => {
                return vec![Effect::Respond {
                    to: reported.heard.agent_id.clone(),
                    request_id: reported.heard.message_id.clone(),
                    result: json!({ "alert": record.meta.id }),
                }];
            }
            AlertEvent::ReportMissed(_) => return Vec::new(),
        };
        let alert = Alert {
            alert: Some(record.meta.id.clone()),
            raised_by: Some(raised.heard.agent_id.clone()),
            ..raised.alert.clone()
        };
        let told = Effect::Alert {
            priority: raised.priority,
            alert: Box::new(alert),
        };
        if raised.alert.source.is_some() {
            // The entry of memory was answered by itself.
            return vec![told];
        }
        let answer = Effect::Respond {
            to: raised.heard.agent_id.clone(),
            request_id: raised.heard.message_id.clone(),
            result: json!({ "alert": record.meta.id, "registered": raised.registered }),
        };
        vec![told, answer]
    }

    fn misplaced(before: &AlertState, event: &AlertEvent) -> Option<String> {
        let said = match event {
            AlertEvent::Raised(_) if before.raised.is_some() => "The alert was raised before.",
            AlertEvent::Reported(_) if before.report.is_some() => "It was reported before.",
            AlertEvent::Reported(_) | AlertEvent::ReportMissed(_) if before.raised.is_none() => {
                "The alert was not raised."
            }
            AlertEvent::ReportMissed(_) if before.report.is_some() || before.is_missed => {
                "No report was awaited."
            }
            _ => return None,
        };
        Some(said.to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests;
