//! Reply loops of hosted agents. Two agents that answer each other's answers without end are given each other's messages no
//! longer, for a while.
//!
//! Each replica counts the messages that it is given. The first replica that finds a loop has it recorded in the conversation,
//! by which both agents are told, once; the others find it there.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_domain::activation::conversation::{WakeInput, WakeMachine, conversation, thread_of};
use concord_domain::activation::{ChainState, LoopBounds, ReplyChains};
use concord_events::LoopBroken;
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Ports};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, Token};
use lru::LruCache;

use crate::context::AdapterContext;

/// Threads that are remembered.
const THREADS_MAX: usize = 2_048;
/// Messages whose thread is remembered, for answers that name nothing but the message they answer.
const MESSAGES_MAX: usize = 16_384;

/// The exchanges between agents that this replica has seen.
pub struct ReplyLoops<P: Ports> {
    context: ServiceContext<P>,
    /// None where loops do not matter.
    bounds: Option<LoopBounds>,
    conversations: Arc<Aggregates<WakeMachine, P>>,
    threads: Mutex<Threads>,
}

struct Threads {
    /// The messages that went to and fro, by thread.
    turns: LruCache<String, ReplyChains>,
    /// The thread of each message.
    of_message: LruCache<MessageId, String>,
}

/// One message in its exchange.
struct Exchange {
    conversation: Token,
    thread: String,
    course: ChainState,
    /// Whether the recipient has spoken in the thread: only then can it be a loop.
    is_answered: bool,
}

impl<P: Ports> ReplyLoops<P> {
    /// No exchanges yet. Loops are broken by `bounds`, or not at all.
    pub fn new(adapter: &AdapterContext<P>, bounds: Option<LoopBounds>) -> Self {
        let max = |count: usize| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let threads = Threads {
            turns: LruCache::new(max(THREADS_MAX)),
            of_message: LruCache::new(max(MESSAGES_MAX)),
        };
        Self {
            context: adapter.service.clone(),
            bounds,
            conversations: Arc::clone(&adapter.conversations),
            threads: Mutex::new(threads),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message is withheld from a hosted agent because the two answer each other without end.
    pub(crate) async fn breaks(
        &self,
        message: &Envelope,
        to: &AgentId,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        let Some(bounds) = self.bounds else {
            return Ok(false);
        };
        let from = &message.from_agent;
        let at = delivery.stored_at;
        if Service::parse(from.as_str()).is_ok() || from == to {
            return Ok(false);
        }
        let exchange = self.follow(message, to, delivery, &bounds);
        match exchange.course {
            ChainState::Paused => Ok(true),
            ChainState::GoesOn if !exchange.is_answered => Ok(false),
            // Another replica may have found a loop of which this one was not given enough.
            ChainState::GoesOn => {
                let stored = self.conversations.load(&exchange.conversation).await?;
                Ok(stored.state.reply_chains.is_paused(from, to, at))
            }
            ChainState::Breaks { depth, until } => {
                let broken = LoopBroken {
                    thread: exchange.thread.clone(),
                    case_id: message.case_id.clone(),
                    message_id: message.message_id.clone(),
                    from: from.clone(),
                    to: to.clone(),
                    depth,
                    window_ms: bounds.window_ms,
                    at,
                    until,
                };
                self.record(exchange.conversation, broken, delivery).await?;
                // Not before it is recorded: where that fails, the message is delivered again and finds the loop again.
                if let Some(turns) = self.threads().turns.get_mut(&exchange.thread) {
                    turns.pause(from, to, until);
                }
                Ok(true)
            }
        }
    }

    /// Adds a message to its thread. One that is delivered again is counted once.
    fn follow(
        &self,
        message: &Envelope,
        to: &AgentId,
        delivery: &Delivery,
        bounds: &LoopBounds,
    ) -> Exchange {
        debug_assert!(delivery.deliveries > 0, "a delivery that was never made");
        let mut guard = self.threads();
        let Threads { turns, of_message } = &mut *guard;
        let answered = message.reply_to.as_ref();
        let answered = answered.and_then(|id| MessageId::new(id.as_str()).ok());
        let known = answered.and_then(|id| of_message.get(&id).cloned());
        // The message that it answers is surer than the name of the conversation, which can change with each message.
        let named = known.or_else(|| message.correlation_id.clone());
        let thread = named.unwrap_or_else(|| thread_of(message).to_owned());
        of_message.put(message.message_id.clone(), thread.clone());
        // The id of the answer is known before there is one, and what answers the answer may name nothing else.
        let answer = MessageId::of_answer(&message.message_id, to);
        of_message.put(answer, thread.clone());
        // In a case, too, only the thread is broken, and not all that the two have to say to each other.
        let conversation = conversation(None, &thread);
        let turns = turns.get_or_insert_mut(thread.clone(), ReplyChains::default);
        let from = &message.from_agent;
        let at = delivery.stored_at;
        let is_answered = turns.have_both_spoken(from, to) || delivery.deliveries > 1;
        let course = turns.course(from, to, at, bounds);
        if delivery.deliveries == 1 && !matches!(course, ChainState::Breaks { .. }) {
            turns.record(from, to, at);
        }
        Exchange {
            conversation,
            thread,
            course,
            is_answered,
        }
    }

    /// Takes into account that a hosted agent has answered a message: the one whom it answers may be no hosted agent.
    pub(crate) fn record_answer(&self, incoming: &Envelope, by: &AgentId) {
        let mut guard = self.threads();
        let Threads { turns, of_message } = &mut *guard;
        if let Some(turns) = of_message
            .get(&incoming.message_id)
            .and_then(|thread| turns.get_mut(thread))
        {
            turns.record(by, &incoming.from_agent, self.context.ports.now());
        }
    }

    /// Records in the conversation that a loop is broken.
    async fn record(
        &self,
        conversation: Token,
        broken: LoopBroken,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let LoopBroken {
            from, to, depth, ..
        } = &broken;
        debug_assert!(broken.at < broken.until, "a loop is broken for no time");
        tracing::warn!(%from, %to, depth, "Two agents answer each other without end; the loop is broken for a while.");
        // The message itself may be the cause of another event of the conversation.
        let cause = Token::derived(&format!("loop/{}", broken.message_id));
        let cause = MessageId::new(cause.as_str()).map_err(HandleError::retry)?;
        let context = self.context.of_message(cause);
        let input = WakeInput::BreakLoop(Box::new(broken));
        let trace = delivery.trace.clone();
        let conversations = &self.conversations;
        handlers::step(
            &self.context,
            conversations,
            conversation,
            context,
            &input,
            trace,
        )
        .await
        .map(|_| ())
    }
}
