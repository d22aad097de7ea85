//! A small installation in memory: its streams, and one case told from the opening to a message
//! that came too late.

use concord_events::subject::SystemSubject;
use concord_events::{
    AggregateEvent, CaseOpened, Deadline, DeadlineEvent, FiredBy, ReceivedFinding, StoredEvent,
};
use concord_wire::Envelope;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Extensions, Metadata, Priority, Recipient};
use serde_json::{Value, json};

use super::super::*;
use crate::aggregates::deadline::{DeadlineMachine, Fire};
use crate::aggregates::debate::{DebateInput, DebateMachine, round_name};
use crate::aggregates::detection::DetectionMachine;
use crate::fixtures::*;
use crate::machine::{Context, Decision, Machine, Versioned};
use crate::{aggregates::case, effect};

/// A stored message, or an event with its aggregate, id and event in the subject.
#[derive(Clone)]
pub(super) struct Stored<S = Subject> {
    pub(super) sequence: u64,
    pub(super) subject: S,
    pub(super) bytes: Vec<u8>,
}

#[derive(Default, Clone)]
pub(super) struct Hall {
    pub(super) events: Vec<Stored<SystemSubject>>,
    pub(super) messages: Vec<Stored>,
    /// By `message_id`, or by place where that is not known.
    pub(super) dead: Vec<Result<String, u64>>,
    pub(super) malformed: Vec<u64>,
}

/// How far the case is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Until {
    FindingsClosed,
    RoundDue,
    Decided,
    End,
}

impl Hall {
    pub(super) fn report(&self, ending: &Ending) -> Report {
        let mut auditor = Auditor::new();
        let dead: Vec<_> = self
            .dead
            .iter()
            .map(|letter| letter.as_ref().map(|id| message(id)))
            .collect();
        for letter in &dead {
            auditor.dead(&match letter {
                Ok(id) => Dead {
                    message_id: Some(id),
                    ..Dead::default()
                },
                Err(place) => Dead {
                    position: Some((Lane::Normal, **place)),
                    ..Dead::default()
                },
            });
        }
        // Half of the messages before the events and half after them: no order between streams is
        // relied upon.
        let (early, late) = self.messages.split_at(self.messages.len() / 2);
        let say = |auditor: &mut Auditor, stored: &Stored| {
            let content = Content::Bytes(&stored.bytes);
            let Stored {
                sequence, subject, ..
            } = stored;
            auditor.message(&StoredMessage {
                sequence: *sequence,
                subject,
                declared: None,
                content,
            });
        };
        early.iter().for_each(|stored| say(&mut auditor, stored));
        for Stored {
            sequence,
            subject,
            bytes,
        } in &self.events
        {
            let SystemSubject::Event {
                aggregate,
                id,
                event,
            } = subject
            else {
                panic!()
            };
            auditor.event(&RawEvent {
                sequence: *sequence,
                aggregate: *aggregate,
                id,
                event,
                bytes,
            });
        }
        late.iter().for_each(|stored| say(&mut auditor, stored));
        self.malformed
            .iter()
            .for_each(|place| auditor.malformed_message(Lane::Normal, *place));
        auditor.finish(ending)
    }

    /// Numbers of the invariants that do not hold, nothing being in flight.
    pub(super) fn violated(&self, now: Timestamp) -> Vec<u8> {
        self.report(&Ending::quiescent(now))
            .violations()
            .map(|(checked, _)| checked.number)
            .collect()
    }

    /// Someone says something; the answer is its `message_id`.
    pub(super) fn say(
        &mut self,
        from: &str,
        to: Service,
        kind: &str,
        id: &str,
        payload: Value,
    ) -> Context {
        self.post(&Envelope {
            message_id: message(id),
            timestamp: start(),
            from_agent: AgentId::new(from).unwrap(),
            to_agent: Recipient::Agent(to.agent_id()),
            message_type: MessageType::from(token(kind)),
            case_id: Some(case_id()),
            correlation_id: None,
            reply_to: None,
            round: None,
            priority: Priority::Normal,
            requires_response: false,
            deadline: None,
            payload: serde_json::value::to_raw_value(&payload).unwrap(),
            metadata: Metadata::default(),
            extensions: Extensions::default(),
        });
        said(id, 0)
    }

