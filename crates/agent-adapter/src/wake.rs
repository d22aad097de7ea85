//! Waking: for every message that may concern others than whom it is addressed to, whom it wakes, who observes it and whom
//! it does not concern is decided once, recorded, and told to those who wake.
//!
//! One matcher knows every card, since what decides is the lead of one agent over the next. It follows the directory; a
//! model computes beside the runtime's threads. What is decided is a fact of the message's conversation, and the facts
//! before it are the context that an agent is given when it wakes.

use std::collections::BTreeSet;
use std::sync::Arc;

use concord_domain::activation::conversation::{
    REMEMBERED_BYTES_MAX, WakeInput, WakeMachine, Weigh, conversation_of, thread_of,
};
use concord_domain::activation::{Conversation, Decisions, LoopBounds, Message, decide_all};
use concord_events::Remembered;
use concord_events::topology::{ConsumerKind, is_second_delivery};
use concord_runtime::delivery::handlers::{self, EffectHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::event_store::nats::NatsEventStore;
use concord_runtime::service::ServiceContext;
use concord_runtime::service::metrics::WakeLabels;
use concord_runtime::{Directory, codec::dialect};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Envelope};
use serde_json::Value;

use crate::AnyError;
use crate::case_cache::Cases;
use crate::reply_loops::Conversations;

mod matching;
pub(crate) mod settings;
mod text;

use matching::Matching;
use settings::WakeSettings;

/// What is known elsewhere.
pub(crate) struct Known {
    pub(crate) directory: Arc<Directory>,
    pub(crate) conversations: Conversations,
    pub(crate) cases: Arc<Cases>,
    pub(crate) bounds: Option<LoopBounds>,
}

/// Begins to decide.
pub(crate) async fn start(
    shell: &ServiceContext,
    settings: &WakeSettings,
    known: Known,
) -> Result<(), AnyError> {
    let Known {
        directory,
        conversations,
        cases,
        bounds,
    } = known;
    let ledger = NatsEventStore::new(shell.broker.clone()).await?;
    shell.consume(
        ConsumerKind::Effects(Service::AgentAdapter),
        EffectHandler::<WakeMachine>::new(shell, ledger),
    );
    let matching = Matching::open(settings)?;
    let known = Matching::follow(&matching, shell, &directory);
    let ears = Ears {
        shell: shell.clone(),
        enabled: settings.enabled,
        matching,
        conversations,
        cases,
        bounds,
    };
    let shell = shell.clone();
    shell.clone().spawn(async move {
        // Who is not known yet would neither wake nor be what others have to lead over, and what is decided stays so.
        if known.await.is_ok() {
            shell.consume(ConsumerKind::Wake, ears);
        }
    });
    Ok(())
}

/// Hears what may concern somebody.
struct Ears {
    shell: ServiceContext,
    enabled: bool,
    matching: Arc<Matching>,
    conversations: Conversations,
    cases: Arc<Cases>,
    bounds: Option<LoopBounds>,
}

impl Handler for Ears {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        if !self.enabled {
            self.shell.count_ignored("waking_is_off");
            return Ok(Ack::Acknowledge);
        }
        // What a service says is no news to anybody whom it does not address, and is not even read.
        let (subjects, message_type) = (
            self.shell.broker.subjects(),
            delivery.subject.rsplit('.').next(),
        );
        let is_of_service = subjects
            .sender_of(&delivery.subject)
            .is_some_and(|sender| Service::parse(sender.as_str()).is_ok());
        if is_of_service
            || message_type.is_some_and(|kind| is_second_delivery(&delivery.consumer, kind))
        {
            self.shell.count_ignored("nobody_to_wake");
            return Ok(Ack::Acknowledge);
        }
        // What somebody garbled is answered by whom it is addressed to, if by anyone.
        let envelope = match dialect::envelope(&self.shell, delivery).await {
            Ok(envelope) => envelope,
            Err(failed @ HandleError::Failed(_)) => return Err(failed),
            Err(_) => {
                self.shell.count_ignored("unreadable");
                return Ok(Ack::Acknowledge);
            }
        };
        let id = conversation_of(&envelope);
        let input = WakeInput::Weigh(Box::new(self.weigh(&envelope, delivery).await?));
        handlers::step_of_message(
            &self.shell,
            &self.conversations,
            id,
            envelope,
            &input,
            delivery,
        )
        .await
    }
}

impl Ears {
    async fn weigh(&self, envelope: &Envelope, delivery: &Delivery) -> Result<Weigh, HandleError> {
        let known = self
            .conversations
            .load(&conversation_of(envelope))
            .await?
            .state;
        let audience = self.audience(envelope.case_id.as_ref()).await?;
        let said = text::of(envelope);
        let preferred = text::preferred(envelope);
        let message = Message {
            message_type: &envelope.message_type,
            from: &envelope.from_agent,
            to: &envelope.to_agent,
            content: &said,
            assigned: None,
            preferred: &preferred,
            reply_to_author: envelope
                .reply_to
                .as_deref()
                .and_then(|id| known.author_of(id)),
        };
        let previous = known.recent.back().map(|said| said.text.clone());
        let vectors = self.matching.vectors(&message, previous.clone()).await;
        self.matching.report(&self.shell);
        let participations = known.participations();
        let (decisions, with_model) = self.matching.read(|matcher| {
            let conversation = Conversation {
                previous: previous.as_deref().map(|text| vectors.previous(text)),
                participations: &participations,
                audience: audience.as_ref(),
            };
            (
                decide_all(matcher, &message, vectors.message(), &conversation),
                vectors.message().is_some(),
            )
        });
        self.count(&decisions);
        Ok(Weigh {
            said: remembered(envelope, delivery, &said),
            case_id: envelope.case_id.clone(),
            message: serde_json::to_value(envelope).unwrap_or(Value::Null),
            decisions,
            with_model,
            thread: envelope
                .case_id
                .as_ref()
                .map_or_else(|| thread_of(envelope), |case| case.as_str())
                .to_owned(),
            bounds: self.bounds,
        })
    }

    /// Who hears what is said in a case: its participants. Outside a case everyone does.
    async fn audience(
        &self,
        case: Option<&CaseId>,
    ) -> Result<Option<BTreeSet<AgentId>>, HandleError> {
        let Some(case) = case else { return Ok(None) };
        Ok(self
            .cases
            .of(case)
            .await?
            .map(|opened| opened.participants.iter().cloned().collect()))
    }

    fn count(&self, decisions: &Decisions) {
        for decision in decisions.decisions.values() {
            let outcome = match decision.outcome {
                concord_domain::activation::Outcome::Wake => "wake",
                concord_domain::activation::Outcome::Observe => "observe",
                concord_domain::activation::Outcome::Ignore => "ignore",
            };
            let labels = WakeLabels {
                outcome,
                reason: decision.reason.kind(),
            };
            self.shell.metrics.wakes.get_or_create(&labels).inc();
        }
    }
}

fn remembered(envelope: &Envelope, delivery: &Delivery, text: &str) -> Remembered {
    Remembered {
        message_id: envelope.message_id.clone(),
        from: envelope.from_agent.clone(),
        to: envelope.to_agent.clone(),
        message_type: envelope.message_type.as_str().to_owned(),
        at: delivery.stored_at,
        reply_to: envelope.reply_to.clone(),
        text: concord_domain::text::beginning(text, REMEMBERED_BYTES_MAX).to_owned(),
    }
}
