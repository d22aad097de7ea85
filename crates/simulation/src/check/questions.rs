//! Questions to the group: each ends once, whoever asked is told once by the coordinator, and the answers that count are those of
//! agents that were asked, one of each, stored in time.

use std::collections::{BTreeMap, BTreeSet};

use concord_coordinator::route::question::read_answer;
use concord_domain::aggregates::question::{ANSWERS, id_of};
use concord_events::{QuestionEvent, QuestionOpened, QuestionOutcome, StoredEvent, WakeEvent};
use concord_wire::payload::{ErrorReport, GivenAnswer};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, MessageType, Timestamp, Token};

use super::archive::{Archive, Histories};
use crate::world::instant;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let questions = archive.histories::<QuestionEvent>();
    for record in archive.wakes.values().flatten() {
        if let WakeEvent::Decided(decided) = &record.event
            && decided.question.is_some()
            && !questions.contains_key(&id_of(&decided.said.from, decided.said.message_id.as_str()))
        {
            let id = &decided.said.message_id;
            violations.push(format!("question: {id} was not opened"));
        }
    }
    let told = told(archive);
    for (id, records) in &questions {
        let ends = records.iter().filter_map(|record| record.event.end());
        let opened = records.iter().filter_map(|record| match &record.event {
            QuestionEvent::Opened(opened) => Some(opened),
            _ => None,
        });
        let (ends, opened) = (ends.count(), opened.collect::<Vec<_>>());
        if ends != opened.len() {
            violations.push(format!(
                "question: {id} was opened {} times and has {ends} ends",
                opened.len()
            ));
        }
        for opened in &opened {
            // Senders use an id again, in this case or another: what is refused is named by its place in the stream.
            let asked = (opened.case_id.as_ref(), opened.message_id.as_str());
            let key = (&opened.asker, asked);
            let of_question = told.get(&key).into_iter().flatten();
            let of_question =
                of_question.filter(|place| place.is_none_or(|it| it == opened.terms.sequence));
            let times = of_question.count();
            if times != 1 {
                let asker = &opened.asker;
                violations.push(format!(
                    "question: {asker} was told {times} times how {id} ended"
                ));
            }
        }
        if let [opened] = opened.as_slice() {
            answers(archive, id, opened, records, violations);
        }
    }
}

/// How many questions have ended, and how many of them with an answer.
pub(super) fn counts(archive: &Archive) -> (u64, u64) {
    let questions: Histories<QuestionEvent> = archive.histories();
    let ends: Vec<_> = questions
        .values()
        .flatten()
        .filter_map(|record| record.event.end())
        .collect();
    let is_answered = |outcome: &QuestionOutcome| matches!(outcome, QuestionOutcome::Answered(_));
    let answered = ends.iter().filter(|end| is_answered(&end.outcome)).count();
    (ends.len() as u64, answered as u64)
}

/// Who has sent a message, the case that it belongs to, and its id.
type Sent<'a> = (&'a AgentId, (Option<&'a CaseId>, &'a str));

/// What the coordinator has told somebody of how a message of theirs ended: for each time the sequence of the message, where it was refused.
fn told(archive: &Archive) -> BTreeMap<Sent<'_>, Vec<Option<u64>>> {
    let mut told = BTreeMap::<_, Vec<_>>::new();
    let coordinator = Service::Coordinator.agent_id();
    let mut seen = BTreeSet::new();
    for message in &archive.messages {
        let Some(envelope) = &message.envelope else {
            continue;
        };
        let (kind, id) = (&envelope.message_type, &envelope.message_id);
        let ends = matches!(kind, MessageType::Response | MessageType::Error);
        // Publishing again changes nothing: the same id is one message for whoever reads it.
        if !ends || envelope.from_agent != coordinator || !seen.insert(id) {
            continue;
        }
        if let (concord_wire::Recipient::Agent(to), Some(asked)) =
            (&envelope.to_agent, &envelope.reply_to)
        {
            let report = envelope.payload::<ErrorReport>().ok();
            let refused = report.and_then(|report| report.details.get("sequence")?.as_u64());
            let asked = (envelope.case_id.as_ref(), asked.as_str());
            let ends = told.entry((to, asked)).or_default();
            ends.push(refused);
        }
    }
    told
}

fn answers(
    archive: &Archive,
    id: &Token,
    opened: &QuestionOpened,
    records: &[StoredEvent<QuestionEvent>],
    violations: &mut Vec<String>,
) {
    let mut counted: BTreeSet<&AgentId> = BTreeSet::new();
    for answer in records.iter().flat_map(counted_in) {
        let by = &answer.by;
        if !opened.asked.iter().any(|asked| asked.agent == *by) {
            violations.push(format!("question: {by} answers {id} and was not asked"));
        }
        if answer.at > opened.answers_due {
            violations.push(format!(
                "question: an answer of {by} to {id} counts that came late"
            ));
        }
        if !counted.insert(by) {
            violations.push(format!("question: {by} answers {id} twice"));
        }
    }
    let is_over = |record: &&StoredEvent<QuestionEvent>| matches!(&record.event, QuestionEvent::Elapsed(elapsed) if elapsed.name.as_str() == ANSWERS);
    let elapsed = records.iter().find(is_over);
    let Some(elapsed) = elapsed else { return };
    let until = archive.stored_at.get(&elapsed.sequence).copied();
    for silent in opened
        .asked
        .iter()
        .filter(|asked| !counted.contains(&asked.agent))
    {
        if answered_in_time(archive, id, opened, &silent.agent, until) {
            let agent = &silent.agent;
            violations.push(format!(
                "question: {agent} answered {id} in time and does not count"
            ));
        }
    }
}

fn counted_in(record: &StoredEvent<QuestionEvent>) -> &[GivenAnswer] {
    match &record.event {
        QuestionEvent::Opened(_) | QuestionEvent::Synthesised(_) => &[],
        QuestionEvent::Answered(answered) => std::slice::from_ref(&answered.answer),
        QuestionEvent::Elapsed(elapsed) => &elapsed.answers,
    }
}

/// Whether an answer was stored in time, by an agent that was waited for when the time was over.
fn answered_in_time(
    archive: &Archive,
    id: &Token,
    opened: &QuestionOpened,
    by: &AgentId,
    until: Option<u64>,
) -> bool {
    let mut messages = archive.messages.iter();
    messages.any(|message| {
        let at: Timestamp = instant(message.at);
        let is_before = until.is_none_or(|until| message.at < until);
        let is_after = message.sequence > opened.terms.sequence;
        let read = message
            .envelope
            .as_ref()
            .and_then(|one| read_answer(one, at));
        let is_of = |(of, answer): (Token, GivenAnswer)| of == *id && answer.by == *by;
        is_before && is_after && at <= opened.answers_due && read.is_some_and(is_of)
    })
}
