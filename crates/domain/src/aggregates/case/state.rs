//! The state of a case, and how its events change it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::{
    CaseCancelled, CaseEvent, CaseOpened, DebateAsked, Decided, DecisionChanged, FiguresRecorded,
    GateReviewed, Heard, Joined, NameMatch, ReceivedFinding, ReviewRecorded, StoredEvent,
};
use concord_wire::payload::{
    AlertFlag, Conflict, ConflictOutcome, Decision, DecisionChange, LogEntry, RecordedFigures,
    Review, ReviewAction, SetAside, Status,
};
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp, Token};

use super::confirming::{ConfirmationsBy, NotedEstimates};
use crate::aggregates::heard_before::key_of;
use crate::machine::Machine;

/// The name of the gate that a case without gates of its own has for what is provisional.
pub const FINAL_GATE: &str = "final review";

/// Most debates that can follow each other about one disagreement; the policy allows no more.
pub(super) const CHAIN_MAX: usize = 16;

/// The phase of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The case was not opened yet.
    #[default]
    New,
    /// The case waits for findings (phases 1 and 2).
    Collecting,
    /// The case waits for the detection of conflicts (phase 3).
    Detecting,
    /// The case waits for its debates (phases 4 and 5).
    Deliberating,
    /// The case has its decision; gates may be ahead.
    Decided,
    /// An operator has cancelled the case.
    Cancelled,
}

/// By whom and why a case was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Cancellation {
    /// When it was cancelled.
    pub at: Timestamp,
    /// The operator.
    pub by: AgentId,
    /// The reason.
    pub why: String,
}

/// The state of a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseState {
    /// The id of the case; `None` before it is opened.
    pub case_id: Option<CaseId>,
    /// The phase of the case.
    pub phase: Phase,
    /// Who has cancelled it, where somebody has.
    pub cancelled: Option<Cancellation>,
    /// How it was opened, with whoever has joined since among the participants. Shared, because a state is copied to look ahead
    /// and this part of it seldom changes.
    pub opened: Option<Arc<CaseOpened>>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The sequence of that event. What came first of this and something of another aggregate, times do not say: clocks differ.
    pub opened_sequence: u64,
    /// The participants that joined after it was opened.
    pub joined: BTreeSet<AgentId>,
    /// The findings that count, in the order of arrival.
    pub findings: Vec<ReceivedFinding>,
    /// Participants that had not answered when the findings were closed.
    pub missing: Vec<AgentId>,
    /// Findings that were recorded and not used.
    pub set_aside: Vec<(SetAside, ReceivedFinding)>,
    /// Conflicts being debated, in ranking order.
    pub debated: Vec<Conflict>,
    /// Conflicts beyond the policy's limit.
    pub deferred: Vec<Conflict>,
    /// How many more conflicts there are, for which events have no room.
    pub conflicts_omitted: u32,
    /// Names that the sentence model took for words of the policy's vocabulary.
    pub scored: Vec<NameMatch>,
    /// The outcomes of debates. A debate may end before the case has received its conflicts.
    pub outcomes: BTreeMap<DebateId, ConflictOutcome>,
    /// Whether the time of the case is over and, by its policy, it waits for its debates.
    pub waits_for_debates: bool,
    /// The current version of the decision.
    pub decision: Option<Decision>,
    /// The rules by which results are made where a decision is made again, those of then; the newest where none are named.
    pub rules: Option<u32>,
    /// When it was decided first.
    pub decided_at: Option<Timestamp>,
    /// The figures of analyses that were done again, as the decision has them.
    pub figures: BTreeMap<Token, RecordedFigures>,
    /// How many more there are.
    pub figures_omitted: u32,
    /// The last run that has brought figures; 0 before the first.
    pub figures_run: u32,
    /// How each later version came to be, the oldest first.
    pub changes: Vec<(Timestamp, DecisionChange)>,
    /// Ids and senders of the messages other than findings that were recorded, with their digests, to recognise a repetition.
    pub seen: BTreeMap<(MessageId, AgentId), String>,
    /// The debates that the coordinator opened: challenges, and debates that were asked for again.
    pub asked: BTreeMap<DebateId, Arc<DebateAsked>>,
    /// Provisional decisions that a gate has reviewed.
    pub reviewed: BTreeMap<DebateId, ReviewAction>,
    /// Reviews that count when a second reviewer says the same, with who sent each.
    pub first_reviews: Vec<(AgentId, Review)>,
    /// Conflicts that were found when the time of the case was over before its findings were
    /// closed. No debates were opened about them.
    pub never_debated: BTreeSet<DebateId>,
    /// Confirmations of findings.
    pub confirmations: ConfirmationsBy,
    /// Estimates of participants in shared memory.
    pub noted: NotedEstimates,
    /// The changes of regime while it was open, the oldest first.
    pub flags: Vec<Arc<AlertFlag>>,
    /// How many gates the case has passed.
    pub gates_passed: usize,
    /// The number of entries in its decision log, and the hash of the last.
    pub log: (u64, String),
}

