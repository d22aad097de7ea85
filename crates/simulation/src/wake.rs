//! Whom messages wake, as the agent adapter decides it, without a model.

use std::sync::LazyLock;

use concord_domain::activation::conversation::{
    DecidedMessage, WakeInput, WakeMachine, conversation_of, thread_of,
};
use concord_domain::activation::{
    Conversation, LoopBounds, Matcher, Message, Parameters, Previous, decide_all,
};
use concord_events::Remembered;
use concord_events::topology::{ConsumerKind, is_given_twice};
use concord_runtime::codec::dialect;
use concord_runtime::delivery::handlers::{self, EffectHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::{Binder, ServiceContext};
use concord_runtime::{Aggregates, Ports};
use concord_wire::Envelope;
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::ports::SimPorts;

/// Loops are broken early here, so that there are some.
const BOUNDS: LoopBounds = LoopBounds {
    depth_max: 4,
    window_ms: 60_000,
    pause_ms: 20_000,
};

/// Everybody's skills.
static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
    let skills = [
        ("ada", "taxes", "Value added tax and customs duties"),
        ("ben", "liability", "Caps on liability and indemnities"),
        (
            "cleo",
            "termination",
            "Notice periods and termination of contracts",
        ),
        ("dan", "payment", "Invoices and terms of payment"),
    ];
    let mut matcher = Matcher::new(Parameters::default());
    for (agent, name, description) in skills {
        let card = json!({ "agent_id": agent, "skills": [{ "name": name, "description": description }], "triggers": [name] });
        if let Ok(card) = serde_json::from_value::<Card>(card) {
            matcher.insert(&card, |_| None);
        }
    }
    matcher
});

/// Decides about every message whom it wakes.
struct Waking {
    context: ServiceContext<SimPorts>,
    conversations: Aggregates<WakeMachine, SimPorts>,
}

/// Binds what is simulated of the agent adapter in this world.
pub(crate) fn bind(context: &ServiceContext<SimPorts>, binder: &mut impl Binder) {
    let waking = Waking {
        context: context.clone(),
        conversations: Aggregates::new(context.ports.clone(), context.work.cached_max),
    };
    binder.handle(ConsumerKind::Wake, waking);
    binder.handle(
        ConsumerKind::Effects(Service::AgentAdapter),
        EffectHandler::<SimPorts, WakeMachine>::new(context),
    );
}

impl Handler for Waking {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let message_type = delivery.subject.rsplit('.').next();
        let sender = self.context.ports.subjects().sender_of(&delivery.subject);
        let is_of_service = sender.is_some_and(|sender| Service::parse(sender.as_str()).is_ok());
        if is_of_service
            || message_type.is_some_and(|kind| is_given_twice(&delivery.consumer, kind))
        {
            return Ok(Ack::Acknowledge);
        }
        let envelope = match dialect::envelope(&self.context, delivery).await {
            Err(HandleError::Refused(_)) => return Ok(Ack::Acknowledge),
            read => read?,
        };
        let id = conversation_of(&envelope);
        let weigh = self.weigh(&envelope, delivery).await?;
        let input = WakeInput::Message(Box::new(weigh));
        let context = &self.context;
        handlers::step_of_message(context, &self.conversations, id, envelope, &input, delivery)
            .await
    }
}

impl Waking {
    async fn weigh(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<DecidedMessage, HandleError> {
        let known = self
            .conversations
            .load(&conversation_of(envelope))
            .await?
            .state;
        let payload: Value = envelope.payload().unwrap_or_default();
        let content = payload
            .get("content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let message = Message {
            message_type: &envelope.message_type,
            from: &envelope.from_agent,
            to: &envelope.to_agent,
            content,
            assigned: None,
            preferred: &[],
            reply_to_author: envelope
                .reply_to
                .as_deref()
                .and_then(|id| known.author_of(id)),
        };
        let participations = known.participations();
        let previous = known.recent.back().map(|said| Previous {
            text: &said.text,
            vector: None,
        });
        let conversation = Conversation {
            previous,
            participations: &participations,
            audience: None,
        };
        Ok(DecidedMessage {
            said: Remembered {
                message_id: envelope.message_id.clone(),
                from: envelope.from_agent.clone(),
                to: envelope.to_agent.clone(),
                message_type: envelope.message_type.as_str().to_owned(),
                at: delivery.stored_at,
                reply_to: envelope.reply_to.clone(),
                text: content.to_owned(),
            },
            case_id: envelope.case_id.clone(),
            message: serde_json::to_value(envelope).unwrap_or(Value::Null),
            decisions: decide_all(&MATCHER, &message, None, &conversation),
            with_model: false,
            thread: thread_of(envelope).to_owned(),
            bounds: Some(BOUNDS),
        })
    }
}
