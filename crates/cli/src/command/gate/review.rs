//! `concord gate review`: reviews a provisional decision, or lets a case pass its gate.

use clap::{ArgGroup, Args};
use concord_domain::aggregates::case::CaseState;
use concord_domain::aggregates::debate::valued;
use concord_events::Aggregate;
use concord_events::{GatePassed, GateReviewed};
use concord_wire::payload::{Resolution, Review, ReviewAction};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId, MessageType};
use serde::Serialize;
use serde_json::Value;

use super::beside::now_stands;
use super::first_reviews::{self, FirstReview};
use super::load;
use crate::shared::args::case_id;
use crate::shared::args::{JsonArg, agent_id, debate_id, json_value, position_words, words};
use crate::shared::connection::ConnectionArgs;
use crate::shared::debate_file::resolution_text;
use crate::shared::event_source::EventSource;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::input::unusable;
use crate::shared::output::{self, GOOD, NAMED, styled};
use crate::shared::send::{OutgoingMessage, Receipt, SendResult, WaitArgs, fresh_id, send_under};
use crate::shared::sign::SignArgs;

/// Arguments of `concord gate review`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("action").required(true),
    after_help = "\
Examples:
  concord gate review c-42 --gate valuation --by eva --confirm d-4f1c
  concord gate review c-42 --gate valuation --by eva --override d-4f1c --position \"a target of 105\" --value 105 \\
    --rationale \"the filing is out\"
  concord gate review c-42 --gate valuation --by eva --redebate d-4f1c --context \"the filing is out\"
  concord gate review c-42 --gate valuation --by eva --pass --digest 9f2a... --key eva.key

A gate is reviewed by a registered reviewer (concord person register NAME --role reviewer) who takes no part in the case and has
not decided what is reviewed. Where the policy wants two reviewers, the second one says the same. The exit code is 1 when the review is refused."
)]
pub(crate) struct ReviewArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The gate that is ahead.
    #[arg(long, value_parser = words)]
    gate: String,
    /// The person who reviews.
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: AgentId,
    /// Make this provisional decision final.
    #[arg(long, value_name = "DEBATE", group = "action", value_parser = debate_id)]
    confirm: Option<DebateId>,
    /// Put another position in the place of this provisional decision.
    #[arg(
        long = "override", value_name = "DEBATE", group = "action", value_parser = debate_id,
        requires_all = ["position", "rationale"]
    )]
    overridden: Option<DebateId>,
    /// Have this provisional decision debated again; says what is new with --context, or why with --rationale.
    #[arg(long, value_name = "DEBATE", group = "action", value_parser = debate_id)]
    redebate: Option<DebateId>,
    /// Let the case pass the gate.
    #[arg(long, group = "action")]
    pass: bool,
    /// For --override: the position in words.
    #[arg(
        long, value_name = "WORDS", conflicts_with_all = ["confirm", "redebate", "pass"],
        allow_hyphen_values = true, value_parser = position_words
    )]
    position: Option<String>,
    /// For --override: the position as a value, in JSON.
    #[arg(
        long, value_name = "JSON", conflicts_with_all = ["confirm", "redebate", "pass"],
        allow_hyphen_values = true, value_parser = json_value
    )]
    value: Option<Value>,
    /// The reason; needed for --override.
    #[arg(long, value_parser = words)]
    rationale: Option<String>,
    /// For --redebate: what the parties did not know before.
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["confirm", "overridden", "pass"], value_parser = words)]
    context: Option<String>,
    /// Digest of what is reviewed, as `concord gate show` shows it: a review of something else is refused.
    #[arg(long)]
    digest: Option<String>,
    #[command(flatten)]
    sign: SignArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// A review and its result, as it is printed.