impl CaseState {
    pub(super) fn apply(&mut self, record: StoredEvent<CaseEvent>) {
        let at = record.meta.at;
        match record.event {
            CaseEvent::Opened(opened) => {
                self.case_id = CaseId::new(record.meta.id.as_str()).ok();
                self.phase = Phase::Collecting;
                self.opened_at = at;
                self.opened_sequence = record.sequence;
                self.opened = Some(Arc::new(opened));
            }
            CaseEvent::FindingRecorded(recorded) => self.findings.push(recorded.received),
            CaseEvent::FindingSetAside(aside) => {
                let note = SetAside {
                    agent_id: aside.received.agent_id.clone(),
                    message_id: aside.received.message_id.clone(),
                    reason: aside.reason,
                    at,
                };
                self.set_aside.push((note, aside.received));
            }
            CaseEvent::FindingsClosed(closed) => {
                self.findings.extend(closed.last);
                self.missing = closed.missing;
                self.phase = Phase::Detecting;
            }
            CaseEvent::ConflictsReceived(received) => {
                // Challenges may have come before the conflicts.
                self.debated.splice(0..0, received.debated);
                self.deferred = received.deferred;
                self.conflicts_omitted = received.conflicts_omitted;
                self.scored = received.scored;
                self.phase = Phase::Deliberating;
            }
            CaseEvent::DebateSettled(settled) => {
                self.outcomes
                    .insert(settled.outcome.conflict_id.clone(), settled.outcome);
                self.append_to_log(settled.entry);
            }
            CaseEvent::DecisionAwaited(_) => self.waits_for_debates = true,
            CaseEvent::Decided(decided) => self.decide(*decided, at),
            CaseEvent::DecisionChanged(changed) => self.change_decision(*changed, at),
            CaseEvent::FiguresRecorded(recorded) => self.figures_recorded(*recorded),
            CaseEvent::Challenged(challenged) => {
                self.remember(challenged.heard);
                self.add_debate(challenged.asked);
            }
            CaseEvent::ReviewRecorded(recorded) => self.recorded(*recorded),
            CaseEvent::GateReviewed(reviewed) => self.gate_reviewed(*reviewed),
            CaseEvent::GatePassed(passed) => {
                self.remember(passed.heard);
                self.first_reviews.clear();
                self.gates_passed += 1;
                debug_assert!(
                    self.opened
                        .as_ref()
                        .is_none_or(|opened| self.gates_passed <= opened.gates.len()),
                    "a case passes the gates that it has"
                );
            }
            CaseEvent::Joined(joined) => self.join(*joined),
            CaseEvent::Confirmed(confirmed) => self.confirm(*confirmed),
            CaseEvent::EstimateNoted(noted) => self.note(noted),
            CaseEvent::Flagged(flagged) => self.flags.push(Arc::new(flagged.flag)),
            CaseEvent::Cancelled(CaseCancelled { by, why, .. }) => {
                self.phase = Phase::Cancelled;
                self.cancelled = Some(Cancellation { at, by, why });
            }
        }
    }

