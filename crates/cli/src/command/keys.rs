//! `concord keys`: keys that sign.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use concord_runtime::signing::SigningKey;
use serde_json::json;

use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};

/// The verbs of `concord keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    /// Make a pair of keys: FILE, which only its owner may read, and FILE.pub.
    Generate(GenerateArgs),
}

/// Arguments of `concord keys generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord keys generate head.key

The escalation timers sign heads with the key that their setting service.head_key names. Keep FILE.pub where the heads are
kept, for `concord check --against head.json --key head.key.pub`. People sign with theirs what they rule and review.

A key belongs to one installation. What is signed does not say in which it was said: make another one for each, also for a test.")]
pub(crate) struct GenerateArgs {
    /// The file of the secret key; it must not be there yet.
    file: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) fn run(verb: &KeysVerb) -> Result<u8, Failure> {
    let KeysVerb::Generate(args) = verb;
    let (key, secret) =
        SigningKey::generate().map_err(|error| Failure::failed(error.to_string()))?;
    let mut public = args.file.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    write_new(&args.file, &secret, 0o600)?;
    write_new(&public, &key.public(), 0o644)?;
    let made = json!({
        "secret": args.file.display().to_string(),
        "public": public.display().to_string(),
        "key": key.public(),
    });
    args.json.print(&made, |_| {
        let (secret, public) = (args.file.display(), public.display());
        format!(
            "The secret key is in {}, the public one in {}:\n{}\n",
            styled(NAMED, secret),
            styled(NAMED, public),
            key.public()
        )
    })?;
    Ok(0)
}

/// Writes one line into a file that is not there yet.
fn write_new(path: &Path, line: &str, mode: u32) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let written = options
        .open(path)
        .and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(|error| {
        Failure::usage(format!(
            "the key cannot be written to {}: {error}",
            path.display()
        ))
    })
}
