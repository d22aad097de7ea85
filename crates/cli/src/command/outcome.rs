//! `concord outcome`: reports what proved right after a debate.

use clap::{ArgGroup, Args};
use concord_events::Aggregate;
use concord_events::OutcomeKnown;
use concord_wire::payload::OutcomeReport;
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId, MessageType, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::shared::archive_reader;
use crate::shared::args::{JsonArg, agent_id, debate_id, json_value, position_words, words};
use crate::shared::circumstances::CircumstancesArgs;
use crate::shared::connection::ConnectionArgs;
use crate::shared::debate_file;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::input::unusable;
use crate::shared::output::{self, BAD, GOOD, NAMED, STRONG, one_line, styled};
use crate::shared::send::{OutgoingMessage, Receipt, SendResult, WaitArgs, send};

/// Arguments of `concord outcome`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("proved").required(true),
    after_help = "\
Examples:
  concord outcome d-4f1c --held-by risk_assessor --because \"annual report, page 31\" --from eva
  concord outcome d-4f1c --position \"a margin of 27 %\" --value '\"27 %\"' --because \"annual report\" --from olga --regime recession

It may be said once, after the debate, by a source of outcomes (of the policy's ladder.outcome_sources, where it names any), a
reviewer, an operator, or the registered opener of the case, and by no party, nor by whoever ruled on it or overrode it. Words
count as the value that they state; where the positions are scores or estimates, say a number in the unit of one of them, or give
it with --value. It enters the track records: `concord record show AGENT`."
)]
pub(crate) struct OutcomeArgs {
    /// The debate.
    #[arg(value_parser = debate_id)]
    debate: DebateId,
    /// The party whose position proved right.
    #[arg(long, value_name = "AGENT", group = "proved", value_parser = agent_id)]
    held_by: Option<AgentId>,
    /// What proved right, in words; it may be what nobody held.
    #[arg(long, value_name = "WORDS", group = "proved", allow_hyphen_values = true, value_parser = position_words)]
    position: Option<String>,
    /// The same as a value, in JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "held_by", allow_hyphen_values = true, value_parser = json_value)]
    value: Option<Value>,
    /// The source of that knowledge.
    #[arg(long, value_parser = words)]
    because: String,
    /// The person or agent who reports it.
    #[arg(id = "by", long = "from", value_name = "WHO", value_parser = agent_id)]
    from: AgentId,
    /// The time at which it became known, RFC 3339, not before the debate was opened [default: now].
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Timestamp>,
    #[command(flatten)]
    circumstances: CircumstancesArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|error| error.to_string())
}

/// A report and its result, as it is printed.
#[derive(Debug, Serialize)]
struct SentReport<'a> {
    debate_id: &'a DebateId,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: OutcomeArgs) -> Result<u8, Failure> {
    let report = OutcomeReport {
        debate_id: args.debate.clone(),
        held_by: args.held_by,
        position: args.position,
        value: args.value,
        explanation: args.because,
        at: args.at,
        circumstances: args.circumstances.into(),
    };
    report.check().map_err(|fault| unusable(&fault))?;
    let broker = connection.connect().await?;
    archive_reader::takes_something(&broker, &args.debate).await?;
    let (state, _) = debate_file::load(&broker, &args.debate).await?;
    let case = debate_file::case_of(&state, &args.debate)?;
    let message = OutgoingMessage {
        from: &args.from,
        to: Service::DebateFacilitator,
        kind: MessageType::Outcome,
        priority: Default::default(),
        case: Some(&case),
        correlation_id: Some(args.debate.to_string()),
        payload: &report,
        watched: (Aggregate::Debate, args.debate.token()),
    };
    let receipt = send(&broker, &message, args.wait).await?;
    let failure = receipt.failure(Service::DebateFacilitator);
    if args.json.json {
        output::json(&SentReport {
            debate_id: &args.debate,
            receipt: &receipt,
        })?;
        return Ok(if failure.is_some() { FOUND } else { 0 });
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    output::print(&text(&args.debate, &receipt)?)?;
    Ok(0)
}

/// The result as text.
fn text(debate: &DebateId, receipt: &Receipt) -> Result<String, Failure> {
    let SendResult::Recorded(event) = &receipt.result else {
        return Ok(format!("the outcome is sent as {}\n", receipt.message_id));
    };
    let known: OutcomeKnown = event.read()?;
    let mut text = format!(
        "{}: {}\n",
        styled(NAMED, debate),
        styled(STRONG, one_line(&known.position, 200))
    );
    for party in &known.parties {
        let word = if party.correct {
            styled(GOOD, "right")
        } else {
            styled(BAD, "wrong")
        };
        text.push_str(&format!("  {} was {word}\n", party.agent_id));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: OutcomeArgs,
    }

    #[test]
    fn an_outcome_names_a_party_or_what_proved_right() {
        let parse =
            |line: &str| Line::try_parse_from(["outcome"].into_iter().chain(line.split(' ')));
        let args = parse(
            "d-1 --position more --value 27 --because so --from eva --at 2026-01-01T00:00:00Z",
        )
        .unwrap()
        .args;
        assert_eq!(
            (args.value, args.at.map(|at| at.to_string())),
            (Some(json!(27)), Some("2026-01-01T00:00:00.000Z".into()))
        );
        let negative = parse("d-1 --position -2% --value -2 --because so --from eva").unwrap();
        assert_eq!(negative.args.value, Some(json!(-2)));
        for wrong in [
            "d-1 --because so --from eva",
            "d-1 --held-by ann --position more --because so --from eva",
            "d-1 --held-by ann --value 1 --because so --from eva",
            "d-1 --held-by ann --from eva",
            "d-1 --held-by ann --because so",
            "d-1 --held-by ann --because so --from eva --at yesterday",
            "d-1 --held-by ann --because so --from eva --regime  ",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_was_right_is_told() {
        let event = json!({ "fact": "outcome_known", "at": "2026-11-21T20:00:00.000Z", "cause": "m-1", "data": {
            "case_id": "c-1", "topic": "t", "position": "27 %", "explanation": "so", "at": "2026-11-21T20:00:00.000Z",
            "heard": { "agent_id": "eva", "message_id": "m-1", "digest": "x" },
            "parties": [{ "agent_id": "ann", "correct": true }, { "agent_id": "ben", "correct": false }],
        }});
        let result = SendResult::Recorded(serde_json::from_value(event).unwrap());
        let receipt = Receipt {
            message_id: concord_wire::MessageId::new("m-1").unwrap(),
            result,
        };
        let text = text(&DebateId::new("d-1").unwrap(), &receipt).unwrap();
        assert!(
            text.contains("27 %") && text.contains("ann was") && text.contains("wrong"),
            "{text}"
        );
    }
}