    fn join(&mut self, joined: Joined) {
        if let Some(heard) = joined.request {
            self.remember(heard);
        }
        if let Some(opened) = &mut self.opened {
            let participants = &mut Arc::make_mut(opened).participants;
            participants.push(joined.agent_id.clone());
            participants.sort();
        }
        self.joined.insert(joined.agent_id);
    }

    fn decide(&mut self, decided: Decided, at: Timestamp) {
        if let Some(last) = decided.last {
            self.outcomes.insert(last.conflict_id.clone(), last);
        }
        self.append_to_log(decided.entry);
        if self.phase == Phase::Collecting {
            let found = decided
                .decision
                .conflicts
                .iter()
                .map(|conflict| &conflict.conflict_id);
            self.never_debated = found
                .filter(|id| !self.asked.contains_key(*id))
                .cloned()
                .collect();
        }
        self.debated.clone_from(&decided.decision.conflicts);
        self.deferred.clone_from(&decided.decision.deferred);
        self.conflicts_omitted = decided.decision.conflicts_omitted;
        self.scored.extend(decided.scored);
        self.decision = Some(decided.decision);
        self.decided_at = Some(at);
        self.phase = Phase::Decided;
    }

    fn gate_reviewed(&mut self, reviewed: GateReviewed) {
        let about = Some(&reviewed.debate_id);
        self.first_reviews
            .retain(|(_, review)| review.debate_id.as_ref() != about);
        self.remember(reviewed.heard);
        self.reviewed
            .insert(reviewed.debate_id, reviewed.review.action);
        if let Some(again) = reviewed.again {
            self.add_debate(*again);
        }
    }

    fn change_decision(&mut self, changed: DecisionChanged, at: Timestamp) {
        debug_assert!(
            self.decision
                .as_ref()
                .is_some_and(|current| current.version == changed.change.replaces),
            "a version replaces the one before"
        );
        self.outcomes
            .insert(changed.outcome.conflict_id.clone(), changed.outcome);
        self.append_to_log(Some(changed.entry));
        self.decision = Some(changed.decision);
        self.changes.push((at, changed.change));
    }

    fn figures_recorded(&mut self, recorded: FiguresRecorded) {
        debug_assert!(
            recorded.run > self.figures_run,
            "each run brings its figures once"
        );
        self.figures_run = recorded.run;
        self.figures.clone_from(&recorded.decision.figures);
        self.figures_omitted = recorded.decision.figures_omitted;
        self.decision = Some(recorded.decision);
    }

    /// The last review of somebody about a debate, or about the gate, stands in the place of earlier ones.
    fn recorded(&mut self, recorded: ReviewRecorded) {
        let ReviewRecorded { heard, review } = recorded;
        let same = |agent: &AgentId, earlier: &Review| {
            *agent == heard.agent_id && earlier.debate_id == review.debate_id
        };
        self.first_reviews
            .retain(|(agent, earlier)| !same(agent, earlier));
        self.first_reviews.push((heard.agent_id.clone(), review));
        self.remember(heard);
    }

    fn add_debate(&mut self, asked: DebateAsked) {
        self.debated.push(asked.conflict.clone());
        self.asked
            .insert(asked.conflict.conflict_id.clone(), Arc::new(asked));
    }

    pub(super) fn remember(&mut self, heard: Heard) {
        self.seen.insert(key_of(&heard), heard.digest);
    }

    fn append_to_log(&mut self, entry: Option<Box<LogEntry>>) {
        if let Some(entry) = entry {
            self.log = (entry.number, entry.hash);
        }
    }

    /// The gate that is ahead; `None` when the case has passed all. The final gate of a case without gates of its own is ahead as
    /// long as something waits there for a review.
    pub fn gate(&self) -> Option<&str> {
        let opened = self.opened.as_ref()?;
        let named = opened.gates.get(self.gates_passed).map(String::as_str);
        let is_final = opened.final_gate && self.unreviewed().next().is_some();
        named.or(is_final.then_some(FINAL_GATE))
    }

