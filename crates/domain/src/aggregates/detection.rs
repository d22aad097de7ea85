//! A detection: the conflicts among the findings of a case, found once. Owned by the conflict
//! detector.

use std::collections::BTreeMap;

use concord_events::{Detected, DetectionEvent, NameMatch, ReceivedFinding, StoredEvent};
use concord_wire::payload::{Circumstances, Conflict, DebateTerms, OpenDebate};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId};

use super::case::CaseState;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::conflict::{self, Conflicts};
use crate::rules::{RULES, round_shares};

/// The state machine of a detection.
#[derive(Debug, Clone, Copy)]
pub struct DetectionMachine;

/// The state of a detection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DetectionState {
    /// The conflicts that were found, once it has taken place.
    pub detected: Option<Detected>,
}

/// The findings of a case whose phase has closed.
#[derive(Debug, Clone)]
pub struct DetectionInput {
    /// The case.
    pub case_id: CaseId,
    /// Who opened it; none for cases of earlier versions.
    pub opened_by: Option<AgentId>,
    /// The policy of the case.
    pub policy: Policy,
    /// The first gate of the case.
    pub gate: Option<String>,
    /// The circumstances in which the case is judged.
    pub circumstances: Circumstances,
    /// The share of the doubt about a finding that confirmations which count have taken away, by author.
    pub confirmed: BTreeMap<AgentId, f64>,
    /// The findings of the case.
    pub findings: Vec<ReceivedFinding>,
    /// Names that the sentence model took for words of the policy's vocabulary.
    pub scored: Vec<NameMatch>,
    /// Whether the policy asks for the sentence model, and there was none.
    pub model_absent: bool,
    /// The rules by which conflicts are found.
    pub rules: u32,
}

impl DetectionInput {
    /// The findings of a case, once its phase has closed, as they are without a sentence model; none before.
    pub fn of_case(case_id: &CaseId, state: &CaseState) -> Option<Self> {
        let opened = state.opened.as_ref()?;
        Some(Self {
            case_id: case_id.clone(),
            opened_by: opened.opener_of_debates(),
            policy: opened.policy.clone(),
            gate: state.reviewing_gate().map(str::to_owned),
            circumstances: opened.circumstances.clone(),
            confirmed: state.confirmed(),
            findings: state.compared_findings().into_owned(),
            scored: Vec::new(),
            model_absent: opened.policy.vocabulary.similarity_min.is_some(),
            rules: RULES,
        })
    }

    /// The conflicts among the findings.
    pub fn conflicts(&self) -> Conflicts {
        let (policy, scored) = (&self.policy, &self.scored);
        conflict::detect_by(self.rules, &self.case_id, policy, scored, &self.findings)
    }
}

impl Machine for DetectionMachine {
    type State = DetectionState;
    type Event = DetectionEvent;
    type Input = DetectionInput;

    fn decide(
        state: &DetectionState,
        _: &Context,
        input: &DetectionInput,
    ) -> Decision<DetectionEvent> {
        if state.detected.is_some() {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        let found = input.conflicts();
        debug_assert!(
            found.debated.len() <= input.policy.conflicts_max as usize,
            "no more conflicts are debated than the policy allows"
        );
        Decision::Append(DetectionEvent::Completed(Box::new(Detected {
            case_id: input.case_id.clone(),
            opened_by: input.opened_by.clone(),
            policy: input.policy.clone(),
            gate: input.gate.clone(),
            circumstances: input.circumstances.clone(),
            confirmed: input.confirmed.clone(),
            answers_per_round: shares(&input.policy, &found.debated),
            debated: found.debated,
            deferred: found.deferred,
            conflicts_omitted: found.omitted,
            incomparable: found.incomparable,
            incomparable_omitted: found.incomparable_omitted,
            names: found.names,
            names_omitted: found.names_omitted,
            model_absent: input.model_absent,
            opens_debates: true,
            rules: input.rules,
        })))
    }

    fn apply(state: &mut DetectionState, record: StoredEvent<DetectionEvent>) {
        let DetectionEvent::Completed(detected) = record.event;
        state.detected = Some(*detected);
    }

    fn effects(record: &StoredEvent<DetectionEvent>) -> Vec<Effect> {
        let DetectionEvent::Completed(detected) = &record.event;
        if detected.opens_debates {
            return Vec::new();
        }
        let open = |debate: OpenDebate| Effect::OpenDebate {
            conflict: debate.conflict,
            policy: Box::new(debate.policy),
            terms: Box::new(debate.terms),
            from: Service::ConflictDetector,
        };
        debates(detected).map(open).collect()
    }

    fn case_of(record: &StoredEvent<DetectionEvent>) -> Option<CaseId> {
        let DetectionEvent::Completed(detected) = &record.event;
        Some(detected.case_id.clone())
    }

    fn creates(_: &DetectionInput) -> bool {
        true
    }

    fn ends(_: &DetectionEvent) -> bool {
        true
    }

    fn may_follow_end(_: &DetectionEvent) -> bool {
        false
    }
}

/// The debates that a detection leads to, in ranking order.
pub fn debates(detected: &Detected) -> impl Iterator<Item = OpenDebate> {
    let open = |(place, conflict): (usize, &Conflict)| OpenDebate {
        case_id: detected.case_id.clone(),
        conflict: conflict.clone(),
        policy: detected.policy.clone(),
        terms: DebateTerms {
            confirmed: confirmed(detected, conflict),
            answers_per_round_max: detected.answers_per_round.get(place).copied(),
            ..terms(detected)
        },
    };
    detected.debated.iter().enumerate().map(open)
}

/// How many answers each debate may have in a round; empty where all parties of all debates may answer.
fn shares(policy: &Policy, debated: &[Conflict]) -> Vec<u32> {
    let parties: Vec<usize> = debated
        .iter()
        .map(|conflict| conflict.positions.len())
        .collect();
    if parties.iter().sum::<usize>() <= policy.messages_per_round_max as usize {
        return Vec::new();
    }
    round_shares::shares(policy.messages_per_round_max, &parties)
}

/// What counts of the confirmations, for the parties of a conflict.
fn confirmed(detected: &Detected, conflict: &Conflict) -> BTreeMap<AgentId, f64> {
    let parties = conflict.positions.iter().map(|held| &held.agent_id);
    let of_party = |agent: &AgentId| Some((agent.clone(), *detected.confirmed.get(agent)?));
    parties.filter_map(of_party).collect()
}

/// The terms of a debate about a detected conflict, from the ladder of the policy.
fn terms(detected: &Detected) -> DebateTerms {
    let ladder = &detected.policy.ladder;
    DebateTerms {
        opened_by: detected.opened_by.clone(),
        priority: ladder.priority,
        domain: ladder.domain.clone(),
        gate: detected.gate.clone(),
        circumstances: detected.circumstances.clone(),
        ..DebateTerms::default()
    }
}

#[cfg(test)]
mod tests;
