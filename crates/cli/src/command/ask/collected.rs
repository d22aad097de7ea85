//! The answers to a question to the group: which is the primary one, and who has not answered.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::WakeDecided;
use concord_wire::{AgentId, Envelope, MessageId, MessageType};
use serde::Serialize;
use serde_json::Value;

use crate::shared::output::{FAINT, GOOD, NAMED, count, one_line, styled};

/// Confidence of an answer that states none: neither sure nor unsure.
const CONFIDENCE_UNSTATED: f64 = 0.5;
/// What is said beside an answer, and is none.
const BESIDE: [MessageType; 3] = [
    MessageType::Acknowledgement,
    MessageType::Notification,
    MessageType::Status,
];
/// How many characters of an answer are printed.
const SHOWN_MAX: usize = 400;
/// The fields in which answers are written, in the order in which they are looked for.
const FIELDS: [&str; 7] = [
    "content", "answer", "text", "summary", "response", "result", "message",
];

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) by: AgentId,
    pub(super) message_id: MessageId,
    pub(super) message_type: String,
    /// How sure whoever answers is, 0 to 1; null where it does not say.
    pub(super) confidence: Option<f64>,
    pub(super) payload: Value,
}

impl Answer {
    /// The message, if it answers the question.
    pub(super) fn of(body: &[u8], question: &MessageId) -> Option<Self> {
        let envelope: Envelope = serde_json::from_slice(body).ok()?;
        // The message that is answered is surer than the conversation that it belongs to.
        let answered = envelope
            .reply_to
            .as_deref()
            .or(envelope.correlation_id.as_deref());
        let says_something = !BESIDE.contains(&envelope.message_type);
        (says_something && answered == Some(question.as_str())).then(|| Self {
            confidence: envelope.metadata.confidence,
            payload: envelope.payload().unwrap_or_default(),
            message_type: envelope.message_type.to_string(),
            by: envelope.from_agent,
            message_id: envelope.message_id,
        })
    }

    /// Whether it says that whoever was asked does not answer: it is an error, or declines.
    fn declines(&self) -> bool {
        let accepted = self
            .payload
            .pointer("/result/accepted")
            .or_else(|| self.payload.get("accepted"));
        self.message_type == "error" || accepted == Some(&Value::Bool(false))
    }

    fn sureness(&self) -> f64 {
        self.confidence.unwrap_or(CONFIDENCE_UNSTATED)
    }

    fn text(&self) -> String {
        let said = FIELDS.iter().find_map(|field| self.payload.get(*field));
        match said.unwrap_or(&self.payload) {
            Value::String(text) => one_line(text, SHOWN_MAX),
            other => one_line(&other.to_string(), SHOWN_MAX),
        }
    }
}

/// What came of a question.
#[derive(Debug, Serialize)]
pub(super) struct Collected {
    pub(super) question: MessageId,
    /// Those whom it woke, with the reason; null while that is not known.
    woken: Option<BTreeMap<AgentId, String>>,
    /// The answer to go by: that of the most confident, and the earlier one of two.
    pub(super) primary: Option<Answer>,
    /// The other answers, the most confident first.
    supplementary: Vec<Answer>,
    /// Those who do not answer, and said so.
    declined: Vec<Answer>,
    /// Answers of those whom it has not woken; none of them is the primary one.
    unasked: Vec<Answer>,
    /// Those whom it woke and who have said nothing.
    silent: BTreeSet<AgentId>,
    /// Whether the time was over before all had answered.
    pub(super) is_over: bool,
    #[serde(skip)]
    heard: Vec<Answer>,
}

impl Collected {
    pub(super) fn new(question: MessageId) -> Self {
        Self {
            question,
            woken: None,
            primary: None,
            supplementary: Vec::new(),
            declined: Vec::new(),
            unasked: Vec::new(),
            silent: BTreeSet::new(),
            is_over: false,
            heard: Vec::new(),
        }
    }

