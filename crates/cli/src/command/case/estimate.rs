//! `concord case estimate`: the cost of a case before it runs.

use std::path::PathBuf;

use clap::Args;
use concord_domain::rules::estimate::{Assumptions, Estimate, Phase, Range, estimate};
use concord_wire::payload::OpenCase;
use concord_wire::policy::Policy;
use serde::Serialize;
use serde_json::Value;

use super::open;
use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::input;
use crate::shared::output::{self, Cell, FAINT, NAMED, Table, span, styled};

/// Arguments of `concord case estimate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Of each number the least and the most are shown: the least when every conflict has two parties and settles in the first round, the
most when every conflict goes through all rounds with all participants, as far as the policy's answers of a round go round. The
parties of a debate are told each other's answers; no model is called for that. No broker is asked.

Examples:
  concord case estimate case.json --input-price 0.59 --output-price 0.79
  concord case estimate --policy contract-review --participants 5 --conflicts 3 --synthesis-calls 1 --json")]
pub(crate) struct EstimateArgs {
    /// The case as JSON, as for `concord case open`; - for standard input.
    #[arg(required_unless_present = "policy", conflicts_with_all = ["policy", "participants"])]
    file: Option<PathBuf>,
    /// The name of a policy, in place of a file.
    #[arg(long)]
    policy: Option<String>,
    /// The number of participants, with --policy [default: 5].
    #[arg(long, value_name = "N", requires = "policy")]
    participants: Option<u64>,
    /// The number of conflicts [default: 3].
    #[arg(long, value_name = "N")]
    conflicts: Option<u64>,
    /// Calls of a model that sums up at the end; Concord itself makes none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    synthesis_calls: u64,
    /// Tokens of the task [default: the file's own at four bytes a token, or 2000].
    #[arg(long, value_name = "N")]
    task_tokens: Option<u64>,
    /// Price of a million tokens that models are given.
    #[arg(long, value_name = "PRICE", env = "CONCORD_INPUT_PRICE", default_value_t = 0.0, value_parser = price)]
    input_price: f64,
    /// Price of a million tokens that models write.
    #[arg(long, value_name = "PRICE", env = "CONCORD_OUTPUT_PRICE", default_value_t = 0.0, value_parser = price)]
    output_price: f64,
    /// Requests a minute that the provider allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_minute: Option<u64>,
    /// Tokens a minute that the provider allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tokens_per_minute: Option<u64>,
    #[command(flatten)]
    json: JsonArg,
}

fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if price.is_finite() && price >= 0.0 {
        Ok(price)
    } else {
        Err("it is no price".to_owned())
    }
}

/// The estimate as it is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    policy: &'a str,
    participants: u64,
    conflicts: u64,
    #[serde(flatten)]
    estimate: &'a Estimate,
}

pub(crate) fn run(args: &EstimateArgs) -> Result<u8, Failure> {
    let (policy, participants, task_tokens) = match (&args.file, &args.policy) {
        (Some(file), _) => of_file(file)?,
        (None, name) => {
            let name = Value::String(name.clone().unwrap_or_default());
            let policy =
                Policy::resolve(&name, "").map_err(|fault| Failure::data(format!("{fault}")))?;
            (policy, args.participants, None)
        }
    };
    let usual = Assumptions::default();
    let given = Assumptions {
        participants: participants.unwrap_or(usual.participants),
        conflicts: args.conflicts.unwrap_or(usual.conflicts),
        synthesis_calls: args.synthesis_calls,
        task_tokens: args
            .task_tokens
            .or(task_tokens)
            .unwrap_or(usual.task_tokens),
        price_in: args.input_price,
        price_out: args.output_price,
        requests_per_minute: args.requests_per_minute,
        tokens_per_minute: args.tokens_per_minute,
        ..usual
    };
    let estimate = estimate(&policy, &given);
    if args.json.json {
        let Assumptions {
            participants,
            conflicts,
            ..
        } = given;
        output::json(&Printed {
            policy: &policy.preset,
            participants,
            conflicts,
            estimate: &estimate,
        })?;
        return Ok(0);
    }
    output::print(&text(&estimate, &given))?;
    Ok(0)
}

type OfFile = (Policy, Option<u64>, Option<u64>);

