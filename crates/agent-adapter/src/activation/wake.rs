//! Decides once for every message that may concern agents besides its recipient which of them it wakes. The decision is stored
//! as an event of the message's conversation, and the agents that are woken are told. What is told to everybody, about the end of a debate,
//! the decision of a case or by an agent, is passed on to hosted agents, who hear only what is addressed to them.
//!
//! One matcher knows every card, because what decides is the lead of one agent over the next. It follows the directory. A model
//! computes beside the runtime's threads. The events before a decision are the context that an agent is given when it wakes.

use std::collections::BTreeSet;
use std::sync::Arc;

use concord_domain::activation::conversation::{
    DecidedMessage, REMEMBERED_BYTES_MAX, WakeInput, WakeMachine, WakeState, conversation_of,
    thread_of, told_bytes,
};
use concord_domain::activation::{
    Conversation, Decisions, LoopBounds, Message, Outcome, WINDOW_MAX, decide_all, parts,
};
use concord_domain::aggregates::person::Matter;
use concord_embedding::ServerSettings;
use concord_events::topology::{ConsumerKind, EXCHANGED, WAKING, is_second_delivery};
use concord_events::{Aggregate, CaseOpened, Remembered};
use concord_runtime::delivery::handlers::{self, EffectHandler};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::people::People;
use concord_runtime::service::{Binder, ServiceContext, ServiceRunner};
use concord_runtime::{Aggregates, Directory, NatsPorts, Ports};
use concord_wire::subject::{Service, Subject};
use concord_wire::{AgentId, CaseId, Envelope, MessageType, Recipient};
use serde_json::Value;

use super::matching::{Matching, Texts};
use super::newcomers::Newcomers;
use super::{question, text};
use crate::AnyError;
use crate::case_cache::CaseCache;
use crate::context::AdapterContext;
use crate::hosted_agent::passing_on::{
    is_decision, is_told_to_everybody, may_be_passed_on, parties, pass_on, pass_on_to,
};
use crate::metrics::{AdapterMetrics, WakeLabels};
use crate::settings::wake::WakeSettings;

/// Begins to decide as soon as all registered agents are known. What `hosted` are to hear is passed on to them.
pub(crate) async fn start(
    runner: &ServiceRunner,
    (settings, hosted): (&WakeSettings, BTreeSet<AgentId>),
    server: Option<ServerSettings>,
    directory: &Arc<Directory>,
    adapter: &AdapterContext<NatsPorts>,
    bounds: Option<LoopBounds>,
) -> Result<(), AnyError> {
    bind_effects(&adapter.service, &mut runner.clone());
    let matching = Matching::open(settings, server)?;
    let all_known = Matching::follow(&matching, runner, directory, &adapter.metrics);
    let handler = WakeHandler::new(adapter, matching, bounds);
    let handler = WakeHandler {
        enabled: settings.enabled,
        context_max: usize::from(settings.context_messages),
        ..handler.hosting(hosted)
    };
    // Messages wake nobody before that.
    runner.expect(ConsumerKind::Wake);
    let mut binder = runner.clone();
    runner.spawn(async move {
        // An agent that is not known yet would neither wake nor be one over whom others must lead, and a decision is final.
        if all_known.await.is_ok() {
            handler.bind(&mut binder);
        }
    });
    Ok(())
}

/// Binds the handler that tells agents that they are woken.
pub fn bind_effects<P: Ports>(context: &ServiceContext<P>, binder: &mut impl Binder) {
    let handler = EffectHandler::<P, WakeMachine>::new(context);
    binder.handle(ConsumerKind::Effects(Service::AgentAdapter), handler);
}

/// Handles the messages that may concern agents besides their recipients.
pub struct WakeHandler<P: Ports> {
    context: ServiceContext<P>,
    metrics: AdapterMetrics,
    enabled: bool,
    context_max: usize,
    /// The hosted agents that are told what happens in their cases.
    hosted: BTreeSet<AgentId>,
    matching: Arc<Matching>,
    conversations: Arc<Aggregates<WakeMachine, P>>,
    cases: Arc<CaseCache<P>>,
    people: People<P>,
    newcomers: Newcomers<P>,
    bounds: Option<LoopBounds>,
}