    /// Whether nothing is decided or reviewed any more: it was cancelled, or its decision is final and no gate is ahead.
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Cancelled => true,
            Phase::Decided => !super::CaseMachine::changes_after_end(self),
            Phase::New | Phase::Collecting | Phase::Detecting | Phase::Deliberating => false,
        }
    }

    /// The gate at which a decision that becomes provisional now would be reviewed.
    pub fn reviewing_gate(&self) -> Option<&str> {
        let opened = self.opened.as_ref()?;
        let named = opened.gates.get(self.gates_passed).map(String::as_str);
        named.or(opened.final_gate.then_some(FINAL_GATE))
    }

    /// Debates that have no outcome yet, in the order in which they were opened.
    pub fn open_debates(&self) -> impl Iterator<Item = &DebateId> {
        // While findings are collected, only challenges have debates.
        let is_opened =
            |id: &DebateId| self.phase > Phase::Collecting || self.asked.contains_key(id);
        self.debated
            .iter()
            .map(|conflict| &conflict.conflict_id)
            .filter(move |id| {
                is_opened(id)
                    && !self.outcomes.contains_key(*id)
                    && !self.never_debated.contains(*id)
            })
    }

    /// This debate and those that it takes up again, the latest first.
    pub fn taken_up<'a>(&'a self, debate: &'a DebateId) -> impl Iterator<Item = &'a DebateId> {
        let earlier = std::iter::successors(Some(debate), |id| {
            self.asked.get(*id)?.terms.refers_to.as_ref()
        });
        earlier.take(CHAIN_MAX)
    }

    /// The outcomes about what this debate was about, the latest first: of the debates that take it up again, of itself, and of those that it
    /// takes up. None before it has ended.
    pub(crate) fn outcomes_of_same(
        &self,
        debate: &DebateId,
    ) -> impl Iterator<Item = &ConflictOutcome> {
        let again = std::iter::successors(self.outcomes.get(debate), |outcome| {
            self.outcomes.get(outcome.debated_again_as.as_ref()?)
        });
        let last = again.take(CHAIN_MAX).last().into_iter();
        let debates = last.flat_map(move |outcome| self.taken_up(&outcome.conflict_id));
        debates.filter_map(move |id| self.outcomes.get(id))
    }

    /// Provisional decisions that were not reviewed yet, in the order in which they were debated.
    pub fn unreviewed(&self) -> impl Iterator<Item = &ConflictOutcome> {
        let outcomes = self
            .debated
            .iter()
            .filter_map(|conflict| self.outcomes.get(&conflict.conflict_id));
        outcomes.filter(|outcome| {
            outcome.status == Status::Provisional
                && !self.reviewed.contains_key(&outcome.conflict_id)
        })
    }

    /// All findings that were recorded.
    fn received(&self) -> impl Iterator<Item = &ReceivedFinding> {
        let aside = self.set_aside.iter().map(|(_, received)| received);
        self.findings.iter().chain(aside)
    }

    /// The finding of this sender that was recorded under this message id.
    pub(super) fn received_under(&self, id: &MessageId, by: &AgentId) -> Option<&ReceivedFinding> {
        let mut received = self.received();
        received.find(|one| (&one.message_id, &one.agent_id) == (id, by))
    }

    /// Whether a message of another than `sender` was recorded under this id.
    pub(super) fn is_taken(&self, id: &MessageId, sender: &AgentId) -> bool {
        let opened = self
            .opened
            .as_ref()
            .map(|one| (&one.request_id, &one.opened_by));
        let seen = self.seen.keys().map(|(id, by)| (id, by));
        let findings = self.received().map(|one| (&one.message_id, &one.agent_id));
        let mut all = opened.into_iter().chain(seen).chain(findings);
        all.any(|(used, by)| used == id && by != sender)
    }

    /// Participants whose finding was not recorded yet, without `answering`, which answers now.
    pub(super) fn awaited(&self, opened: &CaseOpened, answering: Option<&AgentId>) -> Vec<AgentId> {
        let answered = |agent: &AgentId| {
            self.findings
                .iter()
                .any(|received| received.agent_id == *agent)
        };
        opened
            .participants
            .iter()
            .filter(|agent| !answered(agent) && Some(*agent) != answering)
            .cloned()
            .collect()
    }
}
