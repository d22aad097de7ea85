//! The forward pass of BERT (Devlin et al. 2019) for one sentence, as sentence-transformers uses it: the mean of the last
//! layer over all tokens, with length 1.
//!
//! One sentence at a time needs neither padding nor an attention mask, and on a processor batches gain little. Every shape is
//! checked when the weights are read, so that computing cannot fail but for a token that the weights do not know.

use ndarray::{Array1, Array2, ArrayViewMut2, Axis, linalg::general_mat_mul};
use serde::Deserialize;

use crate::weights::Weights;

/// The shape of a model, as its `config.json` states it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    vocab_size: usize,
}

impl Config {
    /// Whether this forward pass is that of the model.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.model_type != "bert" || self.hidden_act != "gelu" {
            return Err(format!(
                "it describes a model of type {:?} with activation {:?}; only \"bert\" with \"gelu\" is built in",
                self.model_type, self.hidden_act
            ));
        }
        if self.hidden_size == 0
            || self.num_attention_heads == 0
            || !self.hidden_size.is_multiple_of(self.num_attention_heads)
        {
            return Err(format!(
                "{} heads do not share {} dimensions",
                self.num_attention_heads, self.hidden_size
            ));
        }
        Ok(())
    }

    /// How many tokens a sentence may have.
    pub(crate) fn positions(&self) -> usize {
        self.max_position_embeddings
    }
}

/// The model. Matrices have a token a row.
pub(crate) struct Bert {
    /// Dimensions of a head.
    width: usize,
    words: Array2<f32>,
    /// Of each position, the embedding of the first token type included: there is but one sentence.
    positions: Array2<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Query, key and value side by side: one large product is faster than three small ones.
    attention: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    output_norm: LayerNorm,
}

impl Bert {
    /// Takes what it needs of the tensors of a file.
    ///
    /// # Errors
    /// The name of a tensor that is absent, or not of the shape that the configuration states.
    pub(crate) fn new(config: &Config, weights: &Weights) -> Result<Self, String> {
        let size = config.hidden_size;
        let words = weights.matrix("embeddings.word_embeddings.weight", config.vocab_size, size)?;
        let first_type = weights.first_row("embeddings.token_type_embeddings.weight", size)?;
        let positions = weights.matrix(
            "embeddings.position_embeddings.weight",
            config.max_position_embeddings,
            size,
        )? + &first_type;
        let norm = LayerNorm::new(weights, "embeddings", config)?;
        let layers =
            (0..config.num_hidden_layers).map(|number| Layer::new(weights, number, config));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Self {
            width: size / config.num_attention_heads,
            words,
            positions,
            norm,
            layers,
        })
    }

    /// The vector of a sentence, given as its tokens; of more tokens than there are positions, the first.
    ///
    /// # Errors
    /// A token that the weights have no row for.
    pub(crate) fn sentence(&self, tokens: &[u32]) -> Result<Vec<f32>, u32> {
        let mut hidden =
            Array2::zeros((tokens.len().min(self.positions.nrows()), self.dimensions()));
        for ((mut row, position), &token) in hidden
            .rows_mut()
            .into_iter()
            .zip(self.positions.rows())
            .zip(tokens)
        {
            let known = usize::try_from(token)
                .ok()
                .filter(|index| *index < self.words.nrows())
                .ok_or(token)?;
            row.assign(&position);
            row += &self.words.row(known);
        }
        self.norm.apply(&mut hidden);
        for layer in &self.layers {
            layer.apply(&mut hidden, self.width);
        }
        // The sum has the direction of the mean.
        let sum = hidden.sum_axis(Axis(0));
        let length = sum.dot(&sum).sqrt();
        Ok((sum / length.max(f32::MIN_POSITIVE)).to_vec())
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.words.ncols()
    }
}

impl Layer {
    fn new(weights: &Weights, number: usize, config: &Config) -> Result<Self, String> {
        let place = |name: &str| format!("encoder.layer.{number}.{name}");
        let [query, key, value] =
            ["query", "key", "value"].map(|name| place(&format!("attention.self.{name}")));
        let (size, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            attention: Linear::new(weights, &[&query, &key, &value], size, size)?,
            attended: Linear::new(weights, &[&place("attention.output.dense")], size, size)?,
            attended_norm: LayerNorm::new(weights, &place("attention.output"), config)?,
            intermediate: Linear::new(weights, &[&place("intermediate.dense")], inner, size)?,
            output: Linear::new(weights, &[&place("output.dense")], size, inner)?,
            output_norm: LayerNorm::new(weights, &place("output"), config)?,
        })
    }

    fn apply(&self, hidden: &mut Array2<f32>, width: usize) {
        *hidden += &self
            .attended
            .apply(&attend(&self.attention.apply(hidden), width));
        self.attended_norm.apply(hidden);
        let mut expanded = self.intermediate.apply(hidden);
        expanded.mapv_inplace(gelu);
        *hidden += &self.output.apply(&expanded);
        self.output_norm.apply(hidden);
    }
}

