//! Requests of agents to agents, and what they and questions to the group are answered: each ends in one answer or one error, whoever is killed.
//!
//! The agents speak with each other directly. The coordinator hears them, and speaks up when nobody answers.

use std::sync::Arc;

use concord_domain::aggregates::request::admissibility::refusal_of;
use concord_domain::aggregates::request::{
    Refusal, Reply, RequestInput, RequestMachine, id_of, is_asked,
};
use concord_events::topology::{EXCHANGED, StreamKind};
use concord_events::{HeardAnswer, RequestOpened};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory, Ports, delivery::handlers};
use concord_wire::payload::AgentStatus;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Envelope, ErrorCode, Fault, MessageType, Recipient, Token};

use crate::questions::Questions;
use crate::route::exchange::{
    RequestPosition, answer_input, is_between_agents, read_answer, read_request, refusal_by_card,
};
use crate::route::question::ANSWERING;

/// Hears what agents ask each other for.
pub(crate) struct Exchange<P> {
    service: ServiceContext<P>,
    requests: Arc<Aggregates<RequestMachine, P>>,
    questions: Questions<P>,
    directory: Arc<Directory>,
}

impl<P: Ports> Exchange<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        requests: &Arc<Aggregates<RequestMachine, P>>,
        questions: &Questions<P>,
        directory: &Arc<Directory>,
    ) -> Self {
        Self {
            service: service.clone(),
            requests: Arc::clone(requests),
            questions: questions.clone(),
            directory: Arc::clone(directory),
        }
    }
}

impl<P: Ports> Handler for Exchange<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        // What a service says or is told is its own affair, and most of what there is: it is not even read.
        let subject = self.service.ports.subjects().parse(&delivery.subject).ok();
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
        handlers::step_of_message(
            &self.service,
            &self.requests,
            id,
            envelope,
            &input,
            delivery,
        )
        .await
    }
}

impl<P: Ports> Exchange<P> {
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

/// An answer that is stored and was not handled when the request ran out of time.
pub(crate) async fn find_unread_answer<P: Ports>(
    ports: &P,
    opened: &RequestOpened,
) -> Result<Option<HeardAnswer>, HandleError> {
    let answers = EXCHANGED.iter().filter(|kind| {
        !matches!(
            kind,
            MessageType::Request | MessageType::Acknowledgement | MessageType::TaskResult
        )
    });
    let from: Option<&AgentId> = match &opened.to {
        Recipient::Agent(agent) => Some(agent),
        Recipient::Any | Recipient::All => None,
    };
    let id = id_of(&opened.from, opened.request_id.as_str());
    let answer = |envelope: &Envelope, stored_at| match read_answer(envelope, stored_at) {
        Ok(Some((of, Reply::Answer(answer)))) => Some(answer)
            .filter(|answer| of == id && answer.at <= opened.due && is_asked(opened, &answer.by)),
        _ => None,
    };
    for kind in answers {
        for lane in Lane::ALL {
            let filter = ports
                .subjects()
                .between(lane, from, &opened.from, &kind.token());
            // Of the other lane only its own sequences are known, and there is little on it between two agents.
            let own_lane = opened.urgent == (lane == Lane::Urgent);
            let first = if own_lane { opened.sequence } else { 1 };
            if let Some(answer) = ports.find_message(lane, &filter, first, answer).await? {
                return Ok(Some(answer));
            }
        }
    }
    Ok(None)
}
