//! Builders for tests, and [`Story`]: an aggregate that checks after every step what all steps must
//! keep.

use concord_events::Aggregate;
use concord_events::{
    AggregateEvent, Deadline, DeadlineElapsed, FiredBy, ReceivedFinding, StoredEvent,
};
use concord_wire::payload::{
    Answer, Conflict, ConflictOutcome, ConflictType, DebateTerms, Finding, OpenDebate, Position,
    Status, Task,
};
use concord_wire::policy::Policy;
use concord_wire::subject::{Subject, SubjectSpace};
use concord_wire::{AgentId, CaseId, DebateId, Envelope, MessageId, Timestamp, Token};
use serde_json::{Value, json};

use crate::aggregates::case::CaseInput;
use crate::aggregates::debate::{AnswerMessage, DebateInput, Opening, round_name};
use crate::machine::{Context, Decision, Machine, Versioned};
use crate::rules::size_budget::EVENT_BYTES_MAX;
use crate::{digest, effect};

mod detection;
mod opening;
mod people;
pub(crate) use detection::{detected, detection_of, opening_by_request};
pub(crate) use opening::{open_by_anybody, open_case, open_request};
pub(crate) use people::{authority, person};

pub(crate) fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

pub(crate) fn message(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

pub(crate) fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

pub(crate) fn case_id() -> CaseId {
    CaseId::new("c-1").unwrap()
}

/// The time at which every story begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-21T20:00:00Z").unwrap()
}

pub(crate) fn after(millis: u64) -> Timestamp {
    start().plus_millis(millis)
}

/// The context of a message with this id.
pub(crate) fn said(id: &str, millis: u64) -> Context {
    Context::of_message(after(millis), message(id))
}

/// The context of an event with this id.
pub(crate) fn happened(id: &str, millis: u64) -> Context {
    Context::of_event(after(millis), message(id))
}

pub(crate) fn policy() -> Policy {
    Policy::contract_review()
}

/// An aggregate with all its stored events, each encoded and decoded again as if from the stream.
pub(crate) struct Story<M: Machine> {
    pub(crate) id: Token,
    pub(crate) versioned: Versioned<M>,
    pub(crate) records: Vec<StoredEvent<M::Event>>,
    pub(crate) sequence: u64,
}

impl<M: Machine> Story<M> {
    pub(crate) fn of(id: &str) -> Self {
        Self {
            id: token(id),
            versioned: Versioned::default(),
            records: Vec::new(),
            sequence: 10,
        }
    }

    /// Whether each event has an id of its own, without which the broker would not store it.
    pub(crate) fn has_one_id_each(&self) -> bool {
        let ids = self.records.iter().map(|one| &one.meta.event_id);
        ids.collect::<std::collections::BTreeSet<_>>().len() == self.records.len()
    }

    /// Decides about an input. Returns the name of the event, `ignored: <reason>` or `refused:
    /// <pointer>`.
    pub(crate) fn hears(&mut self, context: &Context, input: &M::Input) -> String {
        match M::decide(&self.versioned.state, context, input) {
            Decision::Append(event) => {
                self.store(context, event);
                self.last().event.name().to_owned()
            }
            Decision::Ignore(why) => format!("ignored: {}", why.as_str()),
            Decision::Reject(fault) => format!("refused: {}", fault.pointer),
        }
    }

    pub(crate) fn state(&self) -> &M::State {
        &self.versioned.state
    }

    pub(crate) fn last(&self) -> &StoredEvent<M::Event> {
        self.records.last().unwrap()
    }

