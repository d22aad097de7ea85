//! The examples of `proto-schemas/examples/` against two readers that share no code: the generated JSON Schemas, read
//! by the `jsonschema` crate, and the types of the protocol. Both accept the same ones, and refuse the same ones at the
//! same place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use concord_events::dead_letter::DeadLetter;
use concord_events::{Aggregate, AggregateEvent, EventVisitor, StoredEvent};
use concord_wire::envelope::from_json;
use concord_wire::payload::{
    ADD_PARTICIPANT, Acknowledgement, AddParticipant, AgentJoined, Alert, Answer, Award, BOARD_PUT,
    Bid, CallForProposals, Card, Challenge, Clarification, CollaborationInvite, Commitment,
    Confirmation, Decline, ErrorReport, Evidence, ExpertiseOffer, Finding, GroupQuestion, Handoff,
    InfoUpdate, MEMORY_PUT, Notification, NotificationData, OPEN_TASK, OpenCase, OpenDebate,
    OpenTask, OutcomeReport, PUBLISH_ANALYSIS, PublishAnalysis, PutEntry, Question, REGISTER_AGENT,
    Remember, Request, Response, Review, Ruling, SessionBriefing, StatusMessage, TaskAssignment,
    TaskResult, UPDATE_AGENT,
};
use concord_wire::policy::Policy;
use concord_wire::subject::{Service, Subject, SubjectSpace};
use concord_wire::{Envelope, Fault, MessageType, Recipient};
use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use xtask::schema;

/// One example: the file's name, the document it is an example of, and its contents.
struct Example {
    name: String,
    document: String,
    contents: Value,
}

/// The examples of a folder. A name is that of the document, and may go on with a dot and what is special about it.
fn examples(folder: &str) -> Vec<Example> {
    let documents: Vec<String> = schema::documents()
        .into_iter()
        .map(|(file, _)| file.strip_suffix(".schema.json").unwrap().to_owned())
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../proto-schemas/examples")
        .join(folder);
    let mut examples: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let document = document_of(&name, &documents);
            let contents = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            Example {
                name,
                document,
                contents,
            }
        })
        .collect();
    examples.sort_by(|a, b| a.name.cmp(&b.name));
    examples
}

