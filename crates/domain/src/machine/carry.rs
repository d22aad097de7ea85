//! How the state of an aggregate is carried by its events.

use concord_events::CarriedState;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rules::size_budget::json_bytes;

/// How many events there are at least from one that carries the state to the next. To load an aggregate takes about so many reads.
pub const CARRY_EVERY: usize = 64;
/// The most bytes that a state may take in an event, and for each event since the last that carried it: what is carried must not
/// take more room than what need not be read any more.
const BYTES_MAX: usize = 256 << 10;
const BYTES_EACH: usize = 512;

/// How a state is written into events and read again.
///
/// The fields of the state have no defaults: a state of another form must not be taken for one of this. Numbers with fractions are read
/// as they were written (`float_roundtrip` of `serde_json`).
#[derive(Debug)]
pub struct Carry<S> {
    /// The form of the state. Changed whenever the same events lead to another state than before, in what it says or in what it
    /// means; a state of another form is passed over, and the events before it are read.
    pub form: u32,
    write: fn(&S) -> Option<serde_json::Value>,
    read: fn(&serde_json::Value) -> Option<S>,
}

impl<S: Serialize + DeserializeOwned> Carry<S> {
    /// States as JSON, in this form.
    pub const fn as_json(form: u32) -> Self {
        Self {
            form,
            write: |state| serde_json::to_value(state).ok(),
            read: |value| S::deserialize(value).ok(),
        }
    }
}

impl<S> Carry<S> {
    /// The state for an event, after so many events; none where it would take too much room.
    pub(super) fn write(&self, state: &S, events: usize) -> Option<CarriedState> {
        let value = (self.write)(state)?;
        let bytes_max = events.saturating_mul(BYTES_EACH).min(BYTES_MAX);
        (json_bytes(&value) <= bytes_max).then_some(CarriedState {
            form: self.form,
            value,
        })
    }

    /// The state that an event carries; none where it has another form.
    pub(super) fn read(&self, carried: &CarriedState) -> Option<S> {
        let is_known = carried.form == self.form;
        is_known.then(|| (self.read)(&carried.value)).flatten()
    }

    /// Whether an event carries this state, or one of another form, which cannot be compared.
    pub fn is_carried(&self, carried: &CarriedState, state: &S) -> bool {
        carried.form != self.form || (self.write)(state).as_ref() == Some(&carried.value)
    }
}
