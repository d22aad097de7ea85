//! What people have signed, and what is said of it when it was changed.

use concord_events::{
    AggregateEvent, DebateEvent, DebateResolved, EventMeta, Heard, PersonEvent, PersonRegistered,
};
use concord_wire::payload::{
    Conflict, ConflictType, OpenDebate, Resolution, Role, RuledBy, Ruling, Signature, Status,
};

use super::*;
use crate::aggregates::debate::{DebateInput, DebateMachine, Opening};
use crate::aggregates::person::PersonMachine;
use crate::digest;
use crate::fixtures::{Story, agent, conflict, outcome, person, policy, said};
use crate::machine::Machine;
use crate::rules::size_budget::truncate;

/// In place of ed25519: whoever knows the key can make it.
fn value_of(key: &str, text: &str) -> String {
    digest(format!("{key} {text}").as_bytes()).repeat(2)
}

fn fits(signature: &Signature, text: &str) -> bool {
    signature.value == value_of(&signature.key, text)
}

const KEY: char = 'a';

fn key(digit: char) -> String {
    String::from(digit).repeat(64)
}

/// What is stored: eve with her keys, each from its time on; and a debate that she has ended by a signed ruling.
struct Told {
    keys: Vec<(Option<char>, u64)>,
    is_policy_signed: bool,
    ruled_at: u64,
    change: fn(&mut DebateResolved),
}

impl Default for Told {
    fn default() -> Self {
        Self {
            keys: vec![(Some(KEY), 0)],
            is_policy_signed: true,
            ruled_at: 10_000,
            change: |_| {},
        }
    }
}

impl Told {
    /// The first fault that is found with its signatures.
    fn fault(&self) -> Option<String> {
        let mut auditor = Auditor::verifying(fits);
        let mut sequence = 0;
        for (place, (key_of, at)) in self.keys.iter().enumerate() {
            let mut eve = person("eve", &[Role::Arbiter]);
            eve.public_key = key_of.map(key);
            let event = PersonEvent::Registered(PersonRegistered {
                person: eve,
                by: agent("olga"),
                was_arbiter: place > 0,
            });
            sequence += 1;
            let context = said(&format!("m-{place}"), *at);
            feed::<PersonMachine>(&mut auditor, "eve", sequence, &context, event);
        }
        let mut debate = Story::<DebateMachine>::of("d-1");
        debate.hears(&said("m-open", 1), &self.opening());
        let opened = debate.last().event.clone();
        feed::<DebateMachine>(&mut auditor, "d-1", 100, &said("m-open", 1), opened);
        let resolved = DebateEvent::Resolved(Box::new(self.resolved()));
        let context = said("m-rule", self.ruled_at);
        feed::<DebateMachine>(&mut auditor, "d-1", 101, &context, resolved);
        let report = auditor.finish(&Ending::under_load(after(20_000)));
        let checked = report.of(Invariant::Signatures).unwrap();
        checked.first.clone().map(|first| first.what)
    }

    fn conflict() -> Conflict {
        let held = [("ann", json!(20), 0.8), ("ben", json!(80), 0.7)];
        conflict(
            "d-1",
            ConflictType::RiskScoreDisagreement,
            "risk_score",
            &held,
        )
    }

    fn opening(&self) -> DebateInput {
        let mut rules = policy();
        rules.ladder.signed = self.is_policy_signed;
        DebateInput::Open(Box::new(Opening::of(OpenDebate {
            case_id: crate::fixtures::case_id(),
            conflict: Self::conflict(),
            policy: rules,
            terms: Default::default(),
        })))
    }

