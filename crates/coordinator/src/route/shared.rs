//! Which messages are about what is shared: boards, commitments, analyses, memory, and alerts.

use concord_domain::aggregates::alert::{self, AlertInput, ReceivedAlert, ReceivedReport};
use concord_domain::aggregates::board::{BoardInput, ReceivedPut};
use concord_domain::aggregates::commitment::{CommitmentInput, ReceivedCommitment, id_of};
use concord_domain::aggregates::impact::ReceivedAnalysis;
use concord_domain::aggregates::memory::{MemoryInput, ReceivedMemory};
use concord_domain::aggregates::person::Authority;
use concord_domain::rules::alerting::Watched;
use concord_events::{LeaseBounds, MemoryBounds};
use concord_wire::payload::{
    Alert, BOARD_PUT, Commitment, MEMORY_PUT, PUBLISH_ANALYSIS, PublishAnalysis, PutEntry,
    REPORT_ALERT, Remember, ReportAlert, action_of, parameters_of,
};
use concord_wire::{CaseId, Envelope, Fault, MessageType, Token};
use serde::de::DeserializeOwned;

use crate::route::heard;

/// Where the parameters of a request stand.
const PARAMETERS: &str = "/payload/parameters";

/// A message about what is shared, for the aggregate that it is about.
#[derive(Debug, Clone)]
pub enum SharedInput {
    /// For the board of a case.
    Board(CaseId, BoardInput),
    /// For the commitments of a case, or for those about a resource.
    Commitment(Token, CommitmentInput),
    /// For the analyses of a case.
    Analysis(Box<ReceivedAnalysis>),
    /// For the memory of its sender.
    Memory(MemoryInput),
    /// An alert, of which everybody is to be told, or the report that follows one.
    Alert(Token, AlertInput),
}

/// What bounds what is shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedBounds {
    /// How long commitments last, and how many there are.
    pub leases: LeaseBounds,
    /// How much is kept of an agent's memory.
    pub memory: MemoryBounds,
}

/// A message that is about what is shared; none when it is about something else.
pub fn from_message(
    envelope: &Envelope,
    bounds: SharedBounds,
) -> Result<Option<SharedInput>, Fault> {
    if envelope.message_type == MessageType::Commitment {
        return commitment(envelope, bounds.leases).map(Some);
    }
    if envelope.message_type == MessageType::Alert {
        return alert(envelope).map(Some);
    }
    if envelope.message_type != MessageType::Request {
        return Ok(None);
    }
    match action_of(envelope).as_deref() {
        Ok(BOARD_PUT) => put(envelope).map(Some),
        Ok(PUBLISH_ANALYSIS) => analysis(envelope).map(Some),
        Ok(MEMORY_PUT) => memory(envelope, bounds.memory).map(Some),
        Ok(REPORT_ALERT) => report(envelope).map(Some),
        _ => Ok(None),
    }
}

/// The case of a message, and the parameters of the request that it is.
fn in_case<T: DeserializeOwned>(envelope: &Envelope, what: &str) -> Result<(CaseId, T), Fault> {
    let case_id = envelope.case_id.clone().ok_or_else(|| {
        Fault::invalid(
            "/case_id",
            format!("{what} belongs to a case."),
            "Publish on the msg subject of the case.",
        )
    })?;
    Ok((case_id, parameters_of(envelope)?))
}

/// What the case says about whom it reaches is to be read before it is decided on.
fn memory(envelope: &Envelope, bounds: MemoryBounds) -> Result<SharedInput, Fault> {
    let mut entry: Remember = parameters_of(envelope)?;
    entry.check(&envelope.from_agent, PARAMETERS)?;
    entry.confidence = entry.confidence.or(envelope.metadata.confidence);
    // Whose memory it is, its event says.
    entry.agent = None;
    Ok(SharedInput::Memory(MemoryInput::Put(Box::new(
        ReceivedMemory {
            heard: heard(envelope),
            case_id: envelope.case_id.clone(),
            entry,
            bounds,
            watched: Watched::default(),
            written_in: None,
        },
    ))))
}

