//! How much of one caller is under way in a process at once: whoever asks for more is told to ask again, and nobody else waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use concord_wire::{AgentId, ErrorCode, Fault};

use crate::service::api::Call;

/// Pages of one caller that a process reads at once.
const PAGES_MAX: usize = 4;
/// Requests of one caller to any verb that a process has at once. Each is looked up before it is known whether the caller may ask.
const REQUESTS_MAX: usize = 64;

/// What is under way, by caller. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UnderWay {
    numbers: Arc<Mutex<BTreeMap<AgentId, usize>>>,
    most: usize,
    /// What is counted, in words.
    what: &'static str,
}

/// The place of one request among those that are under way, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    under_way: UnderWay,
    caller: AgentId,
}

impl UnderWay {
    /// Of pages that are read.
    pub fn of_pages() -> Self {
        Self::new(PAGES_MAX, "pages")
    }

    /// Of requests to any verb.
    pub(crate) fn of_requests() -> Self {
        Self::new(REQUESTS_MAX, "answers")
    }

    fn new(most: usize, what: &'static str) -> Self {
        Self {
            numbers: Arc::default(),
            most,
            what,
        }
    }

    /// A place for one more reading of whoever asks; the installation's own operator needs none.
    pub fn place(&self, call: &Call) -> Result<Option<Place>, Fault> {
        let caller = call.caller.as_ref();
        caller.map(|caller| self.enter(&caller.name)).transpose()
    }

    /// A place for one more request of a caller; refused where the caller has all that there are.
    pub(crate) fn enter(&self, caller: &AgentId) -> Result<Place, Fault> {
        let mut all = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.entry(caller.clone()).or_default();
        if *number >= self.most {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                "",
                format!(
                    "{caller} waits for {} {} at this moment, and no more are given at once.",
                    self.most, self.what
                ),
                "Ask again when one of them has come.",
            ));
        }
        *number += 1;
        Ok(Place {
            under_way: self.clone(),
            caller: caller.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self
            .under_way
            .numbers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = all.get_mut(&self.caller) {
            *number -= 1;
            if *number == 0 {
                all.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_few_places_and_gives_them_back() {
        let (eva, ben) = (AgentId::fixed("eva"), AgentId::fixed("ben"));
        let under_way = UnderWay::of_pages();
        let mut places: Vec<Place> = (0..PAGES_MAX)
            .map(|_| under_way.enter(&eva).ok().unwrap())
            .collect();
        let refused = under_way.enter(&eva).err().unwrap();
        assert_eq!(refused.code, ErrorCode::CapacityExceeded);
        assert!(under_way.enter(&ben).is_ok());
        places.pop();
        assert!(under_way.enter(&eva).is_ok());
        places.clear();
        assert!(under_way.numbers.lock().unwrap().is_empty());
    }
}
