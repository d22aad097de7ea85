//! `concord-lab eval paraphrase`: how often names that mean the same are taken for the same, and names that do not are kept
//! apart, measured by looking for conflicts between two findings.

use std::path::PathBuf;

use clap::Args;
use concord_domain::rules::{conflict, names};
use concord_embedding::{Embedder, Settings};
use concord_events::{NameMatch, ReceivedFinding};
use concord_wire::policy::{NameKind, Policy};
use concord_wire::{AgentId, CaseId, MessageId};
use serde::Serialize;
use serde_json::{Value, json};

use concord_cli::shared::args::JsonArg;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output;

mod pairs;

use pairs::Pair;

/// Where `scripts/model` puts the model.
const MODEL_DIR: &str = ".tools/model";
/// The thresholds that are compared.
const THRESHOLDS: [f64; 7] = [0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9];

/// Arguments of `concord-lab eval paraphrase`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has a JSON object a line, with the clauses of a contract as `clauses`. Pairs are made of the names of its clauses and of four
recommendations, with a table of other words for each that is part of the program: half of the pairs mean the same. Two of the other
words are aliases in the vocabulary, three are not.

A pair is taken for the same where two agents are in conflict who state one of the two clauses as present and the other as not
found, and where two agents are in no conflict who give the two recommendations.

Examples:
  concord-lab eval paraphrase --contracts contracts.jsonl
  concord-lab eval paraphrase --contracts contracts.jsonl --no-model --json")]
pub(crate) struct ParaphraseArgs {
    /// The contracts.
    #[arg(long, value_name = "C.jsonl")]
    contracts: PathBuf,
    /// Measure no model.
    #[arg(long)]
    no_model: bool,
    /// The folder of the model; .tools/model when absent, which scripts/model fills.
    #[arg(long, env = "CONCORD_MODEL", value_name = "D")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// How well pairs of one kind were told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    /// Pairs that mean the same and were taken for the same.
    same: usize,
    /// Pairs that mean the same and were kept apart.
    missed: usize,
    /// Pairs that do not and were taken for the same.
    wrong: usize,
    /// Pairs that do not and were kept apart.
    apart: usize,
}

impl Counts {
    /// Of the pairs that were taken for the same, the share that is; none where none was.
    fn precision(self) -> Option<f64> {
        share(self.same, self.wrong)
    }

    /// Of the pairs that mean the same, the share that was taken for the same.
    fn recall(self) -> Option<f64> {
        share(self.same, self.missed)
    }

    fn add(&mut self, pair: &Pair, taken: bool) {
        *match (pair.same, taken) {
            (true, true) => &mut self.same,
            (true, false) => &mut self.missed,
            (false, true) => &mut self.wrong,
            (false, false) => &mut self.apart,
        } += 1;
    }
}

#[allow(clippy::cast_precision_loss)] // There are hundreds.
fn share(of: usize, others: usize) -> Option<f64> {
    let all = of + others;
    (all > 0).then(|| of as f64 / all as f64)
}

/// What was measured of one way of comparing.
#[derive(Debug, Serialize)]
struct Row {
    by: String,
    clauses: Counts,
    advice: Counts,
    precision: Option<f64>,
    recall: Option<f64>,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    pairs: usize,
    clauses: usize,
    rows: Vec<Row>,
}

/// Measures and reports.
pub(crate) fn run(args: &ParaphraseArgs) -> Result<u8, Failure> {
    let table = pairs::table()?;
    let known = pairs::clause_names(&args.contracts)?;
    let pairs = pairs::pairs(&table, &known);
    let words = Policy::contract_review();
    let vocabulary = pairs::vocabulary(&table, &known);
    let aliases = policy(&vocabulary)?;
    let mut rows = vec![
        row("words alone", &words, &[], &pairs)?,
        row("vocabulary", &aliases, &[], &pairs)?,
    ];
    if let Some(model) = model(args)? {
        let mut asking = aliases.clone();
        asking.vocabulary.similarity_min = Some(0.0);
        let scored = scored(&asking, &pairs, &model);
        for least in THRESHOLDS {
            let enough = |one: &&NameMatch| one.score.is_some_and(|score| score >= least);
            let scored: Vec<NameMatch> = scored.iter().filter(enough).cloned().collect();
            let by = format!("vocabulary and model from {least}");
            rows.push(row(&by, &asking, &scored, &pairs)?);
        }
    }
    let report = Report {
        pairs: pairs.len(),
        clauses: known.len(),
        rows,
    };
    if args.json.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(0)
}

