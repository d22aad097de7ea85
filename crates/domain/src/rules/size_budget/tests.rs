//! Whatever agents write, every fact and every message that follows from one has room. [`Story`]
//! looks at each.

use concord_events::{AggregateEvent, CaseEvent};
use concord_wire::payload::{
    Answer, COMPARED_MAX, ConflictType, LADDER_TEXT_BYTES_MAX, NAME_BYTES_MAX, RuledBy,
    json_text_bytes,
};
use concord_wire::policy::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::aggregates::case::{CaseInput, CaseMachine, Phase};
use crate::aggregates::debate::{AnswerMessage, DebateInput, DebateMachine};
use crate::aggregates::detection::DetectionMachine;
use crate::assurance::replay;
use crate::fixtures::*;
use crate::machine::{Decision, Machine};

mod shortening;

/// What agents fill their texts with: characters of all lengths that JSON knows.
const FILLERS: [&str; 5] = ["x", "\u{1}", "\"", "é", "🦀"];

/// A case in which everyone writes as much as is accepted.
#[derive(Debug, Clone)]
struct Hostile {
    parties: usize,
    filler: &'static str,
    /// Whether all name the same things, hence few conflicts of many, or everyone others.
    same_names: bool,
    /// How many facts, clauses and critical findings, each.
    compared: usize,
    policy: Policy,
}

/// A text of as many bytes as there may be.
fn filled(begin: &str, filler: &str, bytes_max: usize) -> String {
    let left = bytes_max.saturating_sub(json_text_bytes(begin));
    format!("{begin}{}", filler.repeat(left / json_text_bytes(filler)))
}

fn long_id(kind: &str, n: usize, length: usize) -> String {
    format!("{kind}{n:0>width$}", width = length - kind.len())
}

impl Hostile {
    fn names(&self) -> Vec<String> {
        (0..self.parties).map(|n| long_id("a", n, 64)).collect()
    }

    fn finding(&self, n: usize) -> Value {
        let of = |item: usize| {
            if self.same_names {
                item
            } else {
                n * COMPARED_MAX + item
            }
        };
        let name = |kind: &str, item: usize| {
            filled(&format!("{kind}{}", of(item)), self.filler, NAME_BYTES_MAX)
        };
        // The rest of the finding is shared among the texts.
        let bytes = self.policy.finding_bytes_max as usize;
        let share = (bytes / 2 / self.compared.max(1)).saturating_sub(8 * NAME_BYTES_MAX);
        let items = || 0..self.compared;
        let severity = ["info", "low", "medium", "high", "critical"][n % 5];
        let mut finding = json!({
            "summary": filled("Found. ", self.filler, bytes / 8),
            "risk_score": n * 100 / self.parties,
            "recommendation": filled(&format!("r{n}"), self.filler, NAME_BYTES_MAX),
            "critical_findings": items().map(|item| json!({
                "topic": name("t", item), "severity": severity, "detail": filled("", self.filler, share / 4),
            })).collect::<Vec<_>>(),
            "clauses": items().map(|item| json!({
                "type": name("c", item), "present": n.is_multiple_of(2), "text": filled("", self.filler, share / 4),
            })).collect::<Vec<_>>(),
            "affected_clauses": items().map(|item| name("d", item)).collect::<Vec<_>>(),
            "facts": items().map(|item| json!({
                "subject": name("/", item), "attribute": name("~", item), "unit": name("u", n),
                "value": filled(&format!("v{n}"), self.filler, share / 4),
            })).collect::<Vec<_>>(),
            "estimates": (0..self.compared.min(20)).map(|item| json!({
                "subject": name("s", item), "metric": name("m", item), "unit": name("u", n), "value": n,
            })).collect::<Vec<_>>(),
        });
        let lists = [
            "estimates",
            "facts",
            "affected_clauses",
            "clauses",
            "critical_findings",
            "summary",
        ];
        for list in lists {
            if json_bytes(&finding) + 64 > bytes {
                finding[list] = if list == "summary" {
                    json!("Found.")
                } else {
                    json!([])
                };
            }
        }
        let left = bytes.saturating_sub(json_bytes(&finding) + 64);
        finding["evidence"] = json!([
            filled("", self.filler, left / 2),
            filled("", self.filler, left / 4),
            ""
        ]);
        finding
    }

