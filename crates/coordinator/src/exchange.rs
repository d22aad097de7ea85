//! Requests of agents to agents, and what they and questions to the group are answered: each ends in one answer or one error, whoever is killed.
//!
//! The agents speak with each other directly. The coordinator hears them, and speaks up when nobody answers. It also hears whoever alerts
//! everybody without asking it.

use std::sync::Arc;

use concord_domain::aggregates::request::admissibility::refusal_of;
use concord_domain::aggregates::request::{
    Refusal, Reply, RequestInput, RequestMachine, id_of, is_asked,
};
use concord_events::topology::{EXCHANGED, StreamKind};
use concord_events::{HeardAnswer, RequestOpened};
use concord_runtime::codec::message_lookup::SearchStart;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::ports::Search;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory, Ports, delivery::handlers};
use concord_wire::payload::AgentStatus;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{
    AgentId, Envelope, ErrorCode, Fault, MessageType, Priority, Recipient, Timestamp, Token,
};

use crate::questions::Questions;
use crate::route::exchange::{
    RequestPosition, answer_input, is_between_agents, read_answer, read_request, refusal_by_card,
};
use crate::route::question::ANSWERING;
use crate::route::shared;
use crate::shared::Shared;
use crate::silence::Silence;

/// How long before an answer the request may be that it answers, in milliseconds, where the one that is looked at was stored after it.
const ASKED_BEFORE_MS: i64 = 600_000;

/// Hears what agents ask each other for.
pub(crate) struct Exchange<P> {
    service: ServiceContext<P>,
    requests: Arc<Aggregates<RequestMachine, P>>,
    questions: Questions<P>,
    shared: Shared<P>,
    directory: Arc<Directory>,
    silence: Silence<P>,
}

impl<P: Ports> Exchange<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        requests: &Arc<Aggregates<RequestMachine, P>>,
        (questions, shared): (&Questions<P>, &Shared<P>),
        directory: &Arc<Directory>,
        silence: &Silence<P>,
    ) -> Self {
        Self {
            service: service.clone(),
            requests: Arc::clone(requests),
            questions: questions.clone(),
            shared: shared.clone(),
            directory: Arc::clone(directory),
            silence: silence.clone(),
        }
    }
}

impl<P: Ports> Handler for Exchange<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        // What a service says or is told is its own affair, and most of what there is: it is not even read.
        let subject = self.service.ports.subjects().parse(&delivery.subject).ok();
        if subject.as_ref().is_some_and(is_alert_of_agent) {
            return self.alerted(delivery).await;
        }
        if !subject.is_some_and(|subject| is_between_agents(&subject)) {
            self.service.count_ignored("not_between_agents");
            return Ok(Ack::Acknowledge);
        }
        let envelope = delivery.read(&self.service).await?;
        let input = match &envelope.message_type {
            MessageType::Request => Some(self.ask(&envelope, delivery)?),
            _ => answer_input(&envelope, delivery.stored_at)?,
        };
        let is_of_request = match &input {
            // Most answers are to requests, which this process has in memory.
            Some((id, RequestInput::Reply(_))) if ANSWERING.contains(&envelope.message_type) => {
                let known = self.requests.load_up_to(id, 1).await?;
                known.state.opened.is_some()
            }
            Some(_) => true,
            None => false,
        };
        if !is_of_request && let Some(done) = self.questions.answered(&envelope, delivery).await? {
            return Ok(done);
        }
        let Some((id, input)) = input else {
            self.service.count_ignored("answers_no_request");
            return Ok(Ack::Acknowledge);
        };
        let (service, requests, request) = (&self.service, &self.requests, id.clone());
        let done =
            handlers::step_of_message(service, requests, id, envelope, &input, delivery).await?;
        self.silence.heard_late(requests, &request, &input).await?;
        Ok(done)
    }
}

impl<P: Ports> Exchange<P> {
    /// An urgent alert to everybody, or to somebody else than the coordinator.
    async fn alerted(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let envelope = delivery.read(&self.service).await?;
        if envelope.priority != Priority::SystemCritical {
            self.service.count_ignored("alert_of_lower_priority");
            return Ok(Ack::Acknowledge);
        }
        if envelope.to_agent != Recipient::All {
            return Err(Fault::invalid(
                "/to_agent",
                format!(
                    "An alert of the priority system_critical is for everybody, and this one is for {}.",
                    envelope.to_agent
                ),
                "Send it to the coordinator, or to _all; or at priority critical to whom it concerns.",
            )
            .into());
        }
        let Some(input) = shared::from_message(&envelope, self.shared.bounds)? else {
            return Ok(Ack::Acknowledge);
        };
        self.shared.take(input, envelope, delivery).await
    }