fn put(envelope: &Envelope) -> Result<SharedInput, Fault> {
    let (case_id, mut put) = in_case::<PutEntry>(envelope, "A board")?;
    put.check(PARAMETERS)?;
    put.confidence = put.confidence.or(envelope.metadata.confidence);
    let received = ReceivedPut {
        heard: heard(envelope),
        case_id: case_id.clone(),
        put,
    };
    let input = BoardInput::Put(Box::new(received));
    Ok(SharedInput::Board(case_id, input))
}

fn analysis(envelope: &Envelope) -> Result<SharedInput, Fault> {
    let (case_id, mut analysis) = in_case::<PublishAnalysis>(envelope, "An analysis")?;
    analysis.check(PARAMETERS)?;
    analysis.confidence = analysis.confidence.or(envelope.metadata.confidence);
    Ok(SharedInput::Analysis(Box::new(ReceivedAnalysis {
        heard: heard(envelope),
        case_id,
        analysis,
    })))
}

/// The sender and who is on the register are to be read before it is decided on.
fn alert(envelope: &Envelope) -> Result<SharedInput, Fault> {
    let mut alert: Alert = envelope.payload()?;
    alert.confidence = alert.confidence.or(envelope.metadata.confidence);
    // What only the coordinator writes.
    (alert.alert, alert.raised_by, alert.source) = (None, None, None);
    alert.check("/payload")?;
    let id = alert::id_of(&envelope.from_agent, envelope.message_id.as_str());
    let received = ReceivedAlert {
        heard: heard(envelope),
        case_id: envelope.case_id.clone(),
        priority: envelope.priority,
        alert,
        sender: Authority::default(),
        registered: Vec::new(),
        terms: None,
    };
    Ok(SharedInput::Alert(
        id,
        AlertInput::Raise(Box::new(received)),
    ))
}

fn report(envelope: &Envelope) -> Result<SharedInput, Fault> {
    let report: ReportAlert = parameters_of(envelope)?;
    report.check(PARAMETERS)?;
    let received = ReceivedReport {
        heard: heard(envelope),
        report: report.report,
        sender: Authority::default(),
    };
    let input = AlertInput::Report(Box::new(received));
    Ok(SharedInput::Alert(report.alert, input))
}

fn commitment(envelope: &Envelope, bounds: LeaseBounds) -> Result<SharedInput, Fault> {
    let said: Commitment = envelope.payload()?;
    said.check()?;
    let case_id = envelope.case_id.clone();
    let id = id_of(case_id.as_ref(), &said.resource);
    let received = ReceivedCommitment {
        heard: heard(envelope),
        case_id,
        said,
        bounds,
    };
    let input = CommitmentInput::Said(Box::new(received));
    Ok(SharedInput::Commitment(id, input))
}

#[cfg(test)]
mod tests {
    use concord_wire::subject::SubjectSpace;
    use serde_json::{Value, json};

    use super::*;