    pub(super) fn woken_by(&mut self, decided: &WakeDecided) {
        let woken = decided.woken.iter();
        self.woken = Some(
            woken
                .map(|one| (one.agent_id.clone(), one.reason.clone()))
                .collect(),
        );
    }

    /// Takes an answer; of each agent the first one counts.
    pub(super) fn take(&mut self, answer: Answer) {
        if self.heard.iter().all(|heard| heard.by != answer.by) {
            self.heard.push(answer);
        }
    }

    fn has_woken(&self, agent: &AgentId) -> bool {
        self.woken
            .as_ref()
            .is_some_and(|woken| woken.contains_key(agent))
    }

    /// Whether everyone whom the question woke has answered or declined; with `first`, whether one of them has answered.
    pub(super) fn is_complete(&self, first: bool) -> bool {
        let Some(woken) = &self.woken else {
            return false;
        };
        let has_answered = |answer: &Answer| self.has_woken(&answer.by) && !answer.declines();
        let is_silent = |agent: &AgentId| self.heard.iter().all(|answer| answer.by != *agent);
        (first && self.heard.iter().any(has_answered)) || !woken.keys().any(is_silent)
    }

    /// Sorts what was heard. Where it is not known who was woken, because the adapter does not run, all count.
    pub(super) fn settle(&mut self) {
        let heard = std::mem::take(&mut self.heard);
        let silent = |agent: &&AgentId| heard.iter().all(|answer| answer.by != **agent);
        let woken = self.woken.iter().flat_map(BTreeMap::keys);
        self.silent = woken.filter(silent).cloned().collect();
        let is_known = self.woken.is_some();
        let (asked, unasked): (Vec<Answer>, Vec<Answer>) = heard
            .into_iter()
            .partition(|answer| !is_known || self.has_woken(&answer.by));
        self.unasked = unasked;
        let (declined, mut answers): (Vec<Answer>, Vec<Answer>) =
            asked.into_iter().partition(Answer::declines);
        self.declined = declined;
        // A stable sort: of two that are equally sure, the earlier one.
        answers.sort_by(|a, b| b.sureness().total_cmp(&a.sureness()));
        let mut answers = answers.into_iter();
        self.primary = answers.next();
        self.supplementary = answers.collect();
    }

