//! `concord wake`: explains whom messages wake.

use clap::{Args, Subcommand};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{LoopBroken, StoredEvent, WakeDecided, WakeEvent, WakeOutcome, Weighed};
use concord_runtime::Broker;
use concord_wire::{MessageId, Timestamp};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{
    self, Cell, DOUBTFUL, FAINT, GOOD, NAMED, Table, count, one_line, styled,
};
use crate::shared::stream_reader::{self, Scope};

/// The verbs of `concord wake`.
#[derive(Debug, Subcommand)]
pub(crate) enum WakeVerb {
    /// Explain which agents a message woke, which observe it, which it does not concern, and why.
    Explain(ExplainArgs),
}

/// Arguments of `concord wake explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord wake explain 019b0c6e-7f00-7000-8000-000000000001
  concord wake explain 019b0c6e-7f00-7000-8000-000000000001 --json | jq .woken")]
pub(crate) struct ExplainArgs {
    /// The message's id.
    #[arg(value_parser = message_id)]
    message: MessageId,
    #[command(flatten)]
    json: JsonArg,
}

fn message_id(text: &str) -> Result<MessageId, String> {
    MessageId::new(text).map_err(|error| format!("{text:?} {error}"))
}

/// A decision as it is stored.
#[derive(Debug, Serialize)]
struct Explained {
    decided_at: Timestamp,
    #[serde(flatten)]
    decided: WakeDecided,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: WakeVerb) -> Result<u8, Failure> {
    let WakeVerb::Explain(args) = verb;
    let broker = connection.connect().await?;
    let explained = find(&broker, &args.message)
        .await?
        .ok_or_else(|| unknown(&args.message))?;
    if args.json.json {
        output::json(&explained)?;
    } else {
        output::print(&text(&explained))?;
    }
    Ok(0)
}

fn unknown(message: &MessageId) -> Failure {
    Failure::failed(format!(
        "nothing was decided about {message}: it is not one that may wake others, the agent adapter has not read it yet, or \
         there is no such message; see `concord case transcript`"
    ))
}

/// The decision about a message, found among the decisions of all conversations.
async fn find(broker: &Broker, message: &MessageId) -> Result<Option<Explained>, Failure> {
    let mut found = None;
    let scope = Scope::of(
        StreamKind::Events,
        broker.subjects().events_of_kind(Aggregate::Wake),
    );
    stream_reader::for_each(broker, &scope, "decisions", |stored| {
        if let Ok(record) = StoredEvent::<WakeEvent>::decode(&stored.payload, stored.sequence)
            && let WakeEvent::Decided(decided) = record.event
            && decided.said.message_id == *message
        {
            found = Some(Explained {
                decided_at: record.meta.at,
                decided,
            });
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

fn text(explained: &Explained) -> String {
    let Explained {
        decided_at,
        decided,
    } = explained;
    let message = &decided.said;
    let compared = decided
        .woken
        .iter()
        .chain(&decided.others)
        .any(|one| one.score.is_some());
    let how = match (compared, decided.with_model) {
        (false, _) => "by whom it names and what kind of message it is",
        (true, true) => "meaning compared by a model",
        (true, false) => "compared by letters, without a model",
    };
    let mut text = format!(
        "{} from {} to {}: {}\n{}\n",
        message.message_type,
        styled(NAMED, &message.from),
        message.to.as_str(),
        one_line(&message.text, 120),
        styled(
            FAINT,
            format!(
                "decided at {decided_at}, {how}; {} said before",
                count(decided.context.len() as u64, "message")
            )
        )
    );
    let mut table = Table::new(["AGENT", "DOES", "WHY", "SCORE", "RUNNER-UP", "SCORE"]);
    for one in decided.woken.iter().chain(&decided.others) {
        table.row(row(one));
    }
    text.push_str(&table.to_string());
    let named = match decided.named_beyond {
        0 => String::new(),
        beyond => format!("; {beyond} more were named than a message may wake so"),
    };
    let rest = format!(
        "{} woken, {} observe, {} not concerned{named}",
        decided.woken.len(),
        decided.observing,
        decided.ignoring
    );
    text.push_str(&format!("{}\n", styled(FAINT, rest)));
    if let Some(broken) = &decided.loop_broken {
        let LoopBroken {
            from,
            to,
            depth,
            until,
            ..
        } = broken;
        text.push_str(&format!(
            "{from} and {to} answered each other {depth} times: neither wakes the other until {until}\n"
        ));
    }
    text
}

fn row(one: &Weighed) -> [Cell; 6] {
    let score = |score: Option<f64>| {
        Cell::number(score.map_or_else(|| "-".to_owned(), |score| format!("{score:.3}")))
    };
    let (does, style) = match one.outcome {
        WakeOutcome::Wake => ("wakes", GOOD),
        WakeOutcome::Observe => ("observes", DOUBTFUL),
        WakeOutcome::Ignore => ("ignores", FAINT),
    };
    [
        Cell::text(&one.agent_id).with(NAMED),
        Cell::text(does).with(style),
        Cell::text(one_line(&one.reason, 40)),
        score(one.score),
        Cell::text(one.runner_up.as_ref().map_or("-", |agent| agent.as_str())),
        score(one.runner_up_score),
    ]
}
