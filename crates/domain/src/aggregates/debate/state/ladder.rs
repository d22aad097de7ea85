//! The state of a debate on the ladder, and how the events of the ladder change it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::{
    Deadline, DeadlineControl, DeadlinesMoved, DebateEvent, Escalated, EvidenceGiven,
};
use concord_wire::payload::{Background, ConflictOutcome, Contact, Level, Mediation, Tally};
use concord_wire::{AgentId, Timestamp};

use super::DebateState;
use super::position_changes::position_changes;

/// The state of a debate on the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The level that it is on.
    pub level: Level,
    /// Whether the challenged agent has acknowledged.
    pub acknowledged: bool,
    /// Whether the challenger has been asked whether the evidence settles the challenge.
    pub evaluating: bool,
    /// How many clarifications of each sender were passed on.
    pub clarifications: BTreeMap<AgentId, u32>,
    /// How often each party has given evidence, revised or kept its position.
    pub evidence: BTreeMap<AgentId, u32>,
    /// The open deadlines.
    pub waits_for: Vec<Deadline>,
    /// The deadlines that an operator holds, and since when.
    pub held: Option<(Vec<Deadline>, Timestamp)>,
    /// The vote that was too narrow.
    pub tally: Option<Tally>,
    /// The opinion of the mediator.
    pub opinion: Option<String>,
    /// The result of mediation.
    pub mediation: Option<Mediation>,
    /// The expert who has the debate, or had it last.
    pub expert: Option<AgentId>,
    /// Since when that expert could rule and has not: since the assignment, a ruling of theirs that
    /// was set aside, or the end of a hold.
    pub expert_since: Option<Timestamp>,
    /// Where that expert is notified.
    pub contact: Contact,
    /// Digest of the brief that the expert was given last.
    pub digest: Option<String>,
    /// Digests of all briefs that experts were given.
    pub briefed: BTreeSet<String>,
    /// What that expert is shown beside the positions. Shared, because a state is copied to look ahead.
    pub background: Option<Arc<Background>>,
    /// What has changed since an expert was first shown the debate: the digest of the brief before,
    /// and one line.
    pub changes: Vec<(String, String)>,
    /// The provisional decision.
    pub provisional: Option<ConflictOutcome>,
}

impl Ladder {
    /// Keeps the digest of a new brief; that of the brief before.
    fn be_briefed(&mut self, digest: String) -> Option<String> {
        self.briefed.insert(digest.clone());
        self.digest.replace(digest)
    }

    /// A debate that enters this level with these deadlines.
    pub(crate) fn at(level: Level, waits_for: Vec<Deadline>) -> Self {
        Self {
            level,
            acknowledged: false,
            evaluating: false,
            clarifications: BTreeMap::new(),
            evidence: BTreeMap::new(),
            waits_for,
            held: None,
            tally: None,
            opinion: None,
            mediation: None,
            expert: None,
            expert_since: None,
            contact: Contact::default(),
            digest: None,
            briefed: BTreeSet::new(),
            background: None,
            changes: Vec::new(),
            provisional: None,
        }
    }

    /// When the deadline with this name is due, if it is open.
    pub(crate) fn due(&self, name: &str) -> Option<Timestamp> {
        self.waits_for
            .iter()
            .find(|deadline| deadline.name.as_str() == name)
            .map(|deadline| deadline.due)
    }

    /// When the deadline with this name is due, if it is open or an operator holds it.
    pub(crate) fn pending(&self, name: &str) -> Option<Timestamp> {
        let held = self.held.iter().flat_map(|(held, _)| held);
        let mut pending = self.waits_for.iter().chain(held);
        pending
            .find(|deadline| deadline.name.as_str() == name)
            .map(|deadline| deadline.due)
    }

    /// The open deadlines except those with these names.
    pub(crate) fn without(&self, names: &[&str]) -> Vec<Deadline> {
        without(&self.waits_for, names)
    }

    /// The open and the held deadlines after those named in `closed` are closed and `opened` is
    /// opened. While an operator holds the deadlines, all of them are held.
    pub(crate) fn rearranged(
        &self,
        closed: &[&str],
        opened: Option<Deadline>,
    ) -> (Vec<Deadline>, Vec<Deadline>) {
        debug_assert!(
            self.held.is_none() || self.waits_for.is_empty(),
            "no deadline is open while an operator holds them"
        );
        let pending = self.held.as_ref().map_or(&self.waits_for, |(held, _)| held);
        let after: Vec<Deadline> = opened.into_iter().chain(without(pending, closed)).collect();
        if self.held.is_some() {
            (Vec::new(), after)
        } else {
            (after, Vec::new())
        }
    }

    /// Takes over the deadlines that an event states.
    fn rearrange(&mut self, waits_for: Vec<Deadline>, held: Vec<Deadline>) {
        self.waits_for = waits_for;
        if let Some((now_held, _)) = &mut self.held {
            *now_held = held;
        }
    }

    fn enter(&mut self, level: Level, waits_for: Vec<Deadline>) {
        self.level = level;
        self.waits_for = waits_for;
    }

