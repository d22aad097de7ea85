//! `concord ask`: asks the group, and waits for the one answer that comes of it.

use std::time::Duration;

use clap::Args;
use concord_runtime::{Broker, service::clock};
use concord_wire::payload::{AnswerMode, GroupQuestion};
use concord_wire::{
    AgentId, CaseId, Envelope, Extensions, MessageId, MessageType, Metadata, Priority, Recipient,
};
use futures::{Stream, StreamExt};

use crate::shared::args::{JsonArg, agent_id, case_id, words};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::send::{check_sender, fresh_id, publish};
use crate::shared::stream_reader::StreamMessage;

use asked::{AskResult, Asked};

mod asked;

/// How much longer than the question itself lasts the command waits for the coordinator to say how it ended.
const GRACE: Duration = Duration::from_secs(15);

/// Arguments of `concord ask`.
#[derive(Debug, Args)]
#[command(after_help = "\
The question goes to whoever can help, as a group_query; those whom it wakes are asked. One answer comes back, by --mode:
  confidence       all answer; the answer of the most confident is primary. Who has a track record in --domain is weighed by it
  first_responder  the first answer ends it, and the others are told to stand down
  collaborative    all answer; --synthesiser makes one answer of them
Exit code 1 if nobody answers. `concord wake explain` says who was woken, and how near the others were.

Examples:
  concord ask \"Who bears the value added tax?\" --by eva
  concord --as eva ask \"Is this clause usual?\" --case c-42 --wait 60 --all
  concord ask \"Which indexes does this query need?\" --by eva --mode first_responder --json | jq .answer.primary
  concord ask \"What speaks against the lease?\" --by eva --mode collaborative --synthesiser lead")]
pub(crate) struct AskArgs {
    /// The question.
    #[arg(value_parser = words)]
    question: String,
    /// The case that it is about: only its participants are asked.
    #[arg(long, value_parser = case_id)]
    case: Option<CaseId>,
    /// Who asks; you, where --as says who you are.
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: Option<AgentId>,
    /// How the answers become one.
    #[arg(long, default_value_t = AnswerMode::Confidence, value_parser = mode)]
    mode: AnswerMode,
    /// The agent that makes one answer of all, with --mode collaborative.
    #[arg(long, value_name = "AGENT", value_parser = agent_id)]
    synthesiser: Option<AgentId>,
    /// The domain of the question: how often an agent was right in it weighs its answer.
    #[arg(long, value_parser = words)]
    domain: Option<String>,
    /// How long answers count, in seconds; 0 to ask and wait for nothing.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=3600))]
    wait: u16,
    /// Print every answer, not the primary one alone.
    #[arg(long)]
    all: bool,
    /// Ask for objections: those who hold a position in the conversation are woken, whatever the words.
    #[arg(long)]
    objections: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Reads a mode from the command line.
fn mode(text: &str) -> Result<AnswerMode, String> {
    let found = AnswerMode::ALL.into_iter().find(|one| one.as_str() == text);
    let names = AnswerMode::ALL.map(AnswerMode::as_str);
    found.ok_or_else(|| format!("it is one of {}", names.join(", ")))
}

pub(crate) async fn run(connection: &ConnectionArgs, args: AskArgs) -> Result<u8, Failure> {
    if args.synthesiser.is_some() && args.mode != AnswerMode::Collaborative {
        return Err(Failure::usage("--synthesiser needs --mode collaborative"));
    }
    let broker = connection.connect().await?;
    let by = args.by.as_ref().or(broker.caller.as_ref());
    let by = by.ok_or_else(|| Failure::usage("say who asks: --by PERSON, or --as PERSON"))?;
    check_sender(&broker, by)?;
    let envelope = question(&args, by, fresh_id(&broker)?)?;
    let result = ask(&broker, &envelope, &args).await?;
    let asked = Asked {
        question: envelope.message_id,
        result,
    };
    asked.print(&args.json, args.all)
}

fn question(args: &AskArgs, by: &AgentId, message_id: MessageId) -> Result<Envelope, Failure> {
    let payload = GroupQuestion {
        content: Some(args.question.clone()),
        mode: Some(args.mode),
        synthesiser: args.synthesiser.clone(),
        domain: args.domain.clone(),
        preferred_agents: None,
        asks_for: args.objections.then(|| "objections".to_owned()),
    };
    let unusable = |error| Failure::failed(format!("the message cannot be written: {error}"));
    let now = clock::now();
    Ok(Envelope {
        message_id,
        timestamp: now,
        from_agent: by.clone(),
        to_agent: Recipient::Any,
        message_type: MessageType::GroupQuery,
        case_id: args.case.clone(),
        correlation_id: None,
        reply_to: None,
        round: None,
        priority: Priority::Normal,
        requires_response: true,
        deadline: (args.wait > 0).then(|| now.plus_millis(u64::from(args.wait) * 1_000)),
        payload: serde_json::value::to_raw_value(&payload).map_err(unusable)?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    })
}

/// Publishes the question, and waits until it has ended.
async fn ask(broker: &Broker, envelope: &Envelope, args: &AskArgs) -> Result<AskResult, Failure> {
    if args.wait == 0 {
        publish(broker, envelope).await?;
        return Ok(AskResult::Sent);
    }
    let source = EventSource::new(broker).await?;
    // Listening begins before the question is asked, so that no answer comes too early.
    let mut heard = source.follow_inbox(&envelope.from_agent).await?;
    publish(broker, envelope).await?;
    let patience = Duration::from_secs(u64::from(args.wait)) + GRACE;
    match tokio::time::timeout(patience, end_of(&mut heard, &envelope.message_id)).await {
        Ok(result) => result,
        Err(_) => Ok(AskResult::Unanswered),
    }
}

async fn end_of(
    heard: &mut (impl Stream<Item = Result<StreamMessage, Failure>> + Unpin),
    question: &MessageId,
) -> Result<AskResult, Failure> {
    while let Some(stored) = heard.next().await {
        let stored = stored?;
        if stored.is_by_its_sender()
            && let Some(result) = AskResult::of(&stored.payload, question)?
        {
            return Ok(result);
        }
    }
    Err(Failure::unavailable(
        "the broker has gone; see `concord doctor`",
    ))
}
