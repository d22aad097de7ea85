//! Comparing what is stored with a head, or a bundle, that somebody has kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use concord_domain::aggregates::head::head_id;
use concord_domain::assurance::evidence::{
    ByMessage, Difference, DifferenceKind, History, KeptMessage, MessageDigest, StoredHead,
    StreamCheck, StreamReport,
};
use concord_events::dead_letter::header::RETRIED;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, Head};
use concord_runtime::broker::log_reader;
use concord_runtime::service::clock;
use concord_runtime::{Broker, signing};
use concord_wire::Timestamp;
use concord_wire::header::MESSAGE_ID;
use serde::Serialize;

use super::bundle::Bundle;
use super::head::{self, signed};
use super::source::Source;
use crate::shared::failure::Failure;
use crate::shared::output::{BAD, Cell, GOOD, Table, count, styled};
use crate::shared::stream_reader::StreamMessage;

/// The keys that heads must be signed by.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// A file with the public key that must have signed the kept head and all later ones; several after a change of keys.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
}

impl KeyArgs {
    fn read(&self) -> Result<Vec<String>, Failure> {
        let read = |path: &PathBuf| {
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}")))?;
            signing::public_key(&text, &shown).map_err(|error| Failure::data(error.to_string()))
        };
        self.key.iter().map(read).collect()
    }
}

/// What somebody has kept.
pub(super) struct Kept {
    /// The head.
    pub(super) head: Head,
    /// The bundle that it came with.
    pub(super) bundle: Option<Bundle>,
}

/// What became of everything that a kept head covers.
#[derive(Debug, Serialize)]
pub(crate) struct Evidence {
    /// The number of the kept head.
    head: u64,
    /// When it was made.
    at: Timestamp,
    /// The key that has signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    /// Heads that were followed, those after the kept one included.
    heads: u64,
    streams: Vec<StreamReport>,
    differences: Vec<Difference>,
    #[serde(skip)]
    signature_line: String,
}

/// Compares a broker with a kept head or bundle.
pub(crate) async fn of_broker(
    broker: &Broker,
    path: &Path,
    keys: &KeyArgs,
) -> Result<Evidence, Failure> {
    let (file, bundle) = if Bundle::is_at(path) {
        let bundle = Bundle::open(path)?;
        (bundle.manifest.head.clone(), Some(bundle))
    } else {
        (Some(head::read(path)?), None)
    };
    let Some(file) = file else {
        return Err(Failure::data(format!(
            "the bundle {} has no head; export another when `concord audit head` shows one",
            path.display()
        )));
    };
    let installation = head::installation(broker);
    if file.installation != installation {
        return Err(Failure::usage(format!(
            "{} is of the installation {:?}, and this one is {installation:?}; see --prefix",
            path.display(),
            file.installation
        )));
    }
    let kept = Kept {
        head: file.head,
        bundle,
    };
    compare(&Source::Broker(broker), &kept, keys, clock::now()).await
}

/// Compares what is stored with what somebody has kept.
pub(super) async fn compare(
    source: &Source<'_>,
    kept: &Kept,
    keys: &KeyArgs,
    now: Timestamp,
) -> Result<Evidence, Failure> {
    let (stored, unreadable) = heads(source).await?;
    let history = History::new(&kept.head, &stored);
    let mut differences = history.differences().to_vec();
    differences.extend(unreadable);
    differences.extend(signatures(&history, &keys.read()?));
    let retried = retried(source).await?;
    let mut streams = Vec::new();
    for kind in StreamKind::EVIDENCE {
        let retried = match kind {
            StreamKind::Dead => retried.clone(),
            _ => BTreeMap::new(),
        };
        let intervals = history.intervals(kind);
        let mut check = StreamCheck::new(kind, intervals, retried.clone(), now);
        let mut copy = kept
            .bundle
            .as_ref()
            .map(|bundle| Copy::new(bundle, &kept.head, kind, retried, now))
            .transpose()?;
        let take = |stored: StreamMessage| {
            let digest = digest(kind, &stored);
            check.take(stored.sequence, stored.at, digest, stored.is_archived);
            if let Some(copy) = &mut copy {
                let compared = &mut copy.compared;
                compared.take(stored.sequence, digest, stored.is_archived);
            }
            Ok(())
        };
        source.for_each(kind, None, "comparing", take).await?;
        let report = check.finish();
        differences.extend(report.differences());
        streams.push(report);
        if let Some(copy) = copy {
            differences.extend(copy.finish()?);
        }
    }
    Ok(Evidence {
        head: kept.head.number,
        at: kept.head.at,
        signed_by: kept.head.signature.as_ref().map(|one| one.key.clone()),
        heads: history.heads().count() as u64,
        streams,
        differences,
        signature_line: signed(&kept.head),
    })
}

