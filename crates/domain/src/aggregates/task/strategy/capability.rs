//! Who fits best; the next best when one fails.

use concord_wire::Fault;
use concord_wire::payload::OpenTask;

use super::{Next, Progress, TaskStrategy, one_after_another, one_in_time};

pub(super) struct Capability;

impl TaskStrategy for Capability {
    fn after(&self, progress: &Progress<'_>) -> Next {
        one_after_another(progress)
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        one_in_time(progress)
    }

    fn asks_one(&self) -> bool {
        true
    }

    fn check_terms(&self, terms: &OpenTask) -> Result<(), Fault> {
        let criteria = &terms.criteria;
        let says_what = !criteria.skills.is_empty() || !criteria.domains.is_empty();
        if says_what || criteria.text.is_some() {
            return Ok(());
        }
        Err(Fault::invalid(
            "/payload/parameters/criteria",
            "It is not said what an agent must be able to do.",
            "Name skills or domains, or say in text what is needed.",
        ))
    }
}