    fn resolved(&self) -> DebateResolved {
        let mut ruling = Ruling {
            debate_id: Self::conflict().conflict_id,
            digest: "abc".into(),
            position_id: None,
            position: Some("50".into()),
            value: Some(json!(50)),
            rationale: "Between.".into(),
            signature: None,
        };
        let (by, message) = (agent("eve"), crate::fixtures::message("m-rule"));
        let case = crate::fixtures::case_id();
        let text = ruling.signed_text(&by, &case, &message);
        ruling.signature = Some(Signature {
            value: value_of(&key(KEY), &text),
            key: key(KEY),
        });
        let mut outcome = outcome(&Self::conflict(), Status::Ruling, None);
        outcome.resolution = Some(Resolution {
            position: "50".into(),
            value: Some(json!(50)),
            supporters: vec![by.clone()],
        });
        outcome.ruled_by = Some(RuledBy {
            expert: by.clone(),
            first_reviewer: None,
            first_rationale: None,
            rationale: "Between.".into(),
            digest: Some("abc".into()),
            key: Some(key(KEY)[..16].into()),
        });
        let mut resolved = DebateResolved {
            case_id: case,
            last: None,
            topic: "Risk".into(),
            outcome,
            heard: Some(Heard {
                agent_id: by,
                message_id: message,
                digest: String::new(),
            }),
            ruling: Some(Box::new(ruling)),
        };
        (self.change)(&mut resolved);
        resolved
    }
}

fn feed<M: Machine>(
    auditor: &mut Auditor,
    id: &str,
    sequence: u64,
    context: &crate::Context,
    event: M::Event,
) {
    let id = token(id);
    // It need not follow on what was before: only what it says of signatures is looked at.
    let meta = EventMeta {
        event_id: event_id(M::Event::AGGREGATE, &id, context.origin, &context.cause),
        id: id.clone(),
        at: context.now,
        cause: context.cause.clone(),
        deadlines: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
        earlier: Vec::new(),
        memory_snapshot: None,
        state: None,
    };
    let record = StoredEvent {
        meta,
        sequence,
        event,
    };
    let bytes = record.encode().unwrap();
    auditor.event(&RawEvent {
        sequence,
        aggregate: M::Event::AGGREGATE,
        id: &id,
        event: &token(record.event.name()),
        bytes: &bytes,
    });
}

#[test]
fn what_was_signed_and_not_changed_is_as_it_should_be() {
    assert_eq!(Told::default().fault(), None);
    let replaced_later = Told {
        keys: vec![(Some(KEY), 0), (Some('b'), 15_000)],
        ..Told::default()
    };
    assert_eq!(replaced_later.fault(), None, "an old signature stays good");
    let on_its_way = Told {
        keys: vec![(Some(KEY), 0), (None, 9_000)],
        ..Told::default()
    };
    assert_eq!(
        on_its_way.fault(),
        None,
        "it was verified before the key was replaced"
    );
    let unsigned = Told {
        is_policy_signed: false,
        change: |resolved| {
            resolved.ruling = None;
            resolved.outcome.ruled_by.as_mut().unwrap().key = None;
        },
        ..Told::default()
    };
    assert_eq!(unsigned.fault(), None);
}

/// Signs a ruling with a reason of 4,000 bytes, of which the end of the debate says `said`.
fn signed_at_length(resolved: &mut DebateResolved, said: fn(&str) -> String) {
    let ruling = resolved.ruling.as_mut().unwrap();
    ruling.rationale = "Half of it. ".repeat(333);
    let heard = resolved.heard.as_ref().unwrap();
    let text = ruling.signed_text(&heard.agent_id, &resolved.case_id, &heard.message_id);
    ruling.signature.as_mut().unwrap().value = value_of(&key(KEY), &text);
    resolved.outcome.ruled_by.as_mut().unwrap().rationale = said(&ruling.rationale);
}

#[test]
fn a_long_reason_is_said_whole_or_as_earlier_versions_shortened_it() {
    let rows: [(bool, fn(&mut DebateResolved)); 3] = [
        (true, |it| signed_at_length(it, str::to_owned)),
        (true, |it| signed_at_length(it, truncate::words)),
        (false, |it| {
            signed_at_length(it, |whole| whole[..1_000].to_owned());
        }),
    ];
    for (is_so, change) in rows {
        let told = Told {
            change,
            ..Told::default()
        };
        assert_eq!(told.fault().is_none(), is_so, "{:?}", told.fault());
    }
}

