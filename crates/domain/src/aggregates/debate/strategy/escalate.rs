//! `ladder`: what the discussion has left open goes to mediation, and from there up the ladder.

use concord_events::EscalationReason;
use concord_wire::policy::Policy;

use super::{Conclusion, ResolutionStrategy};
use crate::aggregates::debate::discussion::Discussion;

/// Discussion, then the ladder from level 2 on.
#[derive(Debug)]
pub(super) struct Escalate;

impl ResolutionStrategy for Escalate {
    fn needs_prior_knowledge(&self, _: &Policy) -> bool {
        true
    }

    fn conclude(&self, _: &Discussion<'_>) -> Conclusion {
        Conclusion::Escalate {
            reason: EscalationReason::NotSettled,
            tally: None,
        }
    }
}
