//! Parses a model's reply into an answer: only of a type that answers the message, and only if it is valid as that type.

use concord_wire::envelope::from_json;
use concord_wire::payload::{
    Answer, Clarification, Evidence, Finding, Question, ResponseStatus, result_of,
};
use concord_wire::{Envelope, Fault, MessageType};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::prompt::question;
use crate::hosted_agent::answer_type;
use crate::hosted_agent::task_answer::{self, TaskAnswer};

/// A model's reply as an answer of the right type.
#[derive(Debug)]
pub(crate) struct ModelAnswer {
    pub(crate) message_type: MessageType,
    pub(crate) payload: Box<RawValue>,
    pub(crate) confidence: Option<f64>,
}

/// Parses a reply. The error is a sentence for the model.
pub(super) fn parse_reply(text: &str, incoming: &Envelope) -> Result<ModelAnswer, String> {
    let fields = object(text)?;
    let (mut fields, mut named) = unwrapped(fields);
    let form = AnswerForm::of(incoming);
    let has_own_form = !matches!(form, AnswerForm::OfTask(_) | AnswerForm::Response);
    if has_own_form && let Some(result) = result_in(&fields) {
        fields = result;
        named = named.filter(|named| *named != MessageType::Response.as_str());
    }
    let confidence = fields.get("confidence").and_then(Value::as_f64);
    if confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        return Err("\"confidence\" is a number from 0 to 1.".into());
    }
    let (message_type, payload) = match form {
        AnswerForm::InDebate(question) => in_debate(&fields, &question)?,
        AnswerForm::Clarification => {
            let text = fields
                .get("text")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let text = text.unwrap_or_else(|| Value::Object(fields.clone()).to_string());
            let clarification = Clarification { text };
            clarification.check().map_err(|fault| describe(&fault))?;
            (MessageType::Clarification, to_raw_value(&clarification))
        }
        AnswerForm::Finding => {
            fields.remove("confidence");
            let finding = read(fields, Finding::read)?;
            (MessageType::Finding, to_raw_value(&finding))
        }
        AnswerForm::Evidence => {
            let evidence: Evidence = typed(fields)?;
            evidence.check().map_err(|fault| describe(&fault))?;
            (MessageType::Evidence, to_raw_value(&evidence))
        }
        AnswerForm::OfTask(asked) => {
            let (kind, payload) = asked
                .answer(fields, confidence)
                .map_err(|fault| describe(&fault))?;
            task_answer::check_result(incoming, &payload).map_err(|fault| describe(&fault))?;
            (kind, Ok(payload))
        }
        AnswerForm::Response => (MessageType::Response, to_raw_value(&response(fields))),
    };
    if let Some(named) = named
        .filter(|named| *named != message_type.as_str() && !is_answer_in_debate(incoming, named))
    {
        return Err(format!("\"message_type\" is {named:?}; leave it out."));
    }
    let payload = payload.map_err(|error| format!("It cannot be written: {error}."))?;
    Ok(ModelAnswer {
        message_type,
        payload,
        confidence,
    })
}

/// The kind of answer that a message asks for.
pub(crate) enum AnswerForm {
    /// An agreement, a disagreement or a revision.
    InDebate(Box<Question>),
    Clarification,
    Finding,
    Evidence,
    /// A result or a bid for a task that a strategy hands out.
    OfTask(TaskAnswer),
    Response,
}

impl AnswerForm {
    pub(crate) fn of(incoming: &Envelope) -> Self {
        if let Some(asked) = TaskAnswer::of(incoming) {
            return Self::OfTask(asked);
        }
        match incoming.message_type {
            MessageType::Question => question(incoming).map_or(Self::Clarification, |question| {
                Self::InDebate(Box::new(question))
            }),
            MessageType::TaskAssignment => Self::Finding,
            MessageType::Challenge => Self::Evidence,
            MessageType::Request if is_mediation(incoming) => Self::Evidence,
            _ => Self::Response,
        }
    }
}

/// A mediator gives its opinion as evidence.
fn is_mediation(incoming: &Envelope) -> bool {
    let payload: Value = serde_json::from_str(incoming.payload.get()).unwrap_or_default();
    payload.get("action").and_then(Value::as_str) == Some(concord_wire::payload::MEDIATE)
}

type Typed = (MessageType, serde_json::Result<Box<RawValue>>);

