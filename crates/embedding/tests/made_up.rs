//! A model of two words and made-up weights, whole and in the ways in which a folder is wrong.

// Helpers of tests fail by panicking, which the workspace allows in the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use concord_embedding::{Error, MODEL_FILES, Model};
use safetensors::{Dtype, tensor::TensorView};
use serde_json::json;

const SIZE: usize = 4;
const INNER: usize = 6;
const WORDS: usize = 3;

type Tensors = BTreeMap<String, Vec<usize>>;

/// What one layer needs, by its shape.
fn tensors() -> Tensors {
    let layer = |name: &str| format!("encoder.layer.0.{name}");
    let mut all = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![WORDS, SIZE],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![8, SIZE],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, SIZE],
        ),
    ];
    for (place, outputs, inputs) in [
        ("attention.self.query", SIZE, SIZE),
        ("attention.self.key", SIZE, SIZE),
        ("attention.self.value", SIZE, SIZE),
        ("attention.output.dense", SIZE, SIZE),
        ("intermediate.dense", INNER, SIZE),
        ("output.dense", SIZE, INNER),
    ] {
        all.push((layer(&format!("{place}.weight")), vec![outputs, inputs]));
        all.push((layer(&format!("{place}.bias")), vec![outputs]));
    }
    for place in [
        "embeddings".to_owned(),
        layer("attention.output"),
        layer("output"),
    ] {
        all.extend(
            ["weight", "bias"].map(|what| (format!("{place}.LayerNorm.{what}"), vec![SIZE])),
        );
    }
    all.into_iter().collect()
}

/// Numbers between -1 and 1 that are the same each time.
fn number(index: usize) -> f32 {
    ((index * 7_919 + 13) % 200) as f32 / 100.0 - 1.0
}

fn write(dir: &Path, tensors: &Tensors, dtype: Dtype) {
    let bytes = |index| {
        let number = number(index);
        match dtype {
            Dtype::F32 => number.to_le_bytes().to_vec(),
            Dtype::BF16 => half::bf16::from_f32(number).to_le_bytes().to_vec(),
            Dtype::F16 => half::f16::from_f32(number).to_le_bytes().to_vec(),
            _ => f64::from(number).to_le_bytes().to_vec(),
        }
    };
    let data = tensors.iter().enumerate().map(|(tensor, (name, shape))| {
        let count = shape.iter().product::<usize>();
        (
            name,
            shape,
            (0..count)
                .flat_map(|index| bytes(tensor * 1_000 + index))
                .collect::<Vec<u8>>(),
        )
    });
    let data: Vec<_> = data.collect();
    let views = data.iter().map(|(name, shape, data)| {
        (
            *name,
            TensorView::new(dtype, (*shape).clone(), data).unwrap(),
        )
    });
    std::fs::write(
        dir.join(MODEL_FILES[1]),
        safetensors::serialize(views, None).unwrap(),
    )
    .unwrap();
    let config = json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": SIZE, "intermediate_size": INNER, "vocab_size": WORDS,
        "layer_norm_eps": 1e-12, "max_position_embeddings": 8, "num_attention_heads": 2, "num_hidden_layers": 1
    });
    std::fs::write(dir.join(MODEL_FILES[0]), config.to_string()).unwrap();
    // The last word has no row.
    let tokenizer = json!({
        "version": "1.0", "pre_tokenizer": { "type": "Whitespace" },
        "model": { "type": "WordLevel", "vocab": { "?": 0, "cat": 1, "dog": 2, "newt": 3 }, "unk_token": "?" }
    });
    std::fs::write(dir.join(MODEL_FILES[2]), tokenizer.to_string()).unwrap();
}

fn open(dir: &Path) -> Result<Model, Error> {
    Model::open(dir, NonZeroUsize::MIN)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn a_vector_has_length_one_and_tells_words_and_their_order_apart() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tensors(), Dtype::F32);
    let model = open(dir.path()).unwrap();
    assert_eq!(model.dimensions(), SIZE);
    let vectors = ["cat", "dog", "cat dog", "dog cat", &"cat ".repeat(100)]
        .map(|text| model.embed(text).unwrap());
    for (index, vector) in vectors.iter().enumerate() {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5, "{vector:?}");
        for other in &vectors[..index] {
            assert!(cosine(vector, other) < 0.999_9, "{vector:?} {other:?}");
        }
    }
    // Nothing at all has no direction.
    assert_eq!(model.embed("").unwrap(), [0.0; SIZE]);
}

#[test]
fn short_numbers_are_read_and_others_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tensors(), Dtype::F32);
    let exact = open(dir.path()).unwrap().embed("cat dog").unwrap();
    for dtype in [Dtype::F16, Dtype::BF16] {
        write(dir.path(), &tensors(), dtype);
        let vector = open(dir.path()).unwrap().embed("cat dog").unwrap();
        assert!(
            cosine(&exact, &vector) > 0.999,
            "{dtype}: {vector:?}, not {exact:?}"
        );
    }
    write(dir.path(), &tensors(), Dtype::F64);
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("is of type F64; F32, F16 and BF16 are read"),
        "{error}"
    );
}

#[test]
fn weights_that_are_not_those_of_the_configuration_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for name in tensors().keys() {
        let mut without = tensors();
        let shape = without.remove(name).unwrap();
        write(dir.path(), &without, Dtype::F32);
        let error = open(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("model.safetensors") && error.contains(&format!("there is no {name}")),
            "{error}"
        );
        let mut other = tensors();
        other.insert(
            name.clone(),
            shape.iter().map(|length| length + 1).collect(),
        );
        write(dir.path(), &other, Dtype::F32);
        let error = open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is of shape")), "{error}");
    }
    std::fs::write(dir.path().join(MODEL_FILES[1]), "no tensors").unwrap();
    assert!(
        matches!(open(dir.path()), Err(Error::Malformed { path, .. }) if path.ends_with(MODEL_FILES[1]))
    );
}

#[test]
fn a_token_that_the_weights_do_not_know_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tensors(), Dtype::F32);
    let model = open(dir.path()).unwrap();
    let error = model.embed("a newt").unwrap_err();
    assert!(matches!(error, Error::UnknownToken { token: 3 }), "{error}");
    assert!(error.to_string().contains("of different models"), "{error}");
}
