//! `concord restore`: the streams of a backup in an empty broker.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use concord_runtime::Broker;
use concord_wire::hex::hex;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::shared::args::JsonArg;
use crate::shared::broker_api;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, styled};
use crate::shared::own_folder::{asked_to_end, cannot};

use super::directory::{self, Manifest, StreamCopy};
use super::pause;

/// How many bytes are sent in a message.
const CHUNK_BYTES: usize = 128 * 1_024;
/// How long the broker may take to remove a stream.
const REMOVAL_MAX: Duration = Duration::from_secs(10);

/// Arguments of `concord restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  concord restore /backups/2026-11-25 --server nats://new-broker:4222
  concord check --against /backups/2026-11-25/head.json

Start the services afterwards: they would make streams of their own, and nothing that exists is written over.")]
pub(crate) struct RestoreArgs {
    /// The directory of a backup.
    directory: PathBuf,
    /// How many brokers keep each stream; as before when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5))]
    replicas: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Serialize)]
struct Restored {
    directory: PathBuf,
    #[serde(flatten)]
    manifest: Manifest,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &RestoreArgs) -> Result<u8, Failure> {
    let manifest = directory::read_manifest(&args.directory)?;
    let broker = connection.connect().await?;
    // Asked before anything is made, so that whatever is made is taken back.
    let asked = asked_to_end()?;
    let mut made = Vec::new();
    let done = tokio::select! {
        done = restore_all(&broker, &manifest, args, &asked, &mut made) => done,
        denied = connection.denied() => Err(denied),
    };
    if let Err(failure) = done {
        return Err(take_back(&broker, made, failure).await);
    }
    let restored = Restored {
        directory: args.directory.clone(),
        manifest,
    };
    args.json.print(&restored, text)?;
    Ok(0)
}

/// Restores everything; `made` are the streams that exist by it, also where it fails.
async fn restore_all(
    broker: &Broker,
    manifest: &Manifest,
    args: &RestoreArgs,
    asked: &CancellationToken,
    made: &mut Vec<String>,
) -> Result<(), Failure> {
    tokio::select! {
        checked = check(broker, manifest, &args.directory) => checked?,
        () = asked.cancelled() => return Err(interrupted()),
    }
    for copy in &manifest.streams {
        output::complain(&format!("restoring {}", copy.stream));
        restore(broker, copy, args, asked, made).await?;
    }
    for copy in &manifest.streams {
        resume(broker, &copy.stream).await?;
    }
    Ok(())
}

fn interrupted() -> Failure {
    Failure::failed("interrupted; not everything is restored")
}

/// Removes the streams of a restore that has failed, so that it can be repeated. Nobody else knows which of those in the broker are its.
async fn take_back(broker: &Broker, made: Vec<String>, failure: Failure) -> Failure {
    if made.is_empty() {
        return failure;
    }
    for (number, stream) in made.iter().enumerate() {
        let subject = format!("$JS.API.STREAM.DELETE.{stream}");
        let removed = timeout(REMOVAL_MAX, broker_api::ask(broker, subject, &Value::Null));
        let why = match removed.await {
            Ok(Ok(_)) => continue,
            Ok(Err(refused)) => refused.to_string(),
            Err(_) => "the broker does not answer".to_owned(),
        };
        let left = made.iter().skip(number);
        let commands: Vec<String> = left.map(|stream| removal(stream)).collect();
        return failure.and(format!(
            "what it had restored could not be removed ({why}): before it is repeated, {}",
            commands.join(", ")
        ));
    }
    failure.and("what it had restored is removed again, and it can be repeated")
}

/// The command that removes a stream.
fn removal(stream: &str) -> String {
    format!("nats stream rm {stream}")
}

/// Looks at everything before anything is written.
async fn check(broker: &Broker, manifest: &Manifest, from: &Path) -> Result<(), Failure> {
    let prefix = broker.subjects().prefix().to_string();
    if manifest.installation != prefix {
        return Err(Failure::usage(format!(
            "it is the backup of an installation whose subjects begin with {}, and these begin with {prefix}; give --prefix {}",
            manifest.installation, manifest.installation
        )));
    }
    let mut existing = Vec::new();
    for copy in &manifest.streams {
        let subject = format!("$JS.API.STREAM.INFO.{}", copy.stream);
        let found = broker_api::ask(broker, subject, &json!({})).await?;
        existing.extend(found.map(|_| removal(&copy.stream)));
    }
    if !existing.is_empty() {
        return Err(Failure::usage(format!(
            "streams of the backup exist already, and a backup is restored into a broker that has none of them, before the services are \
             started. Where nothing in them is needed any more (`nats stream info NAME` says what they hold), stop the services and remove \
             them, for ever: {}",
            existing.join(", ")
        )));
    }
    for copy in &manifest.streams {
        is_what_was_copied(&directory::contents(from, &copy.stream), &copy.sha256).await?;
        let described = directory::description(from, &copy.stream);
        is_what_was_copied(&described, &copy.described_sha256).await?;
        directory::read_description(from, &copy.stream)?;
    }
    Ok(())
}