    fn move_deadlines(&mut self, moved: DeadlinesMoved, at: Timestamp) {
        self.waits_for = moved.waits_for;
        self.held = match moved.control {
            DeadlineControl::Hold => Some((moved.held, at)),
            DeadlineControl::Resume => {
                self.expert_since = self.expert_since.map(|_| at);
                None
            }
            DeadlineControl::Extend => self.held.take().map(|(_, since)| (moved.held, since)),
        };
    }
}

fn without(deadlines: &[Deadline], names: &[&str]) -> Vec<Deadline> {
    deadlines
        .iter()
        .filter(|deadline| !names.contains(&deadline.name.as_str()))
        .cloned()
        .collect()
}

impl DebateState {
    /// Applies an event of the ladder. Other events change nothing here.
    pub(super) fn apply_ladder_event(&mut self, event: DebateEvent, at: Timestamp) {
        match event {
            DebateEvent::Acknowledged(acknowledged) => {
                self.remember(acknowledged.heard);
                self.change_ladder(|ladder| {
                    ladder.acknowledged = true;
                    ladder.rearrange(acknowledged.waits_for, acknowledged.held);
                });
            }
            DebateEvent::Clarified(clarified) => {
                let from = clarified.heard.agent_id.clone();
                self.remember(clarified.heard);
                self.change_ladder(|ladder| *ladder.clarifications.entry(from).or_default() += 1);
            }
            DebateEvent::EvidenceGiven(given) => self.apply_evidence(*given),
            DebateEvent::Escalated(escalated) => self.apply_escalation(*escalated),
            DebateEvent::OpinionGiven(given) => {
                self.remember(given.heard);
                self.change_ladder(|ladder| {
                    ladder.opinion = Some(given.text);
                    ladder.rearrange(given.waits_for, given.held);
                });
            }
            DebateEvent::Assigned(assigned) => self.change_ladder(|ladder| {
                ladder.expert = Some(assigned.briefed.expert);
                ladder.expert_since = Some(at);
                ladder.background = assigned.briefed.brief.background.map(Arc::from);
                ladder.contact = assigned.contact;
                ladder.be_briefed(assigned.briefed.digest);
                ladder.waits_for = assigned.waits_for;
            }),
            DebateEvent::Unassigned(_) => self.change_ladder(|ladder| {
                ladder.expert = None;
                ladder.contact = Contact::default();
                ladder.digest = None;
                ladder.background = None;
            }),
            DebateEvent::Reminded(reminded) => {
                self.change_ladder(|ladder| ladder.waits_for = reminded.waits_for);
            }
            DebateEvent::RulingSetAside(aside) => {
                self.remember(aside.heard);
                self.change_ladder(|ladder| ladder.expert_since = Some(at));
            }
            DebateEvent::FellBack(fell) => self.change_ladder(|ladder| {
                ladder.enter(Level::Fallback, fell.waits_for);
                ladder.held = None;
                ladder.background = None;
                ladder.provisional = Some(fell.outcome);
            }),
            DebateEvent::AwaitsGate(_) => {
                self.change_ladder(|ladder| ladder.enter(Level::Gate, Vec::new()));
            }
            DebateEvent::DeadlinesMoved(moved) => {
                self.change_ladder(|ladder| ladder.move_deadlines(moved, at));
            }
            DebateEvent::Opened(_)
            | DebateEvent::Flushed(_)
            | DebateEvent::Synced(_)
            | DebateEvent::Answered(_)
            | DebateEvent::AnswerSetAside(_)
            | DebateEvent::RoundClosed(_)
            | DebateEvent::Resolved(_)
            | DebateEvent::OutcomeKnown(_) => {}
        }
    }

    fn apply_evidence(&mut self, given: EvidenceGiven) {
        self.remember(given.heard);
        let mut changes = Vec::new();
        let party = given.position.agent_id.clone();
        if let Some(held) = self
            .positions
            .iter_mut()
            .find(|held| held.agent_id == given.position.agent_id)
        {
            changes = position_changes(held, &given.position);
            *held = given.position;
        }
        self.change_ladder(|ladder| {
            ladder.acknowledged |= given.question.is_some();
            ladder.evaluating |= given.question.is_some();
            *ladder.evidence.entry(party).or_default() += 1;
            ladder.rearrange(given.waits_for, given.held);
            if let Some(briefed) = given.brief {
                let before = ladder.be_briefed(briefed.digest).unwrap_or_default();
                ladder
                    .changes
                    .extend(changes.into_iter().map(|line| (before.clone(), line)));
            }
        });
    }

    fn apply_escalation(&mut self, escalated: Escalated) {
        if let Some(heard) = escalated.heard {
            self.remember(heard);
        }
        let mut tally = None;
        if let Some(discussion) = escalated.discussion {
            if let Some(last) = discussion.last {
                self.take(last);
            }
            self.rounds = discussion.rounds;
            tally = discussion.tally;
            self.due = None;
        }
        let mut ladder = self
            .ladder
            .take()
            .unwrap_or_else(|| Box::new(Ladder::at(Level::Agents, Vec::new())));
        ladder.enter(escalated.to, escalated.waits_for);
        ladder.held = None;
        ladder.tally = ladder.tally.or(tally);
        ladder.mediation = escalated.mediation.or(ladder.mediation);
        self.ladder = Some(ladder);
    }

    fn change_ladder(&mut self, change: impl FnOnce(&mut Ladder)) {
        if let Some(ladder) = &mut self.ladder {
            change(ladder);
        }
    }
}
