//! Bugs of the breaker that can be planted.

use concord_domain::resilience::breaker::Standing;

use crate::faults::Plant;

/// Whether a call passes, whatever the breaker says; none when it is for the breaker to say.
pub(super) fn bent(plant: Option<Plant>, standing: Standing) -> Option<bool> {
    match (plant?, standing) {
        (Plant::HalfOpenFlood, Standing::HalfOpen) | (Plant::AsksWhileOpen, Standing::Open) => {
            Some(true)
        }
        (Plant::NeverHalfOpen, Standing::HalfOpen) => Some(false),
        _ => None,
    }
}
