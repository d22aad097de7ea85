//! Participants confirm the findings of others, and write estimates into shared memory: both are checked against what others have found
//! before a phase closes.
//!
//! | confirmation of                       | before the decision             | later   |
//! |---------------------------------------|---------------------------------|---------|
//! | a finding of another that counts      | confirmed, once for each sender | refused |
//! | one's own, or what is no such finding | refused                         | refused |
//!
//! A `message_id` can be foreseen, and is its sender's own: several may have found something under the same one. A confirmation means what
//! another has found under it; where that are several, it has to name the author.
//!
//! Where the policy counts confirmations, those count that came before the findings were closed, as the detector sees the case then: the
//! conflicts are the same whenever they are looked for. Later ones are shown.
//!
//! An estimate that a participant writes into shared memory in the case while findings are collected is compared like one of its finding,
//! where the finding does not state the same itself (estimate_noted). Only where the policy compares estimates.

use std::borrow::Cow;
use std::collections::BTreeMap;

use concord_events::{CaseEvent, CaseOpened, Confirmed, EstimateNoted, Heard, ReceivedFinding};
use concord_wire::payload::{COMPARED_MAX, Confirmation, ConfirmedBy, ConfirmedFinding, Estimate};
use concord_wire::policy::{Confirmations, plain_form};
use concord_wire::{AgentId, ErrorCode, Fault, MessageId, Token};

use super::decide::{CaseDecision, repetition};
use super::state::{CaseState, Phase};
use crate::machine::{Decision, Ignored};
use crate::rules::size_budget::truncate;

/// The share of the doubt that is left which a confirmation of somebody who is sure takes away.
const SHARE: f64 = 0.5;

/// The place of a confirmation that says what is confirmed.
const CONFIRMS: &str = "/payload/confirms";

/// Most topics of a participant whose estimates are compared.
const NOTED_MAX: usize = 64;

/// A confirmation, as the coordinator received it.
#[derive(Debug, Clone)]
pub struct ReceivedConfirmation {
    /// The message that brought it.
    pub heard: Heard,
    /// How sure the sender is, 0 to 1.
    pub confidence: f64,
    /// The payload.
    pub confirmation: Confirmation,
}

/// What a participant has written into shared memory, as far as a case compares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// The participant.
    pub agent: AgentId,
    /// The topic.
    pub topic: Token,
    /// Its version.
    pub version: u64,
    /// The estimate; none where it is none.
    pub estimate: Option<Estimate>,
}

/// The confidence of a finding with its confirmations: `1 - (1 - c) (1 - c1 / 2) (1 - c2 / 2) ...`. It never falls, and is at most 1.
pub fn strengthened(confidence: f64, by: impl IntoIterator<Item = f64>) -> f64 {
    let doubt = by
        .into_iter()
        .fold(1.0 - confidence, |doubt, one| doubt * (1.0 - SHARE * one));
    // To a millionth, so that it reads as the sum that it is.
    ((1.0 - doubt) * 1e6).round() / 1e6
}

/// The share of the doubt that these confirmations take away together, to a billionth.
fn share_taken(by: impl IntoIterator<Item = f64>) -> f64 {
    let left = by
        .into_iter()
        .fold(1.0, |left, one| left * (1.0 - SHARE * one));
    ((1.0 - left) * 1e9).round() / 1e9
}

/// A confidence with confirmations that have taken this share of the doubt away.
pub(crate) fn with_share(confidence: f64, share: f64) -> f64 {
    let doubt = (1.0 - confidence) * (1.0 - share);
    ((1.0 - doubt) * 1e6).round() / 1e6
}

/// The confidence that is left of one with such confirmations where they do not count any more.
pub(crate) fn without_share(confidence: f64, share: f64) -> f64 {
    let left = (1.0 - share).max(f64::EPSILON);
    let own = 1.0 - (1.0 - confidence) / left;
    (own.clamp(0.0, 1.0) * 1e6).round() / 1e6
}

pub(super) fn confirm(
    state: &CaseState,
    opened: &CaseOpened,
    received: &ReceivedConfirmation,
) -> CaseDecision {
    if let Some(repeated) = repetition(state, opened, &received.heard) {
        return repeated;
    }
    let finding = match confirmed(state, opened, received) {
        Ok(finding) => finding,
        Err(fault) => return Decision::Reject(fault),
    };
    let nobody = BTreeMap::new();
    let earlier = state.confirmations_of(finding);
    let by = earlier.unwrap_or(&nobody).values();
    let by = by
        .map(|earlier| earlier.confidence)
        .chain([received.confidence]);
    Decision::Append(CaseEvent::Confirmed(Box::new(Confirmed {
        heard: received.heard.clone(),
        finding: finding.message_id.clone(),
        author: finding.agent_id.clone(),
        confidence: received.confidence,
        reasoning: received
            .confirmation
            .reasoning
            .as_deref()
            .map(truncate::words),
        strengthened: strengthened(finding.confidence, by),
        while_collecting: state.phase == Phase::Collecting,
    })))
}