impl<P: Ports> WakeHandler<P> {
    /// Decides by the cards that `matching` knows. Reply loops are broken by `bounds`, or not at all.
    pub fn new(
        adapter: &AdapterContext<P>,
        matching: Arc<Matching>,
        bounds: Option<LoopBounds>,
    ) -> Self {
        Self {
            context: adapter.service.clone(),
            metrics: adapter.metrics.clone(),
            enabled: true,
            context_max: WINDOW_MAX,
            hosted: BTreeSet::new(),
            matching,
            conversations: Arc::clone(&adapter.conversations),
            cases: Arc::clone(&adapter.cases),
            people: People::new(&adapter.service),
            newcomers: Newcomers::new(&adapter.service),
            bounds,
        }
    }

    /// The same handler, which passes on to these hosted agents how their debates have ended and what their cases have decided.
    pub fn hosting(self, hosted: BTreeSet<AgentId>) -> Self {
        Self { hosted, ..self }
    }

    /// Has this handler decide about every message that may concern others.
    pub fn bind(self, binder: &mut impl Binder) {
        binder.handle(ConsumerKind::Wake, self);
    }

    fn ignore(&self, reason: &str) -> Ack {
        self.context.count_ignored(reason);
        Ack::Acknowledge
    }
}

impl<P: Ports> Handler for WakeHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let sender = self.context.ports.subjects().sender_of(&delivery.subject);
        let message_type = delivery.subject.rsplit('.').next();
        if may_be_passed_on(sender.as_ref(), message_type) && self.pass_on_news(delivery).await? {
            return Ok(Ack::Acknowledge);
        }
        // What everybody is told is passed on also where nobody is woken.
        let may_be_told = message_type == Some(MessageType::Notification.as_str());
        if !self.enabled && !may_be_told {
            return Ok(self.ignore("waking_is_off"));
        }
        // Any other message of a service is no news to anybody whom it does not address. It is not even read.
        let is_of_service = sender
            .as_ref()
            .is_some_and(|sender| Service::parse(sender.as_str()).is_ok());
        let is_copy = message_type.is_some_and(|kind| is_second_delivery(&delivery.consumer, kind));
        // With its briefing an agent joins a case, and its window begins.
        let is_joining = sender.is_some_and(|sender| sender == Service::Coordinator.agent_id())
            && message_type == Some(MessageType::SessionBriefing.as_str());
        if is_of_service && !is_joining || is_copy {
            return Ok(self.ignore("nobody_to_wake"));
        }
        let message = match delivery.read(&self.context).await {
            Ok(message) => message,
            Err(failed @ HandleError::Retry(_)) => return Err(failed),
            Err(refused) if is_for_us_to_refuse(&delivery.subject, &self.context) => {
                return Err(refused);
            }
            // Its recipient tells the sender of a garbled message.
            Err(_) => return Ok(self.ignore("unreadable")),
        };
        if !self.enabled {
            let nobody = Decisions::default();
            self.tell_hosted(&message, delivery, &nobody).await?;
            return Ok(self.ignore("waking_is_off"));
        }
        let id = conversation_of(&message);
        let decided = match is_joining {
            true => self.undecided(&message, delivery),
            false => match self.weigh(&message, delivery).await? {
                Some(decided) => decided,
                None => return Ok(Ack::Later(Delivery::AGAIN)),
            },
        };
        self.tell_hosted(&message, delivery, &decided.decisions)
            .await?;
        let input = WakeInput::Message(Box::new(decided));
        let conversations = &self.conversations;
        handlers::step_of_message(&self.context, conversations, id, message, &input, delivery).await
    }
}

