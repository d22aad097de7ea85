//! How agents want to be written to: as their cards say, else in the dialect in which they wrote last.

use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};

use concord_wire::payload::Card;
use concord_wire::{AgentId, Dialect, Encoding};
use lru::LruCache;

/// How many agents without a card are remembered with the dialect in which they wrote last.
const WRITERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

/// How an agent wants to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WirePreference {
    /// In which dialect.
    pub dialect: Dialect,
    /// Whether it reads gzip.
    pub gzip: bool,
}

impl From<Dialect> for WirePreference {
    fn from(dialect: Dialect) -> Self {
        Self {
            dialect,
            gzip: false,
        }
    }
}

impl From<&Card> for WirePreference {
    fn from(card: &Card) -> Self {
        Self {
            dialect: card.dialect,
            gzip: card.encodings.contains(&Encoding::Gzip),
        }
    }
}

/// Looks up in the cards of agents how one wants to be written to; none where it has no card.
pub type CardLookup = Box<dyn Fn(&AgentId) -> Option<WirePreference> + Send + Sync>;

/// What a process knows about how agents want to be written to.
pub(crate) struct WirePreferences {
    cards: OnceLock<CardLookup>,
    /// The dialect in which agents wrote last, where it was not the canonical form.
    last_written: Mutex<LruCache<AgentId, Dialect>>,
}

impl Default for WirePreferences {
    fn default() -> Self {
        Self {
            cards: OnceLock::new(),
            last_written: Mutex::new(LruCache::new(WRITERS_MAX)),
        }
    }
}

impl WirePreferences {
    /// From now on cards are looked up by `cards`. Only the first call counts.
    pub(crate) fn look_up(&self, cards: CardLookup) {
        if self.cards.set(cards).is_err() {
            tracing::debug!("It is known already how agents are written to.");
        }
    }

    /// As the agent's card says.
    pub(crate) fn by_card(&self, agent: &AgentId) -> Option<WirePreference> {
        self.cards.get().and_then(|look_up| look_up(agent))
    }

    /// As its card says, else in the dialect in which it wrote last.
    pub(crate) fn of(&self, agent: &AgentId) -> Option<WirePreference> {
        let last_written = || {
            self.last_written
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(agent)
                .copied()
                .map(WirePreference::from)
        };
        self.by_card(agent).or_else(last_written)
    }

    /// Takes into account in which dialect an agent has written.
    pub(crate) fn wrote_in(&self, agent: &AgentId, dialect: Dialect) {
        let mut written = self
            .last_written
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match dialect {
            Dialect::Concord if written.is_empty() => {}
            Dialect::Concord => drop(written.pop(agent)),
            dialect => drop(written.put(agent.clone(), dialect)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_counts_before_what_was_heard_and_the_last_that_was_heard_counts() {
        let [ann, ben] = ["ann", "ben"].map(|name| AgentId::new(name).unwrap());
        let preferences = WirePreferences::default();
        assert_eq!(preferences.of(&ann), None);
        preferences.wrote_in(&ann, Dialect::Panel);
        preferences.wrote_in(&ben, Dialect::Session);
        assert_eq!(
            preferences.of(&ann).map(|known| known.dialect),
            Some(Dialect::Panel)
        );
        let card = ann.clone();
        preferences.look_up(Box::new(move |agent| {
            (*agent == card).then(|| Dialect::Exchange.into())
        }));
        assert_eq!(
            preferences.of(&ann).map(|known| known.dialect),
            Some(Dialect::Exchange)
        );
        assert_eq!(
            preferences.of(&ben).map(|known| known.dialect),
            Some(Dialect::Session)
        );
        assert_eq!(preferences.by_card(&ben), None);
        preferences.wrote_in(&ben, Dialect::Concord);
        assert_eq!(preferences.of(&ben), None);
    }
}