/// The longest name of a document with which the name of an example begins.
fn document_of(example: &str, documents: &[String]) -> String {
    let begins = |document: &&String| {
        let rest = example.strip_prefix(document.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let named = documents.iter().filter(begins);
    let longest = named.max_by_key(|document| document.len());
    longest
        .unwrap_or_else(|| panic!("{example} names no document"))
        .clone()
}

/// The validators of all documents, by the document's name.
fn validators() -> BTreeMap<String, Validator> {
    let documents = schema::documents().into_iter();
    documents
        .map(|(file, document)| {
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&document)
                .unwrap();
            (
                file.strip_suffix(".schema.json").unwrap().to_owned(),
                validator,
            )
        })
        .collect()
}

#[test]
fn both_readers_accept_what_is_accepted_and_what_is_written_again_is_accepted_too() {
    let validators = validators();
    for Example {
        name,
        document,
        contents,
    } in examples("accepted")
    {
        let valid = |value: &Value, what: &str| {
            let faults: Vec<_> = validators[&document]
                .iter_errors(value)
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(faults.is_empty(), "{name}, {what}: {faults:#?}");
        };
        valid(&contents, "as it stands");
        let again =
            read(&document, &contents).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        valid(&again, "written again");
    }
}

#[test]
fn both_readers_refuse_what_is_rejected_at_the_same_place() {
    let validators = validators();
    for Example {
        name,
        document,
        contents,
    } in examples("rejected")
    {
        let pointer = contents["pointer"].as_str().unwrap();
        assert!(
            contents["why"].as_str().is_some_and(|why| !why.is_empty()),
            "{name}"
        );
        let errors: Vec<_> = validators[&document]
            .iter_errors(&contents["message"])
            .collect();
        let places: BTreeSet<String> = errors.iter().flat_map(places).collect();
        assert!(
            places.contains(pointer),
            "{name}: by its schema at {places:?}, expected at {pointer:?}"
        );
        match read(&document, &contents["message"]) {
            Ok(_) => panic!("{name}: the types accept it"),
            Err(Some(found)) => assert_eq!(found, pointer, "{name}: by its types"),
            Err(None) => assert!(
                document.starts_with("event."),
                "{name}: the types name no place"
            ),
        }
    }
}

#[test]
fn message_types_and_notifications_have_examples_of_each_kind_and_aggregates_an_accepted_one() {
    let of = |folder| {
        examples(folder)
            .into_iter()
            .map(|example| example.document)
            .collect::<BTreeSet<_>>()
    };
    let (accepted, rejected) = (of("accepted"), of("rejected"));
    for name in MessageType::KNOWN {
        assert!(accepted.contains(*name), "no accepted example of {name}");
        assert!(rejected.contains(*name), "no rejected example of {name}");
    }
    for info in NotificationData::ALL {
        let name = format!("notification.{}", info.event);
        assert!(accepted.contains(&name), "no accepted example of {name}");
        assert!(rejected.contains(&name), "no rejected example of {name}");
    }
    for (aggregate, _) in concord_events::all_events() {
        let prefix = format!("event.{aggregate}.");
        assert!(
            accepted.iter().any(|name| name.starts_with(&prefix)),
            "no accepted example of an event of a {aggregate}"
        );
    }
}

/// Where an error of a schema is: a missing or surplus property may be named itself or by the object it concerns.
fn places(error: &ValidationError<'_>) -> Vec<String> {
    let place = error.instance_path().to_string();
    let names: Vec<String> = match error.kind() {
        ValidationErrorKind::Required { property } => {
            property.as_str().map(str::to_owned).into_iter().collect()
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.clone(),
        _ => Vec::new(),
    };
    let inner = names.into_iter().map(|name| format!("{place}/{name}"));
    inner.chain([place.clone()]).collect()
}

// === The other reader: the protocol's types ===

/// Reads an example as a service would; gives it back as it would be written, or the place of the fault where one is
/// named. A stored event that cannot be read has no sender to tell, so no place is named.
fn read(document: &str, contents: &Value) -> Result<Value, Option<String>> {
    let bytes = contents.to_string().into_bytes();
    let at = |fault: Fault| Some(fault.pointer);
    match document {
        "open_case" => from_json::<OpenCase>(&bytes, "").map(written).map_err(at),
        "dead-letter" => from_json::<DeadLetter>(&bytes, "").map(written).map_err(at),
        event if event.starts_with("event.") => {
            let aggregate = event.split('.').nth(1).unwrap();
            let aggregate = Aggregate::parse(aggregate).unwrap();
            aggregate.visit_event(ReadStored(&bytes))
        }
        message => envelope(message, contents, &bytes).map_err(at),
    }
}

fn written(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// Reads a stored event, and gives it back as it would be stored.
struct ReadStored<'a>(&'a [u8]);

impl EventVisitor for ReadStored<'_> {
    type Output = Result<Value, Option<String>>;

    fn visit<E: AggregateEvent>(self) -> Self::Output {
        let stored = StoredEvent::<E>::decode(self.0, 1).map_err(|_| None)?;
        Ok(serde_json::from_slice(&stored.encode().unwrap()).unwrap())
    }
}

fn envelope(document: &str, contents: &Value, bytes: &[u8]) -> Result<Value, Fault> {
    let envelope = Envelope::decode(bytes, &subject(document, contents))?;
    let payload = match document.strip_prefix("notification.") {
        Some(event) => notification(&envelope, event)?,
        None => payload(&envelope)?,
    };
    let mut again = written(&envelope);
    again["payload"] = payload;
    Ok(again)
}

/// The subject an honest sender would use: that of the envelope, with any name that is not a token replaced.
fn subject(document: &str, contents: &Value) -> Subject {
    let token =
        |name: &str, otherwise: &str| contents[name].as_str().unwrap_or(otherwise).to_owned();
    let kind = if document == "envelope" {
        token("message_type", "unknown")
    } else {
        document.split('.').next().unwrap().to_owned()
    };
    let (case, from, to) = (
        token("case_id", "_"),
        token("from_agent", "somebody"),
        token("to_agent", "somebody"),
    );
    let case = if case == "_" || case.parse::<concord_wire::CaseId>().is_ok() {
        case
    } else {
        "_".into()
    };
    let from = if from.parse::<concord_wire::AgentId>().is_ok() {
        from
    } else {
        "somebody".into()
    };
    let to = if Recipient::new(&to).is_ok() {
        to
    } else {
        "somebody".into()
    };
    SubjectSpace::default()
        .parse(&format!("concord.v1.msg.{case}.{from}.{to}.{kind}"))
        .unwrap()
}

/// A payload with its own check, as it is written again.
fn checked<T: DeserializeOwned + Serialize>(
    envelope: &Envelope,
    check: impl Fn(&T) -> Result<(), Fault>,
) -> Result<Value, Fault> {
    let payload: T = envelope.payload()?;
    check(&payload)?;
    Ok(written(payload))
}

/// Reads the payload as its type and checks it, as the service that acts on the type does.
fn payload(envelope: &Envelope) -> Result<Value, Fault> {
    fn typed<T: DeserializeOwned + Serialize>(envelope: &Envelope) -> Result<Value, Fault> {
        envelope.payload::<T>().map(written)
    }
    match &envelope.message_type {
        MessageType::Finding | MessageType::FindingWithPrecedent => {
            Ok(written(Finding::read(&envelope.payload)?))
        }
        MessageType::Agreement | MessageType::Disagreement | MessageType::Revision => {
            let answer: Answer = envelope.payload()?;
            answer.check()?;
            Ok(written(answer))
        }
        MessageType::Request => request(envelope),
        MessageType::Question => typed::<Question>(envelope),
        MessageType::Response => typed::<Response>(envelope),
        MessageType::Notification => typed::<Notification>(envelope),
        MessageType::Error => typed::<ErrorReport>(envelope),
        MessageType::TaskAssignment => typed::<TaskAssignment>(envelope),
        MessageType::TaskResult => typed::<TaskResult>(envelope),
        MessageType::Handoff => typed::<Handoff>(envelope),
        MessageType::CallForProposals => typed::<CallForProposals>(envelope),
        MessageType::Refuse => typed::<Decline>(envelope),
        MessageType::Award => typed::<Award>(envelope),
        MessageType::Bid => {
            let payload: Bid = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        MessageType::Acknowledgement => typed::<Acknowledgement>(envelope),
        MessageType::Clarification => typed::<Clarification>(envelope),
        MessageType::Challenge => {
            let payload: Challenge = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        MessageType::AgentJoined => typed::<AgentJoined>(envelope),
        MessageType::SessionBriefing => typed::<SessionBriefing>(envelope),
        MessageType::InfoUpdate => typed::<InfoUpdate>(envelope),
        MessageType::Status => typed::<StatusMessage>(envelope),
        MessageType::Alert => checked(envelope, |alert: &Alert| alert.check("/payload")),
        MessageType::Commitment => checked(envelope, Commitment::check),
        MessageType::Confirmation => typed::<Confirmation>(envelope),
        MessageType::Evidence => {
            let payload: Evidence = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        MessageType::Ruling => {
            let payload: Ruling = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        MessageType::Outcome => {
            let payload: OutcomeReport = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        MessageType::Review => {
            let payload: Review = envelope.payload()?;
            payload.check()?;
            Ok(written(payload))
        }
        _ => group(envelope),
    }
}

/// The same of what is said to the group, and of types whose payload is any object.
fn group(envelope: &Envelope) -> Result<Value, Fault> {
    match &envelope.message_type {
        MessageType::GroupQuery | MessageType::PeerRequest => {
            GroupQuestion::of(envelope).map(written)
        }
        MessageType::ExpertiseOffer => envelope.payload::<ExpertiseOffer>().map(written),
        MessageType::CollaborationInvite => envelope.payload::<CollaborationInvite>().map(written),
        _ => envelope.payload::<Map<String, Value>>().map(written),
    }
}

/// Reads a notification of Concord as the type of its event.
fn notification(envelope: &Envelope, event: &str) -> Result<Value, Fault> {
    let notification: Notification = envelope.payload()?;
    assert_eq!(notification.event, event);
    let data = notification.typed().unwrap()?;
    Ok(written(Notification::new(&data).unwrap()))
}

fn request(envelope: &Envelope) -> Result<Value, Fault> {
    const PARAMETERS: &str = "/payload/parameters";
    let request: Request = envelope.payload()?;
    let parameters = request.parameters.to_string().into_bytes();
    let to = |service: Service| envelope.to_agent == Recipient::Agent(service.agent_id());
    let read = match request.action.as_str() {
        "open_case" if to(Service::Coordinator) => {
            let open: OpenCase = from_json(&parameters, PARAMETERS)?;
            Policy::resolve(&open.policy, &format!("{PARAMETERS}/policy"))?;
            written(open)
        }
        "open_debate" if to(Service::DebateFacilitator) => {
            written(from_json::<OpenDebate>(&parameters, PARAMETERS)?)
        }
        OPEN_TASK if to(Service::Coordinator) => {
            written(from_json::<OpenTask>(&parameters, PARAMETERS)?)
        }
        ADD_PARTICIPANT if to(Service::Coordinator) => {
            written(from_json::<AddParticipant>(&parameters, PARAMETERS)?)
        }
        BOARD_PUT if to(Service::Coordinator) => {
            let put: PutEntry = from_json(&parameters, PARAMETERS)?;
            put.check(PARAMETERS)?;
            written(put)
        }
        MEMORY_PUT if to(Service::Coordinator) => {
            let remember: Remember = from_json(&parameters, PARAMETERS)?;
            remember.check(&envelope.from_agent, PARAMETERS)?;
            written(remember)
        }
        PUBLISH_ANALYSIS if to(Service::Coordinator) => {
            let analysis: PublishAnalysis = from_json(&parameters, PARAMETERS)?;
            analysis.check(PARAMETERS)?;
            written(analysis)
        }
        REGISTER_AGENT | UPDATE_AGENT if to(Service::Coordinator) => {
            let card: Card = from_json(&parameters, PARAMETERS)?;
            card.check(PARAMETERS)?;
            written(card)
        }
        _ => {
            request.check()?;
            request.parameters.clone()
        }
    };
    let mut again = written(&request);
    again["parameters"] = json!(read);
    Ok(again)
}