    fn store(&mut self, context: &Context, event: M::Event) {
        let before = M::deadlines(&self.versioned.state);
        // Other aggregates store events in between.
        self.sequence += 3;
        let mut record = self.versioned.record(&self.id, context, event);
        record.sequence = self.sequence;
        let bytes = record.encode().unwrap();
        assert!(
            bytes.len() <= EVENT_BYTES_MAX,
            "{} has {} bytes",
            record.event.name(),
            bytes.len()
        );
        let stored = StoredEvent::<M::Event>::decode(&bytes, record.sequence).unwrap();
        assert_eq!(stored, record, "what is read is what was written");
        self.versioned.apply(stored.clone());
        keeps_its_word::<M>(&self.versioned, &stored, &before);
        self.records.push(stored);
    }
}

/// Checks that a stored event states its deadlines as they are, and that the table of events tells
/// the truth about it.
fn keeps_its_word<M: Machine>(
    after: &Versioned<M>,
    record: &StoredEvent<M::Event>,
    before: &[Deadline],
) {
    let open = M::deadlines(&after.state);
    assert_eq!(
        record.meta.deadlines, open,
        "deadlines of {:?}",
        record.event
    );
    let moved = before != open;
    assert_eq!(
        moved,
        !(record.meta.opened.is_empty() && record.meta.closed.is_empty()),
        "{:?}",
        record.meta
    );
    let info = M::Event::EVENTS
        .iter()
        .find(|info| info.name == record.event.name())
        .unwrap();
    assert!(
        info.moves_deadlines || !moved,
        "{} moves deadlines",
        info.name
    );
    let messages = effect::messages::<M>(record).unwrap();
    assert!(
        info.has_effects || messages.is_empty(),
        "{} has effects",
        info.name
    );
    for (place, sent) in messages.iter().enumerate() {
        let bytes = serde_json::to_vec(sent).unwrap();
        assert!(
            bytes.len() <= EVENT_BYTES_MAX,
            "an effect of {} has {} bytes",
            info.name,
            bytes.len()
        );
        let subject = sent.subject();
        let space = SubjectSpace::default();
        assert_eq!(
            space.parse::<Subject>(&space.build(&subject)),
            Ok(subject.clone())
        );
        let read = Envelope::decode(&bytes, &subject).unwrap();
        assert_eq!(
            read.message_id,
            effect::effect_id(&record.meta.id, record.sequence, place)
        );
        assert_eq!(
            effect::source_of(read.message_id.as_str()),
            Some((record.meta.id.as_str(), record.sequence))
        );
        assert_eq!(read.from_agent, M::Event::AGGREGATE.owner().agent_id());
    }
}

/// A deadline that has passed.
pub(crate) fn elapsed(
    aggregate: Aggregate,
    id: &Token,
    name: &str,
    due: Timestamp,
) -> DeadlineElapsed {
    DeadlineElapsed {
        aggregate,
        id: id.clone(),
        name: token(name),
        due,
        fired_by: FiredBy::Scheduler,
        lateness_ms: 0,
    }
}

pub(crate) fn task() -> Task {
    Task {
        kind: "contract_review".into(),
        title: "Lease".into(),
        input: json!({"pages": 3}),
    }
}

/// A finding as the coordinator passes it on.
pub(crate) fn received(
    from: &str,
    message_id: &str,
    confidence: f64,
    finding: Value,
) -> ReceivedFinding {
    let mut fields = json!({ "summary": format!("{from} has read it") });
    fields
        .as_object_mut()
        .unwrap()
        .extend(finding.as_object().unwrap().clone());
    let finding: Finding = serde_json::from_value(fields).unwrap();
    ReceivedFinding {
        agent_id: agent(from),
        message_id: message(message_id),
        digest: digest(&serde_json::to_vec(&finding).unwrap()),
        confidence,
        finding,
    }
}

pub(crate) fn finding(from: &str, message_id: &str, finding: Value) -> CaseInput {
    CaseInput::Finding(Box::new(received(from, message_id, 0.8, finding)))
}

pub(crate) fn position(of: &str, value: Value, confidence: f64) -> Position {
    Position {
        agent_id: agent(of),
        position: value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        value: Some(value),
        confidence,
        evidence: Vec::new(),
        reasoning: None,
        evidence_omitted: 0,
    }
}