    fn ask(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<(Token, RequestInput), Fault> {
        let urgent = delivery.stream == self.service.ports.layout().stream_name(StreamKind::Urgent);
        let position = RequestPosition {
            sequence: delivery.sequence,
            urgent,
            at: delivery.stored_at,
        };
        let (opened, refusal) = read_request(envelope, &position)?;
        let over_limit = delivery.over_limit.as_deref().cloned().map(refusal_of);
        let refusal = match over_limit.or(refusal) {
            None => self.refused_by(&opened.to, envelope)?,
            refusal => refusal,
        };
        let id = id_of(&opened.from, opened.request_id.as_str());
        Ok((
            id,
            RequestInput::Ask {
                opened: Box::new(opened),
                refusal,
            },
        ))
    }

    /// Why an agent will not do what it is asked for, as far as is known: by its card, or because it is unavailable. Who is
    /// not registered may be there nevertheless.
    fn refused_by(&self, to: &Recipient, envelope: &Envelope) -> Result<Option<Refusal>, Fault> {
        let Recipient::Agent(agent) = to else {
            return Ok(None);
        };
        let Some(known) = self.directory.agent(agent) else {
            return Ok(None);
        };
        if let Some(card) = &known.card
            && let Some(refusal) = refusal_by_card(card, envelope)?
        {
            return Ok(Some(refusal));
        }
        Ok((known.status == AgentStatus::Unavailable).then(|| Refusal {
            code: ErrorCode::AgentUnavailable,
            pointer: "/to_agent".into(),
            why: format!(
                "{agent} is unavailable: {}",
                if known.why.is_empty() {
                    "it says so."
                } else {
                    &known.why
                }
            ),
            suggestion: "Ask another agent (`concord agents`), or ask again when it is back."
                .into(),
        }))
    }
}

/// Whether it is an alert that an agent or a person has sent to anybody but a service.
fn is_alert_of_agent(subject: &Subject) -> bool {
    let Subject::Message { from, to, kind, .. } = subject else {
        return false;
    };
    let is_service = |name: &str| Service::parse(name).is_ok();
    kind.as_str() == MessageType::Alert.as_str()
        && !is_service(from.as_str())
        && !is_service(to.as_str())
}

/// An answer that is stored and was not handled when the request ran out of time, or that names the request by a
/// `correlation_id` of its own.
pub(crate) async fn find_unread_answer<P: Ports>(
    ports: &P,
    opened: &RequestOpened,
) -> Result<Option<HeardAnswer>, HandleError> {
    let named = opened.request_id.as_str();
    if let Some(answer) = find_answer(ports, opened, named, |_, _| true).await? {
        return Ok(Some(answer));
    }
    let Recipient::Agent(asked) = &opened.to else {
        return Ok(None);
    };
    let lane = if opened.urgent {
        Lane::Urgent
    } else {
        Lane::Normal
    };
    // Only here: it would cost a search for each answer, and most name the request itself.
    let kind = MessageType::Request.token();
    let requests = ports
        .subjects()
        .between(lane, Some(&opened.from), asked, &kind);
    let itself = SearchStart::Sequence(opened.sequence);
    let stored = ports
        .next_message(lane, &requests, itself)
        .await?
        .filter(|stored| stored.sequence == opened.sequence);
    let request = stored.and_then(|stored| stored.envelope);
    let Some(correlation) = request.and_then(|request| request.correlation_id) else {
        return Ok(None);
    };
    let first_asked = async |since, until| {
        let asked = |one: &Envelope, at| {
            let has_it = at <= until && one.correlation_id.as_ref() == Some(&correlation);
            has_it.then(|| one.message_id.clone())
        };
        let since = Search::new(lane, &requests, since);
        ports.find_message(since, asked).await
    };
    let is_before = |at, its_lane| its_lane != lane && at <= opened.asked_at;
    let after = |at, its_lane| !is_before(at, its_lane);
    if let Some(answer) = find_answer(ports, opened, &correlation, after).await? {
        // Of several requests that have it, the last before the answer is meant.
        let later = SearchStart::Sequence(opened.sequence + 1);
        if first_asked(later, answer.at).await?.is_none() {
            return Ok(Some(answer));
        }
    }
    // Whoever subscribes without a stream hears a request before it is stored, so the other lane may store an answer before this one has stored
    // what it answers. Where no request is before such an answer, the first is meant.
    let Some(answer) = find_answer(ports, opened, &correlation, is_before).await? else {
        return Ok(None);
    };
    let since = answer.at.unix_millis().saturating_sub(ASKED_BEFORE_MS);
    let since = SearchStart::Time(Timestamp::from_unix_millis(since));
    let first = first_asked(since, opened.asked_at).await?;
    Ok(first
        .is_some_and(|first| first == opened.request_id)
        .then_some(answer))
}

/// The first answer of who was asked that names this, in time and stored at a time and on a lane that is wanted.
async fn find_answer<P: Ports>(
    ports: &P,
    opened: &RequestOpened,
    named: &str,
    is_wanted: impl Fn(Timestamp, Lane) -> bool + Send + Sync,
) -> Result<Option<HeardAnswer>, HandleError> {
    let answers = EXCHANGED
        .iter()
        .filter(|kind| !matches!(kind, MessageType::Request | MessageType::Acknowledgement));
    let from: Option<&AgentId> = match &opened.to {
        Recipient::Agent(agent) => Some(agent),
        Recipient::Any | Recipient::All => None,
    };
    let id = id_of(&opened.from, named);
    for kind in answers {
        for lane in Lane::ALL {
            let filter = ports
                .subjects()
                .between(lane, from, &opened.from, &kind.token());
            let is_own = opened.urgent == (lane == Lane::Urgent);
            let start = SearchStart::since_message(is_own, opened.sequence, opened.asked_at);
            let search = Search::new(lane, &filter, start);
            let answer = |envelope: &Envelope, stored_at| match read_answer(envelope, stored_at) {
                Ok(Some((of, Reply::Answer(answer)))) => Some(answer)
                    .filter(|answer| of == id && is_asked(opened, &answer.by))
                    .filter(|answer| answer.at <= opened.due && is_wanted(answer.at, lane)),
                _ => None,
            };
            if let Some(answer) = ports.find_message(search, answer).await? {
                return Ok(Some(answer));
            }
        }
    }
    Ok(None)
}