impl<P: Ports> WakeHandler<P> {
    /// Weighs for each agent whether the message concerns it; none where it names somebody who is about to become known.
    async fn weigh(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<Option<DecidedMessage>, HandleError> {
        let id = conversation_of(envelope);
        let known = self.conversations.load(&id).await?.state;
        let audience = self.audience(envelope.case_id.as_ref(), &known).await?;
        let question = question::terms_of(envelope, delivery, &self.context.ports)?;
        let content = text::of(envelope);
        let preferred = text::preferred(envelope);
        let answered = envelope.reply_to.as_deref();
        let message = Message {
            message_type: &envelope.message_type,
            from: &envelope.from_agent,
            to: &envelope.to_agent,
            content: &content,
            assigned: None,
            preferred: &preferred,
            reply_to_author: answered.and_then(|id| known.author_of(id)),
            asks_for_objections: text::asks_for_objections(envelope),
        };
        let newcomers = self.newcomers.are_named(&message, &self.matching, delivery);
        if newcomers.await? {
            return Ok(None);
        }
        let texts = Texts {
            parts: parts(&content).into_iter().map(str::to_owned).collect(),
            previous: known.recent.back().map(|earlier| earlier.text.clone()),
            assignment: known.assignment_of(&envelope.from_agent).map(str::to_owned),
        };
        let vectors = self.matching.vectors(&message, &texts).await;
        let compared = vectors.of(&texts);
        let (participations, positions) = (known.participations(), known.positions());
        let conversation = Conversation {
            previous: compared.previous,
            parts: &compared.parts,
            assignment: compared.assignment,
            positions: &positions,
            participations: &participations,
            audience: audience.as_ref(),
        };
        let vector = vectors.message();
        let decisions = self
            .matching
            .read(|matcher| decide_all(matcher, &message, vector, &conversation));
        self.count(&decisions);
        let decided = DecidedMessage {
            from_outside: self.is_from_outside(envelope, audience.as_ref()).await?,
            said: remembered(envelope, delivery, &content),
            message: serde_json::to_value(envelope).unwrap_or(Value::Null),
            decisions,
            with_model: vector.is_some(),
            question,
            ..self.undecided(envelope, delivery)
        };
        match (
            delivery.spend(told_bytes(&known, &decided)),
            &decided.said.to,
        ) {
            (Ok(()), _) => Ok(Some(decided)),
            // Whoever it is for has it, and an error would be taken for their answer: it wakes nobody else.
            (Err(_), Recipient::Agent(_)) => Ok(Some(DecidedMessage {
                decisions: Decisions::default(),
                ..decided
            })),
            (Err(fault), _) => Err(fault.into()),
        }
    }

    /// Passes on what a service tells everybody to those hosted agents that it concerns: the parties to the debate whose end it tells of, or
    /// everybody in the case whose decision it tells of. False where there are none.
    async fn pass_on_news(&self, delivery: &Delivery) -> Result<bool, HandleError> {
        if self.hosted.is_empty() {
            return Ok(false);
        }
        let message = match delivery.read(&self.context).await {
            Ok(message) => message,
            Err(failed @ HandleError::Retry(_)) => return Err(failed),
            Err(_) => return Ok(false),
        };
        let concerned = match is_decision(&message) {
            true => {
                let known = self.conversations.load(&conversation_of(&message)).await?;
                let audience = self.audience(message.case_id.as_ref(), &known.state);
                audience.await?.unwrap_or_default()
            }
            false => parties(&message),
        };
        let told = concerned.intersection(&self.hosted);
        pass_on(&self.context, told, &message, delivery).await
    }

    /// Passes on a message that tells everybody something to the hosted agents that can read it. Whom it wakes is given it for that.
    async fn tell_hosted(
        &self,
        message: &Envelope,
        delivery: &Delivery,
        decisions: &Decisions,
    ) -> Result<(), HandleError> {
        if self.hosted.is_empty() || !is_told_to_everybody(message) {
            return Ok(());
        }
        let known = self.conversations.load(&conversation_of(message)).await?;
        let audience = self.audience(message.case_id.as_ref(), &known.state);
        let audience = audience.await?;
        let can_read = |agent: &AgentId| {
            *agent != message.from_agent && audience.as_ref().is_none_or(|all| all.contains(agent))
        };
        let woken: BTreeSet<&AgentId> = decisions.woken().map(|(agent, _)| agent).collect();
        let told = self.hosted.iter();
        let told = told.filter(|agent| can_read(agent) && !woken.contains(agent));
        pass_on_to(&self.context, &told.cloned().collect(), message, delivery).await
    }

    /// A message about which nothing is decided: it wakes nobody.
    fn undecided(&self, envelope: &Envelope, delivery: &Delivery) -> DecidedMessage {
        let thread = match &envelope.case_id {
            Some(case) => case.as_str(),
            None => thread_of(envelope),
        };
        DecidedMessage {
            said: remembered(envelope, delivery, &text::of(envelope)),
            case_id: envelope.case_id.clone(),
            from_outside: false,
            message: Value::Null,
            decisions: Decisions::default(),
            with_model: false,
            question: None,
            thread: thread.to_owned(),
            bounds: self.bounds,
            context_max: self.context_max,
        }
    }

    /// The agents whom a message in a case may concern: its participants, and those who have joined. None for everyone, as outside a
    /// case.
    async fn audience(
        &self,
        case: Option<&CaseId>,
        known: &WakeState,
    ) -> Result<Option<BTreeSet<AgentId>>, HandleError> {
        let Some(case) = case else { return Ok(None) };
        let opened = self.cases.opening_of(case).await?;
        let all = |opened: &CaseOpened| {
            let participants = opened.participants.iter();
            participants
                .chain(known.windows.at(Some(case)).joined())
                .cloned()
                .collect()
        };
        Ok(opened.as_deref().map(all))
    }

    /// Whether whoever speaks in a case is none of those whom it may concern, has not opened it and may not read it.
    async fn is_from_outside(
        &self,
        envelope: &Envelope,
        audience: Option<&BTreeSet<AgentId>>,
    ) -> Result<bool, HandleError> {
        let from = &envelope.from_agent;
        let Some(case) = envelope.case_id.as_ref() else {
            return Ok(false);
        };
        if audience.is_none_or(|inside| inside.contains(from)) {
            return Ok(false);
        }
        let opened = self.cases.opening_of(case).await?;
        let matter = Matter {
            opened_by: opened.map(|opened| opened.opened_by.clone()),
            domain: None,
        };
        if matter.opened_by.as_ref() == Some(from) {
            return Ok(false);
        }
        let authority = self.people.authority(from).await?;
        let reading = authority.reading(from, Aggregate::Case);
        Ok(!reading.is_ok_and(|reading| reading.includes(&matter)))
    }

    fn count(&self, decisions: &Decisions) {
        for decision in decisions.decisions.values() {
            let outcome = match decision.outcome {
                Outcome::Wake => "wake",
                Outcome::Observe => "observe",
                Outcome::Ignore => "ignore",
            };
            let labels = WakeLabels {
                outcome,
                reason: decision.reason.kind(),
            };
            self.metrics.wakes.get_or_create(&labels).inc();
        }
    }
}

/// Whether nobody else tells the sender of a message that it cannot be read: it is addressed to a group, which has no service behind it, and is
/// of a type that the coordinator does not hear. Of the two deliveries of such a message only the first one is read.
fn is_for_us_to_refuse<P: Ports>(subject: &str, context: &ServiceContext<P>) -> bool {
    match context.ports.subjects().parse(subject) {
        Ok(Subject::Message { to, kind, .. }) => {
            let is_of = |kinds: &[MessageType]| {
                let mut kinds = kinds.iter();
                kinds.any(|one| one.as_str() == kind.as_str())
            };
            let is_to_group = matches!(to, Recipient::Any | Recipient::All);
            is_to_group && is_of(&WAKING) && !is_of(&EXCHANGED)
        }
        _ => false,
    }
}

/// The message as its conversation remembers it.
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
