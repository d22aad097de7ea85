//! Whom messages wake, as the agent adapter decides it, without a model.

use std::sync::LazyLock;

use concord_domain::Context;
use concord_domain::activation::conversation::{WakeInput, Weigh, conversation_of, thread_of};
use concord_domain::activation::{
    Conversation, LoopBounds, Matcher, Message, Parameters, Previous, decide_all,
};
use concord_events::Remembered;
use concord_events::topology::is_second_delivery;
use concord_runtime::Routed;
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use concord_wire::{Envelope, dialect};
use serde_json::{Value, json};

use crate::process::{Delivery, HandleError, Process, step};

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

impl Process {
    /// A message that may concern others than whom it is addressed to.
    pub(crate) async fn wake(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let Ok(subject) = self.connection.subjects().parse(&delivery.subject) else {
            return Ok(());
        };
        let Ok((envelope, _)) = dialect::read(&delivery.body, None, &subject) else {
            return Ok(());
        };
        if Service::parse(envelope.from_agent.as_str()).is_ok()
            || is_second_delivery(&delivery.name, envelope.message_type.as_str())
        {
            return Ok(());
        }
        let id = conversation_of(&envelope);
        let input = WakeInput::Weigh(Box::new(self.weigh(&envelope, delivery).await?));
        let context = Context::of_message(self.connection.now(), envelope.message_id);
        step(&self.conversations, &context, Routed::Step { id, input }).await
    }

    async fn weigh(&self, envelope: &Envelope, delivery: &Delivery) -> Result<Weigh, HandleError> {
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
        Ok(Weigh {
            said: Remembered {
                message_id: envelope.message_id.clone(),
                from: envelope.from_agent.clone(),
                to: envelope.to_agent.clone(),
                message_type: envelope.message_type.as_str().to_owned(),
                at: self.stored_at(delivery),
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
