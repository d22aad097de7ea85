//! `concord ask`: asks the group, and collects the answers of those whom the question wakes.

use std::time::Duration;

use clap::Args;
use concord_domain::activation::conversation::conversation_of;
use concord_events::{Aggregate, WakeDecided, WakeEvent};
use concord_runtime::{Broker, service::clock};
use concord_wire::{
    AgentId, CaseId, Envelope, Extensions, MessageId, MessageType, Metadata, Priority, Recipient,
};
use futures::{Stream, StreamExt};
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, case_id, words};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::{self, EventQuery, EventSource, either};
use crate::shared::failure::{FOUND, Failure};
use crate::shared::send::{check_sender, fresh_id, publish};
use crate::shared::stream_reader::StreamMessage;

use collected::{Answer, Collected};

mod collected;

/// Arguments of `concord ask`.
#[derive(Debug, Args)]
#[command(after_help = "\
The question goes to whoever can help, as a group_query. The command ends when everyone whom it has woken has answered, or when the
time is over. The most confident answer is the primary one, the others are supplementary; exit code 1 if there is none.

Examples:
  concord ask \"Who bears the value added tax?\" --by eva
  concord --as eva ask \"Is this clause usual?\" --case c-42 --wait 60
  concord ask \"Which indexes does this query need?\" --by eva --first --json | jq .primary")]
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
    /// How long answers are waited for, in seconds; 0 to ask and wait for nothing.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=3600))]
    wait: u16,
    /// End with the first answer.
    #[arg(long)]
    first: bool,
    /// Ask for objections: those who hold a position in the conversation are woken, whatever the words.
    #[arg(long)]
    objections: bool,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: AskArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let by = args.by.as_ref().or(broker.caller.as_ref());
    let by = by.ok_or_else(|| Failure::usage("say who asks: --by PERSON, or --as PERSON"))?;
    check_sender(&broker, by)?;
    let envelope = question(&args, by, fresh_id(&broker)?)?;
    let collected = ask(&broker, &envelope, &args).await?;
    args.json.print(&collected, Collected::text)?;
    Ok(if collected.primary.is_some() || args.wait == 0 {
        0
    } else {
        FOUND
    })
}

fn question(args: &AskArgs, by: &AgentId, message_id: MessageId) -> Result<Envelope, Failure> {
    let mut payload = json!({ "content": args.question });
    if args.objections {
        payload = json!({ "content": args.question, "asks_for": "objections" });
    }
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

/// Publishes the question, and collects what comes of it until it is answered or the time is over.
async fn ask(broker: &Broker, envelope: &Envelope, args: &AskArgs) -> Result<Collected, Failure> {
    let mut collected = Collected::new(envelope.message_id.clone());
    if args.wait == 0 {
        publish(broker, envelope).await?;
        return Ok(collected);
    }
    let source = EventSource::new(broker).await?;
    let decisions = EventQuery::of(Aggregate::Wake, &conversation_of(envelope));
    // Listening begins before the question is asked, so that no answer comes too early.
    let decided = match source.follow_new(&decisions).await {
        Ok(decided) => decided,
        // Few may read decisions. Whoever may not collects what is said.
        Err(_) if broker.caller.is_some() => futures::stream::pending().boxed(),
        Err(failure) => return Err(failure),
    };
    let heard = source.follow_inbox(&envelope.from_agent).await?;
    publish(broker, envelope).await?;
    let mut arriving = either(decided, heard);
    let wait = Duration::from_secs(u64::from(args.wait));
    let collecting = collect(&mut arriving, &mut collected, args.first);
    match tokio::time::timeout(wait, collecting).await {
        Ok(result) => result?,
        Err(_) => collected.is_over = true,
    }
    collected.settle();
    Ok(collected)
}

async fn collect(
    arriving: &mut (impl Stream<Item = (bool, Result<StreamMessage, Failure>)> + Unpin),
    collected: &mut Collected,
    first: bool,
) -> Result<(), Failure> {
    while !collected.is_complete(first) {
        let Some((is_event, stored)) = arriving.next().await else {
            return Err(Failure::unavailable(
                "the broker has gone; see `concord doctor`",
            ));
        };
        let stored = stored?;
        if is_event {
            if let Some(decided) = decision_of(&stored, &collected.question) {
                collected.woken_by(&decided);
            }
        } else if let Some(answer) = Answer::of(&stored.payload, &collected.question) {
            collected.take(answer);
        }
    }
    Ok(())
}

/// The decision about this message, if the event is that.
fn decision_of(stored: &StreamMessage, message: &MessageId) -> Option<WakeDecided> {
    let record = event_source::event_of::<WakeEvent>(stored).ok()?;
    match record.event {
        WakeEvent::Decided(decided) if decided.said.message_id == *message => Some(decided),
        _ => None,
    }
}
