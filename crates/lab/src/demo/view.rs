//! The five phases as text, each line as soon as its event is stored.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{
    CaseEvent, CaseOpened, DebateEvent, DetectionEvent, FindingsClosed, ReceivedAnswer,
};
use concord_events::{ReceivedFinding, RoundClosed};
use concord_wire::payload::{
    Conflict, ConflictOutcome, Position, RoundRecord, SetAsideReason, Severity,
};
use concord_wire::policy::VoteRule;
use concord_wire::{AgentId, DebateId, Timestamp};

use super::decision;
use super::timeline::TimelineEvent;
use super::words::{WIDTH, camps, position_text, seconds, value_text, wrap};
use concord_cli::shared::output::{
    BAD, DOUBTFUL, FAINT, GOOD, NAMED, STRONG, count, one_line, styled,
};

const HEADER: anstyle::Style = NAMED.effects(anstyle::Effects::BOLD);

/// The view of one case: it takes events and gives lines of text.
pub(super) struct View {
    opened_at: Timestamp,
    numbers: BTreeMap<DebateId, usize>,
    positions: BTreeMap<(DebateId, AgentId), Position>,
    ended: BTreeMap<usize, (String, ConflictOutcome)>,
    shown: BTreeSet<u8>,
    lines: Vec<String>,
}

impl View {
    pub(super) fn new() -> Self {
        Self {
            opened_at: Timestamp::default(),
            numbers: BTreeMap::new(),
            positions: BTreeMap::new(),
            ended: BTreeMap::new(),
            shown: BTreeSet::new(),
            lines: Vec::new(),
        }
    }

