//! `concord-lab eval wake`: whom messages wake, measured on messages of which it is known whom they concern.

use std::path::{Path, PathBuf};

use clap::Args;
use concord_domain::activation::{Calibration, Matcher, Parameters, centroid, texts_of};
use concord_embedding::{Embedder, Settings};
use concord_wire::payload::Card;
use serde::Serialize;

use concord_cli::shared::args::JsonArg;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output;

mod data;
mod measure;
mod several;
mod synthetic;
mod vectors;

use measure::{Latencies, Latency, Quality, Run, SetQuality, embedding_failed};
use vectors::Vectors;

/// Where `scripts/model` puts the model.
const MODEL_DIR: &str = ".tools/model";
/// Of each intent, messages that a calibration is fitted to.
const HELD_OUT: usize = 20;

/// Arguments of `concord-lab eval wake`.
#[derive(Debug, Args)]
#[command(after_help = "\
Files of messages have the columns text, intent and domain, separated by tabs, under a heading; the domain oos is that of
messages for nobody. The file of domains is a JSON object: domain -> its intents. A domain is an agent, an intent a skill,
and its first phrases in the training file are its examples. False wakes are wrong wakes out of all wakes.

Examples:
  concord-lab eval wake --train train.tsv --test test.tsv --domains domains.json
  concord-lab eval wake --train train.tsv --test test.tsv --domains domains.json --multi
  concord-lab eval wake --train train.tsv --test test.tsv --domains domains.json \\
    --embeddings http://127.0.0.1:11434/v1 --model nomic-embed-text
  concord-lab eval wake --agents 1000 --no-model")]
pub(crate) struct WakeArgs {
    /// Messages that the cards are made of.
    #[arg(long, value_name = "T.tsv", required_unless_present = "agents")]
    train: Option<PathBuf>,
    /// Messages to measure.
    #[arg(long, value_name = "T.tsv", required_unless_present = "agents")]
    test: Option<PathBuf>,
    /// Which intents each domain has.
    #[arg(long, value_name = "D.json", required_unless_present = "agents")]
    domains: Option<PathBuf>,
    /// How many phrases of each intent are its examples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=32))]
    phrases: u16,
    /// From which probability on an agent wakes; the calibration's own when absent.
    #[arg(long, value_parser = probability)]
    threshold: Option<f64>,
    /// Fit the calibration to twenty further phrases of each intent, and to the messages for nobody, of the training file.
    #[arg(long)]
    fit: bool,
    /// Measure messages that concern several agents as well: 600 made of two or three requests of different domains of the
    /// training file, none of which is on a card.
    #[arg(long)]
    multi: bool,
    /// Measure how fast so many made-up agents are matched instead.
    #[arg(long, conflicts_with_all = ["train", "test", "domains", "fit", "threshold", "phrases", "multi"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    agents: Option<u32>,
    /// What the made-up agents are made from, and the messages that concern several.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare n-grams only.
    #[arg(long)]
    no_model: bool,
    /// The folder of the model; .tools/model when absent, which scripts/model fills.
    #[arg(long, env = "CONCORD_MODEL", value_name = "D")]
    model_dir: Option<PathBuf>,
    /// A server with the API of OpenAI that makes the vectors, in place of a model here: where the API begins, for example
    /// http://127.0.0.1:11434/v1. All messages are sent to it, and to nobody else.
    #[arg(
        long,
        value_name = "URL",
        requires = "model",
        conflicts_with = "no_model"
    )]
    embeddings: Option<String>,
    /// The model of that server.
    #[arg(long, value_name = "NAME", requires = "embeddings")]
    model: Option<String>,
    /// The environment variable with the key of that server.
    #[arg(long, value_name = "VARIABLE", requires = "embeddings")]
    key_env: Option<String>,
    #[command(flatten)]
    json: JsonArg,
}

fn probability(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "give a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err("give a number from 0 to 1".to_owned())
    }
}

/// What was measured of how well messages find their agents.
#[derive(Debug, Serialize)]
struct Report {
    agents: usize,
    skills: usize,
    phrases: u16,
    model: bool,
    #[serde(skip)]
    with: &'static str,
    threshold: f64,
    calibration: Calibration,
    #[serde(flatten)]
    quality: Quality,
    /// The quality about messages that concern several agents, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    multi: Option<SetQuality>,
    latency: Latencies,
}

