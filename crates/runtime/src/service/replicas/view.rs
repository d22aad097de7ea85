//! What one replica of a service sees of the others, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use concord_wire::{Timestamp, Token};

use super::needed::Needed;
use crate::service::hand_off::receipts::Beat;

/// A replica that has said nothing for so long is taken for dead: three beats may be late.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(1_200);
/// A replica that has said nothing for so long is asked whether it is there.
pub(super) const SILENCE_ODD: Duration = Duration::from_millis(500);

/// The replicas that are there, and those that work.
///
/// The oldest works, and as many of the next oldest as are needed; the others stand by. So nothing moves when a replica is added, and where one
/// is enough it has all that belongs together in memory.
pub(super) struct View {
    own: Token,
    /// When this replica was started. None for a service whose replicas all work.
    since: Option<Timestamp>,
    others: BTreeMap<Token, Other>,
    needed: Needed,
    /// Whether the others have had time to say that they are there.
    is_settled: bool,
    working: BTreeSet<Token>,
    changes: u64,
}

struct Other {
    heard: Instant,
    since: Option<Timestamp>,
    busy: u32,
}

impl View {
    pub(super) fn new(own: Token, since: Option<Timestamp>) -> Self {
        let mut view = Self {
            own,
            since,
            others: BTreeMap::new(),
            needed: Needed::default(),
            is_settled: since.is_none(),
            working: BTreeSet::new(),
            changes: 0,
        };
        view.choose();
        view
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// How often others have come or gone, or begun or ceased to work.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether this replica works, and does not stand by.
    pub(super) fn works(&self) -> bool {
        self.working.contains(&self.own)
    }

    pub(super) fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// The replica that works on what `key` names; none for this one. The highest of the hashes of key and replica wins (rendezvous
    /// hashing), so when a replica comes or goes only its own share moves.
    pub(super) fn owner_of(&self, key: &str) -> Option<&Token> {
        let owner = self.working.iter().max_by_key(|one| weight(key, one))?;
        (*owner != self.own).then_some(owner)
    }

    /// Takes a beat into account. Whether its replica was not known.
    pub(super) fn hear(&mut self, replica: Token, beat: &Beat, now: Instant) -> bool {
        let other = Other {
            heard: now,
            since: beat.since,
            busy: beat.busy,
        };
        let is_new = self.others.insert(replica, other).is_none();
        if is_new {
            self.is_settled = true;
            self.changes += 1;
            self.choose();
        }
        is_new
    }

    /// Lets go of a replica. Whether it was there.
    pub(super) fn let_go(&mut self, replica: &Token) -> bool {
        let was_there = self.others.remove(replica).is_some();
        self.changes += u64::from(was_there);
        self.choose();
        was_there
    }

    /// Lets go of all.
    pub(super) fn see_nobody(&mut self) {
        self.others.clear();
        self.is_settled = true;
        self.changes += 1;
        self.choose();
    }

    /// The replicas that have said nothing for so long.
    pub(super) fn silent(&self, silence: Duration, now: Instant) -> Vec<Token> {
        let is_silent = |other: &Other| now.duration_since(other.heard) >= silence;
        let silent = self.others.iter().filter(|(_, other)| is_silent(other));
        silent.map(|(replica, _)| replica.clone()).collect()
    }

    /// Looks how many replicas are needed, when this one is so busy, in percent.
    pub(super) fn look(&mut self, busy: u32, now: Instant) {
        let of_others = self.others.values().map(|other| other.busy.min(100));
        let all = of_others.chain([busy]).sum();
        self.needed.look(all, self.others.len(), now);
        self.is_settled = true;
        self.choose();
    }

    fn choose(&mut self) {
        let others = self.others.iter().map(|(name, other)| (other.since, name));
        let own = self.is_settled.then_some((self.since, &self.own));
        let mut all: Vec<_> = others.chain(own).collect();
        all.sort();
        let always = all.iter().take_while(|(since, _)| since.is_none()).count();
        let count = self.needed.count().max(always);
        let working = all.into_iter().take(count);
        let working = working.map(|(_, name)| name.clone()).collect();
        if self.working != working {
            self.working = working;
            self.changes += 1;
        }
    }
}

/// How much a replica wants what `key` names.
fn weight(key: &str, replica: &Token) -> (u64, Token) {
    // The same in all processes of one build. Builds that differ here have different views, which costs time alone.
    let mut hasher = DefaultHasher::new();
    (key, replica.as_str()).hash(&mut hasher);
    (hasher.finish(), replica.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str) -> Token {
        Token::new(name).unwrap()
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_unix_millis(0).plus_millis(second * 1_000)
    }

    fn beat(since: Option<u64>, busy: u32) -> Beat {
        Beat {
            since: since.map(at),
            busy,
            ..Beat::default()
        }
    }

    /// A view of replicas that all work.
    fn seeing(own: &str, others: &[&str]) -> View {
        let mut view = View::new(token(own), None);
        for other in others {
            view.hear(token(other), &Beat::default(), Instant::now());
        }
        view
    }

    #[test]
    fn all_who_see_the_same_agree_and_a_replica_that_goes_moves_its_share_alone() {
        let names = ["a", "b", "c", "d"];
        let views: Vec<View> = names
            .iter()
            .map(|own| {
                let others: Vec<&str> = names.into_iter().filter(|name| name != own).collect();
                seeing(own, &others)
            })
            .collect();
        let without_d = seeing("a", &["b", "c"]);
        let owner = |view: &View, key: &str| view.owner_of(key).unwrap_or(&view.own).to_string();
        let mut shares = BTreeMap::<String, usize>::new();
        for number in 0..4_000 {
            let key = format!("case-{number}");
            let named = owner(&views[0], &key);
            assert!(views.iter().all(|view| owner(view, &key) == named));
            let after = owner(&without_d, &key);
            assert!(after == named || named == "d", "{key}: {named} -> {after}");
            *shares.entry(named).or_default() += 1;
        }
        assert!(
            shares.len() == 4 && shares.values().all(|share| (800..1_200).contains(share)),
            "{shares:?}"
        );
    }

    #[test]
    fn whoever_is_alone_owns_everything_and_the_silent_are_let_go() {
        let now = Instant::now();
        let alone = seeing("a", &[]);
        assert!(alone.is_alone() && alone.works() && alone.owner_of("c-1").is_none());
        let mut two = seeing("a", &["b"]);
        assert!(!two.is_alone() && two.silent(SILENCE_ODD, now).is_empty());
        assert_eq!(two.silent(SILENCE_ODD, now + SILENCE_MAX), [token("b")]);
        assert!(two.let_go(&token("b")) && !two.let_go(&token("b")));
        assert!(two.is_alone());
    }

    #[test]
    fn the_oldest_work_as_many_as_are_needed_and_the_others_stand_by() {
        let now = Instant::now();
        let mut view = View::new(token("m"), Some(at(20)));
        assert!(!view.works(), "others may be there");
        assert!(view.owner_of("c-1").is_none());
        view.look(10, now);
        assert!(view.works());
        // A younger one changes nothing, an older one has the work.
        view.hear(token("a"), &beat(Some(30), 0), now);
        assert!(view.works() && view.owner_of("c-1").is_none());
        view.hear(token("z"), &beat(Some(10), 50), now);
        assert!(!view.works());
        assert_eq!(view.owner_of("c-1"), Some(&token("z")));
        // Two are needed.
        view.look(30, now);
        assert!(view.works());
        assert!(!view.working.contains(&token("a")));
        // Whoever sees nobody works, even before it has looked.
        let mut lonely = View::new(token("m"), Some(at(20)));
        lonely.see_nobody();
        assert!(lonely.works());
        // Whoever goes is replaced by the next.
        view.let_go(&token("z"));
        assert!(view.works() && view.working.contains(&token("a")));
    }

    #[test]
    fn replicas_of_earlier_versions_do_not_stand_by() {
        let now = Instant::now();
        let mut view = View::new(token("m"), Some(at(20)));
        view.hear(token("a"), &beat(None, 0), now);
        view.hear(token("b"), &beat(None, 0), now);
        let expected = [token("a"), token("b")];
        assert_eq!(view.working, BTreeSet::from(expected));
        view.let_go(&token("a"));
        view.let_go(&token("b"));
        assert!(view.works());
    }
}
