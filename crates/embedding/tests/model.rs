//! The usual model, where it is there: `CONCORD_MODEL` names its folder, or `scripts/model` has put it into `.tools/model`.

// Helpers of tests fail by panicking, which the workspace allows in the tests themselves.
#![allow(clippy::unwrap_used)]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use concord_embedding::{Embedder, Error, MODEL_FILES, Settings};

fn settings(dir: &Path) -> Settings {
    Settings {
        model_dir: Some(dir.to_owned()),
        ..Settings::default()
    }
}

/// The model; none where it is absent, and then the test says so.
fn embedder(test: &str) -> Option<Embedder> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model");
    let dir = std::env::var_os("CONCORD_MODEL").map_or_else(usual, PathBuf::from);
    if !dir.join(MODEL_FILES[1]).is_file() {
        println!(
            "skipped: {test} needs the model, and there is none in {}; scripts/model fetches it",
            dir.display()
        );
        return None;
    }
    Some(Embedder::open(&settings(&dir)).unwrap().unwrap())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn meaning_is_near_meaning() {
    let Some(embedder) = embedder("meaning_is_near_meaning") else {
        return;
    };
    let [cat, feline, stocks] = [
        "A cat sits on the mat",
        "a feline is resting on a rug",
        "Shares fell on Monday",
    ]
    .map(|text| embedder.embed(text).unwrap());
    assert_eq!((cat.len(), embedder.dimensions()), (384, 384));
    assert!((cosine(&cat, &cat) - 1.0).abs() < 1e-5);
    assert!(cosine(&cat, &feline) > 0.5, "{}", cosine(&cat, &feline));
    assert!(cosine(&cat, &stocks) < 0.2, "{}", cosine(&cat, &stocks));
    // The same text again comes from the cache, and case does not matter to this model.
    assert!(std::sync::Arc::ptr_eq(
        &cat,
        &embedder.embed("A cat sits on the mat").unwrap()
    ));
    assert!(cosine(&cat, &embedder.embed("a CAT sits on the mat").unwrap()) > 0.999);
}

/// The first numbers of two vectors, as candle-core 0.11 computes them of the same weights.
#[test]
fn vectors_are_those_of_another_implementation() {
    let Some(embedder) = embedder("vectors_are_those_of_another_implementation") else {
        return;
    };
    let text = "in spanish, meet me tomorrow is said how";
    for (text, expected) in [
        (
            text.to_owned(),
            [-0.031_512_61, 0.015_618_246, 0.092_589_8, 0.064_871_65],
        ),
        (
            text.repeat(10),
            [-0.008_485_281, -0.019_604_536, 0.078_221_425, 0.037_606_664],
        ),
    ] {
        let vector = embedder.embed(&text).unwrap();
        for (number, expected) in vector.iter().zip(expected) {
            assert!(
                (number - expected).abs() < 1e-6,
                "{number}, not {expected}, of {text}"
            );
        }
    }
}

#[test]
fn no_text_is_too_long_or_too_strange() {
    let Some(embedder) = embedder("no_text_is_too_long_or_too_strange") else {
        return;
    };
    let long = "wörd ".repeat(100_000);
    for text in [
        "",
        " ",
        "\u{0}",
        "🦀🦀",
        "[CLS] [SEP] [MASK]",
        &"x".repeat(10_000),
        &long,
    ] {
        let vector = embedder.embed(text).unwrap();
        assert!(
            (cosine(&vector, &vector) - 1.0).abs() < 1e-4,
            "{:?}",
            text.get(..10)
        );
    }
    let short: String = long.chars().take(3_000).collect();
    assert_eq!(
        embedder.embed(&long).unwrap(),
        embedder.embed(&short).unwrap()
    );
}

#[test]
fn what_is_no_model_is_refused_with_its_file() {
    assert!(Embedder::open(&Settings::default()).unwrap().is_none());
    let folder = tempfile::tempdir().unwrap();
    let open = || Embedder::open(&settings(folder.path())).unwrap_err();
    assert!(matches!(open(), Error::Read { path, .. } if path.ends_with("config.json")));
    let shape = |kind: &str, heads: usize| {
        format!(
            r#"{{"model_type": "{kind}", "hidden_act": "gelu", "hidden_size": 384, "intermediate_size": 1536, "vocab_size": 30522, "layer_norm_eps": 1e-12,
                "max_position_embeddings": 512, "num_attention_heads": {heads}, "num_hidden_layers": 6}}"#
        )
    };
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for (text, expected) in [
        ("{}".to_owned(), "missing field"),
        (shape("roberta", 12), "\"roberta\""),
        (shape("bert", 0), "0 heads"),
        (shape("bert", 7), "7 heads"),
    ] {
        write("config.json", &text);
        assert!(open().to_string().contains(expected), "{}", open());
    }
    write("config.json", &shape("bert", 12));
    assert!(matches!(open(), Error::Read { path, .. } if path.ends_with("tokenizer.json")));
    write("tokenizer.json", "{}");
    assert!(matches!(open(), Error::Malformed { path, .. } if path.ends_with("tokenizer.json")));
}

#[test]
fn settings_are_checked() {
    let settings: Settings = serde_json::from_str(r#"{"model_dir": "models/a"}"#).unwrap();
    assert_eq!(
        (settings.cache.get(), settings.threads),
        (10_000, NonZeroUsize::MIN)
    );
    assert!(serde_json::from_str::<Settings>(r#"{"model": "a"}"#).is_err());
    assert!(serde_json::from_str::<Settings>(r#"{"cache": 0}"#).is_err());
}