    fn read(case: &str, kind: &str, payload: Value) -> Result<Option<SharedInput>, Fault> {
        let mut message = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "ann", "to_agent": "coordinator",
            "message_type": kind, "payload": payload, "metadata": { "confidence": 0.7 },
        });
        if case != "_" {
            message["case_id"] = json!(case);
        }
        let subject = format!("concord.v1.msg.{case}.ann.coordinator.{kind}");
        let subject = SubjectSpace::default().parse(&subject).unwrap();
        let envelope = Envelope::decode(message.to_string().as_bytes(), &subject).unwrap();
        from_message(&envelope, SharedBounds::default())
    }

    #[test]
    fn a_put_belongs_to_a_case_and_takes_the_confidence_of_its_message() {
        let put = |parameters: Value| json!({ "action": BOARD_PUT, "parameters": parameters });
        let good = json!({ "name": "plan", "based_on": 0, "value": [1] });
        let Ok(Some(SharedInput::Board(case_id, BoardInput::Put(received)))) =
            read("c-1", "request", put(good.clone()))
        else {
            panic!("it is an entry");
        };
        assert_eq!(case_id.as_str(), "c-1");
        assert_eq!(received.put.confidence, Some(0.7));
        for (case, parameters, pointer) in [
            ("_", good, "/case_id"),
            (
                "c-1",
                json!({ "name": "plan", "value": 1 }),
                "/payload/parameters/based_on",
            ),
            (
                "c-1",
                json!({ "name": "plan", "based_on": 0, "value": "v".repeat(1 << 17) }),
                "/payload/parameters/value",
            ),
        ] {
            let fault = read(case, "request", put(parameters)).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
        }
    }

    #[test]
    fn an_analysis_belongs_to_a_case_and_takes_the_confidence_of_its_message() {
        let publish = |case, parameters: Value| {
            let payload = json!({ "action": PUBLISH_ANALYSIS, "parameters": parameters });
            read(case, "request", payload)
        };
        let good = json!({ "analysis_id": "dcf", "type": "valuation" });
        let Ok(Some(SharedInput::Analysis(received))) = publish("c-1", good.clone()) else {
            panic!("it is an analysis");
        };
        assert_eq!(received.case_id.as_str(), "c-1");
        assert_eq!(received.analysis.confidence, Some(0.7));
        for (case, parameters, pointer) in [
            ("_", good, "/case_id"),
            (
                "c-1",
                json!({ "analysis_id": "dcf" }),
                "/payload/parameters/type",
            ),
            (
                "c-1",
                json!({ "analysis_id": "dcf", "type": " " }),
                "/payload/parameters/type",
            ),
        ] {
            let fault = publish(case, parameters).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
        }
    }

    #[test]
    fn memory_is_that_of_its_sender_in_a_case_or_in_none() {
        let put = |case, parameters: Value| {
            read(
                case,
                "request",
                json!({ "action": MEMORY_PUT, "parameters": parameters }),
            )
        };
        let good = json!({ "agent": "ann", "topic": "margin", "value": 0.25, "importance": 0.9 });
        for (case, expected) in [("_", None), ("c-1", Some("c-1"))] {
            let Ok(Some(SharedInput::Memory(MemoryInput::Put(received)))) = put(case, good.clone())
            else {
                panic!("it is for memory");
            };
            assert_eq!(received.case_id.as_ref().map(CaseId::as_str), expected);
            assert_eq!(received.entry.confidence, Some(0.7));
        }
        for (field, value, pointer) in [
            ("agent", json!("ben"), "/payload/parameters/agent"),
            ("importance", json!(2), "/payload/parameters/importance"),
            ("topic", json!("a.b"), "/payload/parameters/topic"),
        ] {
            let mut parameters = good.clone();
            parameters[field] = value;
            let fault = put("_", parameters).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
        }
    }

    #[test]
    fn other_messages_are_for_others() {
        for (kind, payload) in [
            (
                "request",
                json!({ "action": "open_case", "parameters": {} }),
            ),
            ("request", json!({})),
            ("finding", json!({ "action": BOARD_PUT })),
        ] {
            assert!(read("c-1", kind, payload).unwrap().is_none(), "{kind}");
        }
    }

    #[test]
    fn a_resource_of_a_case_is_not_that_of_another_or_of_none() {
        let id = |case| match read(case, "commitment", json!({ "resource": "build" })) {
            Ok(Some(SharedInput::Commitment(id, _))) => id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id("c-1").as_str(), "c-1");
        assert_ne!(id("c-1"), id("c-2"));
        assert_ne!(id("_"), id("c-1"));
        let fault = read("c-1", "commitment", json!({ "resource": 7 })).unwrap_err();
        assert_eq!(fault.pointer, "/payload/resource");
    }
}
