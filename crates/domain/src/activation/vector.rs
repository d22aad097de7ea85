//! Vectors of texts, as an embedding model returns them.

/// A vector with length 1 in the same direction. `None` for a vector of length 0, or with a number
/// that is not finite.
pub fn direction(vector: &[f32]) -> Option<Vec<f32>> {
    // Divided by the largest number first, so that the squares of very large numbers stay finite.
    let largest = vector
        .iter()
        .fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if !largest.is_finite() || largest == 0.0 || vector.iter().any(|x| x.is_nan()) {
        return None;
    }
    let length = vector
        .iter()
        .map(|x| (x / largest) * (x / largest))
        .sum::<f32>()
        .sqrt();
    debug_assert!(
        length.is_finite() && length >= 1.0,
        "divided by its largest number a vector has a length of at least 1, not {length}"
    );
    Some(vector.iter().map(|x| x / largest / length).collect())
}

/// The centroid of vectors: the direction of the sum of their directions. Vectors without a
/// direction, and those with other dimensions than the first, do not count.
pub fn centroid<'a>(vectors: impl IntoIterator<Item = &'a [f32]>) -> Option<Vec<f32>> {
    let mut sum: Vec<f32> = Vec::new();
    for vector in vectors.into_iter().filter_map(direction) {
        if sum.is_empty() {
            sum = vector;
        } else if sum.len() == vector.len() {
            sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += x);
        }
    }
    direction(&sum)
}

/// The direction of a message with a share of the previous one.
pub(super) fn blended(message: &[f32], previous: &[f32], share: f32) -> Option<Vec<f32>> {
    let (message, previous) = (direction(message)?, direction(previous)?);
    if message.len() != previous.len() {
        return Some(message);
    }
    direction(
        &message
            .iter()
            .zip(&previous)
            .map(|(m, p)| m * (1.0 - share) + p * share)
            .collect::<Vec<f32>>(),
    )
}

/// The cosine of two directions; 0 when their numbers of dimensions differ.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    if a.len() != b.len() {
        return 0.0;
    }
    // Eight sums side by side: the compiler keeps the order of additions, and would otherwise add
    // one number at a time.
    let mut sums = [0.0_f32; LANES];
    let (blocks_a, blocks_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = blocks_a
        .remainder()
        .iter()
        .zip(blocks_b.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (block_a, block_b) in blocks_a.zip(blocks_b) {
        for (sum, (x, y)) in sums.iter_mut().zip(block_a.iter().zip(block_b)) {
            *sum += x * y;
        }
    }
    (sums.iter().sum::<f32>() + rest).clamp(-1.0, 1.0)
}