/// The finding that is confirmed, where the sender may confirm it.
fn confirmed<'a>(
    state: &'a CaseState,
    opened: &CaseOpened,
    received: &ReceivedConfirmation,
) -> Result<&'a ReceivedFinding, Fault> {
    let (who, named) = (&received.heard.agent_id, &received.confirmation.confirms);
    if !opened.participants.contains(who) {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{who} takes no part in this case."),
            "Only participants confirm findings; whoever opened the case can let you in with add_participant.",
        ));
    }
    if state.phase == Phase::Cancelled {
        return Err(Fault::new(
            ErrorCode::Timeout,
            "",
            "The case is cancelled; a confirmation changes nothing any more.",
            "Nothing need be done.",
        ));
    }
    if state.phase >= Phase::Decided {
        return Err(Fault::new(
            ErrorCode::Timeout,
            "",
            "The case is decided; a confirmation changes nothing any more.",
            "Confirm a finding before the decision.",
        ));
    }
    let finding = meant(state, who, &received.confirmation)?;
    let earlier = state.confirmations_of(finding);
    if earlier.is_some_and(|by| by.contains_key(who)) {
        return Err(Fault::invalid(
            CONFIRMS,
            format!("{who} has confirmed {named} before."),
            "Each participant confirms a finding once.",
        ));
    }
    Ok(finding)
}

/// The finding of another that a confirmation means.
fn meant<'a>(
    state: &'a CaseState,
    who: &AgentId,
    confirmation: &Confirmation,
) -> Result<&'a ReceivedFinding, Fault> {
    let Confirmation {
        confirms, author, ..
    } = confirmation;
    let is_named = |finding: &&ReceivedFinding| {
        let is_by = author.as_ref().is_none_or(|by| finding.agent_id == *by);
        finding.message_id == *confirms && is_by
    };
    let named = state.findings.iter().filter(is_named);
    let (own, of_others): (Vec<_>, Vec<_>) = named.partition(|finding| finding.agent_id == *who);
    match (of_others.as_slice(), own.is_empty()) {
        ([finding], _) => Ok(finding),
        ([], true) => Err(Fault::invalid(
            CONFIRMS,
            format!("{confirms} is no finding that counts in this case."),
            "Name the message_id of a finding that was recorded; `concord case show --json` lists them.",
        )),
        ([], false) => Err(Fault::invalid(
            CONFIRMS,
            format!("{confirms} is a finding of {who}."),
            "Confirm what another has found; state your own confidence in your finding.",
        )),
        (several, _) => {
            let authors: Vec<&str> = several.iter().map(|one| one.agent_id.as_str()).collect();
            Err(Fault::invalid(
                CONFIRMS,
                format!(
                    "{confirms} is a finding of each of: {}.",
                    authors.join(", ")
                ),
                "Say in `author` whose finding you confirm.",
            ))
        }
    }
}

