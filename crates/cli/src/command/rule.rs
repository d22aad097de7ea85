//! `concord rule`: a person's binding answer.

use clap::{ArgGroup, Args};
use concord_events::Aggregate;
use concord_events::{DebateResolved, RulingSetAside};
use concord_wire::payload::Ruling;
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId, MessageType};
use serde::Serialize;
use serde_json::Value;

use crate::command::queue::brief;
use crate::shared::args::{JsonArg, agent_id, debate_id, json_value, position_words, words};
use crate::shared::connection::ConnectionArgs;
use crate::shared::debate_file::{self, resolution_text, signed_text, wanted_note};
use crate::shared::failure::{FOUND, Failure};
use crate::shared::input::unusable;
use crate::shared::output::{self, FAINT, GOOD, NAMED, STRONG, one_line, styled};
use crate::shared::send::{OutgoingMessage, Receipt, SendResult, WaitArgs, fresh_id, send_under};
use crate::shared::sign::SignArgs;

/// Arguments of `concord rule`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("chosen").required(true),
    after_help = "\
Examples:
  concord rule d-4f1c --position p1 --rationale \"the filing says so\" --expert eva
  concord rule d-4f1c --position p1 --rationale \"the filing says so\" --expert eva --digest 9f2a... --key eva.key
  concord rule d-4f1c --own \"a target of 105\" --value 105 --rationale \"between the two\" --expert eva --digest 9f2a...

A ruling is bound to the digest of the brief that the expert has seen: when the debate has changed since, it is recorded
and does not count. `concord queue next` shows brief and digest. Without --digest that of the latest brief is taken. The
exit code is 1 when the ruling does not count."
)]
pub(crate) struct RuleArgs {
    /// The debate.
    #[arg(value_parser = debate_id)]
    debate: DebateId,
    /// The chosen position of the brief, for example p1.
    #[arg(long, value_name = "POSITION", group = "chosen")]
    position: Option<String>,
    /// A position of the expert's own, in words.
    #[arg(long, value_name = "WORDS", group = "chosen", allow_hyphen_values = true, value_parser = position_words)]
    own: Option<String>,
    /// The same as a value, in JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "position", allow_hyphen_values = true, value_parser = json_value)]
    value: Option<Value>,
    /// The reason.
    #[arg(long, value_parser = words)]
    rationale: String,
    /// The expert who rules.
    #[arg(long, value_name = "EXPERT", value_parser = agent_id)]
    expert: AgentId,
    /// Digest of the brief that is ruled on [default: that of the latest brief].
    #[arg(long)]
    digest: Option<String>,
    #[command(flatten)]
    sign: SignArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// A ruling and its result, as it is printed.
#[derive(Debug, Serialize)]
struct SentRuling<'a> {
    debate_id: &'a DebateId,
    expert: &'a AgentId,
    digest: &'a str,
    /// True when no digest was named, and that of the latest brief was taken.
    digest_of_latest_brief: bool,
    /// Whether the ruling counts; none when the command did not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<bool>,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: RuleArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let (state, events) = debate_file::load(&broker, &args.debate).await?;
    let case = debate_file::case_of(&state, &args.debate)?;
    let digest = match &args.digest {
        Some(digest) => digest.clone(),
        None => brief::latest(&state, &events).map(|briefed| briefed.digest).ok_or_else(|| {
            let debate = &args.debate;
            Failure::failed(format!(
                "nobody has been given the debate {debate} to rule on; `concord debate show {debate}` says where it is"
            ))
        })?,
    };
    let asks_for_digest = state
        .opened
        .as_ref()
        .is_some_and(|opened| opened.policy.ladder.digest_required);
    if asks_for_digest && args.digest.is_none() {
        return Err(Failure::failed(format!(
            "the policy of this case asks for the digest of the brief that you have read; `concord queue next --expert {} \
             --debate {}` shows it, send it with --digest",
            args.expert, args.debate
        )));
    }
    let mut ruling = args.ruling(digest)?;
    let message_id = fresh_id(&broker)?;
    ruling.signature = args
        .sign
        .read()?
        .map(|key| key.sign_text(&ruling.signed_text(&args.expert, &case, &message_id)));
    let message = OutgoingMessage {
        from: &args.expert,
        to: Service::DebateFacilitator,
        kind: MessageType::Ruling,
        priority: Default::default(),
        case: Some(&case),
        correlation_id: Some(args.debate.to_string()),
        payload: &ruling,
        watched: (Aggregate::Debate, args.debate.token()),
    };
    let receipt = send_under(&broker, message_id, &message, args.wait).await?;
    let wanted = match (&state.opened, &args.own) {
        (Some(opened), Some(own)) => {
            let said = (own.as_str(), args.value.as_ref());
            wanted_note(&opened.conflict, &opened.policy, said)
        }
        _ => String::new(),
    };
    args.report(&ruling, &receipt, &wanted)
}

impl RuleArgs {
    fn ruling(&self, digest: String) -> Result<Ruling, Failure> {
        let ruling = Ruling {
            debate_id: self.debate.clone(),
            digest,
            position_id: self.position.clone(),
            position: self.own.clone(),
            value: self.value.clone(),
            rationale: self.rationale.clone(),
            signature: None,
        };
        ruling.check().map_err(|fault| unusable(&fault))?;
        Ok(ruling)
    }

