//! Challenges: challenger and challenged settle it themselves on level 1 of the ladder, without
//! rounds.

use concord_events::EscalationReason;
use concord_events::names::{ACKNOWLEDGE, EVIDENCE};
use concord_wire::Timestamp;
use concord_wire::payload::OpenDebate;
use concord_wire::policy::Policy;

use super::{Beginning, Conclusion, ResolutionStrategy};
use crate::aggregates::debate::discussion::Discussion;
use crate::aggregates::debate::escalation::named;

/// The ladder from level 1 on, whatever the policy says about detected conflicts.
#[derive(Debug)]
pub(super) struct Challenge;

impl ResolutionStrategy for Challenge {
    fn needs_prior_knowledge(&self, _: &Policy) -> bool {
        true
    }

    fn begin(&self, now: Timestamp, request: &OpenDebate) -> Beginning {
        let ladder = &request.policy.ladder;
        let times = ladder.times_of(request.terms.priority);
        let challenge = request.terms.challenge.as_ref();
        // The challenger may hurry the evidence, but neither take away the time to acknowledge nor keep the case from its gate.
        let evidence_ms = challenge
            .and_then(|terms| terms.escalation_timer)
            .map_or(times.evidence_ms, |seconds| seconds.saturating_mul(1_000))
            .max(times.acknowledge_ms)
            .min(times.evidence_ms);
        let due = |ms| now.plus_millis(ladder.scaled(ms));
        Beginning {
            asked: Vec::new(),
            due: None,
            waits_for: vec![
                named(ACKNOWLEDGE, due(times.acknowledge_ms)),
                named(EVIDENCE, due(evidence_ms)),
            ],
        }
    }

    fn conclude(&self, _: &Discussion<'_>) -> Conclusion {
        // It is never discussed in rounds. If it were, what they leave open would go to mediation
        // too.
        Conclusion::Escalate {
            reason: EscalationReason::NotSettled,
            tally: None,
        }
    }
}