/// What each token takes from all, head by head. In: query, key and value side by side.
fn attend(projected: &Array2<f32>, width: usize) -> Array2<f32> {
    let size = projected.ncols() / 3;
    let (query, rest) = projected.view().split_at(Axis(1), size);
    let (key, value) = rest.split_at(Axis(1), size);
    let mut context = Array2::zeros((projected.nrows(), size));
    let [queries, keys, values] =
        [&query, &key, &value].map(|part| part.axis_chunks_iter(Axis(1), width));
    let taken = context.axis_chunks_iter_mut(Axis(1), width);
    for (((query, key), value), mut taken) in queries.zip(keys).zip(values).zip(taken) {
        let mut scores = query.dot(&key.t());
        softmax(&mut scores.view_mut(), 1.0 / (width as f32).sqrt());
        general_mat_mul(1.0, &scores, &value, 0.0, &mut taken);
    }
    context
}

/// Of each row, after scaling.
fn softmax(scores: &mut ArrayViewMut2<'_, f32>, scale: f32) {
    for mut row in scores.rows_mut() {
        let max = row.fold(f32::NEG_INFINITY, |max, score| max.max(*score));
        row.mapv_inplace(|score| ((score - max) * scale).exp());
        let sum = row.sum();
        row /= sum;
    }
}

/// x times the share of a normal distribution below x (Hendrycks and Gimpel 2016): by the error function, not by tanh.
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function to within 1e-6 (Abramowitz and Stegun 1964, 7.1.28). Without branches or `exp`, so that the compiler
/// computes several at once: the exact one was a fifth of all the time.
fn erf(x: f32) -> f32 {
    const A: [f32; 6] = [
        0.070_523_08,
        0.042_282_01,
        0.009_270_527,
        0.000_152_014_3,
        0.000_276_567_2,
        0.000_043_063_8,
    ];
    let size = x.abs();
    let sum = 1.0 + size * A.iter().rev().fold(0.0, |sum, a| sum * size + a);
    (1.0 - sum.powi(-16)).copysign(x)
}

struct Linear {
    /// Inputs down and outputs across, a row in one piece: a quarter faster than the file's own order.
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    /// One layer of several that have the same input, each with so many outputs.
    fn new(
        weights: &Weights,
        places: &[&str],
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, String> {
        let mut weight = Array2::zeros((inputs, 0));
        let mut bias = Vec::new();
        for place in places {
            let part = weights.matrix(&format!("{place}.weight"), outputs, inputs)?;
            // Both have as many rows as there are inputs.
            weight
                .append(Axis(1), part.t())
                .map_err(|error| format!("{place}: {error}"))?;
            bias.extend(weights.vector(&format!("{place}.bias"), outputs)?);
        }
        Ok(Self {
            weight: weight.as_standard_layout().into_owned(),
            bias: bias.into(),
        })
    }

    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        let mut output = Array2::zeros((input.nrows(), self.bias.len()));
        output += &self.bias;
        general_mat_mul(1.0, input, &self.weight, 1.0, &mut output);
        output
    }
}

struct LayerNorm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    eps: f32,
}

impl LayerNorm {
    fn new(weights: &Weights, place: &str, config: &Config) -> Result<Self, String> {
        let vector =
            |what: &str| weights.vector(&format!("{place}.LayerNorm.{what}"), config.hidden_size);
        Ok(Self {
            weight: vector("weight")?,
            bias: vector("bias")?,
            eps: config.layer_norm_eps,
        })
    }

    fn apply(&self, hidden: &mut Array2<f32>) {
        let size = hidden.ncols() as f32;
        for mut row in hidden.rows_mut() {
            let mean = row.sum() / size;
            row -= mean;
            let deviation = (row.dot(&row) / size + self.eps).sqrt();
            row /= deviation;
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_is_that_of_the_tables() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (2.0, 0.995_322_3),
            (3.0, 0.999_977_9),
            (30.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 1e-6, "{x}: {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!((gelu(1.0) - 0.841_344_7).abs() < 1e-6 && gelu(0.0) == 0.0 && gelu(-20.0) == 0.0);
    }
}
