//! How agents want to be written to: as their cards say, else as they were last heard to speak.

use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};

use concord_wire::payload::Card;
use concord_wire::{AgentId, Dialect, Encoding};
use lru::LruCache;

/// Agents without a card that are remembered to speak a dialect.
const HEARD_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

/// How an agent wants to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spoken {
    /// In which dialect.
    pub dialect: Dialect,
    /// Whether it reads gzip.
    pub gzip: bool,
}

impl From<Dialect> for Spoken {
    fn from(dialect: Dialect) -> Self {
        Self {
            dialect,
            gzip: false,
        }
    }
}

impl From<&Card> for Spoken {
    fn from(card: &Card) -> Self {
        Self {
            dialect: card.dialect,
            gzip: card.encodings.contains(&Encoding::Gzip),
        }
    }
}

/// Says how an agent wants to be written to; none where that is not known.
pub type SpokenBy = Box<dyn Fn(&AgentId) -> Option<Spoken> + Send + Sync>;

/// What a process knows of how agents want to be written to.
pub(crate) struct Speech {
    cards: OnceLock<SpokenBy>,
    /// What agents were heard to speak, where it was not the canonical form.
    heard: Mutex<LruCache<AgentId, Dialect>>,
}

impl Default for Speech {
    fn default() -> Self {
        Self {
            cards: OnceLock::new(),
            heard: Mutex::new(LruCache::new(HEARD_MAX)),
        }
    }
}

impl Speech {
    /// From now on cards are looked up by `spoken_by`. Only the first call counts.
    pub(crate) fn look_up(&self, spoken_by: SpokenBy) {
        if self.cards.set(spoken_by).is_err() {
            tracing::debug!("It is known already how agents are written to.");
        }
    }

    /// As the agent's card says.
    pub(crate) fn by_card(&self, agent: &AgentId) -> Option<Spoken> {
        self.cards.get().and_then(|spoken_by| spoken_by(agent))
    }

    /// As its card says, else as it was last heard.
    pub(crate) fn of(&self, agent: &AgentId) -> Option<Spoken> {
        let heard = || {
            self.heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(agent)
                .copied()
                .map(Spoken::from)
        };
        self.by_card(agent).or_else(heard)
    }

    /// Takes into account what an agent has spoken.
    pub(crate) fn hear(&self, agent: &AgentId, dialect: Dialect) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match dialect {
            Dialect::Concord if heard.is_empty() => {}
            Dialect::Concord => drop(heard.pop(agent)),
            dialect => drop(heard.put(agent.clone(), dialect)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_counts_before_what_was_heard_and_the_last_that_was_heard_counts() {
        let [ann, ben] = ["ann", "ben"].map(|name| AgentId::new(name).unwrap());
        let speech = Speech::default();
        assert_eq!(speech.of(&ann), None);
        speech.hear(&ann, Dialect::Panel);
        speech.hear(&ben, Dialect::Session);
        assert_eq!(
            speech.of(&ann).map(|spoken| spoken.dialect),
            Some(Dialect::Panel)
        );
        let card = ann.clone();
        speech.look_up(Box::new(move |agent| {
            (*agent == card).then(|| Dialect::Exchange.into())
        }));
        assert_eq!(
            speech.of(&ann).map(|spoken| spoken.dialect),
            Some(Dialect::Exchange)
        );
        assert_eq!(
            speech.of(&ben).map(|spoken| spoken.dialect),
            Some(Dialect::Session)
        );
        assert_eq!(speech.by_card(&ben), None);
        speech.hear(&ben, Dialect::Concord);
        assert_eq!(speech.of(&ben), None);
    }
}
