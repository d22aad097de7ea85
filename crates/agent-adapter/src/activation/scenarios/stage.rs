//! A conversation that is decided by the cards of agents and by the state machine of the service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use concord_domain::activation::conversation::{DecidedMessage, WakeInput, WakeMachine, WakeState};
use concord_domain::activation::{
    Conversation, Decisions, Message, Outcome, WINDOW_MAX, decide_all, parts,
};
use concord_domain::machine::{Context, Decision, Machine};
use concord_embedding::{Embedder, MODEL_FILES, Settings};
use concord_events::{EventMeta, Remembered, StoredEvent};
use concord_wire::payload::Card;
use concord_wire::{AgentId, MessageId, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

use super::super::matching::{Matching, Texts};

/// A conversation, decided with the cards and by the state machine of the service.
pub(super) struct Stage {
    matching: Matching,
    state: WakeState,
    said: u64,
}

impl Stage {
    fn new(matching: Matching) -> Self {
        Self {
            matching,
            state: WakeState::default(),
            said: 0,
        }
    }

    /// Somebody says something: what everyone does about it, as `agent: outcome reason`.
    pub(super) async fn say(
        &mut self,
        kind: &str,
        from: &str,
        to: &str,
        content: &str,
    ) -> Vec<String> {
        let message_type = MessageType::from(Token::new(kind).unwrap());
        let (from, to) = (AgentId::new(from).unwrap(), Recipient::new(to).unwrap());
        let message = Message {
            message_type: &message_type,
            from: &from,
            to: &to,
            content,
            assigned: None,
            preferred: &[],
            reply_to_author: None,
            asks_for_objections: false,
        };
        let texts = Texts {
            parts: parts(content).into_iter().map(str::to_owned).collect(),
            previous: self.state.recent.back().map(|earlier| earlier.text.clone()),
            assignment: self.state.assignment_of(&from).map(str::to_owned),
        };
        let vectors = self.matching.vectors(&message, &texts).await;
        let compared = vectors.of(&texts);
        let conversation = Conversation {
            previous: compared.previous,
            parts: &compared.parts,
            assignment: compared.assignment,
            positions: &self.state.positions(),
            participations: &self.state.participations(),
            audience: None,
        };
        let decisions = self
            .matching
            .read(|matcher| decide_all(matcher, &message, vectors.message(), &conversation));
        let shown = shown(&decisions);
        self.remember(kind, &from, &to, content, decisions);
        shown
    }

    fn remember(
        &mut self,
        kind: &str,
        from: &AgentId,
        to: &Recipient,
        text: &str,
        decisions: Decisions,
    ) {
        self.said += 1;
        let message_id: MessageId = format!("m-{}", self.said).parse().unwrap();
        let at = Timestamp::from_unix_millis(i64::try_from(self.said).unwrap() * 1_000);
        let said = Remembered {
            message_id: message_id.clone(),
            from: from.clone(),
            to: to.clone(),
            message_type: kind.to_owned(),
            at,
            reply_to: None,
            text: text.to_owned(),
        };
        let input = WakeInput::Message(Box::new(DecidedMessage {
            said,
            case_id: None,
            from_outside: false,
            message: Value::Null,
            decisions,
            with_model: false,
            question: None,
            thread: "t".to_owned(),
            bounds: None,
            context_max: WINDOW_MAX,
        }));
        let context = Context::of_message(at, message_id);
        let Decision::Append(event) = WakeMachine::decide(&self.state, &context, &input) else {
            panic!("every message is decided");
        };
        let meta = EventMeta {
            event_id: format!("e-{}", self.said).parse().unwrap(),
            id: Token::fixed("t"),
            at,
            cause: context.cause,
            deadlines: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            earlier: Vec::new(),
            memory_snapshot: None,
            state: None,
        };
        WakeMachine::apply(
            &mut self.state,
            StoredEvent {
                meta,
                sequence: self.said,
                event,
            },
        );
    }
}

fn shown(decisions: &Decisions) -> Vec<String> {
    let outcome = |outcome| match outcome {
        Outcome::Wake => "wake",
        Outcome::Observe => "observe",
        Outcome::Ignore => "ignore",
    };
    let all = decisions.decisions.iter();
    all.map(|(agent, d)| format!("{agent}: {} {}", outcome(d.outcome), d.reason))
        .collect()
}

/// The model; none where it is absent, and then the test says so.
fn model() -> Option<Arc<Embedder>> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model");
    let dir = std::env::var_os("CONCORD_MODEL").map_or_else(usual, PathBuf::from);
    if !dir.join(MODEL_FILES[1]).is_file() {
        println!(
            "by letters alone: there is no model in {}; scripts/model fetches it",
            dir.display()
        );
        return None;
    }
    let settings = Settings {
        model_dir: Some(dir),
        ..Settings::default()
    };
    Some(Arc::new(Embedder::open(&settings).unwrap().unwrap()))
}

/// A stage by letters, and one by meaning where the model is.
pub(super) async fn stages(cards: &[Card]) -> Vec<Stage> {
    let mut stages = vec![Stage::new(Matching::of_cards(cards))];
    if let Some(model) = model() {
        stages.push(Stage::new(Matching::of_model(model, cards).await));
    }
    stages
}
