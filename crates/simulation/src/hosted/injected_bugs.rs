//! Bugs of the breaker that can be planted.

use concord_domain::resilience::breaker::BreakerState;

use crate::faults::Plant;

/// Whether a call passes, whatever the breaker says; none when it is for the breaker to say.
pub(super) fn bent(plant: Option<Plant>, standing: BreakerState) -> Option<bool> {
    match (plant?, standing) {
        (Plant::HalfOpenFlood, BreakerState::HalfOpen)
        | (Plant::AsksWhileOpen, BreakerState::Open) => Some(true),
        (Plant::NeverHalfOpen, BreakerState::HalfOpen) => Some(false),
        _ => None,
    }
}