    /// For a reader.
    pub(super) fn text(&self) -> String {
        let asked = styled(FAINT, format!("asked as {}", self.question));
        let woken = self.woken.as_ref().map_or_else(
            || "it is not known whom it woke".to_owned(),
            |woken| format!("{} woken", count(woken.len() as u64, "agent")),
        );
        let mut text = format!("{asked}; {woken}\n");
        let mut line = |what: &str, answer: &Answer| {
            let sure = answer
                .confidence
                .map_or_else(String::new, |confidence| format!(" ({confidence:.2})"));
            let by = styled(NAMED, &answer.by);
            text.push_str(&format!("{what} {by}{sure}: {}\n", answer.text()));
        };
        if let Some(primary) = &self.primary {
            line(&styled(GOOD, "primary"), primary);
        }
        for (what, answers) in [
            ("supplementary", &self.supplementary),
            ("declined", &self.declined),
            ("not asked", &self.unasked),
        ] {
            answers.iter().for_each(|answer| line(what, answer));
        }
        if !self.silent.is_empty() {
            let names: Vec<&str> = self.silent.iter().map(AgentId::as_str).collect();
            text.push_str(&format!("silent {}\n", names.join(", ")));
        }
        if self.primary.is_none() {
            text.push_str("nobody has answered; see `concord wake explain`\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    fn question() -> MessageId {
        MessageId::new("m-1").unwrap()
    }

    fn body(by: &str, kind: &str, payload: &Value, confidence: Option<f64>) -> Value {
        json!({
            "message_id": format!("a-{by}-{kind}"), "timestamp": "2026-11-21T20:00:00Z", "from_agent": by, "to_agent": "eva",
            "message_type": kind, "payload": payload, "reply_to": "m-1",
            "metadata": { "version": "1.0", "confidence": confidence },
        })
    }

    /// What is collected of these answers, where these agents were woken.
    fn collected(
        woken: Option<&[&str]>,
        answers: &[(&str, &str, Value, Option<f64>)],
    ) -> Collected {
        let mut collected = Collected::new(question());
        collected.woken = woken.map(|woken| {
            woken
                .iter()
                .map(|agent| (id(agent), "mention".to_owned()))
                .collect()
        });
        for (by, kind, payload, confidence) in answers {
            let body = body(by, kind, payload, *confidence).to_string();
            if let Some(answer) = Answer::of(body.as_bytes(), &question()) {
                collected.take(answer);
            }
        }
        collected
    }

    fn names(answers: &[Answer]) -> Vec<&str> {
        answers.iter().map(|answer| answer.by.as_str()).collect()
    }

    #[test]
    fn the_most_confident_is_primary_and_every_answer_has_its_place() {
        let yes = json!({ "content": "Yes." });
        let no = json!({ "status": "failure", "result": { "accepted": false } });
        let mut found = collected(
            Some(&["ann", "ben", "cleo", "dan", "fay"]),
            &[
                ("eve", "response", yes.clone(), Some(1.0)),
                ("ann", "acknowledgement", json!({}), None),
                ("ann", "task_result", yes.clone(), Some(0.78)),
                ("ben", "info_update", yes.clone(), Some(0.95)),
                (
                    "ben",
                    "info_update",
                    json!({ "content": "Or no." }),
                    Some(1.0),
                ),
                ("cleo", "response", yes.clone(), None),
                ("dan", "response", no, Some(0.99)),
            ],
        );
        assert!(!found.is_complete(false) && found.is_complete(true));
        found.settle();
        assert_eq!(
            found.primary.as_ref().map(|one| one.by.as_str()),
            Some("ben")
        );
        assert_eq!(names(&found.supplementary), ["ann", "cleo"]);
        assert_eq!(
            (names(&found.declined), names(&found.unasked)),
            (vec!["dan"], vec!["eve"])
        );
        assert_eq!(found.silent, [id("fay")].into());
        let text = anstream::adapter::strip_str(&found.text()).to_string();
        for line in [
            "ben (0.95): Yes.",
            "supplementary",
            "not asked",
            "silent fay",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn it_ends_when_all_who_were_woken_have_answered() {
        let yes = json!({ "content": "Yes." });
        let both = [
            ("ann", "response", yes.clone(), None),
            ("ben", "response", yes.clone(), None),
        ];
        assert!(collected(Some(&["ann", "ben"]), &both).is_complete(false));
        assert!(
            collected(Some(&[]), &[]).is_complete(false),
            "nobody is waited for"
        );
        assert!(
            !collected(None, &both).is_complete(true),
            "who was woken is not known yet"
        );
        let error = ("ann", "error", json!({ "error_code": "TIMEOUT" }), None);
        let failed = collected(Some(&["ann"]), &[error]);
        assert!(failed.is_complete(false));
        // The earlier of two that are equally sure; and all count where it is not known who was woken.
        let mut unknown = collected(None, &both);
        unknown.settle();
        assert_eq!(unknown.primary.map(|one| one.by), Some(id("ann")));
    }

    #[test]
    fn only_what_answers_the_question_is_taken() {
        let mut other = body("ann", "response", &json!({}), None);
        other["reply_to"] = json!("m-2");
        other["correlation_id"] = json!("m-1");
        assert_eq!(Answer::of(other.to_string().as_bytes(), &question()), None);
        other["reply_to"] = Value::Null;
        assert!(Answer::of(other.to_string().as_bytes(), &question()).is_some());
        assert_eq!(Answer::of(b"text", &question()), None);
    }
}
