//! An agent that is a model behind an OpenAI-compatible API: a message becomes a prompt, and the reply a message of a type
//! that is an answer to what was asked.

use std::time::Duration;

use bytes::Bytes;
use concord_domain::resilience::call_policy::CallFailure;
use concord_domain::text;
use concord_runtime::Trace;
use concord_runtime::ports::Clock;
use concord_wire::payload::Task;
use concord_wire::{Dialect, Envelope, ErrorCode, MessageId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hosted_agent::agent_caller::{AgentCall, AgentCaller};
use crate::hosted_agent::call_policy::{Call, CallPolicy};
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::spans::AnswerSpan;
use crate::settings::OpenAiAgent;
use crate::settings::prompts::PromptTemplates;

mod parse;
pub(crate) mod prompt;

pub(crate) use parse::{AnswerForm, ModelAnswer};
use prompt::Prompts;

/// Bytes of a reply that are shown to the model again when it must mend it.
const SHOWN_MAX: usize = 8_192;
/// Bytes a token, for what is not counted yet.
const BYTES_PER_TOKEN: usize = 4;

/// A model: its settings and its prompts. The server is called through the port.
pub struct Model {
    prompts: Prompts,
    settings: OpenAiAgent,
}

/// One message for a model.
pub(crate) struct ModelCall<'a, P: Clock, C> {
    pub(crate) caller: &'a C,
    pub(crate) policy: &'a CallPolicy<P>,
    pub(crate) span: &'a AnswerSpan,
    /// The message to answer.
    pub(crate) incoming: &'a Envelope,
    /// The task of the message's case.
    pub(crate) task: Option<&'a Task>,
    /// The id of the answer, which is the same whenever the message is sent.
    pub(crate) id: &'a MessageId,
    pub(crate) until: Timestamp,
}

/// The fields of a chat completion that matter.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Reply,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl Model {
    pub(crate) fn new(settings: OpenAiAgent, templates: PromptTemplates) -> Self {
        Self {
            prompts: Prompts::new(templates),
            settings,
        }
    }

    /// Has the model answer. A reply of the wrong form is asked for once more.
    pub(crate) async fn ask<P: Clock, C: AgentCaller>(
        &self,
        call: ModelCall<'_, P, C>,
    ) -> Result<ModelAnswer, Failure> {
        let prompt = self.prompts.of(call.incoming, call.task);
        let max_tokens = prompt.max_tokens.map_or(self.settings.max_tokens, |most| {
            most.min(self.settings.max_tokens)
        });
        let mut messages = vec![
            json!({ "role": "system", "content": prompt.system }),
            json!({ "role": "user", "content": prompt.user }),
        ];
        let first = self
            .complete(&call, &messages, max_tokens, call.id.as_str())
            .await?;
        let wrong = match parse::parse_reply(&first, call.incoming) {
            Ok(answer) => return Ok(answer),
            Err(wrong) => wrong,
        };
        // What is wrong may repeat what the model was sent, or what a server between adds: only the model is told.
        tracing::info!("A model's reply could not be used; it is asked once more.");
        messages
            .push(json!({ "role": "assistant", "content": text::beginning(&first, SHOWN_MAX) }));
        let mend = format!(
            "Your reply cannot be used: {wrong}\nReply again, with one JSON object and nothing else."
        );
        messages.push(json!({ "role": "user", "content": mend }));
        let again = format!("{}-again", call.id);
        let second = self.complete(&call, &messages, max_tokens, &again).await?;
        parse::parse_reply(&second, call.incoming).map_err(|_| {
            let why = "the model's reply could not be used, nor that to a second asking: it is not the JSON that was asked for";
            Failure::local(ErrorCode::InternalError, why)
        })
    }

    /// Makes one completion and returns the text of its first choice.
    async fn complete<P: Clock, C: AgentCaller>(
        &self,
        call: &ModelCall<'_, P, C>,
        messages: &[Value],
        max_tokens: u32,
        idempotency_key: &str,
    ) -> Result<String, Failure> {
        let mut request = json!({ "model": self.settings.model, "messages": messages });
        if let Some(fields) = request.as_object_mut() {
            fields.insert(self.settings.max_tokens_field.clone(), json!(max_tokens));
            if let Some(temperature) = self.settings.temperature {
                fields.insert("temperature".into(), json!(temperature));
            }
            if self.settings.json_object {
                fields.insert("response_format".into(), json!({ "type": "json_object" }));
            }
        }
        let body = Bytes::from(request.to_string());
        let tokens = u64::try_from(body.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
        let tokens = tokens.saturating_add(max_tokens.into());
        let completion = CompletionCall {
            caller: call.caller,
            body,
            idempotency_key,
        };
        call.policy
            .run(tokens, call.until, &completion, call.span)
            .await
    }
}

/// One request for a completion.
struct CompletionCall<'a, C> {
    caller: &'a C,
    body: Bytes,
    idempotency_key: &'a str,
}

impl<C: AgentCaller> Call for CompletionCall<'_, C> {
    type Value = String;

    async fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> Result<(String, Option<u64>), Failure> {
        let call = AgentCall {
            body: self.body.clone(),
            idempotency_key: self.idempotency_key,
            dialect: Dialect::Concord,
            callback_url: None,
            trace,
            within,
            is_usable: &|_| true,
        };
        read_completion(&self.caller.call(call).await?.body)
    }
}

/// The text of the first choice, and the tokens used. A body that is no completion is a failure of the server; a text of the
/// wrong form is not.
fn read_completion(body: &[u8]) -> Result<(String, Option<u64>), Failure> {
    let failed = |why: &str| Failure::of_call(CallFailure::Garbage, false, why);
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|_| failed("the server's answer is no chat completion"))?;
    let choice = completion
        .choices
        .into_iter()
        .next()
        .ok_or_else(|| failed("the chat completion has no choice"))?;
    let used = completion.usage.and_then(|usage| usage.total_tokens);
    let words = choice.message.content.unwrap_or_default();
    match choice.finish_reason.as_deref() {
        // Told to the model, which can be shorter.
        Some("length") => Ok((String::new(), used)),
        Some("content_filter") => Err(Failure::local(
            ErrorCode::InternalError,
            "the server kept the reply back",
        )),
        _ => Ok((words, used)),
    }
}
