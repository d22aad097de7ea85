//! How the answers that a policy allows in one round are shared among the debates of a case.
//!
//! The specification allows ten messages a round, and counts in a round the answers of all parties
//! in all conflicts; an answer that goes to several recipients is one message. Debates run side by
//! side and know nothing of each other, so each is given its share when the conflicts are found:
//! as no debate exceeds its share in a round, all of them together keep the limit in every round.

/// Fewer answers cannot settle anything.
const ANSWERS_MIN: u32 = 2;

/// How many answers each debate may have in a round. `parties` is how many parties each has, in
/// ranking order.
///
/// Each debate is given two answers, those that rank first before the others; a debate for which
/// two are not left has none. What is left goes round one by one, in the same order, to debates
/// with more parties than that. No share is larger than the number of parties.
pub fn shares(messages_max: u32, parties: &[usize]) -> Vec<u32> {
    let parties: Vec<u32> = parties
        .iter()
        .map(|parties| u32::try_from(*parties).unwrap_or(u32::MAX))
        .collect();
    let mut left = messages_max;
    let mut shares: Vec<u32> = Vec::with_capacity(parties.len());
    for parties in &parties {
        let share = if left >= ANSWERS_MIN && *parties >= ANSWERS_MIN {
            ANSWERS_MIN
        } else {
            0
        };
        left -= share;
        shares.push(share);
    }
    loop {
        let mut is_done = true;
        for (share, parties) in shares.iter_mut().zip(&parties) {
            if left > 0 && *share > 0 && *share < *parties {
                *share += 1;
                left -= 1;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    debug_assert!(
        shares.iter().sum::<u32>() <= messages_max,
        "the shares are more than there is: {shares:?} of {messages_max}"
    );
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limit_of_the_specification_gives_each_of_its_five_conflicts_two_answers() {
        for (messages_max, parties, expected) in [
            (10, vec![5, 5, 5, 5, 5], vec![2, 2, 2, 2, 2]),
            (10, vec![5, 5, 5], vec![4, 3, 3]),
            (10, vec![2, 5, 2], vec![2, 5, 2]),
            (10, vec![2, 9, 2], vec![2, 6, 2]),
            (10, vec![12], vec![10]),
            (5, vec![3, 3, 3], vec![3, 2, 0]),
            (2, vec![2, 2], vec![2, 0]),
            (2, vec![], vec![]),
        ] {
            assert_eq!(
                shares(messages_max, &parties),
                expected,
                "{messages_max} {parties:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_debates_of_a_case_keep_the_limit_together_and_leave_nothing_unused(
            messages_max in 0u32..40,
            parties in proptest::collection::vec(2usize..9, 0..8),
        ) {
            let shares = shares(messages_max, &parties);
            let given: u32 = shares.iter().sum();
            prop_assert!(given <= messages_max);
            let mut is_full = true;
            for (share, parties) in shares.iter().zip(&parties) {
                prop_assert!(*share == 0 || (2..=*parties).contains(&(*share as usize)));
                is_full &= *share as usize == *parties;
            }
            prop_assert!(is_full || messages_max - given < 2);
        }
    }
}
