//! Every violation that is planted is found.

use super::*;

/// A change of what is stored, and the invariants that no longer hold then.
type Planted = (&'static str, fn(&mut Hall), &'static [u8]);

const PLANTED: [Planted; 32] = [
    (
        "an opener goes beyond the bounds of the policy",
        |hall| hall.tamper_opened(|opened| opened.policy.ladder.time_scale = 60),
        &[11],
    ),
    (
        "somebody who is none opens a case as an operator",
        |hall| hall.tamper_opened(|opened| opened.by_operator = true),
        &[11],
    ),
    (
        "a case is opened with a policy that nobody has stored",
        |hall| hall.tamper_opened(|opened| opened.policy_version = Some(3)),
        &[11],
    ),
    (
        "a finding was lost",
        |hall| drop(hall.say("ann", Service::Coordinator, "finding", "m-lost", json!({}))),
        &[2, 8],
    ),
    (
        "a finding's event was lost",
        |hall| drop(hall.events.remove(1)),
        &[2, 7, 8],
    ),
    (
        "the decision does not name a finding",
        |hall| {
            hall.tamper("decided", |record| {
                let CaseEvent::Decided(decided) = &mut record.event else {
                    panic!()
                };
                decided.decision.findings.pop();
            });
        },
        &[2],
    ),
    (
        "a debate is resolved twice",
        |hall| {
            let record = hall.record::<DebateEvent>("resolved");
            hall.append(&record);
        },
        &[3, 4, 7],
    ),
    (
        "a case is decided twice",
        |hall| {
            let record = hall.record::<CaseEvent>("decided");
            hall.append(&record);
        },
        &[3, 4, 7, 9],
    ),
    (
        "a debate is opened twice",
        |hall| {
            let record = hall.record::<DebateEvent>("opened");
            hall.append(&record);
        },
        &[3, 4, 5, 7],
    ),
    (
        "a debate goes on after its end",
        |hall| {
            let record = hall.record::<DebateEvent>("answered");
            hall.append(&record);
        },
        &[3, 4, 5, 7],
    ),
    (
        "a round goes back",
        |hall| {
            hall.tamper("round_closed", |record| {
                let DebateEvent::RoundClosed(closed) = &mut record.event else {
                    panic!()
                };
                closed.next_round = 1;
            });
        },
        &[3, 7],
    ),
    (
        "the end reports a round that was not held",
        |hall| {
            hall.tamper("resolved", |record| {
                let DebateEvent::Resolved(resolved) = &mut record.event else {
                    panic!()
                };
                let again = resolved.outcome.rounds[0].clone();
                resolved.outcome.rounds.push(again);
            });
        },
        &[3],
    ),
    (
        "an answer counts in another round",
        |hall| {
            hall.tamper("answered", |record| {
                let DebateEvent::Answered(answered) = &mut record.event else {
                    panic!()
                };
                answered.received.round = 2;
            });
        },
        &[3],
    ),
    (
        "an effect was not published",
        |hall| hall.drop_message("c-1-1-2"),
        &[4],
    ),
    (
        "a service says what follows from nothing",
        |hall| {
            drop(hall.say(
                "coordinator",
                Service::AgentAdapter,
                "notification",
                "c-1-999-0",
                json!({}),
            ));
        },
        &[4],
    ),
    (
        "a service says more than follows",
        |hall| {
            drop(hall.say(
                "coordinator",
                Service::AgentAdapter,
                "notification",
                "c-1-1-3",
                json!({}),
            ));
        },
        &[4],
    ),
    (
        "an effect comes from another service",
        |hall| {
            hall.drop_message("c-1-1-2");
            drop(hall.say(
                "debate-facilitator",
                Service::AgentAdapter,
                "notification",
                "c-1-1-2",
                json!({}),
            ));
        },
        &[4],
    ),
    (
        "only errors answer a refusal",
        |hall| {
            drop(hall.say(
                "coordinator",
                Service::AgentAdapter,
                "notification",
                "m-1-refused",
                json!({}),
            ));
        },
        &[4],
    ),
    (
        "a service's message cannot be read",
        |hall| hall.messages[1].bytes.clear(),
        &[4],
    ),
    (
        "a deadline fired early",
        |hall| {
            hall.tamper::<DeadlineEvent>("debate_elapsed", |record| record.meta.at = after(9_999));
        },
        &[5],
    ),
    (
        "a deadline fired twice",
        |hall| {
            let mut record = hall.record::<DeadlineEvent>("debate_elapsed");
            record.meta.earlier = vec![record.sequence];
            hall.append(&record);
        },
        &[5],
    ),
    (
        "a deadline was acted on twice",
        |hall| {
            let cause = hall.record::<DeadlineEvent>("debate_elapsed").meta.event_id;
            hall.tamper::<DebateEvent>("resolved", |record| {
                caused_by(record, Aggregate::Debate, &cause)
            });
        },
        &[5, 8],
    ),
    (
        "a deadline of another was acted on",
        |hall| {
            let cause = hall.record::<DeadlineEvent>("debate_elapsed").meta.event_id;
            hall.tamper::<CaseEvent>("decided", |record| {
                caused_by(record, Aggregate::Case, &cause)
            });
        },
        &[5],
    ),
    (
        "the events lead to other deadlines",
        |hall| {
            let other = Deadline {
                name: token("lunch"),
                due: after(1),
            };
            hall.tamper::<CaseEvent>("findings_closed", |record| {
                record.meta.deadlines.push(other.clone())
            });
        },
        &[7],
    ),
    (
        "a vote cannot be counted again",
        |hall| {
            hall.tamper("resolved", |record| {
                let DebateEvent::Resolved(resolved) = &mut record.event else {
                    panic!()
                };
                resolved.outcome.status = Status::Vote;
            });
        },
        &[7, 10],
    ),
    (
        "the decision says another end of a debate than the debate",
        |hall| {
            hall.tamper("decided", |record| {
                let CaseEvent::Decided(decided) = &mut record.event else {
                    panic!()
                };
                decided.decision.outcomes[0].status = Status::Confirmed;
            });
        },
        &[10],
    ),
    (
        "the decision says another result than its resolutions give",
        |hall| {
            hall.tamper("decided", |record| {
                let CaseEvent::Decided(decided) = &mut record.event else {
                    panic!()
                };
                decided.decision.outcome.risk_score = Some(1.0);
            });
        },
        &[7],
    ),
    (
        "an event cannot be read",
        |hall| hall.events.last_mut().unwrap().bytes.truncate(20),
        &[2, 4, 7, 8],
    ),
    (
        "an event is stored under another's name",
        |hall| {
            let last = hall.events.len() - 1;
            hall.events[last].subject = hall.events[0].subject.clone();
        },
        &[2, 4, 7, 8],
    ),
    (
        "an event_id follows from nothing",
        |hall| {
            hall.tamper::<CaseEvent>("finding_recorded", |record| {
                record.meta.event_id = message("e-1")
            });
        },
        &[7, 8],
    ),
    (
        "what is malformed was lost",
        |hall| drop(hall.dead.pop()),
        &[8],
    ),
    (
        "what was refused was lost",
        |hall| drop(hall.dead.remove(0)),
        &[2, 8],
    ),
];

fn caused_by<E: AggregateEvent>(
    record: &mut StoredEvent<E>,
    aggregate: Aggregate,
    cause: &MessageId,
) {
    record.meta.cause = cause.clone();
    record.meta.event_id = event_id(aggregate, &record.meta.id, Origin::Event, cause);
}

#[test]
fn each_planted_violation_is_found() {
    let mut wrong = Vec::new();
    for (what, plant, expected) in PLANTED {
        let mut hall = Hall::told(Until::End);
        plant(&mut hall);
        let found = hall.violated(after(20_000));
        if found != expected {
            wrong.push(format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
