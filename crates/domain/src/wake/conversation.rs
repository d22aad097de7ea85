//! A conversation: what was said in it of late, and whom each message woke. Owned by the agent adapter; its id is that of the
//! case, or of the thread outside a case.
//!
//! | state                  | Weigh             |
//! |------------------------|-------------------|
//! | has the message        | ignored: repetition |
//! | any other              | decided           |
//!
//! The last [`REMEMBERED_MAX`] messages are remembered: they are the context that an agent is given when it wakes, and they
//! say who takes part. Whoever decides reads them first; a message that comes in between is missing from the context of
//! the next one, and nothing else follows from that.

use std::collections::{BTreeMap, VecDeque};

use concord_protocol::event::{Deadline, Record, Remembered, WakeDecided, WakeEvent, WakeOutcome, Weighed};
use concord_protocol::{AgentId, CaseId, Envelope, MessageId, Token};
use serde_json::{Value, json};

use super::{Decision, Decisions, Outcome, Participation};
use crate::effect::Effect;
use crate::machine::{Context, Decision as Decided, Ignored, Machine};
use crate::queue::Recent;

/// Messages that are remembered of a conversation.
pub const REMEMBERED_MAX: usize = 20;
/// As much of a message's text as is remembered, in bytes.
pub const REMEMBERED_BYTES_MAX: usize = 1_024;
/// Agents that a message does not wake and that are named in its fact, the likeliest first.
pub const OTHERS_MAX: usize = 10;
/// The largest message that is repeated to those whom it wakes, in bytes of JSON.
pub const REPEATED_BYTES_MAX: usize = 262_144;
/// Messages that are remembered by id, to know a repetition.
const CAUSES_MAX: usize = 1_024;

/// The machine of conversations.
#[derive(Debug, Clone, Copy)]
pub struct WakeMachine;

/// What is known of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct WakeState {
    /// What was said last, oldest first.
    pub recent: VecDeque<Remembered>,
    causes: Recent<MessageId, ()>,
}

impl Default for WakeState {
    fn default() -> Self {
        Self { recent: VecDeque::new(), causes: Recent::new(CAUSES_MAX) }
    }
}

impl WakeState {
    /// Who has spoken, and how many messages of others ago.
    pub fn participations(&self) -> BTreeMap<AgentId, Participation> {
        let mut found = BTreeMap::new();
        for (silent_for, said) in (0_u32..).zip(self.recent.iter().rev()) {
            found.entry(said.from.clone()).or_insert(Participation { silent_for });
        }
        found
    }

    /// Who wrote a message, if it is remembered.
    pub fn author_of(&self, message_id: &str) -> Option<&AgentId> {
        self.recent.iter().find(|said| said.message_id.as_str() == message_id).map(|said| &said.from)
    }
}

/// A message with what was decided about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Weigh {
    /// The message as it will be remembered.
    pub said: Remembered,
    /// Its case.
    pub case_id: Option<CaseId>,
    /// The whole message.
    pub message: Value,
    /// What every agent does about it.
    pub decisions: Decisions,
    /// Whether a model had a part in that.
    pub with_model: bool,
}

/// The conversation that a message belongs to: its case, its thread, or itself.
pub fn conversation_of(envelope: &Envelope) -> Token {
    match (&envelope.case_id, envelope.correlation_id.as_ref().or(envelope.reply_to.as_ref())) {
        (Some(case), _) => case.token(),
        (None, Some(thread)) => Token::derived(&format!("thread/{thread}")),
        (None, None) => Token::derived(&format!("thread/{}", envelope.message_id)),
    }
}

impl Machine for WakeMachine {
    type State = WakeState;
    type Event = WakeEvent;
    type Input = Weigh;

    fn decide(state: &WakeState, context: &Context, input: &Weigh) -> Decided<WakeEvent> {
        if state.causes.contains(&context.cause) {
            return Decided::Ignore(Ignored::Repetition);
        }
        let Decisions { decisions, named_beyond } = &input.decisions;
        let of = |outcome| decisions.iter().filter(move |(_, decision)| decision.outcome == outcome);
        let woken: Vec<Weighed> = of(Outcome::Wake).map(weighed).collect();
        let mut others: Vec<Weighed> = of(Outcome::Observe).chain(of(Outcome::Ignore)).map(weighed).collect();
        others.sort_by(|a, b| b.score.unwrap_or(-1.0).total_cmp(&a.score.unwrap_or(-1.0)));
        others.truncate(OTHERS_MAX);
        let count = |outcome| u32::try_from(of(outcome).count()).unwrap_or(u32::MAX);
        let wakes = !woken.is_empty();
        let fits = serde_json::to_vec(&input.message).is_ok_and(|bytes| bytes.len() <= REPEATED_BYTES_MAX);
        Decided::Append(WakeEvent::Decided(WakeDecided {
            said: input.said.clone(),
            case_id: input.case_id.clone(),
            observing: count(Outcome::Observe),
            ignoring: count(Outcome::Ignore),
            named_beyond: u32::try_from(*named_beyond).unwrap_or(u32::MAX),
            with_model: input.with_model,
            message: if wakes && fits { input.message.clone() } else { Value::Null },
            context: if wakes { state.recent.iter().cloned().collect() } else { Vec::new() },
            woken,
            others,
        }))
    }