/// The heads of a log, and what is wrong with those that cannot be read.
async fn heads(source: &Source<'_>) -> Result<(Vec<StoredHead>, Vec<Difference>), Failure> {
    let filter = source
        .layout()
        .subjects
        .events_of(Aggregate::Head, &head_id());
    let begin = filter.trim_end_matches('*').to_owned();
    let (mut heads, mut unreadable) = (Vec::new(), Vec::new());
    source
        .for_each(
            StreamKind::Events,
            Some(filter),
            "reading heads",
            |stored| {
                if !stored.subject.starts_with(&begin) || stored.non_event.is_some() {
                    return Ok(());
                }
                match head::decoded(&stored) {
                    Ok(head) => heads.push(StoredHead {
                        sequence: stored.sequence,
                        head,
                    }),
                    Err(why) => unreadable.push(Difference::of_heads(
                        DifferenceKind::BrokenChain,
                        format!("{why}."),
                    )),
                }
                Ok(())
            },
        )
        .await?;
    Ok((heads, unreadable))
}

/// The public keys that have signed heads.
pub(super) async fn keys(source: &Source<'_>) -> Result<Vec<String>, Failure> {
    let (heads, _) = heads(source).await?;
    let signatures = heads.into_iter().filter_map(|stored| stored.head.signature);
    let keys: BTreeSet<String> = signatures.map(|signature| signature.key).collect();
    Ok(keys.into_iter().collect())
}

/// What is wrong with the signatures of heads. Those before the kept one are covered by it.
fn signatures(history: &History, keys: &[String]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for head in history.heads() {
        let number = head.number;
        if !signing::is_as_signed(head) {
            let what = format!("Head {number} is not as the key that it names has signed it.");
            differences.push(Difference::of_heads(DifferenceKind::Signature, what));
        }
        if keys.is_empty() || number < history.kept() {
            continue;
        }
        let by = head.signature.as_ref().map(|signature| &signature.key);
        if by.is_none_or(|key| !keys.contains(key)) {
            let by = by.map_or("nobody", |key| key.as_str());
            let what = format!("Head {number} is signed by {by}, and not by a key that was given.");
            differences.push(Difference::of_heads(DifferenceKind::Signature, what));
        }
    }
    differences
}

/// The dead letters that were sent again: what they say, by the sequence that they had.
async fn retried(source: &Source<'_>) -> Result<BTreeMap<u64, MessageDigest>, Failure> {
    let mut retried = BTreeMap::new();
    let take = |stored: StreamMessage| {
        let original = stored.header(MESSAGE_ID).strip_prefix("retried-");
        if stored.is_letter()
            && !stored.header(RETRIED).is_empty()
            && let Some(sequence) = original.and_then(|sequence| sequence.parse().ok())
        {
            retried.insert(sequence, digest(StreamKind::Dead, &stored));
        }
        Ok(())
    };
    source
        .for_each(StreamKind::Dead, None, "reading dead letters", take)
        .await?;
    Ok(retried)
}

fn digest(kind: StreamKind, stored: &StreamMessage) -> MessageDigest {
    log_reader::digest(kind, &stored.subject, &stored.headers, &stored.raw)
}

type KeptMessages = Box<dyn Iterator<Item = KeptMessage>>;

/// A stream of a bundle while it is compared, and what was wrong with its file.
struct Copy {
    compared: ByMessage<KeptMessages>,
    failure: Rc<RefCell<Option<Failure>>>,
}

impl Copy {
    fn new(
        bundle: &Bundle,
        head: &Head,
        kind: StreamKind,
        retried: BTreeMap<u64, MessageDigest>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let failure = Rc::<RefCell<Option<Failure>>>::default();
        let failed = Rc::clone(&failure);
        let messages = bundle.messages(kind)?.map_while(move |stored| {
            let stored = stored.map_err(|error| failed.replace(Some(error))).ok()?;
            Some(KeptMessage {
                sequence: stored.sequence,
                at: stored.at,
                digest: digest(kind, &stored),
                subject: stored.subject,
            })
        });
        let messages: KeptMessages = Box::new(messages);
        let interval = head.streams.iter().find(|one| one.stream == kind);
        let expired_before = interval.and_then(|interval| interval.kept_ms).map(|kept| {
            Timestamp::from_unix_millis(now.unix_millis().saturating_sub_unsigned(kept))
        });
        Ok(Self {
            compared: ByMessage::new(kind, messages, retried, expired_before),
            failure,
        })
    }

    fn finish(self) -> Result<Vec<Difference>, Failure> {
        let differences = self.compared.finish();
        self.failure.take().map_or(Ok(differences), Err)
    }
}

impl Evidence {
    /// Whether everything is as it was.
    pub(crate) fn holds(&self) -> bool {
        self.differences.is_empty()
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new(["STREAM", "AS IT WAS", "EXPIRED", "UNCHECKED", "NO HEAD YET"]);
        for report in &self.streams {
            table.row([
                Cell::text(report.stream.as_str()),
                Cell::number(report.verified),
                Cell::number(report.expired),
                Cell::number(report.unverifiable),
                Cell::number(report.uncovered),
            ]);
        }
        let mut text = format!(
            "\nAgainst head {} of {}, with {} in the log\n{}\n{table}",
            self.head,
            self.at,
            count(self.heads, "head"),
            self.signature_line
        );
        for difference in &self.differences {
            text.push_str(&format!("{} {}\n", styled(BAD, "differs"), difference.what));
        }
        let verdict = match self.holds() {
            true => styled(GOOD, "Everything that heads cover is as it was."),
            false => styled(BAD, "It is not as it was."),
        };
        text + &format!("{verdict}\n")
    }
}