fn in_debate(fields: &Map<String, Value>, question: &Question) -> Result<Typed, String> {
    let answer = answer(fields)?;
    let most = usize::try_from(question.limits.max_tokens).unwrap_or(usize::MAX);
    if answer.estimated_tokens() > most {
        return Err(format!("It is longer than {most} tokens."));
    }
    let own = question.your_position.position.trim();
    let changed = answer
        .revised_position
        .as_deref()
        .is_some_and(|text| text.trim() != own);
    Ok((
        answer_type::in_debate(answer.agrees_with_peer, changed),
        to_raw_value(&answer),
    ))
}

fn describe(fault: &Fault) -> String {
    format!("At {}: {} {}", fault.pointer, fault.message, fault.advice)
}

/// Whether `named` is a type of answer in a debate. Which of the three it is follows from the content.
fn is_answer_in_debate(incoming: &Envelope, named: &str) -> bool {
    incoming.message_type == MessageType::Question
        && ["agreement", "disagreement", "revision"].contains(&named)
}

/// Reads the text as one JSON object, with or without the fence that many models put around code.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("It is empty or was cut off; be shorter.".into());
    }
    let fenced = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"));
    let text = fenced
        .and_then(|text| text.strip_suffix("```"))
        .map_or(text, str::trim);
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("It is JSON, but no object.".into()),
        Err(error) => Err(format!("It is not one JSON object ({error}).")),
    }
}

/// Unwraps a whole message to its payload: a model that has seen the protocol may write one.
fn unwrapped(fields: Map<String, Value>) -> (Map<String, Value>, Option<String>) {
    let named = fields
        .get("message_type")
        .and_then(Value::as_str)
        .map(str::to_owned);
    match (named, fields.get("payload")) {
        (Some(named), Some(Value::Object(payload))) => {
            let mut payload = payload.clone();
            if let Some(confidence) = fields
                .get("metadata")
                .and_then(|metadata| metadata.get("confidence"))
            {
                payload
                    .entry("confidence")
                    .or_insert_with(|| confidence.clone());
            }
            (payload, Some(named))
        }
        (named, _) => (fields, named),
    }
}

/// What a reply with the form of a response has as its result, which specification 5 has there, with the confidence that is stated beside it.
fn result_in(fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut fields = fields.clone();
    let confidence = fields.remove("confidence");
    let result = result_of(&to_raw_value(&fields).ok()?)?;
    let mut result: Map<String, Value> = serde_json::from_str(result.get()).ok()?;
    if let Some(confidence) = confidence {
        result.entry("confidence").or_insert(confidence);
    }
    Some(result)
}

fn answer(fields: &Map<String, Value>) -> Result<Answer, String> {
    let mut fields = fields.clone();
    // Models fill in what the form shows, also where there is nothing to say.
    for name in ["agrees_with", "revised_position"] {
        if fields.get(name).is_some_and(|value| {
            value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
        }) {
            fields.remove(name);
        }
    }
    if !["revised_position", "agrees_with_peer", "value"]
        .iter()
        .any(|name| fields.contains_key(*name))
    {
        return Err("It lacks \"agrees_with_peer\" and \"revised_position\".".into());
    }
    read(fields, Answer::read)
}

/// The payload of a response: the reply itself where it is one, else the reply as the result of a successful response.
fn response(mut fields: Map<String, Value>) -> Value {
    let texts = |value: Option<Value>| {
        value.filter(|value| serde_json::from_value::<Vec<String>>(value.clone()).is_ok())
    };
    match task_answer::status(&fields) {
        Some(status) => {
            let (errors, warnings) = (
                texts(fields.remove("errors")),
                texts(fields.remove("warnings")),
            );
            json!({
                "status": status,
                "result": fields.remove("result").unwrap_or_default(),
                "errors": errors.unwrap_or_else(|| json!([])),
                "warnings": warnings.unwrap_or_else(|| json!([])),
            })
        }
        None => {
            fields.remove("confidence");
            json!({ "status": ResponseStatus::Success, "result": fields, "errors": [], "warnings": [] })
        }
    }
}

/// What `read` makes of a payload with these fields.
fn read<T>(
    fields: Map<String, Value>,
    read: impl FnOnce(&RawValue) -> Result<T, Fault>,
) -> Result<T, String> {
    let payload = to_raw_value(&fields).map_err(|error| error.to_string())?;
    read(&payload).map_err(|fault| describe(&fault))
}

fn typed<T: serde::de::DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    let bytes = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
    from_json(&bytes, "").map_err(|fault| format!("At {}: {}", fault.pointer, fault.message))
}

#[cfg(test)]
mod tests;