fn of_file(file: &std::path::Path) -> Result<OfFile, Failure> {
    let name = input::name(file);
    let bytes = input::read_input(file, "concord case estimate")?;
    let parsed = open::parse(&bytes).map_err(|fault| open::malformed(&name, &fault));
    let OpenCase {
        participants,
        task,
        policy,
        ..
    } = parsed?;
    // Nothing is asked of an installation, so only the presets are known.
    let policy = Policy::resolve(&policy, "/policy");
    let policy = policy.map_err(|fault| open::malformed(&name, &fault))?;
    let bytes = serde_json::to_vec(&task).map_or(0, |json| json.len());
    Ok((
        policy,
        u64::try_from(participants.len()).ok(),
        u64::try_from(bytes.div_ceil(4)).ok(),
    ))
}

fn text(estimate: &Estimate, given: &Assumptions) -> String {
    let mut table = Table::new([
        "PHASE",
        "MESSAGES",
        "CALLS",
        "TOKENS IN",
        "TOKENS OUT",
        "COST",
        "TIME",
    ]);
    for phase in estimate.phases.iter().chain([&estimate.total]) {
        let Phase {
            messages,
            calls,
            tokens_in,
            tokens_out,
            cost,
            time_ms,
            ..
        } = phase;
        let ends = (format!("{:.4}", cost.least), format!("{:.4}", cost.most));
        let cost = if ends.0 == ends.1 {
            ends.0
        } else {
            format!("{}-{}", ends.0, ends.1)
        };
        table.row([
            Cell::text(phase.phase).with(NAMED),
            Cell::number(range(*messages)),
            Cell::number(range(*calls)),
            Cell::number(range(*tokens_in)),
            Cell::number(range(*tokens_out)),
            Cell::number(cost),
            Cell::text(format!("{} to {}", span(time_ms.least), span(time_ms.most))),
        ]);
    }
    let note = format!(
        "{} participants, {} conflicts; least and most. With hear_answers: false: {} messages.",
        given.participants,
        given.conflicts,
        range(estimate.messages_unheard)
    );
    format!("{table}{}\n", styled(FAINT, note))
}

fn range(range: Range) -> String {
    if range.least == range.most {
        range.least.to_string()
    } else {
        format!("{}-{}", range.least, range.most)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: EstimateArgs,
    }

    fn line(arguments: &[&str]) -> Result<EstimateArgs, clap::Error> {
        Line::try_parse_from([&["estimate"], arguments].concat()).map(|line| line.args)
    }

    #[test]
    fn a_case_is_given_by_a_file_or_by_a_policy() {
        for (arguments, good) in [
            (&["case.json"][..], true),
            (
                &["--policy", "contract-review", "--participants", "5"][..],
                true,
            ),
            (
                &["--policy", "contract-review", "--input-price", "0.5"][..],
                true,
            ),
            (&[][..], false),
            (&["case.json", "--policy", "contract-review"][..], false),
            (&["case.json", "--participants", "5"][..], false),
            (&["case.json", "--input-price", "-1"][..], false),
            (&["case.json", "--requests-per-minute", "0"][..], false),
        ] {
            assert_eq!(line(arguments).is_ok(), good, "{arguments:?}");
        }
    }

    #[test]
    fn the_table_is_readable() {
        let given = Assumptions {
            synthesis_calls: 1,
            ..Assumptions::default()
        };
        let table = text(&estimate(&Policy::contract_review(), &given), &given);
        let table = anstream::adapter::strip_str(&table).to_string();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1][..3], ["analysis", "10", "5"]);
        assert_eq!(rows[2][..3], ["discussion", "15-43", "6-20"]);
        assert_eq!(rows[3][..3], ["hearing", "6-80", "0"]);
        assert_eq!(rows[5][..3], ["total", "32-134", "12-26"]);
        assert!(
            table.contains("hear_answers: false: 26-54 messages"),
            "{table}"
        );
        assert!(table.contains("15 s to 35 s"), "{table}");
    }

    #[test]
    fn a_files_own_task_is_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let case = serde_json::json!({
            "policy": { "preset": "contract-review", "rounds_max": 1 }, "participants": ["a", "b", "c"],
            "task": { "type": "t", "title": "x".repeat(4_000) },
        });
        std::fs::write(file.path(), case.to_string()).unwrap();
        let (policy, participants, tokens) = of_file(file.path()).unwrap();
        assert_eq!((policy.rounds_max, participants), (1, Some(3)));
        assert!(
            tokens.is_some_and(|tokens| (1_000..1_020).contains(&tokens)),
            "{tokens:?}"
        );
    }
}