    pub(super) fn post(&mut self, envelope: &Envelope) {
        let (sequence, subject) = (self.messages.len() as u64 + 1, envelope.subject());
        self.messages.push(Stored {
            sequence,
            subject,
            bytes: serde_json::to_vec(envelope).unwrap(),
        });
    }

    /// A step of a machine, its effects included; the answer is the context of those who hear of
    /// the event.
    fn step<M: Machine>(
        &mut self,
        of: &mut Versioned<M>,
        id: &Token,
        context: &Context,
        input: &M::Input,
    ) -> Context {
        let Decision::Append(event) = M::decide(&of.state, context, input) else {
            panic!("no event")
        };
        let mut record = of.record(id, context, event);
        record.sequence = self.events.len() as u64 + 1;
        of.apply(record.clone());
        for envelope in effect::messages::<M>(&record).unwrap() {
            self.post(&envelope);
        }
        self.append(&record);
        Context::of_event(context.now, record.meta.event_id)
    }

    /// Stores an event.
    pub(super) fn append<E: AggregateEvent>(&mut self, record: &StoredEvent<E>) {
        let sequence = self.events.len() as u64 + 1;
        self.events.push(Stored {
            sequence,
            subject: record.subject(),
            bytes: record.encode().unwrap(),
        });
    }

    /// Reads the first event of this name, and stores it again after a change.
    pub(super) fn tamper<E: AggregateEvent>(
        &mut self,
        event: &str,
        change: impl Fn(&mut StoredEvent<E>),
    ) {
        let place = self.place_of::<E>(event);
        let stored = &mut self.events[place];
        let mut record = StoredEvent::<E>::decode(&stored.bytes, stored.sequence).unwrap();
        change(&mut record);
        stored.bytes = record.encode().unwrap();
    }

    /// Changes how the case was opened.
    pub(super) fn tamper_opened(&mut self, change: impl Fn(&mut CaseOpened)) {
        self.tamper("opened", |record| {
            let CaseEvent::Opened(opened) = &mut record.event else {
                panic!()
            };
            change(opened);
        });
    }

    pub(super) fn record<E: AggregateEvent>(&self, event: &str) -> StoredEvent<E> {
        let stored = &self.events[self.place_of::<E>(event)];
        StoredEvent::decode(&stored.bytes, stored.sequence).unwrap()
    }

    pub(super) fn place_of<E: AggregateEvent>(&self, event: &str) -> usize {
        let is = |stored: &Stored<SystemSubject>| {
            matches!(&stored.subject, SystemSubject::Event { aggregate, event: name, .. }
                if *aggregate == E::AGGREGATE && name.as_str() == event)
        };
        self.events.iter().position(is).unwrap()
    }

    pub(super) fn drop_message(&mut self, id: &str) {
        let before = self.messages.len();
        let quoted = format!("\"message_id\":\"{id}\"");
        self.messages
            .retain(|stored| !String::from_utf8_lossy(&stored.bytes).contains(&quoted));
        assert_ne!(self.messages.len(), before, "{id} was there");
    }

    /// The case, told so far.
    pub(super) fn told(until: Until) -> Self {
        let mut hall = Self::default();
        let mut case = Versioned::<CaseMachine>::default();
        let closed = hall.collect(&mut case);
        if until == Until::FindingsClosed {
            return hall;
        }
        let mut debate = Versioned::<DebateMachine>::default();
        let id = hall.detect(&mut case, &mut debate, &closed);
        if until == Until::RoundDue {
            return hall;
        }
        let resolved = hall.discuss(&mut debate, &id);
        let outcome = case::CaseInput::Resolved(Box::new(debate.state.outcome.clone().unwrap()));
        hall.step(&mut case, &token("c-1"), &resolved, &outcome);
        if until == Until::Decided {
            return hall;
        }
        hall.come_late(&mut case);
        hall
    }

    /// The case is opened, and both findings come. Returns the context of those who hear that they
    /// are complete.
    fn collect(&mut self, case: &mut Versioned<CaseMachine>) -> Context {
        let c = token("c-1");
        let open = json!({"action": "open_case", "parameters": {"case_id": "c-1", "participants": ["ann", "ben"]}});
        let asked = self.say("olga", Service::Coordinator, "request", "m-open", open);
        self.step(case, &c, &asked, &open_by_anybody(&["ann", "ben"]));
        self.find(case, "ann", 10);
        self.find(case, "ben", 90)
    }

