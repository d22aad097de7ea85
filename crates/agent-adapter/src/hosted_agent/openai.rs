//! An agent that is a model behind an OpenAI-compatible API: a message becomes a prompt, and the reply a message of a type
//! that is an answer to what was asked.

use std::time::Duration;

use bytes::Bytes;
use concord_domain::resilience::call_policy::Trouble;
use concord_domain::text;
use concord_outbound::HeaderMap;
use concord_runtime::Trace;
use concord_wire::payload::Task;
use concord_wire::{Envelope, ErrorCode, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::hosted_agent::call_policy::{Call, Guard};
use crate::hosted_agent::endpoint::Endpoint;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::spans::Turn;
use crate::settings::prompts::PromptTemplates;
use crate::settings::{EndpointConfig, OpenAiAgent};

mod parse;
pub(crate) mod prompt;

pub(crate) use parse::{Form, Said};
use prompt::Prompts;

/// Bytes of a reply that are shown to the model again when it must mend it.
const SHOWN_MAX: usize = 8_192;
/// Bytes a token, for what is not counted yet.
const BYTES_PER_TOKEN: usize = 4;

/// A model.
pub(crate) struct Model {
    endpoint: Endpoint,
    prompts: Prompts,
    settings: OpenAiAgent,
}

/// What the API answers, as far as it matters.
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
    pub(crate) fn new(
        settings: OpenAiAgent,
        endpoint: EndpointConfig,
        templates: PromptTemplates,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(endpoint),
            prompts: Prompts::new(templates),
            settings,
        }
    }

    /// Has the model answer; a reply that is not what was asked for is asked for once more.
    pub(crate) async fn ask(
        &self,
        (guard, turn): (&Guard, &Turn),
        asked: &Envelope,
        task: Option<&Task>,
        id: &MessageId,
        until: Instant,
    ) -> Result<Said, Failure> {
        let prompt = self.prompts.of(asked, task);
        let max_tokens = prompt.max_tokens.map_or(self.settings.max_tokens, |most| {
            most.min(self.settings.max_tokens)
        });
        let mut messages = vec![
            json!({ "role": "system", "content": prompt.system }),
            json!({ "role": "user", "content": prompt.user }),
        ];
        let first = self
            .complete((guard, turn), &messages, max_tokens, id.as_str(), until)
            .await?;
        let wrong = match parse::read(&first, asked) {
            Ok(said) => return Ok(said),
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
        let second = self
            .complete(
                (guard, turn),
                &messages,
                max_tokens,
                &format!("{id}-again"),
                until,
            )
            .await?;
        parse::read(&second, asked).map_err(|_| {
            let why = "the model's reply could not be used, nor that to a second asking: it is not the JSON that was asked for";
            Failure::here(ErrorCode::InternalError, why)
        })
    }

    /// One completion: the words of the first choice.
    async fn complete(
        &self,
        (guard, turn): (&Guard, &Turn),
        messages: &[Value],
        max_tokens: u32,
        idempotency_key: &str,
        until: Instant,
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
        guard
            .run(
                tokens,
                until,
                &Complete {
                    endpoint: &self.endpoint,
                    body,
                    idempotency_key,
                },
                turn,
            )
            .await
    }
}

/// One completion on its way.
struct Complete<'a> {
    endpoint: &'a Endpoint,
    body: Bytes,
    idempotency_key: &'a str,
}

impl Call for Complete<'_> {
    type Value = String;

    async fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> Result<(String, Option<u64>), Failure> {
        let further = (HeaderMap::new(), trace);
        let response = self
            .endpoint
            .post(self.body.clone(), self.idempotency_key, further, within)
            .await?;
        read_completion(&response.body)
    }
}

/// The words of the first choice, and the tokens used. What is no completion at all says that the server is not what it
/// should be; words that are not what was asked for do not.
fn read_completion(body: &[u8]) -> Result<(String, Option<u64>), Failure> {
    let failed = |why: &str| Failure::of(Trouble::Garbage, false, why);
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
        Some("content_filter") => Err(Failure::here(
            ErrorCode::InternalError,
            "the server kept the reply back",
        )),
        _ => Ok((words, used)),
    }
}
