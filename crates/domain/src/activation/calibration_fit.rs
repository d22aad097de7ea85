//! Fits a calibration to examples.

use super::calibration::{Calibration, sigmoid};

/// An agent and a message, with the answer whether the message concerns the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The agent's score.
    pub score: f64,
    /// Its lead over the best other agent, as [`Calibration::lead_of`] counts it.
    pub lead: f64,
    /// Whether the message concerns it.
    pub concerned: bool,
}

/// The number of steps. Newton's method needs about ten.
const STEPS: usize = 50;
/// Keeps the coefficients finite where score and lead separate the two kinds of samples completely.
const RIDGE: f64 = 1e-3;

impl Calibration {
    /// This calibration with the coefficients that make the samples most likely (logistic
    /// regression by Newton's method). `None` where there are not both kinds of samples, or a
    /// number is not finite.
    pub fn fitted(self, samples: &[Sample]) -> Option<Self> {
        let of_kind = |concerned| samples.iter().any(|sample| sample.concerned == concerned);
        if !of_kind(true) || !of_kind(false) {
            return None;
        }
        let mut weights = [0.0; 3];
        for _ in 0..STEPS {
            let (mut gradient, mut curvature) = ([0.0; 3], [[0.0; 3]; 3]);
            for sample in samples {
                let features = [sample.score, sample.lead, 1.0];
                let log_odds: f64 = weights
                    .iter()
                    .zip(features)
                    .map(|(weight, x)| weight * x)
                    .sum();
                let p = sigmoid(log_odds);
                let missed = f64::from(u8::from(sample.concerned)) - p;
                for ((slope, row), x) in gradient.iter_mut().zip(&mut curvature).zip(features) {
                    *slope += missed * x;
                    row.iter_mut()
                        .zip(features)
                        .for_each(|(cell, other)| *cell += p * (1.0 - p) * x * other);
                }
            }
            for (place, ((slope, row), weight)) in gradient
                .iter_mut()
                .zip(&mut curvature)
                .zip(weights)
                .enumerate()
            {
                *slope -= RIDGE * weight;
                row.iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|cell| *cell += RIDGE);
            }
            let step = solved(curvature, gradient)?;
            weights
                .iter_mut()
                .zip(step)
                .for_each(|(weight, step)| *weight += step);
            if step.iter().all(|step| step.abs() < 1e-9) {
                break;
            }
        }
        let [score, lead, bias] = weights;
        weights
            .iter()
            .all(|weight| weight.is_finite())
            .then_some(Self {
                score,
                lead,
                bias,
                ..self
            })
    }
}

/// The solution of three linear equations, by Cramer's rule.
fn solved([a, b, c]: [[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let cross = |u: [f64; 3], v: [f64; 3]| {
        let ([u0, u1, u2], [v0, v1, v2]) = (u, v);
        [u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0]
    };
    let dot = |u: [f64; 3], v: [f64; 3]| u.iter().zip(v).map(|(x, y)| x * y).sum::<f64>();
    // The matrix is symmetric, so its rows are its columns.
    let determinant = dot(a, cross(b, c));
    let solution = [
        dot(right, cross(b, c)),
        dot(a, cross(right, c)),
        dot(a, cross(b, right)),
    ]
    .map(|d| d / determinant);
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}