    fn find(&mut self, case: &mut Versioned<CaseMachine>, name: &str, score: u32) -> Context {
        let id = format!("m-{name}");
        let summary = json!({ "summary": name });
        let heard = self.say(name, Service::Coordinator, "finding", &id, summary);
        let input = case::CaseInput::Finding(Box::new(found(name, score)));
        self.step(case, &token("c-1"), &heard, &input)
    }

    /// The conflict is detected, its debate is opened, and one party answers. Returns the id of the
    /// debate.
    fn detect(
        &mut self,
        case: &mut Versioned<CaseMachine>,
        debate: &mut Versioned<DebateMachine>,
        closed: &Context,
    ) -> Token {
        let c = token("c-1");
        let mut detection = Versioned::<DetectionMachine>::default();
        let input = detection_of(vec![found("ann", 10), found("ben", 90)], policy());
        let completed = self.step(&mut detection, &c, closed, &input);
        let conflict = detection.state.detected.clone().unwrap().debated[0].clone();
        let id = conflict.conflict_id.token();
        let open = open_debate(conflict.clone(), policy());
        self.step(debate, &id, &completed, &open);
        self.step(case, &c, &completed, &detected(vec![conflict], vec![]));
        self.answer(debate, &id, "disagreement", &keeps("ann", "m-a1"));
        id
    }

    /// Says an answer to the facilitator, who records it.
    fn answer(
        &mut self,
        debate: &mut Versioned<DebateMachine>,
        id: &Token,
        kind: &str,
        input: &DebateInput,
    ) -> Context {
        let DebateInput::Answer(answer) = input else {
            panic!("{input:?} is no answer")
        };
        let heard = self.say(
            answer.agent_id.as_str(),
            Service::DebateFacilitator,
            kind,
            answer.message_id.as_str(),
            json!({}),
        );
        self.step(debate, id, &heard, input)
    }

    /// The first round ends by its deadline, the second by its answers. Returns the context of
    /// those who hear of the end.
    fn discuss(&mut self, debate: &mut Versioned<DebateMachine>, id: &Token) -> Context {
        let fire = Fire {
            aggregate: Aggregate::Debate,
            id: id.clone(),
            deadline: Deadline {
                name: round_name(1),
                due: after(10_000),
            },
            fired_by: FiredBy::Scheduler,
        };
        let mut deadline = Versioned::<DeadlineMachine>::default();
        let elapsed = self.step(&mut deadline, &token("x-1"), &said("t-1", 10_005), &fire);
        let record: StoredEvent<DeadlineEvent> = self.record("debate_elapsed");
        let round_due = DebateInput::Elapsed(record.event.into_elapsed());
        self.step(debate, id, &elapsed, &round_due);
        self.answer(debate, id, "agreement", &joins("ann", "m-a2", "ben"));
        self.answer(debate, id, "disagreement", &keeps("ben", "m-b2"))
    }

    /// After the decision: a late finding, a finding of a stranger that is refused, and a message
    /// that cannot be read.
    fn come_late(&mut self, case: &mut Versioned<CaseMachine>) {
        let late = json!({"summary": "late"});
        let heard = self.say("ann", Service::Coordinator, "finding", "m-late", late);
        let input = finding("ann", "m-late", json!({}));
        self.step(case, &token("c-1"), &heard, &input);
        let stranger = json!({"summary": "let me in"});
        self.say("zoe", Service::Coordinator, "finding", "m-zoe", stranger);
        self.dead.push(Ok("m-zoe".into()));
        self.malformed.push(900);
        self.dead.push(Err(900));
        let mut refusal: Envelope = serde_json::from_slice(&self.messages[0].bytes).unwrap();
        refusal.message_id = message("m-zoe-refused");
        refusal.from_agent = Service::Coordinator.agent_id();
        refusal.to_agent = Recipient::Agent(agent("zoe"));
        refusal.message_type = MessageType::Error;
        self.post(&refusal);
    }
}

fn found(name: &str, score: u32) -> ReceivedFinding {
    let id = format!("m-{name}");
    received(name, &id, 0.8, json!({ "risk_score": score }))
}