/// Signs a ruling in words, which ended the debate with this value.
fn signed_in_words(resolved: &mut DebateResolved, words: &str, value: u32) {
    let ruling = resolved.ruling.as_mut().unwrap();
    (ruling.position, ruling.value) = (Some(words.into()), None);
    let heard = resolved.heard.as_ref().unwrap();
    let text = ruling.signed_text(&heard.agent_id, &resolved.case_id, &heard.message_id);
    ruling.signature.as_mut().unwrap().value = value_of(&key(KEY), &text);
    let chosen = resolved.outcome.resolution.as_mut().unwrap();
    (chosen.position, chosen.value) = (words.into(), Some(json!(f64::from(value))));
}

/// A value that the words do not state is not what was signed (record 105).
#[test]
fn words_have_the_value_that_they_state() {
    let rows: [(bool, fn(&mut DebateResolved)); 2] = [
        (true, |it| signed_in_words(it, "Risk score: 50", 50)),
        (false, |it| signed_in_words(it, "High, see section 4", 4)),
    ];
    for (is_so, change) in rows {
        let told = Told {
            change,
            ..Told::default()
        };
        assert_eq!(told.fault().is_none(), is_so, "{:?}", told.fault());
    }
}

#[test]
fn whatever_is_changed_of_it_is_named() {
    let rows: [(&str, fn(&mut DebateResolved)); 9] = [
        ("the resolution is not the position that was signed", |it| {
            it.outcome.resolution.as_mut().unwrap().value = Some(json!(10));
        }),
        ("who ruled, why and on which brief", |it| {
            it.outcome.ruled_by.as_mut().unwrap().rationale = "So.".into();
        }),
        ("does not fit the signature", |it| {
            it.ruling.as_mut().unwrap().rationale = "So.".into();
            it.outcome.ruled_by.as_mut().unwrap().rationale = "So.".into();
        }),
        ("does not fit the signature", |it| {
            it.ruling.as_mut().unwrap().digest = "abd".into();
        }),
        ("does not fit the signature", |it| {
            it.heard.as_mut().unwrap().message_id = crate::fixtures::message("m-other");
        }),
        ("never registered with them", |it| {
            let signature = it.ruling.as_mut().unwrap().signature.as_mut().unwrap();
            signature.key = key('c');
        }),
        ("names the key of a ruling that is not there", |it| {
            it.ruling = None
        }),
        ("asks for a signature, and there is none", |it| {
            it.ruling = None;
            it.outcome.ruled_by.as_mut().unwrap().key = None;
        }),
        ("a ruling without its signature", |it| {
            it.ruling.as_mut().unwrap().signature = None;
        }),
    ];
    for (said, change) in rows {
        let told = Told {
            change,
            ..Told::default()
        };
        let fault = told.fault().unwrap_or_default();
        assert!(fault.contains(said), "{said}: {fault}");
    }
}

#[test]
fn a_key_counts_in_its_time_only() {
    for (keys, said) in [
        (vec![], "never registered"),
        (vec![(None, 0)], "never registered"),
        (vec![(Some('b'), 0)], "never registered"),
        (
            vec![(Some(KEY), 0), (Some('b'), 1_000)],
            "had been replaced",
        ),
    ] {
        let told = Told {
            keys,
            ruled_at: 100_000,
            ..Told::default()
        };
        let fault = told.fault().unwrap_or_default();
        assert!(fault.contains(said), "{said}: {fault}");
    }
    let again = Told {
        keys: vec![(Some(KEY), 0), (Some('b'), 1_000), (Some(KEY), 2_000)],
        ruled_at: 100_000,
        ..Told::default()
    };
    assert_eq!(again.fault(), None, "registered again");
}