#[derive(Debug, Serialize)]
struct SentReview<'a> {
    case_id: &'a CaseId,
    by: &'a AgentId,
    review: &'a Review,
    /// The new debate, for `redebate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<DebateId>,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ReviewArgs) -> Result<u8, Failure> {
    let mut review = args.review()?;
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let (before, _) = load(&source, &args.case).await?;
    let message_id = fresh_id(&broker)?;
    review.signature = args
        .sign
        .read()?
        .map(|key| key.sign_text(&review.signed_text(&args.by, &args.case, &message_id)));
    let message = OutgoingMessage {
        from: &args.by,
        to: Service::Coordinator,
        kind: MessageType::Review,
        priority: Default::default(),
        case: Some(&args.case),
        correlation_id: review.debate_id.as_ref().map(ToString::to_string),
        payload: &review,
        watched: (Aggregate::Case, args.case.token()),
    };
    let receipt = send_under(&broker, message_id, &message, args.wait).await?;
    let failure = receipt.failure(Service::Coordinator);
    if args.json.json {
        let again = reviewed(&receipt)?
            .and_then(|reviewed| reviewed.again)
            .map(|asked| asked.conflict.conflict_id);
        output::json(&SentReview {
            case_id: &args.case,
            by: &args.by,
            review: &review,
            again,
            receipt: &receipt,
        })?;
        return Ok(if failure.is_some() { FOUND } else { 0 });
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let said_before = first_reviews::all(&source, &before).await?;
    let others = first_reviews::about(&said_before, review.debate_id.as_ref());
    let others = others.filter(|one| *one.by != args.by);
    let text = args.text(&receipt, &review, &others.collect::<Vec<_>>())?;
    let instead = match reviewed(&receipt)? {
        Some(reviewed) => instead_of(&before, &reviewed.review),
        None => String::new(),
    };
    output::print(&(text + &replacement(&before, &review) + &instead))?;
    Ok(0)
}

/// What a review that counts displaces, or leaves standing; empty where the provisional decision stood itself.
fn instead_of(before: &CaseState, review: &Review) -> String {
    let debate = review.debate_id.as_ref();
    let outcome = debate.and_then(|debate| before.outcomes.get(debate));
    let Some(beside) = outcome.and_then(|outcome| before.beside(outcome)) else {
        return String::new();
    };
    let now = now_stands(&beside);
    match review.action {
        ReviewAction::Confirm if !beside.if_confirmed => {
            format!("  it changes nothing; what stands is {now}\n")
        }
        ReviewAction::Confirm | ReviewAction::Override => format!("  stood until now: {now}\n"),
        ReviewAction::Redebate | ReviewAction::Pass => String::new(),
    }
}

/// What an override puts in the place of the provisional decision, with the value that is read from its words; empty for other reviews.
fn replacement(before: &CaseState, review: &Review) -> String {
    let mut debated = before.debated.iter();
    let conflict =
        debated.find(|conflict| review.debate_id.as_ref() == Some(&conflict.conflict_id));
    let (Some(opened), Some(conflict), Some(position)) =
        (&before.opened, conflict, &review.position)
    else {
        return String::new();
    };
    let policy = &opened.policy;
    let given = Resolution {
        position: position.clone(),
        value: review.value.clone(),
        supporters: Vec::new(),
    };
    let taken = resolution_text(&valued(conflict, policy, given));
    format!("  in its place: {taken}\n")
}

