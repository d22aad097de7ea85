//! `concord policy`: the rules that cases are opened with, and what openers may change of them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use concord_runtime::Broker;
use concord_wire::Timestamp;
use concord_wire::id::PolicyName;
use concord_wire::policy::{Policy, PolicyBounds};
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::shared::args::{ByArgs, JsonArg};
use crate::shared::connection::{ConnectionArgs, ask, command};
use crate::shared::failure::Failure;
use crate::shared::input;
use crate::shared::output::{NAMED, styled};

mod diff;
mod show;

/// The verbs of `concord policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Store a policy under a name, or a new version of it.
    Put(PutArgs),
    /// List every policy that a case can be opened with.
    List(ListArgs),
    /// Show a policy and what openers may change of it.
    Show(ShowArgs),
    /// Name each field and bound in which two policies differ.
    Diff(DiffArgs),
}

/// Arguments of `concord policy put`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is an object with policy, as a case asks for it, and bounds; name may stand there, too:
  {\"name\": \"house rules\", \"policy\": {\"preset\": \"contract-review\", \"rounds_max\": 3},
   \"bounds\": {\"rounds_max\": {\"within\": [0, 3]}, \"case_timeout_ms\": \"lower\", \"ladder.times\": \"lower\"}}

A bound is fixed, lower, higher, any, or within two numbers. Fields without one are fixed; \"*\" stands for all others. Without
bounds those of the presets hold: nothing that loosens. docs/policies.md has the table.

The same content again is no new version. A policy with the name of a preset replaces it. Cases keep the version they began with.

Examples:
  concord policy put house.json --by olga --why \"three rounds, as agreed in May\"
  concord policy put - --name quick --by olga --why \"ours\" < quick.json")]
pub(crate) struct PutArgs {
    /// The policy and its bounds as JSON; - for standard input.
    file: PathBuf,
    /// The name [default: that in the file].
    #[arg(long, value_parser = name)]
    name: Option<PolicyName>,
    #[command(flatten)]
    by: ByArgs,
}

/// Arguments of `concord policy list`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord policy list --json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord policy show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord policy show contract-review
  concord policy show \"house rules\" --version 2 --json")]
pub(crate) struct ShowArgs {
    /// The name.
    #[arg(value_parser = name)]
    name: PolicyName,
    /// The version [default: the last one; 0 is a preset as it is shipped].
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord policy diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord policy diff contract-review \"house rules\"
  concord policy diff \"house rules@1\" \"house rules@2\"
  concord policy diff quick@0 quick --json")]
pub(crate) struct DiffArgs {
    /// The one, as NAME or NAME@VERSION.
    #[arg(value_name = "A", value_parser = reference)]
    from: Reference,
    /// The other.
    #[arg(value_name = "B", value_parser = reference)]
    to: Reference,
    #[command(flatten)]
    json: JsonArg,
}

/// A policy on the command line: its name, and a version where one is given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reference {
    name: PolicyName,
    version: Option<u32>,
}

fn name(text: &str) -> Result<PolicyName, String> {
    PolicyName::parse(text).map_err(|error| error.to_string())
}

fn reference(text: &str) -> Result<Reference, String> {
    let Some((of, version)) = text.rsplit_once('@') else {
        let version = None;
        return Ok(Reference {
            name: name(text)?,
            version,
        });
    };
    let version = version
        .parse()
        .map_err(|_| format!("{version:?} is no version: write {of}@1"))?;
    Ok(Reference {
        name: name(of)?,
        version: Some(version),
    })
}

/// A version of a policy, as the coordinator answers.
#[derive(Debug, Serialize, Deserialize)]
struct PolicyView {
    name: PolicyName,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    digest: String,
    policy: Policy,
    bounds: PolicyBounds,
    versions: Vec<u32>,
}

/// A policy as a file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    name: Option<PolicyName>,
    #[serde(default)]
    policy: Value,
    #[serde(default)]
    bounds: PolicyBounds,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: PolicyVerb) -> Result<u8, Failure> {
    match verb {
        PolicyVerb::Put(args) => put(connection, &args).await,
        PolicyVerb::List(args) => show::list(connection, args.json).await,
        PolicyVerb::Show(args) => show::one(connection, &args).await,
        PolicyVerb::Diff(args) => diff::run(connection, &args).await,
    }
}