    /// The lines that an event adds.
    pub(super) fn show(&mut self, event: &TimelineEvent) -> Vec<String> {
        match event {
            TimelineEvent::Case(record) => self.case(record.meta.at, &record.event),
            TimelineEvent::Detection(record) => {
                let DetectionEvent::Completed(detected) = &record.event;
                self.conflicts(&detected.debated, &detected.deferred);
            }
            TimelineEvent::Debate(record) => self.debate(record.meta.id.as_str(), &record.event),
        }
        std::mem::take(&mut self.lines)
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A phase's header, once.
    fn phase(&mut self, number: u8, name: &str) {
        if self.shown.insert(number) {
            self.line("");
            let header = styled(HEADER, format!("Phase {number}  {name}"));
            self.line(header);
        }
    }

    fn case(&mut self, at: Timestamp, event: &CaseEvent) {
        match event {
            CaseEvent::Opened(opened) => {
                self.opened_at = at;
                self.opened(opened);
            }
            CaseEvent::FindingRecorded(recorded) => self.finding(&recorded.received),
            CaseEvent::FindingSetAside(aside) => {
                self.line(format!(
                    "  {} {}",
                    aside.received.agent_id,
                    not_used(aside.reason)
                ));
            }
            CaseEvent::FindingsClosed(closed) => self.closed(at, closed),
            // A demonstration has no challenges and no gates.
            CaseEvent::ConflictsReceived(_)
            | CaseEvent::DebateSettled(_)
            | CaseEvent::DecisionAwaited(_)
            | CaseEvent::DecisionChanged(_)
            | CaseEvent::FiguresRecorded(_)
            | CaseEvent::Challenged(_)
            | CaseEvent::ReviewRecorded(_)
            | CaseEvent::GateReviewed(_)
            | CaseEvent::GatePassed(_)
            | CaseEvent::Confirmed(_)
            | CaseEvent::EstimateNoted(_)
            | CaseEvent::Joined(_)
            | CaseEvent::Flagged(_)
            | CaseEvent::Cancelled(_) => {}
            CaseEvent::Decided(decided) => {
                self.votes();
                let took = at.millis_since(self.opened_at);
                self.line("");
                self.lines.extend(decision::lines(&decided.decision, took));
            }
        }
    }

    fn opened(&mut self, opened: &CaseOpened) {
        self.phase(1, "Independent analysis");
        let sentences = opened
            .task
            .input
            .get("sentences")
            .and_then(|list| list.as_array())
            .map_or(0, Vec::len);
        let title = styled(STRONG, one_line(&opened.task.title, WIDTH));
        let agents: Vec<&str> = opened.participants.iter().map(AgentId::as_str).collect();
        self.line(format!(
            "  {title}, {}",
            count(sentences as u64, "sentence")
        ));
        self.line(format!("  given to {}", wrap(&agents.join(", "), 11)));
        let policy = &opened.policy;
        let limits = format!(
            "policy {}: findings within {} s; at most {}, {}, {} s for an answer; vote by {}",
            policy.preset,
            policy.finding_timeout_ms / 1_000,
            count(policy.conflicts_max, "conflict"),
            count(policy.rounds_max, "round"),
            policy.answer_timeout_ms / 1_000,
            rule(policy.vote_rule),
        );
        let limits = styled(FAINT, &limits);
        self.line(format!("  {limits}"));
    }

    fn finding(&mut self, received: &ReceivedFinding) {
        self.phase(2, "Findings");
        let finding = &received.finding;
        let score = finding
            .risk_score
            .map_or_else(|| "-".into(), |score| score.to_string());
        let severity = finding.severity.map_or("-", Severity::as_str);
        let severity_shown = match finding.severity {
            Some(Severity::High | Severity::Critical) => styled(BAD, format!("{severity:<8}")),
            _ => format!("{severity:<8}"),
        };
        let advice = one_line(finding.recommendation.as_deref().unwrap_or("-"), 20);
        let who = styled(NAMED, format!("{:<20}", received.agent_id.as_str()));
        self.line(format!(
            "  {who} risk {score:<4} severity {severity_shown} advice {advice:<10} confidence {:.2}",
            received.confidence
        ));
        self.line(format!("    {}", wrap(&finding.summary, 4)));
        self.quote(4, finding.evidence.first());
    }

    fn quote(&mut self, indent: usize, evidence: Option<&String>) {
        if let Some(quote) = evidence {
            let quote = styled(FAINT, format!("“{}”", one_line(quote, WIDTH - 4 - indent)));
            self.line(format!("{:indent$}{quote}", ""));
        }
    }

    fn closed(&mut self, at: Timestamp, closed: &FindingsClosed) {
        if let Some(last) = &closed.last {
            self.finding(last);
        }
        self.phase(2, "Findings");
        let after = seconds(at.millis_since(self.opened_at));
        if closed.missing.is_empty() {
            self.line(format!("  all have answered after {after}"));
        } else {
            let missing: Vec<&str> = closed.missing.iter().map(AgentId::as_str).collect();
            let missing = styled(
                BAD,
                format!("missing after {after}: {}", missing.join(", ")),
            );
            self.line(format!("  {missing}"));
        }
    }

    fn conflicts(&mut self, debated: &[Conflict], deferred: &[Conflict]) {
        self.phase(3, "Conflicts");
        if debated.is_empty() && deferred.is_empty() {
            self.line("  none: the findings agree");
        }
        for (index, conflict) in debated.iter().enumerate() {
            self.numbers.insert(conflict.conflict_id.clone(), index + 1);
            self.conflict(index + 1, conflict);
        }
        if !deferred.is_empty() {
            self.line(format!(
                "  beyond the limit, recorded and not debated: {}",
                deferred.len()
            ));
        }
        for conflict in deferred {
            let topic = one_line(&conflict.topic, WIDTH);
            let line = format!(
                "{}  {topic}  weight {:.2}",
                conflict.kind.as_str(),
                conflict.weight
            );
            let line = styled(FAINT, line);
            self.line(format!("      {line}"));
        }
    }

    fn conflict(&mut self, number: usize, conflict: &Conflict) {
        let topic = styled(DOUBTFUL, one_line(&conflict.topic, WIDTH));
        self.line(format!(
            "  [{number}] {}  {topic}  weight {:.2}",
            conflict.kind.as_str(),
            conflict.weight
        ));
        for (what, who) in camps(conflict) {
            self.line(format!(
                "      {:<14} {}",
                one_line(&what, 40),
                wrap(&who.join(", "), 21)
            ));
        }
    }

    fn debate(&mut self, id: &str, event: &DebateEvent) {
        let Ok(id) = DebateId::new(id) else { return };
        let number = self.numbers.get(&id).copied().unwrap_or(0);
        if let DebateEvent::Opened(opened) = event {
            for position in &opened.conflict.positions {
                self.positions
                    .insert((id.clone(), position.agent_id.clone()), position.clone());
            }
        }
        self.phase(4, "Discussion");
        if let Some(answer) = event.answer() {
            self.answer(number, &id, answer);
        }
        match event {
            DebateEvent::Opened(opened) => {
                let asked: Vec<&str> = opened.asked.iter().map(AgentId::as_str).collect();
                self.line(format!(
                    "  [{number}] {}: asked are {}",
                    one_line(&opened.conflict.topic, WIDTH),
                    wrap(&asked.join(", "), 6)
                ));
            }
            DebateEvent::RoundClosed(RoundClosed { record, .. }) => self.round(number, record),
            DebateEvent::AnswerSetAside(aside) => {
                self.line(format!(
                    "  [{number}] {} {}",
                    aside.agent_id,
                    not_used(aside.reason)
                ));
            }
            DebateEvent::Resolved(resolved) => {
                self.resolved(number, &resolved.topic, &resolved.outcome)
            }
            _ => {}
        }
    }

    fn answer(&mut self, number: usize, id: &DebateId, received: &ReceivedAnswer) {
        let key = (id.clone(), received.agent_id.clone());
        let before = self.positions.insert(key, received.position.clone());
        let now = position_text(&received.position);
        let was = before.as_ref().map(position_text);
        let peer = received
            .answer
            .agrees_with
            .as_ref()
            .map_or("a peer", AgentId::as_str);
        let changed = was.as_ref() != Some(&now);
        let does = match (received.agrees, changed, was) {
            (true, true, _) => styled(GOOD, format!("agrees with {peer}: now {now}")),
            (true, false, _) => styled(GOOD, format!("agrees with {peer} on {now}")),
            (false, true, Some(was)) => styled(DOUBTFUL, format!("changes from {was} to {now}")),
            (false, _, _) => format!("keeps {now}"),
        };
        let who = styled(NAMED, received.agent_id.as_str());
        self.line(format!(
            "  [{number}] round {} {who} {does} ({:.2})",
            received.round, received.position.confidence
        ));
        if !received.answer.reasoning.is_empty() {
            self.line(format!("      {}", wrap(&received.answer.reasoning, 6)));
        }
        if changed {
            self.quote(6, received.answer.evidence.first());
        }
    }

    fn round(&mut self, number: usize, record: &RoundRecord) {
        let mut line = format!(
            "  [{number}] round {} has ended: {}, {}, {} before and {} after",
            record.round,
            count(record.answered.len() as u64, "answer"),
            count(record.agreements, "agreement"),
            count(record.positions_before, "position"),
            record.positions_after,
        );
        if !record.silent.is_empty() {
            let silent: Vec<&str> = record.silent.iter().map(AgentId::as_str).collect();
            line.push_str(&format!("; silent: {}", silent.join(", ")));
        }
        self.line(line);
    }

    fn resolved(&mut self, number: usize, topic: &str, outcome: &ConflictOutcome) {
        if let Some(last) = outcome.rounds.last() {
            self.round(number, last);
        }
        let chosen = outcome
            .resolution
            .as_ref()
            .map(|chosen| value_text(chosen.value.as_ref(), &chosen.position));
        let end = match (&outcome.tally, chosen) {
            (None, Some(chosen)) => styled(GOOD, format!("settled by discussion: {chosen}")),
            (None, None) => styled(DOUBTFUL, "not settled"),
            (Some(_), _) => styled(DOUBTFUL, "not settled; it goes to the vote"),
        };
        self.line(format!("  [{number}] {end}"));
        self.ended.insert(
            number,
            (
                format!("[{number}] {}", one_line(topic, WIDTH)),
                outcome.clone(),
            ),
        );
        // Debates go on beside each other: the votes are shown together when the last discussion has ended.
        if self.ended.len() == self.numbers.len() {
            self.votes();
        }
    }

    fn votes(&mut self) {
        self.phase(5, "Votes and decision");
        for (name, outcome) in std::mem::take(&mut self.ended).values() {
            self.vote(name, outcome);
        }
    }

    fn vote(&mut self, name: &str, outcome: &ConflictOutcome) {
        let Some(tally) = &outcome.tally else { return };
        let topic = styled(DOUBTFUL, name);
        let tie = tally
            .tie_broken_by
            .as_ref()
            .map_or(String::new(), |by| format!(", a tie, broken by {by}"));
        let margin = tally.margin * 100.0;
        self.line(format!(
            "  {topic}: by {}, ahead by {margin:.0} %{tie}",
            rule(tally.rule)
        ));
        for option in &tally.options {
            let voters: Vec<String> = option
                .voters
                .iter()
                .map(|voter| format!("{} {:.2}", voter.agent_id, voter.weight))
                .collect();
            let what = one_line(&value_text(option.value.as_ref(), &option.position), 40);
            let line = format!(
                "{what:<14} {:>5.2}  {}",
                option.weight,
                wrap(&voters.join(", "), 30)
            );
            let wins = tally.winner.as_ref() == Some(&option.position_id);
            let line = if wins {
                styled(GOOD, format!("* {line}"))
            } else {
                format!("  {line}")
            };
            self.line(format!("      {line}"));
        }
        if tally.winner.is_none() {
            self.line(
                "      the rule chooses none: the cautious position stands until somebody rules",
            );
        }
    }
}

fn not_used(reason: SetAsideReason) -> &'static str {
    match reason {
        SetAsideReason::Late => "has answered too late; recorded and not used",
        SetAsideReason::Repeated => "has answered again; recorded and not used",
    }
}

fn rule(rule: VoteRule) -> &'static str {
    match rule {
        VoteRule::Confidence => "confidence",
        VoteRule::Majority => "majority",
        VoteRule::Reconcile => "reconciled confidence",
        VoteRule::Credibility => "track record",
        VoteRule::Unanimous => "unanimity",
    }
}
