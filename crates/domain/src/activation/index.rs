//! An inverted index from n-grams to skills. Adding or removing a card changes it in place.
//!
//! The weights are `lnc.ltc` of the SMART notation (Salton and Buckley 1988): the rarity of an
//! n-gram counts on the side of the message only. So the vector of a skill does not depend on other
//! skills, and adding a card touches only its own n-grams.

use std::collections::BTreeMap;

use super::ngram::Profile;

/// How many postings one message may touch. The rarest n-grams come first, so what is left out says
/// least.
const POSTINGS_MAX: usize = 150_000;

/// A skill that contains an n-gram.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Posting {
    slot: u32,
    weight: f32,
}

/// The inverted index. A slot is a number that the owner of the index gives to a skill.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    postings: BTreeMap<u32, Vec<Posting>>,
    skills: usize,
}

impl Index {
    /// Adds a skill.
    pub(super) fn insert(&mut self, slot: u32, profile: &Profile) {
        self.skills += 1;
        for (hash, weight) in profile.iter() {
            let list = self.postings.entry(hash).or_default();
            let place = list.partition_point(|posting| posting.slot < slot);
            list.insert(place, Posting { slot, weight });
        }
    }

    /// Removes a skill that was added with the same profile.
    pub(super) fn remove(&mut self, slot: u32, profile: &Profile) {
        self.skills = self.skills.saturating_sub(1);
        for (hash, _) in profile.iter() {
            if let Some(list) = self.postings.get_mut(&hash) {
                if let Ok(place) = list.binary_search_by_key(&slot, |posting| posting.slot) {
                    list.remove(place);
                }
                if list.is_empty() {
                    self.postings.remove(&hash);
                }
            }
        }
    }

    /// The similarity of a message and each skill, 0 to 1, by slot; and the slots of those that have anything in common with it.
    pub(super) fn scores(&self, message: &Profile, slots: usize) -> (Vec<f32>, Vec<u32>) {
        let mut scores = vec![0.0; slots];
        let mut common = Vec::new();
        let skills = self.skills as f32;
        let mut length = 0.0;
        let mut found: Vec<(&[Posting], f32)> = Vec::with_capacity(message.len());
        for (hash, weight) in message.iter() {
            let list = self.postings.get(&hash).map_or(&[][..], Vec::as_slice);
            // An n-gram that no skill contains still adds to the length of the message: the message
            // is about something else as well.
            let rarity = (1.0 + skills / (list.len() as f32).max(0.5)).ln();
            let weight = weight * rarity;
            length += weight * weight;
            if !list.is_empty() {
                found.push((list, weight));
            }
        }
        // A stable sort: equally rare n-grams stay in the order of their hashes, so the sums are
        // the same on every machine.
        found.sort_by_key(|(list, _)| list.len());
        let length = length.sqrt().max(f32::MIN_POSITIVE);
        let mut touched = 0;
        for (list, weight) in found {
            touched += list.len();
            if touched > POSTINGS_MAX {
                break;
            }
            debug_assert!(
                weight.is_finite() && weight >= 0.0,
                "an n-gram has a weight, not {weight}"
            );
            let weight = weight / length;
            for posting in list {
                if let Some(score) = scores.get_mut(posting.slot as usize) {
                    if *score == 0.0 {
                        common.push(posting.slot);
                    }
                    *score += weight * posting.weight;
                }
            }
        }
        (scores, common)
    }

    /// The number of different n-grams.
    #[cfg(test)]
    pub(super) fn ngrams(&self) -> usize {
        self.postings.len()
    }
}