    fn apply(state: &mut WakeState, record: Record<WakeEvent>) {
        state.causes.insert(record.meta.cause, ());
        let WakeEvent::Decided(decided) = record.event;
        state.recent.push_back(decided.said);
        if state.recent.len() > REMEMBERED_MAX {
            state.recent.pop_front();
        }
    }

    fn deadlines(_: &WakeState) -> Vec<Deadline> {
        Vec::new()
    }

    fn deadlines_after(_: &WakeState, _: &Record<WakeEvent>) -> Vec<Deadline> {
        Vec::new()
    }

    fn effects(record: &Record<WakeEvent>) -> Vec<Effect> {
        let WakeEvent::Decided(decided) = &record.event;
        // Whom it is addressed to has it already.
        let told = decided.woken.iter().filter(|one| decided.said.to.as_str() != one.agent_id.as_str());
        let wake = |one: &Weighed| Effect::Wake {
            to: one.agent_id.clone(),
            message_id: decided.said.message_id.clone(),
            data: json!({
                "reason": one.reason, "score": one.score, "said": decided.said, "message": decided.message,
                "context": decided.context,
            }),
        };
        told.map(wake).collect()
    }

    fn case_of(record: &Record<WakeEvent>) -> Option<CaseId> {
        let WakeEvent::Decided(decided) = &record.event;
        decided.case_id.clone()
    }

    fn creates(_: &Weigh) -> bool {
        false
    }
}

fn weighed((agent_id, decision): (&AgentId, &Decision)) -> Weighed {
    let outcome = match decision.outcome {
        Outcome::Wake => WakeOutcome::Wake,
        Outcome::Observe => WakeOutcome::Observe,
        Outcome::Ignore => WakeOutcome::Ignore,
    };
    let runner_up = decision.runner_up.as_ref();
    Weighed {
        agent_id: agent_id.clone(),
        outcome,
        reason: decision.reason.to_string(),
        score: decision.score,
        runner_up: runner_up.map(|one| one.agent_id.clone()),
        runner_up_score: runner_up.map(|one| one.score),
    }
}

#[cfg(test)]
mod tests {
    use concord_protocol::Recipient;
    use concord_protocol::event::WakeEvent;

    use super::super::Reason;
    use super::*;
    use crate::effect;
    use crate::fixtures::*;

    fn weigh(id: &str, from: &str, to: &str, text: &str, woken: &[&str]) -> Weigh {
        let decision = |wakes: bool| match wakes {
            true => Decision { score: Some(0.9), ..Decision::new(Outcome::Wake, Reason::Semantic("tax".into())) },
            false => Decision { score: Some(0.2), ..Decision::new(Outcome::Observe, Reason::BelowThreshold) },
        };
        let all = ["ben", "cleo", "dan"].into_iter().filter(|name| *name != from);
        Weigh {
            said: Remembered {
                message_id: message(id),
                from: agent(from),
                to: Recipient::new(to).unwrap(),
                message_type: "group_query".into(),
                at: after(0),
                reply_to: None,
                text: text.into(),
            },
            case_id: Some(case_id()),
            message: json!({ "payload": { "content": text } }),
            decisions: Decisions {
                decisions: all.map(|name| (agent(name), decision(woken.contains(&name)))).collect(),
                named_beyond: 0,
            },
            with_model: true,
        }
    }

    #[test]
    fn who_wakes_is_told_once_with_what_was_said_before_and_whom_it_is_for_has_it_already() {
        let mut story = Story::<WakeMachine>::of("c-1");
        assert_eq!(story.hears(&said("m-1", 0), &weigh("m-1", "ann", "_all", "Hello.", &[])), "decided");
        assert!(effect::messages::<WakeMachine>(story.last()).unwrap().is_empty());
        let second = weigh("m-2", "ann", "ben", "Who knows taxes?", &["ben", "cleo"]);
        assert_eq!(story.hears(&said("m-2", 1), &second), "decided");
        let told = effect::messages::<WakeMachine>(story.last()).unwrap();
        let [one] = &told[..] else { panic!("{told:?}") };
        assert_eq!((one.to_agent.as_str(), one.requires_response), ("cleo", true));
        let payload: Value = one.payload().unwrap();
        assert_eq!(payload["event"], "woken");
        assert_eq!(payload["data"]["reason"], "semantic:tax");
        assert_eq!(payload["data"]["context"][0]["text"], "Hello.");
        assert_eq!(story.hears(&said("m-2", 2), &second), "ignored: repetition");
        let WakeEvent::Decided(decided) = &story.last().event;
        assert_eq!((decided.observing, decided.others.len()), (1, 1));
    }

    #[test]
    fn so_much_is_remembered_and_who_spoke_last_takes_part_most() {
        let mut story = Story::<WakeMachine>::of("c-1");
        for n in 0..=REMEMBERED_MAX as u64 {
            let (id, from) = (format!("m-{n}"), if n % 2 == 0 { "ben" } else { "cleo" });
            story.hears(&said(&id, n), &weigh(&id, from, "_all", "And?", &[]));
        }
        let state = story.state();
        assert_eq!(state.recent.len(), REMEMBERED_MAX);
        let silent = |name| state.participations().get(&agent(name)).map(|one| one.silent_for);
        assert_eq!((silent("ben"), silent("cleo"), silent("dan")), (Some(0), Some(1), None));
        assert_eq!((state.author_of("m-0"), state.author_of("m-20")), (None, Some(&agent("ben"))));
    }
}
