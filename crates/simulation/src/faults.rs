//! What can go wrong, how often; and the bugs that can be injected to see the checkers find them.

use crate::random::Random;

/// What goes wrong. Probabilities are from 0 to 1, durations in virtual milliseconds. [`Faults::none`] is a world in
/// which nothing does.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// A request or answer takes up to this long on its way.
    pub delay_ms_max: u64,
    /// A request, answer or delivery is a straggler.
    pub straggler: f64,
    /// A straggler takes up to this long.
    pub straggler_ms_max: u64,
    /// A request never arrives.
    pub lost_request: f64,
    /// What was asked is done, and the answer never arrives.
    pub lost_answer: f64,
    /// A process is killed while it waits for an answer.
    pub crash: f64,
    /// A killed process is back after at most this long.
    pub restart_ms_max: u64,
    /// A read that may be answered by any copy is answered by one that lags.
    pub stale_read: f64,
    /// The broker's answer to somebody is stored among the events of an aggregate, just before one of its own.
    pub foreign: f64,
    /// A delivery is lost, and comes again when its acknowledgement is overdue.
    pub lost_delivery: f64,
    /// A delivery comes a second time although the first is still being handled.
    pub double_delivery: f64,
    /// Arming a deadline again is acknowledged and lost: the earlier one fires.
    pub rearm_lost: f64,
    /// A cancelled deadline fires all the same.
    pub fire_after_cancel: f64,
    /// An armed deadline never fires.
    pub fire_missed: f64,
    /// Every second, the broker is away for a while.
    pub pause: f64,
    /// How long it is away at most.
    pub pause_ms_max: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            delay_ms_max: 8,
            straggler: 0.05,
            straggler_ms_max: 3_000,
            lost_request: 0.02,
            lost_answer: 0.04,
            crash: 0.02,
            restart_ms_max: 5_000,
            stale_read: 0.3,
            foreign: 0.03,
            lost_delivery: 0.03,
            double_delivery: 0.08,
            rearm_lost: 0.2,
            fire_after_cancel: 0.2,
            fire_missed: 0.05,
            pause: 0.02,
            pause_ms_max: 8_000,
        }
    }
}

impl Faults {
    /// A world in which nothing goes wrong.
    pub fn none() -> Self {
        Self {
            delay_ms_max: 2,
            straggler: 0.0,
            straggler_ms_max: 0,
            lost_request: 0.0,
            lost_answer: 0.0,
            crash: 0.0,
            restart_ms_max: 10,
            stale_read: 0.0,
            foreign: 0.0,
            lost_delivery: 0.0,
            double_delivery: 0.0,
            rearm_lost: 0.0,
            fire_after_cancel: 0.0,
            fire_missed: 0.0,
            pause: 0.0,
            pause_ms_max: 0,
        }
    }

    /// These faults as one seed has them: some not at all, some as stated, some twice as often. A fault that is always
    /// there hides what only happens without it.
    pub(crate) fn varied(&self, random: &mut Random) -> Self {
        let mut vary = |probability: f64| {
            let factor = match random.between(0, 9) {
                0..3 => 0.0,
                3..8 => 1.0,
                _ => 2.0,
            };
            (probability * factor).min(1.0)
        };
        Self {
            straggler: vary(self.straggler),
            lost_request: vary(self.lost_request),
            lost_answer: vary(self.lost_answer),
            crash: vary(self.crash),
            stale_read: vary(self.stale_read),
            foreign: vary(self.foreign),
            lost_delivery: vary(self.lost_delivery),
            double_delivery: vary(self.double_delivery),
            rearm_lost: vary(self.rearm_lost),
            fire_after_cancel: vary(self.fire_after_cancel),
            fire_missed: vary(self.fire_missed),
            pause: vary(self.pause),
            ..self.clone()
        }
    }
}