/// Asks for a version of a policy, or its last one.
async fn fetch(
    broker: &Broker,
    name: &PolicyName,
    version: Option<u32>,
) -> Result<PolicyView, Failure> {
    let request = json!({ "name": name, "version": version });
    ask(broker, Service::Coordinator, "policy", &request).await
}

/// Reads a file, so that faults are reported before anything is sent.
fn read_file(args: &PutArgs, bytes: &[u8]) -> Result<(PolicyName, PolicyFile), Failure> {
    let source = input::name(&args.file);
    let wrong = |fault: concord_wire::Fault| input::malformed(&source, "is not a policy", &fault);
    let file: PolicyFile = concord_wire::envelope::from_json(bytes, "").map_err(wrong)?;
    Policy::resolve(&file.policy, "/policy").map_err(wrong)?;
    file.bounds.check_fields("/bounds").map_err(wrong)?;
    let name = args.name.as_ref().or(file.name.as_ref()).cloned();
    let name =
        name.ok_or_else(|| Failure::usage(format!("{source} has no name: give one with --name")))?;
    Ok((name, file))
}

async fn put(connection: &ConnectionArgs, args: &PutArgs) -> Result<u8, Failure> {
    let bytes = input::read_input(&args.file, "concord policy put")?;
    let (name, file) = read_file(args, &bytes)?;
    let ByArgs { by, why, json } = &args.by;
    let broker = connection.connect().await?;
    let request = json!({
        "name": name, "policy": file.policy, "bounds": file.bounds, "by": by, "why": why,
    });
    let done = command(&broker, Service::Coordinator, "put_policy", &request).await?;
    let stored = fetch(&broker, &name, None).await?;
    let version = stored.version;
    let said = match &done.event {
        Some(_) => format!("is stored as version {version}"),
        None => format!("has this content already, as version {version}"),
    };
    json.print(
        &json!({ "name": name, "version": version, "by": by, "why": why, "done": done }),
        |_| format!("{} {said}\n", styled(NAMED, &name)),
    )?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_name_and_perhaps_a_version() {
        let house = name("house rules v1.0").unwrap();
        for (text, expected) in [
            ("house rules v1.0", Some(None)),
            ("house rules v1.0@3", Some(Some(3))),
            ("house rules v1.0@", None),
            ("house rules v1.0@-1", None),
            ("House@1", None),
            ("@1", None),
        ] {
            let read = reference(text).ok();
            let expected = expected.map(|version| Reference {
                name: house.clone(),
                version,
            });
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_at_its_place() {
        let args = |name: Option<&str>| PutArgs {
            file: "-".into(),
            name: name.map(|text| super::name(text).unwrap()),
            by: ByArgs {
                by: concord_wire::AgentId::new("olga").unwrap(),
                why: "why".into(),
                json: JsonArg { json: false },
            },
        };
        for (text, said) in [
            ("{", "is not a policy"),
            (r#"{"polcy": {}}"#, "polcy"),
            (
                r#"{"policy": {"rounds_max": 99}}"#,
                " at /policy/rounds_max: ",
            ),
            (r#"{"policy": "none"}"#, " at /policy: "),
            (
                r#"{"bounds": {"round_max": "any"}}"#,
                " at /bounds/round_max: ",
            ),
            (
                r#"{"bounds": {"rounds_max": "loose"}}"#,
                " at /bounds/rounds_max: ",
            ),
            (r#"{"name": "House"}"#, " at /name: "),
            ("{}", "--name"),
        ] {
            let failure = read_file(&args(None), text.as_bytes()).unwrap_err();
            assert!(failure.to_string().contains(said), "{text}: {failure}");
        }
        let (name, file) = read_file(&args(Some("house")), b"{\"name\": \"other\"}").unwrap();
        assert_eq!(
            (name.as_str(), file.bounds),
            ("house", PolicyBounds::default())
        );
    }
}
