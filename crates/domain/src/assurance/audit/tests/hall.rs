//! A small installation in memory: its streams, and one case told from the opening to a message that came too late.

use concord_events::subject::SystemSubject;
use concord_events::{AggregateEvent, Deadline, DeadlineEvent, FiredBy, StoredEvent};
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
        // Half of the messages before the events and half after them: no order between streams is relied upon.
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

    /// A step of a machine, its effects included; the answer is the context of those who hear of the event.
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
        let (c, x) = (token("c-1"), token("x-1"));
        let mut case = Versioned::<CaseMachine>::default();
        let open = json!({"action": "open_case", "parameters": {"case_id": "c-1", "participants": ["ann", "ben"]}});
        let asked = hall.say("olga", Service::Coordinator, "request", "m-open", open);
        hall.step(&mut case, &c, &asked, &open_case(&["ann", "ben"], policy()));
        let found = |name: &str, score: u32| {
            received(
                name,
                &format!("m-{name}"),
                0.8,
                json!({ "risk_score": score }),
            )
        };
        let heard = hall.say(
            "ann",
            Service::Coordinator,
            "finding",
            "m-ann",
            json!({"summary": "low"}),
        );
        hall.step(
            &mut case,
            &c,
            &heard,
            &case::CaseInput::Finding(Box::new(found("ann", 10))),
        );
        let heard = hall.say(
            "ben",
            Service::Coordinator,
            "finding",
            "m-ben",
            json!({"summary": "high"}),
        );
        let closed = hall.step(
            &mut case,
            &c,
            &heard,
            &case::CaseInput::Finding(Box::new(found("ben", 90))),
        );
        if until == Until::FindingsClosed {
            return hall;
        }
        let mut detection = Versioned::<DetectionMachine>::default();
        let findings = vec![found("ann", 10), found("ben", 90)];
        let input = detection_of(findings, policy());
        let completed = hall.step(&mut detection, &c, &closed, &input);
        let conflict = detection.state.detected.clone().unwrap().debated[0].clone();
        let d = conflict.conflict_id.token();
        let mut debate = Versioned::<DebateMachine>::default();
        let request = said(&format!("c-1-{}-0", detection.sequence()), 0);
        hall.step(
            &mut debate,
            &d,
            &request,
            &open_debate(conflict.clone(), policy()),
        );
        hall.step(&mut case, &c, &completed, &detected(vec![conflict], vec![]));
        let heard = hall.say(
            "ann",
            Service::DebateFacilitator,
            "disagreement",
            "m-a1",
            json!({}),
        );
        hall.step(&mut debate, &d, &heard, &keeps("ann", "m-a1"));
        if until == Until::RoundDue {
            return hall;
        }
        let due = Deadline {
            name: round_name(1),
            due: after(10_000),
        };
        let fire = Fire {
            aggregate: Aggregate::Debate,
            id: d.clone(),
            deadline: due,
            fired_by: FiredBy::Scheduler,
        };
        let elapsed = hall.step(
            &mut Versioned::<DeadlineMachine>::default(),
            &x,
            &said("t-1", 10_005),
            &fire,
        );
        let record: StoredEvent<DeadlineEvent> = hall.record("debate_elapsed");
        let round_due = record.event.into_elapsed();
        hall.step(&mut debate, &d, &elapsed, &DebateInput::Elapsed(round_due));
        let heard = hall.say(
            "ann",
            Service::DebateFacilitator,
            "agreement",
            "m-a2",
            json!({}),
        );
        hall.step(&mut debate, &d, &heard, &joins("ann", "m-a2", "ben"));
        let heard = hall.say(
            "ben",
            Service::DebateFacilitator,
            "disagreement",
            "m-b2",
            json!({}),
        );
        let resolved = hall.step(&mut debate, &d, &heard, &keeps("ben", "m-b2"));
        let outcome = debate.state.outcome.clone().unwrap();
        hall.step(
            &mut case,
            &c,
            &resolved,
            &case::CaseInput::Resolved(Box::new(outcome)),
        );
        if until == Until::Decided {
            return hall;
        }
        let heard = hall.say(
            "ann",
            Service::Coordinator,
            "finding",
            "m-late",
            json!({"summary": "late"}),
        );
        hall.step(&mut case, &c, &heard, &finding("ann", "m-late", json!({})));
        hall.say(
            "zoe",
            Service::Coordinator,
            "finding",
            "m-zoe",
            json!({"summary": "let me in"}),
        );
        hall.dead.push(Ok("m-zoe".into()));
        hall.malformed.push(900);
        hall.dead.push(Err(900));
        let mut refusal: Envelope = serde_json::from_slice(&hall.messages[0].bytes).unwrap();
        refusal.message_id = message("m-zoe-refused");
        refusal.from_agent = Service::Coordinator.agent_id();
        refusal.to_agent = Recipient::Agent(agent("zoe"));
        refusal.message_type = MessageType::Error;
        hall.post(&refusal);
        hall
    }
}
