//! Credentials as Secrets of Kubernetes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::issue::Made;
use crate::shared::failure::Failure;
use crate::shared::output;

/// The key of a Secret under which the file stands.
const KEY: &str = "nats.creds";

/// How what was issued is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Whose file is where.
    Files,
    /// Secrets of Kubernetes, for kubectl apply -f -. They hold what was issued.
    Secret,
}

/// How what was issued is printed.
#[derive(Debug, Args)]
pub(super) struct FormatArg {
    /// What is printed: whose file is where, or Secrets for kubectl apply -f -.
    #[arg(long, value_enum, default_value_t = Format::Files, conflicts_with = "json")]
    pub(super) format: Format,
}

/// Prints the Secrets of what was issued, as one list.
pub(super) fn show(made: &[Made]) -> Result<(), Failure> {
    let secrets: Result<Vec<Value>, Failure> = made.iter().map(secret).collect();
    output::json(&json!({ "apiVersion": "v1", "kind": "List", "items": secrets? }))
}

fn secret(made: &Made) -> Result<Value, Failure> {
    let file = std::fs::read(&made.file)
        .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", made.file)))?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": { "name": name(&made.holder.key())?, "labels": { "app.kubernetes.io/part-of": "concord" } },
        "data": { KEY: STANDARD.encode(file) },
    }))
}

/// The name of the Secret: Kubernetes takes small letters, digits and hyphens.
pub(super) fn name(key: &str) -> Result<String, Failure> {
    let is_fit = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
    let fits = key.chars().all(is_fit) && key.len() <= 200 && !key.ends_with('-');
    if !fits {
        return Err(Failure::usage(format!(
            "no Secret can have the name concord-{key}; make one from the file: kubectl create secret generic NAME \
             --from-file={KEY}=FILE"
        )));
    }
    Ok(format!("concord-{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_name_that_kubernetes_takes() {
        assert_eq!(
            name("service-coordinator").unwrap(),
            "concord-service-coordinator"
        );
        for key in ["agent-Eva", "agent-eva_b", "agent-eva-"] {
            assert!(name(key).is_err(), "{key}");
        }
    }
}
