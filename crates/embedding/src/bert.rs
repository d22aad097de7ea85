//! The forward pass of BERT (Devlin et al. 2019) for one sentence, as sentence-transformers uses it: the mean of the last
//! layer over all tokens, with length 1.
//!
//! One sentence at a time needs neither padding nor an attention mask, and on a processor batches gain little.

use std::collections::HashMap;

use candle_core::{D, DType, Device, Error, Result, Tensor};
use serde::Deserialize;

/// The shape of a model, as its `config.json` states it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    layer_norm_eps: f64,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
}

impl Config {
    /// Whether this forward pass is that of the model.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        if self.model_type != "bert" || self.hidden_act != "gelu" {
            return Err(format!(
                "it describes a model of type {:?} with activation {:?}; only \"bert\" with \"gelu\" is built in",
                self.model_type, self.hidden_act
            ));
        }
        if self.num_attention_heads == 0 || !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(format!("{} heads do not share {} dimensions", self.num_attention_heads, self.hidden_size));
        }
        Ok(())
    }

    /// How many tokens a sentence may have.
    pub(crate) fn positions(&self) -> usize {
        self.max_position_embeddings
    }
}

/// The model.
pub(crate) struct Bert {
    config: Config,
    words: Tensor,
    /// Of each position, the embedding of the first token type included: there is but one sentence.
    positions: Tensor,
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
    pub(crate) fn new(config: Config, tensors: HashMap<String, Tensor>) -> Result<Self> {
        let mut weights = Weights(tensors);
        let words = weights.take("embeddings.word_embeddings.weight")?;
        let types = weights.take("embeddings.token_type_embeddings.weight")?;
        let positions = weights.take("embeddings.position_embeddings.weight")?.broadcast_add(&types.get(0)?)?;
        if words.dim(1)? != config.hidden_size || positions.dim(0)? != config.max_position_embeddings {
            return Err(Error::msg("the weights are not of the shape that config.json states").bt());
        }
        let norm = weights.layer_norm("embeddings", config.layer_norm_eps)?;
        let layers = (0..config.num_hidden_layers).map(|number| Layer::new(&mut weights, number, &config));
        Ok(Self { layers: layers.collect::<Result<_>>()?, config, words, positions, norm })
    }

    /// The vector of a sentence, given as its tokens.
    pub(crate) fn sentence(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let embedded = (self.words.index_select(&ids, 0)? + self.positions.narrow(0, 0, tokens.len())?)?;
        let mut hidden = self.norm.apply(&embedded)?;
        for layer in &self.layers {
            hidden = layer.apply(&hidden, self.config.num_attention_heads)?;
        }
        let mean = hidden.mean(0)?;
        let length = mean.sqr()?.sum_all()?.sqrt()?;
        mean.broadcast_div(&length)?.to_vec1()
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.config.hidden_size
    }
}

impl Layer {
    fn new(weights: &mut Weights, number: usize, config: &Config) -> Result<Self> {
        let place = |name: &str| format!("encoder.layer.{number}.{name}");
        let [query, key, value] = ["query", "key", "value"].map(|name| place(&format!("attention.self.{name}")));
        let eps = config.layer_norm_eps;
        Ok(Self {
            attention: weights.linear(&[&query, &key, &value])?,
            attended: weights.linear(&[&place("attention.output.dense")])?,
            attended_norm: weights.layer_norm(&place("attention.output"), eps)?,
            intermediate: weights.linear(&[&place("intermediate.dense")])?,
            output: weights.linear(&[&place("output.dense")])?,
            output_norm: weights.layer_norm(&place("output"), eps)?,
        })
    }

    fn apply(&self, hidden: &Tensor, heads: usize) -> Result<Tensor> {
        let (tokens, size) = hidden.dims2()?;
        let width = size / heads;
        // Tokens, then query/key/value, head, width: each of the three as heads, tokens, width.
        let projected = self.attention.apply(hidden)?.reshape((tokens, 3, heads, width))?;
        let part = |number: usize| projected.narrow(1, number, 1)?.squeeze(1)?.transpose(0, 1)?.contiguous();
        let (query, key, value) = (part(0)?, part(1)?, part(2)?);
        let scale = 1.0 / (width as f64).sqrt();
        let scores = (query.matmul(&key.transpose(1, 2)?.contiguous()?)? * scale)?;
        let context = softmax(&scores)?.matmul(&value)?.transpose(0, 1)?.reshape((tokens, size))?;
        let hidden = self.attended_norm.apply(&(self.attended.apply(&context)? + hidden)?)?;
        let expanded = self.intermediate.apply(&hidden)?.gelu_erf()?;
        self.output_norm.apply(&(self.output.apply(&expanded)? + hidden)?)
    }
}

fn softmax(scores: &Tensor) -> Result<Tensor> {
    let raised = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    raised.broadcast_div(&raised.sum_keepdim(D::Minus1)?)
}

struct Linear {
    /// Transposed, inputs down and outputs across.
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn apply(&self, input: &Tensor) -> Result<Tensor> {
        input.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    fn apply(&self, input: &Tensor) -> Result<Tensor> {
        let centred = input.broadcast_sub(&input.mean_keepdim(D::Minus1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + self.eps)?.sqrt()?;
        centred.broadcast_div(&deviation)?.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
    }
}

struct Weights(HashMap<String, Tensor>);

impl Weights {
    fn take(&mut self, name: &str) -> Result<Tensor> {
        // Some copies of a model name everything below `bert`.
        let found = self.0.remove(name).or_else(|| self.0.remove(&format!("bert.{name}")));
        found.ok_or_else(|| Error::msg(format!("there is no {name}")).bt())?.to_dtype(DType::F32)
    }

    /// One layer of several that have the same input.
    fn linear(&mut self, places: &[&str]) -> Result<Linear> {
        let mut take = |what: &str| -> Result<Vec<Tensor>> {
            places.iter().map(|place| self.take(&format!("{place}.{what}"))).collect()
        };
        let (weights, biases) = (take("weight")?, take("bias")?);
        Ok(Linear { weight: Tensor::cat(&weights, 0)?.t()?, bias: Tensor::cat(&biases, 0)? })
    }

    fn layer_norm(&mut self, place: &str, eps: f64) -> Result<LayerNorm> {
        let [weight, bias] = ["weight", "bias"].map(|what| self.take(&format!("{place}.LayerNorm.{what}")));
        Ok(LayerNorm { weight: weight?, bias: bias?, eps })
    }
}