pub(crate) fn conflict(
    id: &str,
    kind: ConflictType,
    subject: &str,
    held: &[(&str, Value, f64)],
) -> Conflict {
    Conflict {
        conflict_id: DebateId::new(id).unwrap(),
        kind,
        topic: format!("About {subject}"),
        subject: subject.into(),
        weight: 0.5,
        positions: held
            .iter()
            .map(|(of, value, confidence)| position(of, value.clone(), *confidence))
            .collect(),
        positions_omitted: 0,
    }
}

/// The outcome of a debate about `conflict` with this status and value.
pub(crate) fn outcome(
    conflict: &Conflict,
    status: Status,
    chosen: Option<Value>,
) -> ConflictOutcome {
    ConflictOutcome {
        conflict_id: conflict.conflict_id.clone(),
        status,
        resolution: chosen.map(|value| concord_wire::payload::Resolution {
            position: value.to_string(),
            value: Some(value),
            supporters: conflict
                .positions
                .iter()
                .map(|position| position.agent_id.clone())
                .collect(),
        }),
        tally: None,
        rounds: Vec::new(),
        positions: conflict.positions.clone(),
        positions_omitted: 0,
        resolved_at: start(),
        level: None,
        mediation: None,
        ruled_by: None,
        provisional: None,
        debated_again_as: None,
        dependants: Vec::new(),
    }
}

pub(crate) fn open_debate(conflict: Conflict, policy: Policy) -> DebateInput {
    let terms = DebateTerms::default();
    DebateInput::Open(Box::new(Opening::of(OpenDebate {
        case_id: case_id(),
        conflict,
        policy,
        terms,
    })))
}

pub(crate) fn no_answer() -> Answer {
    Answer {
        revised_position: None,
        value: None,
        confidence: None,
        agrees_with_peer: None,
        agrees_with: None,
        reasoning: String::new(),
        evidence: Vec::new(),
        answered_by: None,
    }
}

/// An answer of the given kind: `agreement`, `disagreement` or `revision`.
pub(crate) fn given(from: &str, message_id: &str, kind: &str, answer: Answer) -> AnswerMessage {
    AnswerMessage {
        agent_id: agent(from),
        message_id: message(message_id),
        digest: digest(&serde_json::to_vec(&answer).unwrap()),
        case_id: None,
        question_sequence: None,
        round: None,
        is_agreement: kind == "agreement",
        is_disagreement: kind == "disagreement",
        confidence: None,
        snapshot: None,
        answer,
    }
}

pub(crate) fn answers(given: AnswerMessage) -> DebateInput {
    DebateInput::Answer(Box::new(given))
}

/// The party keeps its position.
pub(crate) fn keeps(from: &str, message_id: &str) -> DebateInput {
    answers(given(from, message_id, "disagreement", no_answer()))
}

/// The party takes the position of a peer.
pub(crate) fn joins(from: &str, message_id: &str, peer: &str) -> DebateInput {
    answers(given(
        from,
        message_id,
        "agreement",
        Answer {
            agrees_with: Some(agent(peer)),
            ..no_answer()
        },
    ))
}

/// The party moves to a value.
pub(crate) fn moves_to(from: &str, message_id: &str, value: Value) -> DebateInput {
    answers(given(
        from,
        message_id,
        "revision",
        Answer {
            value: Some(value),
            ..no_answer()
        },
    ))
}

pub(crate) fn round_due(id: &Token, round: u32, due: Timestamp) -> DebateInput {
    let name = round_name(round);
    DebateInput::Elapsed(elapsed(Aggregate::Debate, id, name.as_str(), due))
}

pub(crate) fn case_due(name: &str, due: Timestamp) -> CaseInput {
    CaseInput::Elapsed(elapsed(Aggregate::Case, &case_id().token(), name, due))
}
