//! `concord challenge`: disputes a finding.

use std::path::PathBuf;

use clap::Args;
use concord_events::Aggregate;
use concord_events::Challenged;
use concord_wire::payload::Challenge;
use concord_wire::subject::Service;
use concord_wire::{CaseId, DebateId, Fault, MessageType};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::case_file;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::input;
use crate::shared::output::{self, NAMED, styled};
use crate::shared::send::{OutgoingMessage, Receipt, SendResult, WaitArgs, send};

/// Arguments of `concord challenge`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is the payload of a challenge (proto-schemas/challenge.schema.json), for example:
  {\"challenger\": \"ben\", \"challenged\": \"ann\", \"disputed_finding\": \"Margins grow to 40 %.\",
   \"challenge_basis\": \"The filing says 31 %.\", \"required_evidence\": [\"the model\"],
   \"escalation_timer\": 3600, \"priority\": \"critical-path\", \"metric\": \"price_target\",
   \"challenged_value\": 120, \"value\": 90}

Examples:
  concord challenge c-42 challenge.json
  concord challenge c-42 - --json < challenge.json

It is sent as its challenger.")]
pub(crate) struct ChallengeArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The challenge as JSON; - for standard input.
    file: PathBuf,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// A challenge and its result, as it is printed.
#[derive(Debug, Serialize)]
struct SentChallenge<'a> {
    case_id: &'a CaseId,
    /// The debate that it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    debate_id: Option<DebateId>,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ChallengeArgs) -> Result<u8, Failure> {
    let bytes = input::read_input(&args.file, "concord challenge")?;
    let challenge = parse(&bytes).map_err(|fault| malformed(&input::name(&args.file), &fault))?;
    let broker = connection.connect().await?;
    case_file::existing(&broker, &args.case).await?;
    let message = OutgoingMessage {
        from: &challenge.challenger,
        to: Service::Coordinator,
        kind: MessageType::Challenge,
        priority: Default::default(),
        case: Some(&args.case),
        correlation_id: None,
        payload: &challenge,
        watched: (Aggregate::Case, args.case.token()),
    };
    let receipt = send(&broker, &message, args.wait).await?;
    let debate_id = match &receipt.result {
        SendResult::Recorded(event) if event.name == "challenged" => {
            Some(event.read::<Challenged>()?.asked.conflict.conflict_id)
        }
        _ => None,
    };
    let failure = receipt.failure(Service::Coordinator);
    if args.json.json {
        output::json(&SentChallenge {
            case_id: &args.case,
            debate_id,
            receipt: &receipt,
        })?;
        return Ok(if failure.is_some() { FOUND } else { 0 });
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    output::print(&match debate_id {
        Some(debate) => format!(
            "{} disputes the finding of {} in debate {}; follow it with: concord debate show {debate}\n",
            challenge.challenger,
            challenge.challenged,
            styled(NAMED, &debate)
        ),
        None => format!("the challenge is sent as {}\n", receipt.message_id),
    })?;
    Ok(0)
}

/// Reads a challenge and checks it before anything is sent.
fn parse(bytes: &[u8]) -> Result<Challenge, Fault> {
    let challenge: Challenge = concord_wire::envelope::from_json(bytes, "/payload")?;
    challenge.check()?;
    Ok(challenge)
}

fn malformed(name: &str, fault: &Fault) -> Failure {
    let place = match fault.pointer.trim_start_matches("/payload") {
        "" => String::new(),
        place => format!(" at {place}"),
    };
    Failure::data(format!(
        "{name} is not a challenge{place}: {} {} `concord challenge --help` has an example.",
        fault.message, fault.advice
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_challenge_is_said_at_its_place() {
        let good = r#"{"challenger": "ben", "challenged": "ann", "disputed_finding": "f", "challenge_basis": "b"}"#;
        assert_eq!(parse(good.as_bytes()).unwrap().challenger.as_str(), "ben");
        for (text, place) in [
            ("{".to_owned(), "standard input is not a challenge: "),
            (
                good.replace("\"ann\"", "\"ben\""),
                " at /challenged: An agent cannot challenge itself.",
            ),
            (good.replace("\"b\"", "\" \""), " at /challenge_basis: "),
            (
                good.replace('}', ", \"escalation_timer\": -5}"),
                " at /escalation_timer: ",
            ),
            (
                good.replace('}', ", \"priority\": \"soon\"}"),
                " at /priority: ",
            ),
            (good.replace("ben", "b.n"), " at /challenger: "),
        ] {
            let message = malformed("standard input", &parse(text.as_bytes()).unwrap_err());
            assert!(
                message.code() == 65 && message.to_string().contains(place),
                "{text}: {message}"
            );
        }
    }
}
