//! What a case will cost at most and at least, before it runs: the budget table of specification 1
//! ("Rate Limit Budget for Communication"), computed from a policy.
//!
//! At least: every conflict has two parties and settles in the first round. At most: every conflict
//! goes through all rounds with all participants, as far as the answers that the policy allows in a
//! round go round. Calls of one phase are made at the same time,
//! rounds one after the other. The specification's six calls for three conflicts are the least; its
//! times are those of `Assumptions::default`.

use concord_wire::policy::Policy;
use serde::Serialize;

use super::round_shares;

/// A range from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Range {
    /// A range with these ends.
    pub fn new(least: u64, most: u64) -> Self {
        debug_assert!(least <= most, "a range is not {least} to {most}");
        Self { least, most }
    }

    fn only(number: u64) -> Self {
        Self::new(number, number)
    }

    fn plus(self, other: Self) -> Self {
        Self::new(
            self.least.saturating_add(other.least),
            self.most.saturating_add(other.most),
        )
    }

    fn times(self, other: Self) -> Self {
        Self::new(
            self.least.saturating_mul(other.least),
            self.most.saturating_mul(other.most),
        )
    }
}

/// The assumptions that a policy does not state.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumptions {
    /// How many agents take part.
    pub participants: u64,
    /// How many conflicts are found. No more are debated than the policy allows.
    pub conflicts: u64,
    /// Calls of a model that writes a synthesis at the end. Concord itself makes none.
    pub synthesis_calls: u64,
    /// Tokens of the task that each agent is given.
    pub task_tokens: u64,
    /// Tokens of a finding.
    pub finding_tokens: u64,
    /// How long a call of the analysis takes, in milliseconds.
    pub analysis_ms: Range,
    /// How long a call of the discussion takes, in milliseconds.
    pub answer_ms: Range,
    /// How long a call of the synthesis takes, in milliseconds.
    pub synthesis_ms: Range,
    /// Price of a million input tokens, in any currency.
    pub price_in: f64,
    /// Price of a million output tokens.
    pub price_out: f64,
    /// Requests a minute that the provider allows; `None` for no limit.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute that the provider allows; `None` for no limit.
    pub tokens_per_minute: Option<u64>,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            participants: 5,
            conflicts: 3,
            synthesis_calls: 0,
            task_tokens: 2_000,
            finding_tokens: 1_000,
            analysis_ms: Range::new(5_000, 15_000),
            answer_ms: Range::only(5_000),
            synthesis_ms: Range::new(5_000, 10_000),
            price_in: 0.0,
            price_out: 0.0,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }
}

/// The estimate for one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// The name of the phase.
    pub phase: &'static str,
    /// How many messages are published.
    pub messages: Range,
    /// How many calls of models are made.
    pub calls: Range,
    /// Input tokens of models.
    pub tokens_in: Range,
    /// Output tokens of models.
    pub tokens_out: Range,
    /// The cost of the tokens, in the currency of the prices.
    pub cost: Cost,
    /// The duration in milliseconds.
    pub time_ms: Range,
}

/// A cost from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cost {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// The estimate for a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate for each phase.
    pub phases: Vec<Phase>,
    /// The sum of all phases. Its time is no shorter than the provider's limits allow.
    pub total: Phase,
    /// How many messages all phases would publish if the parties of debates were not told each other's answers.
    pub messages_unheard: Range,
}

/// Tokens of a question besides the task and the positions: the instructions.
const INSTRUCTION_TOKENS: u64 = 200;

/// Estimates a case under a policy.
pub fn estimate(policy: &Policy, given: &Assumptions) -> Estimate {
    let participants = Range::only(given.participants);
    let analysis = Phase::new(
        "analysis",
        // One task and one finding for each participant.
        participants.times(Range::only(2)),
        participants,
        participants.times(Range::only(
            given.task_tokens.saturating_add(INSTRUCTION_TOKENS),
        )),
        participants.times(Range::only(given.finding_tokens)),
        within(given.analysis_ms, policy.finding_timeout_ms),
        given,
    );
    let Discussion { asked, hearing } = discussion(policy, given);
    let synthesis = Range::only(given.synthesis_calls);
    let closing = Phase::new(
        "synthesis",
        // The decision is announced in one message.
        Range::only(1),
        synthesis,
        synthesis
            .times(participants)
            .times(Range::only(given.finding_tokens)),
        synthesis.times(Range::only(given.finding_tokens)),
        if given.synthesis_calls == 0 {
            Range::default()
        } else {
            given.synthesis_ms
        },
        given,
    );
    let unheard = [&analysis, &asked, &closing]
        .into_iter()
        .fold(Range::default(), |sum, phase| sum.plus(phase.messages));
    let phases = vec![analysis, asked, hearing, closing];
    let total = total(&phases, policy, given);
    Estimate {
        phases,
        total,
        messages_unheard: unheard,
    }
}

