//! Answers to a question of the group that are told to everybody. They name the message that they answer, and not who asked: that is known from
//! the conversation, which the agent adapter keeps.

use concord_domain::activation::conversation::{WakeMachine, conversation};
use concord_domain::aggregates::question::may_be;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler, RetryPolicy};
use concord_runtime::service::ServiceContext;
use concord_runtime::service::settings::WorkSettings;
use concord_runtime::{Aggregates, Ports};
use concord_wire::payload::Remembered;
use concord_wire::subject::{Service, Subject};
use concord_wire::{Envelope, MessageType, Recipient, Token};

use crate::exchange::Exchange;
use crate::questions::{AWAITED, Questions};
use crate::route::question::ANSWERING;

/// Hears what answers a question and is told to everybody; anything else is for what hears the exchange between agents.
pub(crate) struct Published<P> {
    service: ServiceContext<P>,
    questions: Questions<P>,
    /// The agent adapter's: they are only read.
    conversations: Aggregates<WakeMachine, P>,
    exchange: Exchange<P>,
}

impl<P: Ports> Published<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        questions: &Questions<P>,
        exchange: Exchange<P>,
    ) -> Self {
        Self {
            service: service.clone(),
            questions: questions.clone(),
            conversations: Aggregates::new(service.ports.clone(), &service.cache),
            exchange,
        }
    }

    /// The message that this one answers, where the conversation still has it.
    async fn answered(&self, envelope: &Envelope) -> Result<Option<Remembered>, HandleError> {
        let Some(answered) = &envelope.reply_to else {
            return Ok(None);
        };
        let threads = [Some(answered), envelope.correlation_id.as_ref()];
        let case = envelope.case_id.as_ref();
        // A case has one conversation, whatever the thread.
        let threads = threads
            .into_iter()
            .flatten()
            .take(if case.is_some() { 1 } else { 2 });
        for thread in threads {
            let known = self.conversations.load(&conversation(case, thread)).await?;
            let mut recent = known.state.recent.iter();
            let found = recent.find(|one| one.message_id.as_str() == answered);
            if let Some(found) = found {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }
}

impl<P: Ports> Handler for Published<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let subject = self.service.ports.subjects().parse(&delivery.subject).ok();
        if !subject.is_some_and(|subject| may_answer(&subject)) {
            return self.exchange.handle(delivery).await;
        }
        let mut envelope = delivery.read(&self.service).await?;
        if envelope.reply_to.is_none() {
            self.service.count_ignored("answers_nothing");
            return Ok(Ack::Acknowledge);
        }
        let answered = match self.answered(&envelope).await? {
            None => self.questions.waking(&envelope).await?,
            found => found,
        };
        let is_no_question = answered.as_ref().is_some_and(|one| !is_to_group(one));
        if !is_no_question && let Some(question) = answered {
            envelope.to_agent = Recipient::Agent(question.from);
            envelope.reply_to = Some(question.message_id.to_string());
            if let Some(done) = self.questions.answered(&envelope, delivery).await? {
                return Ok(done);
            }
        }
        if is_no_question || !self.questions.may_be_early(delivery) {
            self.service.count_ignored("answers_no_question");
            return Ok(Ack::Acknowledge);
        }
        Ok(Ack::Later(Delivery::AGAIN))
    }

    fn patience(&self, work: &WorkSettings) -> RetryPolicy {
        patience(work)
    }
}

/// Few tries are over sooner than an answer has waited for its question, and it would be a dead letter. No failure is given up before
/// twice that time.
fn patience(work: &WorkSettings) -> RetryPolicy {
    let usual = RetryPolicy::of(work);
    RetryPolicy {
        age_min: usual.age_min.max(AWAITED * 2),
        ..usual
    }
}

/// Whether an agent tells everybody something that may answer a question.
fn may_answer(subject: &Subject) -> bool {
    let Subject::Message { from, to, kind, .. } = subject else {
        return false;
    };
    *to == Recipient::All
        && Service::parse(from.as_str()).is_err()
        && ANSWERING.iter().any(|one| one.as_str() == kind.as_str())
}

/// Whether what was said may have been a question to the group.
fn is_to_group(said: &Remembered) -> bool {
    let kind = Token::new(&said.message_type).map(MessageType::from);
    !matches!(said.to, Recipient::Agent(_)) && kind.is_ok_and(|kind| may_be(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_waits_for_its_question_however_few_tries_there_are() {
        for deliveries_max in 1..=20 {
            let policy = patience(&WorkSettings {
                deliveries_max,
                ..WorkSettings::default()
            });
            let waits = AWAITED.as_millis() / Delivery::AGAIN.as_millis();
            // The last of them comes when it is not awaited any more.
            for waited in 0..=u32::try_from(waits).unwrap() {
                let is_over = policy.is_over(u64::from(waited), Delivery::AGAIN * waited);
                assert!(!is_over, "{waited} of {deliveries_max}");
            }
            assert!(policy.is_over(deliveries_max, policy.age_min));
        }
    }
}