fn policy(vocabulary: &Value) -> Result<Policy, Failure> {
    Policy::resolve(&json!({ "vocabulary": vocabulary }), "")
        .map_err(|fault| Failure::usage(fault.to_string()))
}

fn model(args: &ParaphraseArgs) -> Result<Option<Embedder>, Failure> {
    if args.no_model {
        return Ok(None);
    }
    let usual = || Some(PathBuf::from(MODEL_DIR)).filter(|dir| dir.is_dir());
    let Some(model_dir) = args.model_dir.clone().or_else(usual) else {
        return Err(Failure::usage(
            "there is no model; scripts/model fetches one, --model-dir or CONCORD_MODEL names its folder, and --no-model does without",
        ));
    };
    let settings = Settings {
        model_dir: Some(model_dir),
        ..Settings::default()
    };
    Embedder::open(&settings).map_err(|error| Failure::usage(error.to_string()))
}

/// What the model says of every name that is in no vocabulary, once.
fn scored(policy: &Policy, pairs: &[Pair], model: &Embedder) -> Vec<NameMatch> {
    let names = pairs.iter().flat_map(|pair| {
        let names = [&pair.one, &pair.other];
        names.map(|name| (pair.kind, concord_wire::policy::name_form(name)))
    });
    let unknown = names.filter(|(kind, name)| policy.vocabulary.word(*kind, name).is_none());
    names::scored(&policy.vocabulary, &unknown.collect(), |name| {
        model.embed(name).ok()
    })
}

fn row(by: &str, policy: &Policy, scored: &[NameMatch], pairs: &[Pair]) -> Result<Row, Failure> {
    let (mut clauses, mut advice) = (Counts::default(), Counts::default());
    for pair in pairs {
        let counts = if pair.kind == NameKind::Topic {
            &mut clauses
        } else {
            &mut advice
        };
        counts.add(pair, is_taken(policy, scored, pair)?);
    }
    let all = Counts {
        same: clauses.same + advice.same,
        missed: clauses.missed + advice.missed,
        wrong: clauses.wrong + advice.wrong,
        apart: clauses.apart + advice.apart,
    };
    Ok(Row {
        by: by.to_owned(),
        clauses,
        advice,
        precision: all.precision(),
        recall: all.recall(),
    })
}

/// Whether the detection takes the two names of a pair for the same.
fn is_taken(policy: &Policy, scored: &[NameMatch], pair: &Pair) -> Result<bool, Failure> {
    let of_topic = pair.kind == NameKind::Topic;
    let finding = |agent: &'static str, name: &str, present: bool| {
        let finding = if of_topic {
            json!({ "summary": "Read.", "clauses": [{ "type": name, "present": present }] })
        } else {
            json!({ "summary": "Read.", "recommendation": name })
        };
        received(agent, finding)
    };
    let findings = [
        finding("ann", &pair.one, true)?,
        finding("ben", &pair.other, false)?,
    ];
    let case = CaseId::new("pair").map_err(|error| Failure::usage(error.to_string()))?;
    let found = conflict::detect_scored(&case, policy, scored, &findings);
    Ok(found.debated.is_empty() != of_topic)
}

fn received(agent: &str, finding: Value) -> Result<ReceivedFinding, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    Ok(ReceivedFinding {
        agent_id: AgentId::new(agent).map_err(|error| failed(&error))?,
        message_id: MessageId::new(agent).map_err(|error| failed(&error))?,
        digest: String::new(),
        confidence: 0.8,
        finding: serde_json::from_value(finding).map_err(|error| failed(&error))?,
    })
}

fn print(report: &Report) {
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    anstream::println!(
        "{} pairs, half of them of the same meaning; {} clauses of the contracts\n",
        report.pairs,
        report.clauses
    );
    anstream::println!(
        "{:<32}{:>20}{:>20}{:>20}",
        "precision and recall by",
        "clauses",
        "advice",
        "all"
    );
    for row in &report.rows {
        let both = |precision, recall| format!("{} {}", percent(precision), percent(recall));
        let of = |counts: Counts| both(counts.precision(), counts.recall());
        anstream::println!(
            "{:<32}{:>20}{:>20}{:>20}",
            row.by,
            of(row.clauses),
            of(row.advice),
            both(row.precision, row.recall)
        );
    }
}