/// What was measured of how fast made-up agents are matched.
#[derive(Debug, Serialize)]
struct Speed {
    agents: usize,
    skills: usize,
    seed: u64,
    model: bool,
    #[serde(skip)]
    with: &'static str,
    messages: usize,
    latency: Latencies,
}

/// Measures and reports.
pub(crate) fn run(args: &WakeArgs) -> Result<u8, Failure> {
    match (args.agents, &args.train, &args.test, &args.domains) {
        (Some(agents), ..) => speed(args, agents as usize),
        (None, Some(train), Some(test), Some(domains)) => quality(args, [train, test, domains]),
        _ => Err(Failure::usage(
            "name the files: --train, --test and --domains",
        )),
    }
}

fn vectors(args: &WakeArgs) -> Result<Option<Vectors>, Failure> {
    if args.no_model {
        return Ok(None);
    }
    if let Some(server) = Vectors::of_server(args)? {
        return Ok(Some(server));
    }
    let usual = || Some(PathBuf::from(MODEL_DIR)).filter(|dir| dir.is_dir());
    let Some(model_dir) = args.model_dir.clone().or_else(usual) else {
        return Err(Failure::usage(
            "there is no model; scripts/model fetches one, --model-dir or CONCORD_MODEL names its folder, and --no-model \
             does without; --embeddings names a server",
        ));
    };
    let settings = Settings {
        model_dir: Some(model_dir),
        ..Settings::default()
    };
    let embedder = Embedder::open(&settings).map_err(embedding_failed)?;
    Ok(embedder.map(|embedder| Vectors::Model(Box::new(embedder))))
}

