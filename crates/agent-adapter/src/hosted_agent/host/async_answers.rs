//! Answers that an agent posts later, and answers that were published before.

use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_runtime::Ports;
use concord_runtime::codec::message_lookup::SearchStart;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::ports::Search;
use concord_wire::payload::notification::is_progress;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, ErrorCode, MessageType, Timestamp};

use super::Host;
use super::answer::{Answer, AnswerError, Asked};
use crate::hosted_agent::agent_caller::AgentCaller;
use crate::hosted_agent::callback::token::AnswerTarget;
use crate::hosted_agent::callback::{AnswerWait, Posted};
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::inbox::is_of_case;
use crate::hosted_agent::spans::AnswerSpan;
use crate::hosted_agent::timing::timeout;

/// How long the broker certainly knows an answer by its id, in milliseconds: it remembers ids for two minutes.
const REMEMBERED_MS: u64 = 100_000;

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// Says that a request with a callback has arrived.
    pub(super) fn acknowledgement(&self, incoming: &Envelope) -> Result<Envelope, HandleError> {
        let empty = serde_json::value::to_raw_value(&serde_json::json!({}))?;
        let now = self.context.ports.now();
        let kind = MessageType::Acknowledgement;
        Ok(incoming.reply(&self.agent.agent_id, now, kind, empty))
    }

    /// The address to which the answer to a message can be posted later. None where agents cannot answer later.
    pub(super) fn callback_url(
        &self,
        incoming: &Envelope,
        span: &AnswerSpan,
        asked: Asked,
    ) -> Option<String> {
        let address = &self.async_answers.as_ref()?.address;
        let until = address.until(self.context.ports.now(), incoming.deadline);
        let trace = span.context().map(|trace| trace.parent.clone());
        Some(address.url(&AnswerTarget {
            trace,
            is_news: asked == Asked::News,
            ..AnswerTarget::of(incoming, &self.agent.agent_id, until)
        }))
    }

    /// Begins to listen for the agent's answer. To be called before the agent is: it may answer before it has said that it
    /// will.
    pub(super) fn listen_for_answer(&self, incoming: &Envelope) -> Option<AnswerWait> {
        let answers = self.async_answers.as_ref()?;
        let message = incoming.message_id.as_str();
        Some(answers.pending.wait(&self.agent.agent_id, message))
    }

    /// Waits for an answer that the agent has promised, through whichever replica it comes.
    pub(super) async fn wait_for_posted(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
        wait: Option<AnswerWait>,
    ) -> Result<Answer, AnswerError> {
        let (Some(answers), Some(wait)) = (&self.async_answers, wait) else {
            let why = "it will answer later (status 202), and service.callback.listen is not set";
            return Err(Failure::local(ErrorCode::InternalError, why).into());
        };
        let Ok(_permit) = answers.permits.try_acquire() else {
            let why = format!(
                "{} answers that come later are waited for already",
                self.agent.queue_max
            );
            let failure = Failure::local(ErrorCode::CapacityExceeded, why);
            return Err(self.not_posted(failure, "later_full"));
        };
        let ports = &self.context.ports;
        let now = ports.now();
        let until = answers.address.until(now, incoming.deadline);
        let time = Duration::from_millis(until.millis_since(now));
        match timeout(ports, time, wait.arrived()).await {
            Some(Posted::Published) => return Ok(Answer::Posted),
            Some(Posted::Nothing) => return Ok(Answer::Nothing),
            // It may have come while this replica was cut off from the broker.
            None if self
                .has_answered(incoming, delivery, Answered::Anyhow)
                .await? =>
            {
                return Ok(Answer::Posted);
            }
            None => {}
        }
        let why = "the answer that it promised (status 202) did not come";
        let failure = Failure::local(ErrorCode::Timeout, why);
        Err(self.not_posted(failure, "later_missing"))
    }

    /// The failure of an agent that has taken a message and will not have answered it. The call itself is counted as `answered`.
    fn not_posted(&self, failure: Failure, outcome: &'static str) -> AnswerError {
        self.policy.count(outcome);
        failure.with_outcome(outcome).into()
    }

    /// Whether a message has been answered before, by whichever replica. One that was killed may have had an answer already, or have been
    /// promised one that has come since; and what an operator has handed out again counts as delivered for the first time.
    pub(super) async fn was_answered_before(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        let age_ms = self.context.ports.now().millis_since(delivery.stored_at);
        let answered = match delivery.deliveries {
            2.. => Answered::Anyhow,
            _ if age_ms > self.context.work.ack_wait_ms && is_of_case(incoming) => Answered::Usably,
            _ => return Ok(false),
        };
        let was = self.has_answered(incoming, delivery, answered).await?;
        if was {
            self.context.count_ignored("answered_before");
        }
        Ok(was)
    }

    /// Whether a message whose answering began at this time may have been answered by another replica, and has been. One that was frozen or
    /// cut off meanwhile has lost the message to another; the broker takes what it says then for a repetition only while it remembers.
    pub(super) async fn was_answered_since(
        &self,
        began: Timestamp,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        if !may_be_forgotten(began, self.context.ports.now()) {
            return Ok(false);
        }
        let was = self
            .has_answered(incoming, delivery, Answered::Since(began))
            .await?;
        if was {
            self.context.count_ignored("answered_before");
        }
        Ok(was)
    }

    /// Whether the agent's answer to a message is stored, whichever replica published it.
    async fn has_answered(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
        answered: Answered,
    ) -> Result<bool, HandleError> {
        let ports = &self.context.ports;
        let id = incoming.message_id.as_str();
        let answers = |message: &Envelope, at: Timestamp| {
            let counts = match answered {
                Answered::Anyhow => true,
                Answered::Usably => message.message_type != MessageType::Error,
                Answered::Since(began) => at >= began,
            };
            let is_answer =
                message.message_type != MessageType::Acknowledgement && !is_progress(message);
            (counts && is_answer && message.reply_to.as_deref() == Some(id)).then_some(())
        };
        for lane in Lane::ALL {
            let subjects = ports.subjects();
            let (case, agent) = (incoming.case_id.as_ref(), &self.agent.agent_id);
            let filter = subjects.messages_between(lane, case, agent, &incoming.from_agent);
            let is_own = delivery.stream == ports.layout().stream_name(StreamKind::of_lane(lane));
            let start = SearchStart::since_message(is_own, delivery.sequence, delivery.stored_at);
            let search = Search::new(lane, &filter, start);
            let found = ports.find_message(search, answers).await?;
            if found.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the broker may by now have forgotten the id of an answer that was published after this time.
fn may_be_forgotten(began: Timestamp, now: Timestamp) -> bool {
    now.millis_since(began) > REMEMBERED_MS
}

/// What counts as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// Also an error, which says why there is none.
    Anyhow,
    /// Who is asked again may have an answer now.
    Usably,
    /// Also an error, where it was stored since then. What was said before is known to whoever had it answered again.
    Since(Timestamp),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_looked_for_before_the_broker_has_forgotten_its_id() {
        let began = Timestamp::from_unix_millis(1_700_000_000_000);
        assert!(!may_be_forgotten(began, began.plus_millis(REMEMBERED_MS)));
        assert!(may_be_forgotten(
            began,
            began.plus_millis(REMEMBERED_MS + 1)
        ));
        // A clock that was set back has measured nothing.
        assert!(!may_be_forgotten(began.plus_millis(1), began));
    }
}