/// A bug to injected_bug: a checker that has never found anything proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedBug {
    /// Events are appended without regard to the sequence that the step expects.
    MissingFence,
    /// What follows from an event is published before the event is appended.
    EffectBeforeEvent,
    /// A deadline does not remember that it has elapsed.
    DeadlineTwice,
    /// A delivery is acknowledged before it is handled.
    AckFirst,
    /// A delivered event that leads to events of two aggregates is acknowledged after the first.
    AckAfterFirst,
    /// What follows from an event is published in part.
    EffectForgotten,
    /// What follows from an event counts as published when it is sent, whatever becomes of it.
    EffectUnheard,
    /// Decisions not to append rest on reads that may be stale.
    StaleRefusal,
    /// The lock expects the last event, whatever else was stored after it.
    HeadForgotten,
    /// An event carries another state than the one before it.
    CarriedStateWrong,
    /// Nobody looks for deadlines that the broker did not fire.
    NoWatchdog,
    /// A deadline that the broker delivers is fired without a look at the clock.
    EarlyFire,
    /// A deadline is applied although what was said before it is not read.
    DeadlineUnread,
    /// The queue of people does not look at how many debates an expert has.
    QueueIgnoresLoad,
    /// The queue of people does not look at who opened a case.
    QueueUnfair,
    /// A ruling counts whatever brief it is on.
    RulingOnOldBrief,
    /// A ruling counts although its time has run out.
    RulingOutOfTime,
    /// A review that overrides is recorded, and the decision is not changed.
    DecisionNotChanged,
    /// How a debate has ended is recorded, and nobody is told.
    ConclusionUntold,
    /// A review counts whoever sends it.
    RoleUnchecked,
    /// A case is opened as if its opener were an operator, whom no bounds hold.
    BoundsUnchecked,
    /// Cases are opened without asking what their opener has already.
    QuotaUnchecked,
    /// An entry of a board is written on whatever version stands, whatever its author has read.
    BoardVersionIgnored,
    /// A commitment is granted although somebody has it.
    LeaseHeldByTwo,
    /// An analysis is published as if there were no others.
    AnalysesForgotten,
    /// Estimates are compared as if every policy asked for the same number.
    ToleranceIgnored,
    /// Estimates are compared without their units.
    UnitIgnored,
    /// An alert counts whoever sends it.
    AlertUnchecked,
    /// What fulfils a rule raises its alert twice.
    RuleRaisesTwice,
    /// What an agent writes into its memory is acknowledged, and not stored.
    MemoryWriteLost,
    /// What an agent writes into its memory is stored twice.
    MemoryWriteDoubled,
    /// What matters in a case is stored, and nobody is told of it.
    InsightUntold,
    /// What is held back in a case is forgotten at its first checkpoint.
    HeldForgotten,
    /// What was told at a checkpoint is told again.
    CheckpointToldAgain,
    /// A confirmation is counted twice.
    ConfirmationCountedTwice,
    /// An analysis that was done again counts as done twice.
    RerunCountedTwice,
    /// The task to do an analysis again is acknowledged, and not stored.
    RerunLost,
    /// A signature counts whatever it is of.
    SignatureUnchecked,
    /// What a level waits for stays open when the level is left.
    LevelDeadlineKept,
    /// Who is asked to do a task gets it, however many it has.
    CapacityUnchecked,
    /// An answer about a task counts although its sender has answered before.
    AnswerAgain,
    /// An answer to a question counts although the question has ended.
    QuestionEndsAgain,
    /// An answer to a question counts although its time was over when it was stored.
    AnswerAfterTime,
    /// A task is given to whom it names, whether they answer or not.
    SilenceIgnored,
    /// Who was silent is never tried again.
    NeverRetried,
    /// Who joins a case is not told what it needs.
    NotBriefed,
    /// Who joins a case is told twice what it needs.
    BriefedTwice,
    /// A half-open breaker lets every call pass.
    HalfOpenFlood,
    /// A breaker that has opened refuses every call from then on.
    NeverHalfOpen,
    /// An open breaker lets every call pass.
    AsksWhileOpen,
    /// What a process says of a message is stored beside what another said of it.
    AnsweredTwice,
    /// An answer is said although whoever asked has been told that the time is over.
    SaidTooLate,
    /// However many wait for an agent, one more may.
    QueueUnbounded,
    /// A call is made again although it may have arrived.
    UnsafeRetry,
}

impl InjectedBug {
    /// All of them.
    pub const ALL: [Self; 54] = [
        Self::MissingFence,
        Self::EffectBeforeEvent,
        Self::DeadlineTwice,
        Self::AckFirst,
        Self::AckAfterFirst,
        Self::EffectForgotten,
        Self::EffectUnheard,
        Self::StaleRefusal,
        Self::HeadForgotten,
        Self::CarriedStateWrong,
        Self::NoWatchdog,
        Self::EarlyFire,
        Self::DeadlineUnread,
        Self::QueueIgnoresLoad,
        Self::QueueUnfair,
        Self::RulingOnOldBrief,
        Self::RulingOutOfTime,
        Self::DecisionNotChanged,
        Self::ConclusionUntold,
        Self::RoleUnchecked,
        Self::BoundsUnchecked,
        Self::QuotaUnchecked,
        Self::BoardVersionIgnored,
        Self::LeaseHeldByTwo,
        Self::AnalysesForgotten,
        Self::ToleranceIgnored,
        Self::UnitIgnored,
        Self::AlertUnchecked,
        Self::RuleRaisesTwice,
        Self::MemoryWriteLost,
        Self::MemoryWriteDoubled,
        Self::InsightUntold,
        Self::HeldForgotten,
        Self::CheckpointToldAgain,
        Self::ConfirmationCountedTwice,
        Self::RerunCountedTwice,
        Self::RerunLost,
        Self::SignatureUnchecked,
        Self::LevelDeadlineKept,
        Self::CapacityUnchecked,
        Self::AnswerAgain,
        Self::QuestionEndsAgain,
        Self::AnswerAfterTime,
        Self::SilenceIgnored,
        Self::NeverRetried,
        Self::NotBriefed,
        Self::BriefedTwice,
        Self::HalfOpenFlood,
        Self::NeverHalfOpen,
        Self::AsksWhileOpen,
        Self::AnsweredTwice,
        Self::SaidTooLate,
        Self::QueueUnbounded,
        Self::UnsafeRetry,
    ];