    /// Prints the result; `wanted` is a note about words that decide nothing.
    fn report(&self, ruling: &Ruling, receipt: &Receipt, wanted: &str) -> Result<u8, Failure> {
        let counts = match &receipt.result {
            SendResult::Sent => None,
            SendResult::Recorded(event) => Some(event.name == "resolved"),
            SendResult::Refused { .. } | SendResult::Unanswered => Some(false),
        };
        if self.json.json {
            output::json(&SentRuling {
                debate_id: &self.debate,
                expert: &self.expert,
                digest: &ruling.digest,
                digest_of_latest_brief: self.digest.is_none(),
                counts,
                receipt,
            })?;
            return Ok(if counts == Some(false) { FOUND } else { 0 });
        }
        if let Some(failure) = receipt.failure(Service::DebateFacilitator) {
            return Err(failure);
        }
        let mut text = self.text(receipt)?;
        text.push_str(wanted);
        if self.digest.is_none() {
            let note = format!("ruled on the latest brief, digest {}", ruling.digest);
            text.push_str(&format!("  {}\n", styled(FAINT, note)));
        }
        output::print(&text)?;
        Ok(0)
    }

    /// The result as text.
    fn text(&self, receipt: &Receipt) -> Result<String, Failure> {
        let debate = styled(NAMED, &self.debate);
        let SendResult::Recorded(event) = &receipt.result else {
            return Ok(format!(
                "the ruling on {debate} is sent as {}\n",
                receipt.message_id
            ));
        };
        if event.name == "resolved" {
            let resolved: DebateResolved = event.read()?;
            let position = resolved
                .outcome
                .resolution
                .as_ref()
                .map_or("-".to_owned(), resolution_text);
            let ruled_by = resolved.outcome.ruled_by.as_ref();
            return Ok(format!(
                "{} {debate}: {}{}\n",
                styled(GOOD, "resolved"),
                styled(STRONG, position),
                ruled_by.map_or_else(String::new, signed_text)
            ));
        }
        let aside: RulingSetAside = event.read()?;
        let changes: String = aside
            .changes
            .iter()
            .map(|line| format!("\n  {}", one_line(line, 400)))
            .collect();
        let advice = match aside.brief {
            Some(briefed) => format!(
                " Its digest is {}; `concord queue next --expert {} --debate {}` shows the brief as it is now.",
                briefed.digest, self.expert, self.debate
            ),
            None => String::new(),
        };
        Err(Failure::failed(format!(
            "the ruling is recorded and does not count: {}{advice}{changes}",
            aside.explanation
        )))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RuleArgs,
    }

    fn parse(arguments: &str) -> Result<RuleArgs, clap::Error> {
        Line::try_parse_from(["rule"].into_iter().chain(arguments.split(' '))).map(|line| line.args)
    }

    #[test]
    fn a_ruling_names_one_position() {
        let args = parse("d-1 --own more --value 105 --rationale so --expert eva").unwrap();
        let ruling = args.ruling("abc".into()).unwrap();
        assert_eq!(
            (ruling.position.as_deref(), &ruling.value),
            (Some("more"), &Some(json!(105)))
        );
        for wrong in [
            "d-1 --rationale so --expert eva",
            "d-1 --position p1 --own more --rationale so --expert eva",
            "d-1 --position p1 --value 1 --rationale so --expert eva",
            "d-1 --own more --value {x --rationale so --expert eva",
            "d.1 --position p1 --rationale so --expert eva",
            "d-1 --position p1 --rationale so --expert e.va",
            "d-1 --position p1 --expert eva",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for (words, value) in [
            ("-2 %", "-2"),
            ("\u{2212}2 %", "-0.02"),
            ("- 2 %", "\"-2 %\""),
        ] {
            let said = ["rule", "d-1", "--own", words, "--value", value];
            let line = said
                .into_iter()
                .chain("--rationale so --expert eva".split(' '));
            let args = Line::try_parse_from(line).unwrap().args;
            let value = serde_json::from_str(value).unwrap();
            assert_eq!(
                (args.own.as_deref(), args.value),
                (Some(words), Some(value))
            );
        }
        let forgotten = parse("d-1 --own --rationale --rationale so --expert eva").unwrap_err();
        assert!(
            forgotten.to_string().contains("say it in words"),
            "{forgotten}"
        );
        let mut long = parse("d-1 --position p1 --rationale so --expert eva").unwrap();
        long.rationale = "x".repeat(5_000);
        let failure = long.ruling("abc".into()).unwrap_err();
        assert!(
            failure.code() == 2 && failure.to_string().starts_with("rationale: It has 5000"),
            "{failure}"
        );
    }

    #[test]
    fn a_ruling_that_does_not_count_says_why() {
        let args = parse("d-1 --position p1 --rationale so --expert eva").unwrap();
        let mut receipt: Receipt = Receipt {
            message_id: concord_wire::MessageId::new("m-1").unwrap(),
            result: SendResult::Recorded(
                serde_json::from_value(json!({
                    "fact": "ruling_set_aside", "at": "2026-11-21T20:00:00.000Z", "cause": "m-1",
                    "data": {
                        "case_id": "c-1", "reason": "changed", "explanation": "It has changed.", "changes": ["ann: new evidence \"page 4\""],
                        "heard": { "agent_id": "eva", "message_id": "m-1", "digest": "x" },
                        "brief": brief::tests::example(),
                    },
                }))
                .unwrap(),
            ),
        };
        let failure = args.text(&receipt).unwrap_err();
        assert_eq!(failure.code(), 1);
        assert!(
            failure
                .to_string()
                .contains("does not count: It has changed. Its digest is abc123"),
            "{failure}"
        );
        assert!(
            failure
                .to_string()
                .ends_with("\n  ann: new evidence \"page 4\""),
            "{failure}"
        );
        receipt.result = SendResult::Sent;
        assert!(args.text(&receipt).unwrap().contains("is sent as m-1"));
    }
}