/// The answer to a review that waits for a second one: it did not agree with those before it.
fn recorded(review: &Review, others: &[&FirstReview<'_>]) -> String {
    let mut text =
        "the review is recorded; it counts when a second reviewer says the same\n".to_owned();
    for other in others {
        text.push_str(&format!("{}\n", other.difference(review)));
    }
    text
}

/// The event of a review of one provisional decision; none where the review led to another event, or to none.
fn reviewed(receipt: &Receipt) -> Result<Option<GateReviewed>, Failure> {
    match &receipt.result {
        SendResult::Recorded(event) if event.name == "gate_reviewed" => event.read().map(Some),
        _ => Ok(None),
    }
}

impl ReviewArgs {
    fn review(&self) -> Result<Review, Failure> {
        let (action, debate_id) = match (&self.confirm, &self.overridden, &self.redebate) {
            (Some(debate), _, _) => (ReviewAction::Confirm, Some(debate)),
            (_, Some(debate), _) => (ReviewAction::Override, Some(debate)),
            (_, _, Some(debate)) => (ReviewAction::Redebate, Some(debate)),
            _ => (ReviewAction::Pass, None),
        };
        let says_why = self.context.is_some() || self.rationale.is_some();
        if action == ReviewAction::Redebate && !says_why {
            return Err(Failure::usage(
                "a debate that is held again needs something new: say it with --context, or why with --rationale",
            ));
        }
        let review = Review {
            gate: self.gate.clone(),
            action,
            debate_id: debate_id.cloned(),
            position: self.position.clone(),
            value: self.value.clone(),
            rationale: self.rationale.clone().unwrap_or_default(),
            context: self.context.clone(),
            digest: self.digest.clone(),
            signature: None,
        };
        review.check().map_err(|fault| unusable(&fault))?;
        Ok(review)
    }

    /// The result in words; `others` have reviewed the same before.
    fn text(
        &self,
        receipt: &Receipt,
        review: &Review,
        others: &[&FirstReview<'_>],
    ) -> Result<String, Failure> {
        if let Some(reviewed) = reviewed(receipt)? {
            let debate = styled(NAMED, &reviewed.debate_id);
            return Ok(match (reviewed.review.action, reviewed.again) {
                (ReviewAction::Override, _) => {
                    format!("the provisional decision of {debate} is overridden\n")
                }
                (_, Some(again)) => format!(
                    "{debate} is debated again as {}; follow it with: concord debate show {}\n",
                    styled(NAMED, &again.conflict.conflict_id),
                    again.conflict.conflict_id
                ),
                _ => format!("the provisional decision of {debate} is final\n"),
            });
        }
        let SendResult::Recorded(event) = &receipt.result else {
            return Ok(format!("the review is sent as {}\n", receipt.message_id));
        };
        if event.name == "review_recorded" {
            return Ok(recorded(review, others));
        }
        let passed: GatePassed = event.read()?;
        let next = match &passed.next {
            Some(next) => format!("the next gate is {next:?}"),
            None => "it was the last".to_owned(),
        };
        let unreviewed = match passed.unreviewed.len() {
            0 => String::new(),
            number => format!(" with {number} unreviewed, as the policy allows"),
        };
        let case = styled(NAMED, &self.case);
        Ok(format!(
            "case {case} has {} the gate {:?}{unreviewed}; {next}\n",
            styled(GOOD, "passed"),
            passed.gate
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ReviewArgs,
    }

    fn parse(arguments: &str) -> Result<ReviewArgs, clap::Error> {
        let given = arguments.split(' ').filter(|word| !word.is_empty());
        Line::try_parse_from(
            ["review", "c-1", "--gate", "g", "--by", "eva"]
                .into_iter()
                .chain(given),
        )
        .map(|line| line.args)
    }

    #[test]
    fn a_review_is_one_action_with_what_it_needs() {
        for (arguments, action) in [
            ("--confirm d-1", ReviewAction::Confirm),
            (
                "--override d-1 --position 105 --value 105 --rationale so",
                ReviewAction::Override,
            ),
            (
                "--override d-1 --position -2% --value -2 --rationale so",
                ReviewAction::Override,
            ),
            ("--redebate d-1 --context new", ReviewAction::Redebate),
            ("--redebate d-1 --rationale thin", ReviewAction::Redebate),
            ("--pass --rationale enough", ReviewAction::Pass),
        ] {
            let review = parse(arguments).unwrap().review().unwrap();
            assert_eq!(
                (review.action, review.debate_id.is_some()),
                (action, action != ReviewAction::Pass)
            );
        }
        for wrong in [
            "",
            "--confirm d-1 --pass",
            "--override d-1",
            "--override d-1 --position 105",
            "--confirm d-1 --position 105",
            "--pass --context new",
            "--confirm d.1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--redebate d-1").unwrap().review().is_err());
    }
}