fn discussion(policy: &Policy, given: &Assumptions) -> Discussion {
    let conflicts = given.conflicts.min(policy.conflicts_max.into());
    // A conflict has at least two parties.
    let is_talk = given.participants >= 2 && conflicts > 0 && policy.rounds_max > 0;
    let (rounds, answers) = if is_talk {
        (
            Range::new(1, policy.rounds_max.into()),
            Range::new(
                answers_in_round(policy, conflicts, 2),
                answers_in_round(policy, conflicts, given.participants),
            ),
        )
    } else {
        (Range::default(), Range::default())
    };
    let calls = answers.times(rounds);
    let limit = u64::from(policy.tokens_per_message_max);
    // A party is given the task, and the position of each party.
    let shown = given.task_tokens.saturating_add(INSTRUCTION_TOKENS);
    let tokens_in = Range::new(
        calls.least.saturating_mul(shown),
        calls
            .most
            .saturating_mul(shown.saturating_add(given.participants.saturating_mul(limit))),
    );
    let asked = Phase::new(
        "discussion",
        // A question and an answer for each call, and one message that announces the outcome of
        // each conflict.
        calls
            .times(Range::only(2))
            .plus(Range::only(if is_talk { conflicts } else { 0 })),
        calls,
        tokens_in,
        Range::new(
            calls.least.saturating_mul(limit / 5),
            calls.most.saturating_mul(limit),
        ),
        within(given.answer_ms, policy.answer_timeout_ms).times(rounds),
        given,
    );
    let told = if policy.hear_answers {
        Range::new(
            calls.least,
            calls
                .most
                .saturating_mul(given.participants.saturating_sub(1)),
        )
    } else {
        Range::default()
    };
    let (no_calls, at_once) = (Range::default(), Range::default());
    let hearing = Phase::new(
        "hearing", told, no_calls, no_calls, no_calls, at_once, given,
    );
    Discussion { asked, hearing }
}

/// The discussion: what is asked and answered, and what the other parties are told of it. Being told
/// is no question, so no model of a hosted agent is called.
struct Discussion {
    asked: Phase,
    hearing: Phase,
}

/// Answers of one round of a case in which every conflict has so many parties.
fn answers_in_round(policy: &Policy, conflicts: u64, parties: u64) -> u64 {
    let parties = usize::try_from(parties).unwrap_or(usize::MAX);
    let conflicts = usize::try_from(conflicts).unwrap_or(usize::MAX);
    let shares = round_shares::shares(policy.messages_per_round_max, &vec![parties; conflicts]);
    shares.into_iter().map(u64::from).sum()
}

fn total(phases: &[Phase], policy: &Policy, given: &Assumptions) -> Phase {
    let sum =
        |of: &dyn Fn(&Phase) -> Range| phases.iter().map(of).fold(Range::default(), Range::plus);
    let (calls, tokens_in, tokens_out) = (
        sum(&|p| p.calls),
        sum(&|p| p.tokens_in),
        sum(&|p| p.tokens_out),
    );
    let tokens = tokens_in.plus(tokens_out);
    let time = sum(&|phase| phase.time_ms);
    let limited = |time: u64, calls: u64, tokens: u64| {
        let wait =
            waits(calls, given.requests_per_minute).max(waits(tokens, given.tokens_per_minute));
        time.max(wait).min(policy.case_timeout_ms)
    };
    let time = Range::new(
        limited(time.least, calls.least, tokens.least),
        limited(time.most, calls.most, tokens.most),
    );
    Phase::new(
        "total",
        sum(&|phase| phase.messages),
        calls,
        tokens_in,
        tokens_out,
        time,
        given,
    )
}

/// How long a limit of `per_minute` makes calls wait. The calls of the first minute can start at
/// once.
fn waits(number: u64, per_minute: Option<u64>) -> u64 {
    let Some(limit) = per_minute.filter(|limit| *limit > 0) else {
        return 0;
    };
    (number.saturating_sub(1) / limit).saturating_mul(60_000)
}

fn within(time: Range, limit: u64) -> Range {
    Range::new(time.least.min(limit), time.most.min(limit))
}

impl Phase {
    fn new(
        phase: &'static str,
        messages: Range,
        calls: Range,
        tokens_in: Range,
        tokens_out: Range,
        time_ms: Range,
        given: &Assumptions,
    ) -> Self {
        let cost = Cost {
            least: cost(tokens_in.least, tokens_out.least, given),
            most: cost(tokens_in.most, tokens_out.most, given),
        };
        Self {
            phase,
            messages,
            calls,
            tokens_in,
            tokens_out,
            cost,
            time_ms,
        }
    }
}

/// Exact up to 2^53 tokens, which nobody pays for.
#[allow(clippy::cast_precision_loss)]
fn cost(tokens_in: u64, tokens_out: u64, given: &Assumptions) -> f64 {
    (tokens_in as f64 * given.price_in + tokens_out as f64 * given.price_out) / 1_000_000.0
}

#[cfg(test)]
mod tests;