    fn answer(&self, n: usize) -> Answer {
        let quarter = (self.policy.tokens_per_message_max as usize).min(ANSWER_BYTES_MAX / 4) - 16;
        let text = |begin: &str| filled(begin, self.filler, quarter);
        Answer {
            revised_position: Some(text(&format!("p{n}"))),
            value: Some(json!({"value": text(&format!("v{n}")), "unit": "days"})),
            reasoning: text("because"),
            evidence: vec![text("new"), String::new()],
            ..no_answer()
        }
    }

    fn open(&self) -> Story<CaseMachine> {
        let mut case = Story::of("c-1");
        case.sequence = 10_u64.pow(18);
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut request = open_request(&names, self.policy.clone());
        let bytes = TASK_BYTES_MAX.min(FAN_OUT_BYTES_MAX / names.len());
        request.request.task.input = json!(filled("", self.filler, bytes - 100));
        assert_eq!(
            case.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request))),
            "opened"
        );
        case
    }

    /// From the findings to the decision.
    fn play(&self) -> Story<CaseMachine> {
        let mut case = self.open();
        let names = self.names();
        for (n, name) in names.iter().enumerate() {
            let id = long_id("m", n, 128);
            let received = received(name, &id, 0.9, self.finding(n));
            assert_eq!(received.finding.check(), Ok(()));
            let heard = case.hears(&said(&id, 10), &CaseInput::Finding(Box::new(received)));
            assert!(heard.starts_with("finding"), "{heard}");
            // As many repetitions as are recorded.
            for again in (0..self.policy.set_aside_max).filter(|_| n == 0) {
                let id = long_id("n", again as usize, 128);
                assert_eq!(
                    case.hears(&said(&id, 10), &finding(name, &id, json!({}))),
                    "finding_set_aside"
                );
            }
        }
        let mut detection = Story::<DetectionMachine>::of("c-1");
        let findings = case.state().findings.clone();
        let input = detection_of(findings, self.policy.clone());
        detection.hears(&happened("e-closed", 20), &input);
        let found = detection.state().detected.clone().unwrap();
        let conflicts = found.debated.clone();
        case.hears(
            &happened("e-found", 30),
            &CaseInput::Detected(Box::new(found)),
        );
        let outcome = conflicts.first().map(|conflict| self.debate(conflict));
        for (n, conflict) in conflicts.iter().enumerate() {
            // All debates go as the first went.
            let outcome = outcome.clone().map(|outcome| ConflictOutcome {
                conflict_id: conflict.conflict_id.clone(),
                ..outcome
            });
            case.hears(
                &happened(&format!("e-{n}"), 40),
                &CaseInput::Resolved(Box::new(outcome.unwrap())),
            );
        }
        assert_eq!(case.state().phase, Phase::Decided);
        decides_the_same_again(&case);
        case
    }

    fn debate(&self, conflict: &Conflict) -> ConflictOutcome {
        let mut debate = Story::<DebateMachine>::of("d-1");
        debate.sequence = 10_u64.pow(18);
        let DebateInput::Open(mut opening) = open_debate(conflict.clone(), self.policy.clone())
        else {
            panic!("a request to open a debate")
        };
        // As many analyses rest on it as are named.
        let analyses = (0..33).map(|n| long_id("x", n, 64)).collect();
        opening.prior_knowledge.dependants = analyses;
        assert_eq!(
            debate.hears(&said("m-open", 0), &DebateInput::Open(opening)),
            "opened"
        );
        assert_eq!(
            debate.state().positions,
            conflict.positions,
            "a debate takes what a detection has found as it is"
        );
        let parties: Vec<String> = conflict
            .positions
            .iter()
            .map(|held| held.agent_id.to_string())
            .collect();
        for round in 1..=self.policy.rounds_max {
            for (n, name) in parties.iter().enumerate() {
                let id = long_id(&format!("r{round}-"), n, 128);
                let answer = AnswerMessage {
                    round: Some(round),
                    ..given(name, &id, "revision", self.answer(n))
                };
                let heard = debate.hears(&said(&id, 10), &answers(answer));
                assert!(!heard.contains(' '), "{heard}");
            }
        }
        if let Some(due) = debate
            .state()
            .due
            .filter(|_| debate.state().outcome.is_none())
        {
            assert_eq!(
                debate.hears(
                    &happened("e-due", 20),
                    &round_due(&debate.id.clone(), 1, due)
                ),
                "resolved"
            );
        }
        let reason = self
            .filler
            .repeat(LADDER_TEXT_BYTES_MAX / self.filler.len());
        let ruled = RuledBy {
            expert: agent(&parties[0]),
            first_reviewer: Some(agent(&parties[0])),
            first_rationale: Some(truncate::reason(&reason)),
            rationale: truncate::reason(&reason),
            digest: Some("0".repeat(64)),
            key: Some("0".repeat(16)),
        };
        ConflictOutcome {
            ruled_by: Some(ruled),
            ..debate.state().outcome.clone().unwrap()
        }
    }
}