/// An estimate in shared memory counts while findings are collected.
pub(super) fn note(state: &CaseState, opened: &CaseOpened, noted: &Noted) -> CaseDecision {
    let place = (noted.agent.clone(), noted.topic.clone());
    let before = state.noted.get(&place);
    let of_agent = state
        .noted
        .keys()
        .filter(|(agent, _)| *agent == noted.agent);
    let is_late = state.phase != Phase::Collecting
        || before.is_some_and(|(version, _)| *version >= noted.version)
        || before.is_none() && (noted.estimate.is_none() || of_agent.count() >= NOTED_MAX);
    let is_compared =
        opened.policy.estimates.compared && opened.participants.contains(&noted.agent);
    if is_late || !is_compared {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(CaseEvent::EstimateNoted(EstimateNoted {
        agent: noted.agent.clone(),
        topic: noted.topic.clone(),
        version: noted.version,
        estimate: noted.estimate.clone(),
    }))
}

impl CaseState {
    /// The findings as conflicts are detected among them: with the estimates that their authors have written into shared memory, and, where
    /// the policy says so, with the confidence that confirmations gave them before they were closed.
    pub fn compared_findings(&self) -> Cow<'_, [ReceivedFinding]> {
        if !self.counts_confirmations() && self.noted.is_empty() {
            return Cow::Borrowed(&self.findings);
        }
        let mut findings = self.findings.clone();
        for finding in &mut findings {
            self.add_noted(finding);
            finding.confidence = self.confidence(finding);
        }
        Cow::Owned(findings)
    }

    /// The confidence of a finding, with the confirmations that count.
    pub(super) fn confidence(&self, finding: &ReceivedFinding) -> f64 {
        match self.counted(finding) {
            Some(by) => strengthened(finding.confidence, by),
            None => finding.confidence,
        }
    }

    /// The share of the doubt about each finding that confirmations which count have taken away, by its author; none where there are none.
    pub fn confirmed(&self) -> BTreeMap<AgentId, f64> {
        let share = |finding: &ReceivedFinding| {
            let share = share_taken(self.counted(finding)?);
            (share > 0.0).then(|| (finding.agent_id.clone(), share))
        };
        self.findings.iter().filter_map(share).collect()
    }

    /// All confirmations of a finding.
    fn confirmations_of(&self, finding: &ReceivedFinding) -> Option<&BTreeMap<AgentId, Given>> {
        let of = (finding.message_id.clone(), finding.agent_id.clone());
        self.confirmations.get(&of)
    }

    /// The confirmations of a finding that count: how sure each was.
    fn counted(&self, finding: &ReceivedFinding) -> Option<impl Iterator<Item = f64>> {
        let by = self.confirmations_of(finding)?;
        let in_time = by.values().filter(|by| by.is_in_time);
        self.counts_confirmations()
            .then(|| in_time.map(|by| by.confidence))
    }

    fn counts_confirmations(&self) -> bool {
        let opened = self.opened.as_ref();
        let counts = opened.is_some_and(|it| it.policy.confirmations == Confirmations::Count);
        counts && !self.confirmations.is_empty()
    }

    fn add_noted(&self, received: &mut ReceivedFinding) {
        for ((agent, _), (_, estimate)) in &self.noted {
            let Some(estimate) = estimate.as_ref().filter(|_| *agent == received.agent_id) else {
                continue;
            };
            let stated = &mut received.finding.estimates;
            if stated.len() < COMPARED_MAX && !stated.iter().any(|one| is_same(one, estimate)) {
                stated.push(estimate.clone());
            }
        }
    }

    /// The findings that were confirmed, in their order.
    pub fn confirmed_findings(&self) -> Vec<ConfirmedFinding> {
        let confirmed = self.findings.iter().filter_map(|finding| {
            let by = self.confirmations_of(finding)?;
            Some(ConfirmedFinding {
                finding: finding.message_id.clone(),
                author: finding.agent_id.clone(),
                confidence: finding.confidence,
                strengthened: strengthened(finding.confidence, by.values().map(|by| by.confidence)),
                by: by
                    .iter()
                    .map(|(agent, by)| ConfirmedBy {
                        agent: agent.clone(),
                        confidence: by.confidence,
                    })
                    .collect(),
            })
        });
        confirmed.collect()
    }

    pub(super) fn confirm(&mut self, confirmed: Confirmed) {
        let given = Given {
            confidence: confirmed.confidence,
            is_in_time: self.phase == Phase::Collecting,
        };
        let of = (confirmed.finding, confirmed.author);
        let by = self.confirmations.entry(of).or_default();
        by.insert(confirmed.heard.agent_id.clone(), given);
        self.remember(confirmed.heard);
    }

    pub(super) fn note(&mut self, noted: EstimateNoted) {
        let place = (noted.agent, noted.topic);
        self.noted.insert(place, (noted.version, noted.estimate));
    }
}

fn is_same(one: &Estimate, other: &Estimate) -> bool {
    let form = |estimate: &Estimate| {
        let subject = estimate.subject.as_deref().map(plain_form);
        (plain_form(&estimate.metric), subject)
    };
    form(one) == form(other)
}

/// A confirmation of a finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Given {
    /// How sure the sender is, 0 to 1.
    confidence: f64,
    /// Whether it came before the findings were closed.
    is_in_time: bool,
}

/// What is confirmed, by finding and its author: by whom, and how.
pub(super) type ConfirmationsBy = BTreeMap<(MessageId, AgentId), BTreeMap<AgentId, Given>>;
/// Estimates in shared memory, by participant and topic: the version, and what is estimated.
pub(super) type NotedEstimates = BTreeMap<(AgentId, Token), (u64, Option<Estimate>)>;
