//! Reply loops of hosted agents: two that answer each other's answers are given each other's messages no longer, for a while.
//!
//! Each replica counts the turns of what it is given. The first that finds a loop has it recorded in the conversation, by
//! which both agents are told, once; the others find it there.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_domain::activation::conversation::{WakeInput, WakeMachine, conversation, thread_of};
use concord_domain::activation::{Course, LoopBounds, Turns};
use concord_events::LoopBroken;
use concord_runtime::NatsPorts;
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Aggregates, service::clock};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, Timestamp, Token};
use lru::LruCache;

/// Threads whose turns are remembered.
const THREADS_MAX: usize = 2_048;
/// Messages whose thread is remembered, for answers that name nothing but the message they answer.
const MESSAGES_MAX: usize = 16_384;

/// The conversations of an installation, as facts.
pub(crate) type Conversations = Arc<Aggregates<WakeMachine, NatsPorts>>;

/// What a replica knows of exchanges with hosted agents.
pub(crate) struct Loops {
    shell: ServiceRunner,
    bounds: Option<LoopBounds>,
    conversations: Conversations,
    known: Mutex<Known>,
}

struct Known {
    /// By thread.
    turns: LruCache<String, Turns>,
    threads: LruCache<MessageId, String>,
}

/// What one message comes to.
struct Place {
    id: Token,
    thread: String,
    course: Course,
    /// Whether the other has spoken in the conversation: only then can it be an exchange.
    is_answered: bool,
}

impl Loops {
    pub(crate) fn new(
        shell: &ServiceRunner,
        bounds: Option<LoopBounds>,
        conversations: &Conversations,
    ) -> Self {
        let max = |count: usize| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let (turns, threads) = (
            LruCache::new(max(THREADS_MAX)),
            LruCache::new(max(MESSAGES_MAX)),
        );
        let known = Mutex::new(Known { turns, threads });
        Self {
            shell: shell.clone(),
            bounds,
            conversations: Arc::clone(conversations),
            known,
        }
    }

    /// How deep two agents may go; none where that does not matter.
    pub(crate) fn bounds(&self) -> Option<LoopBounds> {
        self.bounds
    }

    /// Whether a message is not to be given to a hosted agent because the two answer each other without end.
    pub(crate) async fn breaks(
        &self,
        said: &Envelope,
        to: &AgentId,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        let Some(bounds) = self.bounds else {
            return Ok(false);
        };
        let (from, at) = (&said.from_agent, delivery.stored_at);
        if Service::parse(from.as_str()).is_ok() || from == to {
            return Ok(false);
        }
        let Place {
            id,
            thread,
            course,
            is_answered,
        } = self.place(said, to, delivery, &bounds);
        match course {
            Course::Paused => Ok(true),
            Course::GoesOn if !is_answered => Ok(false),
            // Another replica may have found what this one was not given enough of.
            Course::GoesOn => Ok(self
                .conversations
                .load(&id)
                .await?
                .state
                .turns
                .is_paused(from, to, at)),
            Course::Breaks { depth, until } => {
                let (case_id, message_id) = (said.case_id.clone(), said.message_id.clone());
                let (from, to, window_ms) = (from.clone(), to.clone(), bounds.window_ms);
                let (one, other, of) = (from.clone(), to.clone(), thread.clone());
                let broken = LoopBroken {
                    thread,
                    case_id,
                    message_id,
                    from,
                    to,
                    depth,
                    window_ms,
                    at,
                    until,
                };
                self.record(id, said, broken, delivery).await?;
                // Not before it is recorded: where that fails, the message is delivered again and finds the loop again.
                self.pause(&of, &one, &other, until);
                Ok(true)
            }
        }
    }

    /// Where a message stands in its exchange; one that is delivered again is counted once.
    fn place(
        &self,
        said: &Envelope,
        to: &AgentId,
        delivery: &Delivery,
        bounds: &LoopBounds,
    ) -> Place {
        let mut guard = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { turns, threads } = &mut *guard;
        let answered = said
            .reply_to
            .as_ref()
            .and_then(|id| MessageId::new(id.as_str()).ok());
        let known = answered.and_then(|id| threads.get(&id).cloned());
        // What it answers is surer than what it calls the conversation: that can be another with each turn.
        let named = known.or_else(|| said.correlation_id.clone());
        let thread = named.unwrap_or_else(|| thread_of(said).to_owned());
        threads.put(said.message_id.clone(), thread.clone());
        // The answer's id is known before it is given, and what answers the answer may name nothing else.
        threads.put(MessageId::of_answer(&said.message_id, to), thread.clone());
        // Of a case too it is the thread that is broken, and not all that the two have to say to each other.
        let id = conversation(None, &thread);
        let turns = turns.get_or_insert_mut(thread.clone(), Turns::default);
        let (from, at) = (&said.from_agent, delivery.stored_at);
        let is_answered = turns.have_both_spoken(from, to);
        let course = turns.course(from, to, at, bounds);
        if delivery.deliveries > 1 {
            return Place {
                id,
                thread,
                course,
                is_answered: true,
            };
        }
        if !matches!(course, Course::Breaks { .. }) {
            turns.hear(from, to, at);
        }
        Place {
            id,
            thread,
            course,
            is_answered,
        }
    }

    fn pause(&self, thread: &str, from: &AgentId, to: &AgentId, until: Timestamp) {
        let mut guard = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = guard.turns.get_mut(thread) {
            turns.pause(from, to, until);
        }
    }

    /// Takes into account that a hosted agent has answered a message: whom it answers may be no hosted agent.
    pub(crate) fn answered(&self, asked: &Envelope, by: &AgentId) {
        let mut guard = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { turns, threads } = &mut *guard;
        if let Some(turns) = threads
            .get(&asked.message_id)
            .and_then(|thread| turns.get_mut(thread))
        {
            turns.hear(by, &asked.from_agent, clock::now());
        }
    }

    async fn record(
        &self,
        id: Token,
        said: &Envelope,
        broken: LoopBroken,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let LoopBroken {
            from, to, depth, ..
        } = &broken;
        tracing::warn!(%from, %to, depth, "Two agents answer each other without end; the loop is broken for a while.");
        // The message itself may be the cause of another fact of the conversation.
        let cause = Token::derived(&format!("loop/{}", said.message_id));
        let cause = MessageId::new(cause.as_str()).map_err(HandleError::retry)?;
        let context = self.shell.of_message(cause);
        let input = WakeInput::Break(Box::new(broken));
        handlers::step(
            &self.shell,
            &self.conversations,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
        .map(|_| ())
    }
}