/// Enters cards, with the vectors of their skills where there is a model.
fn matcher_of(
    cards: &[Card],
    parameters: Parameters,
    vectors: Option<&Vectors>,
) -> Result<Matcher, Failure> {
    let mut matcher = Matcher::new(parameters);
    for card in cards {
        let mut failure = None;
        matcher.insert(card, |skill| {
            let texts = texts_of(skill);
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            // One failure is enough: a server is not asked again and again.
            match vectors.filter(|_| failure.is_none())?.embed_all(&texts) {
                Ok(vectors) => centroid(vectors.iter().map(AsRef::as_ref)),
                Err(error) => {
                    failure.get_or_insert(error);
                    None
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(matcher)
}

fn quality(args: &WakeArgs, files: [&Path; 3]) -> Result<u8, Failure> {
    let [train, test, domains] = files;
    let domains = data::domains(domains)?;
    let test = data::messages(test, &domains)?;
    let split = data::split(
        data::messages(train, &domains)?,
        &domains,
        usize::from(args.phrases),
        HELD_OUT,
    );
    // After the files: reading a model takes a while, and a fault in a file should show at once.
    let vectors = vectors(args)?;
    let vectors = vectors.as_ref();
    let mut parameters = Parameters::default();
    let mut matcher = matcher_of(&split.cards, parameters, vectors)?;
    if args.fit {
        let run = Run {
            matcher: &matcher,
            vectors,
        };
        let fitted = run.fitted(&split.held_out, *matcher.calibration(vectors.is_some()))?;
        *(if vectors.is_some() {
            &mut parameters.with_model
        } else {
            &mut parameters.without_model
        }) = fitted;
        matcher = matcher_of(&split.cards, parameters, vectors)?;
    }
    let calibration = *matcher.calibration(vectors.is_some());
    let threshold = args.threshold.unwrap_or(calibration.threshold);
    if cfg!(debug_assertions) {
        eprintln!(
            "this is a debug build: the times are several times worse than those of a release build"
        );
    }
    let run = Run {
        matcher: &matcher,
        vectors,
    };
    let (quality, latency) = run.quality(&test, threshold)?;
    let joined = args.multi.then(|| several::joined(&split.rest, args.seed));
    let multi = joined
        .map(|messages| run.set_quality(&messages, threshold))
        .transpose()?;
    let report = Report {
        agents: split.cards.len(),
        skills: split.cards.iter().map(|card| card.skills.len()).sum(),
        phrases: args.phrases,
        model: vectors.is_some(),
        with: Vectors::name(vectors),
        threshold,
        calibration,
        quality,
        multi,
        latency,
    };
    if args.json.json {
        output::json(&report)?
    } else {
        output::print(&shown(&report))?
    }
    Ok(0)
}

fn speed(args: &WakeArgs, agents: usize) -> Result<u8, Failure> {
    const MESSAGES: usize = 500;
    let vectors = vectors(args)?;
    let vectors = vectors.as_ref();
    let dimensions = vectors.map(Vectors::dimensions).transpose()?;
    let mut source = synthetic::Source::new(args.seed);
    let cards: Vec<Card> = (0..agents)
        .filter_map(|number| source.card(number))
        .collect();
    let mut matcher = Matcher::default();
    for card in &cards {
        // In any direction: how long matching takes does not depend on it, and the model would take minutes.
        let made: Vec<_> = card
            .skills
            .iter()
            .map(|s| (&s.name, dimensions.map(|n| source.vector(n))))
            .collect();
        matcher.insert(card, |skill| {
            made.iter()
                .find(|(name, _)| **name == skill.name)
                .and_then(|(_, v)| v.clone())
        });
    }
    let messages: Vec<String> = (0..MESSAGES).map(|_| source.message()).collect();
    if cfg!(debug_assertions) {
        eprintln!(
            "this is a debug build: the times are several times worse than those of a release build"
        );
    }
    let run = Run {
        matcher: &matcher,
        vectors,
    };
    let latency = run.over(messages.iter().map(String::as_str), |_, _| ())?;
    let report = Speed {
        agents,
        skills: agents * synthetic::SKILLS,
        seed: args.seed,
        model: vectors.is_some(),
        with: Vectors::name(vectors),
        messages: MESSAGES,
        latency,
    };
    if args.json.json {
        output::json(&report)?;
    } else {
        let heading = format!(
            "{agents} made-up agents of {} skills (seed {}), {MESSAGES} short messages, {}\n",
            synthetic::SKILLS,
            args.seed,
            report.with
        );
        output::print(&(heading + &shown_latencies(&report.latency)))?;
    }
    Ok(0)
}

fn shown(report: &Report) -> String {
    let Report {
        agents,
        skills,
        phrases,
        threshold,
        quality,
        calibration,
        ..
    } = report;
    let percent = |share: f64| format!("{:>6.1} %", share * 100.0);
    format!(
        "{agents} agents with {skills} skills of {phrases} phrases, {} messages, {} of them for nobody, {}\n\
         calibration           {:.2} x score + {:.2} x lead {:+.2}, background {:.3}; wakes from {threshold} on\n\
         top-1                 {}\n\
         recall                {}\n\
         false wakes           {}  {} of {} wakes\n\
         for nobody, yet woke  {}\n{}{}",
        quality.messages,
        quality.for_nobody,
        report.with,
        calibration.score,
        calibration.lead,
        calibration.bias,
        calibration.background,
        percent(quality.top1),
        percent(quality.recall),
        percent(quality.false_wakes),
        quality.wrong_wakes,
        quality.wakes,
        percent(quality.false_wakes_for_nobody),
        report.multi.as_ref().map(shown_sets).unwrap_or_default(),
        shown_latencies(&report.latency)
    )
}

fn shown_sets(sets: &SetQuality) -> String {
    let percent = |share: f64| format!("{:>6.1} %", share * 100.0);
    format!(
        "of {} messages that concern two or three:\n\
         set precision         {}\n\
         set recall            {}\n\
         set F1                {}\n\
         exactly those woke    {}\n",
        sets.messages,
        percent(sets.precision),
        percent(sets.recall),
        percent(sets.f1),
        percent(sets.exact),
    )
}

fn shown_latencies(latencies: &Latencies) -> String {
    let line = |what: &str, latency: &Latency| {
        format!(
            "{what:<21} {:>8.3} ms p50 {:>8.3} ms p95\n",
            latency.p50_ms, latency.p95_ms
        )
    };
    latencies
        .embedding
        .iter()
        .map(|latency| line("embedding", latency))
        .collect::<String>()
        + &line("matching", &latencies.matching)
        + &line("both", &latencies.whole)
}