/// What a decision says of its last debate is enough to decide the same again, although it is
/// shortened.
fn decides_the_same_again(case: &Story<CaseMachine>) {
    let (last, before) = case.records.split_last().unwrap();
    let CaseEvent::Decided(decided) = &last.event else {
        panic!("{:?}", last.event.name())
    };
    let Some(outcome) = &decided.last else { return };
    let (rebuilt, _) = replay::rebuild::<CaseMachine>(before);
    let context = crate::Context::of_event(last.meta.at, last.meta.cause.clone());
    let again = CaseMachine::decide(
        &rebuilt.state,
        &context,
        &CaseInput::Resolved(Box::new(outcome.clone())),
    );
    assert!(
        again == Decision::Append(last.event.clone()),
        "decided again it is the same"
    );
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let sizes = (
        proptest::sample::select(vec![1_024_u32, 20_000, 60_000]),
        100_u32..=25_000,
    );
    let counts = (
        proptest::sample::select(vec![2_usize, 5, 11]),
        0..=COMPARED_MAX,
        0_u32..=8,
        0_u32..=2,
    );
    (
        counts,
        sizes,
        proptest::sample::select(&FILLERS),
        any::<bool>(),
    )
        .prop_map(
            |(
                (parties, compared, conflicts_max, rounds_max),
                (bytes, tokens),
                filler,
                same_names,
            )| Hostile {
                parties,
                filler,
                same_names,
                compared,
                policy: Policy {
                    conflicts_max,
                    rounds_max,
                    ..generous(bytes, tokens)
                },
            },
        )
}

fn generous(finding_bytes_max: u32, tokens_per_message_max: u32) -> Policy {
    Policy {
        finding_bytes_max,
        tokens_per_message_max,
        set_aside_max: 20,
        messages_per_round_max: 1_000,
        ..policy()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4) })]

    #[test]
    fn every_fact_has_room(hostile in hostile()) {
        let case = hostile.play();
        let decision = case.state().decision.clone().unwrap();
        prop_assert_eq!(decision.findings.len(), hostile.parties);
        prop_assert!(decision.outcome.recommendation.is_some(), "{:?}", decision.reason);
    }
}

#[test]
fn the_largest_case_that_the_limits_allow_has_room_and_counts_what_it_leaves_out() {
    for (same_names, compared, filler) in [(true, 20, "é"), (false, 20, "\u{1}")] {
        let policy = Policy {
            conflicts_max: 32,
            rounds_max: 1,
            set_aside_max: 200,
            ..generous(60_000, 25_000)
        };
        let case = Hostile {
            parties: 64,
            filler,
            same_names,
            compared,
            policy,
        }
        .play();
        let decision = case.state().decision.clone().unwrap();
        let listed = decision.conflicts.len() + decision.deferred.len();
        // Everyone says the same of the clauses they rely on; of other names every clause is
        // contested.
        let expected = if same_names {
            2 + 3 * compared
        } else {
            2 + 64 * compared
        };
        assert_eq!(listed + decision.conflicts_omitted as usize, expected);
        assert!(decision.conflicts.len() > 1 && decision.conflicts_omitted > 0);
        assert_eq!(decision.outcomes.len(), decision.conflicts.len());
        assert!(json_bytes(&decision.outcomes) <= OUTCOMES_BYTES_MAX);
        assert_eq!(decision.set_aside.len(), 200);
        let kinds = || {
            decision
                .conflicts
                .iter()
                .chain(&decision.deferred)
                .map(|conflict| conflict.kind)
        };
        assert!(kinds().any(|kind| kind == ConflictType::RecommendationConflict));
        assert!(kinds().any(|kind| kind == ConflictType::RiskScoreDisagreement));
    }
}

#[test]
fn the_largest_finding_and_the_longest_debate_have_room() {
    let policy = Policy {
        conflicts_max: 1,
        rounds_max: 10,
        ..generous(524_288, 25_000)
    };
    Hostile {
        parties: 2,
        filler: "x",
        same_names: true,
        compared: 0,
        policy,
    }
    .play();
}