async fn is_what_was_copied(path: &Path, sha256: &str) -> Result<(), Failure> {
    let sum = digest(path).await?;
    if sum != sha256 {
        return Err(Failure::data(format!(
            "{} is not what was copied: its SHA-256 is {sum}, and the manifest says {sha256}",
            path.display()
        )));
    }
    Ok(())
}

async fn digest(path: &Path) -> Result<String, Failure> {
    let mut sum = Sha256::new();
    each_piece(path, async |piece| {
        sum.update(piece);
        Ok(())
    })
    .await?;
    Ok(hex(&sum.finalize()))
}

/// Reads a file piece by piece.
async fn each_piece(
    path: &Path,
    mut take: impl AsyncFnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let opened = tokio::fs::File::open(path).await;
    let mut file = opened.map_err(|error| cannot("read", path, &error))?;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = file.read(&mut buffer).await;
        let length = length.map_err(|error| cannot("read", path, &error))?;
        match buffer.get(..length) {
            None | Some([]) => return Ok(()),
            Some(piece) => take(piece).await?,
        }
    }
}

async fn restore(
    broker: &Broker,
    copy: &StreamCopy,
    args: &RestoreArgs,
    asked: &CancellationToken,
    made: &mut Vec<String>,
) -> Result<(), Failure> {
    let stream = &copy.stream;
    let mut described = directory::read_description(&args.directory, stream)?;
    if let Some(config) = described.get_mut("config") {
        // In a stream that exists this is never taken back, and what is archived leaves it slowly. Earlier versions made such streams.
        config["deny_delete"] = json!(false);
        if let Some(replicas) = args.replicas {
            config["num_replicas"] = json!(replicas);
        }
    }
    let subject = format!("$JS.API.STREAM.RESTORE.{stream}");
    let begun = broker_api::ask(broker, subject, &described).await?;
    let deliver = begun
        .as_ref()
        .and_then(|begun| begun.get("deliver_subject")?.as_str())
        .ok_or_else(|| Failure::failed(format!("the broker does not say where it takes {stream}")))?
        .to_owned();
    let path = directory::contents(&args.directory, stream);
    let pieces = each_piece(&path, async |piece| {
        send(broker, &deliver, piece.to_vec()).await.map(drop)
    });
    let sent = tokio::select! {
        sent = pieces => sent,
        () = asked.cancelled() => Err(interrupted()),
    };
    if let Err(failure) = sent {
        // The broker forgets a stream that is not complete at once when a piece asks for no answer, else when it has waited for a while.
        let _ = broker.client.publish(deliver, "".into()).await;
        return Err(failure);
    }
    // From here on it is waited for, also by who is interrupted: only the answer says whether there is a stream.
    let done = send(broker, &deliver, Vec::new()).await;
    let is_refused = done
        .as_ref()
        .is_err_and(|failure| failure.code() != Failure::UNAVAILABLE);
    if !is_refused {
        made.push(stream.clone());
    }
    let done = done?;
    let number = |name: &str| {
        done.pointer(&format!("/state/{name}"))
            .and_then(Value::as_u64)
    };
    // Of a stream that is empty brokers say different things about the first.
    let first = number("first_seq").filter(|_| copy.messages > 0);
    let found = (number("messages"), first, number("last_seq"));
    let wanted_first = Some(copy.first_sequence).filter(|_| copy.messages > 0);
    let wanted = (Some(copy.messages), wanted_first, Some(copy.last_sequence));
    if found != wanted {
        return Err(Failure::failed(format!(
            "{stream} is not what was copied: messages, first and last sequence are {found:?} and should be {wanted:?}"
        )));
    }
    Ok(())
}

/// Sends a piece, or the end; the broker's answer as JSON, null where it is empty.
async fn send(broker: &Broker, subject: &str, piece: Vec<u8>) -> Result<Value, Failure> {
    let answer = broker_api::request(broker, subject.to_owned(), piece.into()).await;
    let answer = answer.map_err(|failure| failure.and("the stream is not complete"))?;
    let said: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    match said.pointer("/error/description").and_then(Value::as_str) {
        Some(error) => Err(Failure::failed(format!(
            "the broker refuses the copy: {error}"
        ))),
        None => Ok(said),
    }
}

/// Has everything handed over again: in the copy the consumers are as they were while it was made.
async fn resume(broker: &Broker, stream: &str) -> Result<(), Failure> {
    for info in pause::infos(broker, stream).await? {
        broker_api::pause(broker, (stream, &info.name), None).await?;
    }
    Ok(())
}

fn text(restored: &Restored) -> String {
    let manifest = &restored.manifest;
    let mut table = Table::new(["STREAM", "MESSAGES", "LAST SEQUENCE"]);
    for copy in &manifest.streams {
        table.row([
            Cell::text(&copy.stream),
            Cell::number(copy.messages),
            Cell::number(copy.last_sequence),
        ]);
    }
    let head = directory::head_path(&restored.directory);
    let advice = match manifest.has_head {
        true => format!(
            "Look whether it is as it was: concord check --against {}. ",
            head.display()
        ),
        false => String::new(),
    };
    format!(
        "{}Everything that {} kept in the broker at {} is restored. {advice}Then start the services.\n",
        table,
        styled(NAMED, &manifest.installation),
        manifest.at,
    )
}
