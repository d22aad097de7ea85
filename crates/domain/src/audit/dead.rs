//! What is known of the dead: a letter may lack its original's `message_id`, or its place in the stream.

use std::collections::BTreeSet;

use concord_protocol::MessageId;
use concord_protocol::subject::{Lane, SubjectSpace};

use super::Dead;

/// Where a message is stored.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub(super) lane: Lane,
    pub(super) sequence: u64,
    /// Its subject under the default prefix, where it is one.
    pub(super) subject: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    ids: BTreeSet<MessageId>,
    positions: BTreeSet<(Lane, u64)>,
    /// Subjects of originals of which nothing else is known.
    subjects: BTreeSet<String>,
}

impl DeadLetters {
    pub(super) fn take(&mut self, dead: &Dead<'_>) {
        self.ids.extend(dead.message_id.cloned());
        self.positions.extend(dead.position);
        if dead.message_id.is_none() && dead.position.is_none() {
            self.subjects.extend(dead.subject.map(|subject| SubjectSpace::default().build(subject)));
        }
    }

    pub(super) fn holds(&self, position: &Position, id: Option<&MessageId>) -> bool {
        id.is_some_and(|id| self.ids.contains(id))
            || self.positions.contains(&(position.lane, position.sequence))
            || position.subject.as_ref().is_some_and(|subject| self.subjects.contains(subject))
    }
}