    /// Whether it can only show where disagreements climb the ladder.
    pub fn is_on_ladder(self) -> bool {
        matches!(
            self,
            Self::ConclusionUntold
                | Self::QueueIgnoresLoad
                | Self::QueueUnfair
                | Self::RulingOnOldBrief
                | Self::RulingOutOfTime
                | Self::DecisionNotChanged
                | Self::RoleUnchecked
                | Self::AlertUnchecked
                | Self::RuleRaisesTwice
                | Self::RerunCountedTwice
                | Self::RerunLost
                | Self::SignatureUnchecked
                | Self::LevelDeadlineKept
        )
    }

    /// Whether it can only show where tasks are handed out.
    pub fn is_of_tasks(self) -> bool {
        matches!(
            self,
            Self::CapacityUnchecked | Self::AnswerAgain | Self::SilenceIgnored | Self::NeverRetried
        )
    }

    /// Whether it can only show in the world of a hosted agent.
    pub fn is_of_hosted(self) -> bool {
        matches!(
            self,
            Self::HalfOpenFlood
                | Self::NeverHalfOpen
                | Self::AsksWhileOpen
                | Self::AnsweredTwice
                | Self::SaidTooLate
                | Self::QueueUnbounded
                | Self::UnsafeRetry
        )
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingFence => "missing_fence",
            Self::EffectBeforeEvent => "effect_before_event",
            Self::DeadlineTwice => "deadline_twice",
            Self::AckFirst => "ack_first",
            Self::AckAfterFirst => "ack_after_first",
            Self::EffectForgotten => "effect_forgotten",
            Self::EffectUnheard => "effect_unheard",
            Self::StaleRefusal => "stale_refusal",
            Self::HeadForgotten => "head_forgotten",
            Self::CarriedStateWrong => "carried_state_wrong",
            Self::NoWatchdog => "no_watchdog",
            Self::EarlyFire => "early_fire",
            Self::DeadlineUnread => "deadline_unread",
            Self::QueueIgnoresLoad => "queue_ignores_load",
            Self::QueueUnfair => "queue_unfair",
            Self::RulingOnOldBrief => "ruling_on_old_brief",
            Self::RulingOutOfTime => "ruling_out_of_time",
            Self::DecisionNotChanged => "decision_not_changed",
            Self::ConclusionUntold => "conclusion_untold",
            Self::RoleUnchecked => "role_unchecked",
            Self::BoundsUnchecked => "bounds_unchecked",
            Self::QuotaUnchecked => "quota_unchecked",
            Self::BoardVersionIgnored => "board_version_ignored",
            Self::LeaseHeldByTwo => "lease_held_by_two",
            Self::AnalysesForgotten => "analyses_forgotten",
            Self::ToleranceIgnored => "tolerance_ignored",
            Self::UnitIgnored => "unit_ignored",
            Self::AlertUnchecked => "alert_unchecked",
            Self::RuleRaisesTwice => "rule_raises_twice",
            Self::MemoryWriteLost => "memory_write_lost",
            Self::MemoryWriteDoubled => "memory_write_doubled",
            Self::InsightUntold => "insight_untold",
            Self::HeldForgotten => "held_forgotten",
            Self::CheckpointToldAgain => "checkpoint_told_again",
            Self::ConfirmationCountedTwice => "confirmation_counted_twice",
            Self::RerunCountedTwice => "rerun_counted_twice",
            Self::RerunLost => "rerun_lost",
            Self::SignatureUnchecked => "signature_unchecked",
            Self::LevelDeadlineKept => "level_deadline_kept",
            Self::CapacityUnchecked => "capacity_unchecked",
            Self::AnswerAgain => "answer_again",
            Self::QuestionEndsAgain => "question_ends_again",
            Self::AnswerAfterTime => "answer_after_time",
            Self::SilenceIgnored => "silence_ignored",
            Self::NeverRetried => "never_retried",
            Self::NotBriefed => "not_briefed",
            Self::BriefedTwice => "briefed_twice",
            Self::HalfOpenFlood => "half_open_flood",
            Self::NeverHalfOpen => "never_half_open",
            Self::AsksWhileOpen => "asks_while_open",
            Self::AnsweredTwice => "answered_twice",
            Self::SaidTooLate => "said_too_late",
            Self::QueueUnbounded => "queue_unbounded",
            Self::UnsafeRetry => "unsafe_retry",
        }
    }

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.as_str() == name)
    }
}
