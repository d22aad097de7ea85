//! Questions to the group: opened by the decision about whom they wake, answered by those, and ended in one answer to whoever asked.
//!
//! An answer can be handled before its question is opened, for the two come by different consumers. Then it is found when the
//! question is opened: it was stored before it was handled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use concord_domain::activation::conversation::WakeMachine;
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::question::{
    Asking, QuestionInput, QuestionMachine, QuestionState, id_of, weigh,
};
use concord_domain::aggregates::track_record::{TrackRecordMachine, credibility_of};
use concord_domain::effect::source_of;
use concord_events::{
    DeadlineElapsed, EventMeta, QuestionBounds, QuestionOpened, StoredEvent, WakeDecided, WakeEvent,
};
use concord_runtime::codec::message_lookup::SearchStart;
use concord_runtime::delivery::{Ack, Delivery, HandleError, handlers};
use concord_runtime::event_store;
use concord_runtime::ports::Search;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, People, Ports};
use concord_wire::payload::track_record::{Context as Circumstances, Query, Version};
use concord_wire::payload::{GivenAnswer, Remembered};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Envelope, Recipient, Timestamp, Token};

use crate::people::Names;
use crate::route::question::{ANSWERING, read_answer, read_published, read_synthesis};

/// How long an answer waits for its question to be opened: whoever hears everything may answer before it is decided whom a question wakes.
pub(crate) const AWAITED: Duration = Duration::from_secs(5);
/// Answers of one agent that one search for answers reads: the first counts whose payload is what it says, and each may cost a fetch of
/// megabytes.
const READ_OF_ONE_MAX: usize = 4;

/// To whom an answer is told.
#[derive(Debug, Clone, Copy)]
enum To {
    Asker,
    All,
}

/// Questions to the group, and what is read to weigh their answers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Questions<P> {
    service: ServiceContext<P>,
    questions: Arc<Aggregates<QuestionMachine, P>>,
    /// The facilitator's: they are only read.
    records: Arc<Aggregates<TrackRecordMachine, P>>,
    /// The agent adapter's: they are only read.
    conversations: Arc<Aggregates<WakeMachine, P>>,
    people: People<P>,
    bounds: QuestionBounds,
}

impl<P: Ports> Questions<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        names: &Names<P>,
        bounds: QuestionBounds,
    ) -> Self {
        let (ports, cache) = (&service.ports, &service.cache);
        Self {
            service: service.clone(),
            questions: Arc::new(Aggregates::new(ports.clone(), cache)),
            records: Arc::new(Aggregates::new(ports.clone(), cache)),
            conversations: Arc::new(Aggregates::new(ports.clone(), cache)),
            people: names.people.clone(),
            bounds,
        }
    }

    /// It was decided whom a message wakes. Where it is a question, it is opened, and answers that came before are taken.
    pub(crate) async fn decided(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let record = StoredEvent::<WakeEvent>::decode(&delivery.payload, delivery.sequence)?;
        let WakeEvent::Decided(decided) = record.event else {
            return Ok(Ack::Acknowledge);
        };
        if decided.question.is_none() {
            self.service.count_ignored("no_question");
            return Ok(Ack::Acknowledge);
        }
        let id = id_of(&decided.said.from, decided.said.message_id.as_str());
        let context = self.service.of_event(record.meta.event_id);
        let sender = self.sender(&decided).await?;
        let asking = QuestionInput::Ask(Box::new(Asking {
            decided,
            sender,
            bounds: self.bounds,
        }));
        let (service, questions) = (&self.service, &self.questions);
        let trace = delivery.trace.clone();
        let done = handlers::step(service, questions, id.clone(), context, &asking, trace).await?;
        let known = self.questions.load(&id).await?.state;
        for answer in self.unread(&id, &known, &[To::Asker]).await? {
            let context = service.of_message(answer.message_id.clone());
            let context = context.of_sender(answer.by.clone());
            let input = QuestionInput::Answer(Box::new(answer));
            // Who must not answer is told so when the message itself is handled.
            let outcome = questions.step(&id, &context, &input, None).await?;
            service.count_step::<QuestionMachine>(&outcome);
        }
        Ok(done)
    }

    async fn sender(&self, decided: &WakeDecided) -> Result<Authority, HandleError> {
        Ok(self.people.authority(&decided.said.from).await?)
    }

    /// Takes an answer to a question; none where the message answers no question that is known.
    pub(crate) async fn answered(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<Option<Ack>, HandleError> {
        let Some((mut id, mut answer)) = read_answer(envelope, delivery.stored_at) else {
            return Ok(None);
        };
        // What is not known to the stream's leader will look for this answer when it is opened.
        let mut known = self.questions.load_up_to(&id, 1).await?.state;
        if known.opened.is_none()
            && let Some(asked) = self.waking(envelope).await?
        {
            let named = Envelope {
                reply_to: Some(asked.message_id.to_string()),
                ..envelope.clone()
            };
            let Some(read) = read_answer(&named, delivery.stored_at) else {
                return Ok(None);
            };
            (id, answer) = read;
            known = self.questions.load_up_to(&id, 1).await?.state;
            let is_for_asker = envelope.to_agent == Recipient::Agent(asked.from);
            let is_early = self.may_be_early(delivery);
            // Nobody looks for what names the notification when it is opened.
            if known.opened.is_none() && is_for_asker && is_early {
                return Ok(Some(Ack::Later(Delivery::AGAIN)));
            }
        }
        let Some(opened) = &known.opened else {
            return Ok(None);
        };
        let answer = self.weighed(opened, answer).await?;
        let input = QuestionInput::Answer(Box::new(answer));
        let (service, questions) = (&self.service, &self.questions);
        let envelope = envelope.clone();
        handlers::step_of_message(service, questions, id, envelope, &input, delivery)
            .await
            .map(Some)
    }

    /// Whether what an answer is for may yet be opened.
    pub(crate) fn may_be_early(&self, delivery: &Delivery) -> bool {
        let age = delivery.age(self.service.ports.now());
        // Where nobody ran, what it answers is read at the same time as the answer, however old both are.
        age < AWAITED || delivery.may_wait(self.service.work.deliveries_max)
    }

    /// The question by which an agent was woken, where its answer names the notification of that.
    pub(crate) async fn waking(
        &self,
        answer: &Envelope,
    ) -> Result<Option<Remembered>, HandleError> {
        let named = answer.reply_to.as_deref().and_then(source_of);
        let Some((conversation, sequence)) = named else {
            return Ok(None);
        };
        let Ok(conversation) = Token::new(conversation) else {
            return Ok(None);
        };
        // Anybody may name anything: what there cannot be is not looked for.
        let known = self.conversations.load(&conversation).await?;
        let last = known.sequences.last();
        if last.is_none_or(|last| *last < sequence) {
            return Ok(None);
        }
        let record = match self.service.ports.at::<WakeEvent>(sequence).await {
            Ok(record) if record.meta.id == conversation => record,
            Ok(_) | Err(event_store::Error::Unreadable { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let WakeEvent::Decided(decided) = record.event else {
            return Ok(None);
        };
        let mut woken = decided.woken.iter();
        let is_told = woken.any(|one| one.agent_id == answer.from_agent);
        let is_question = decided.question.is_some();
        Ok((is_told && is_question).then_some(decided.said))
    }

    /// Takes the answer of a synthesiser; none where the message is none.
    pub(crate) async fn synthesised(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<Option<Ack>, HandleError> {
        let Some((id, input)) = read_synthesis(envelope, delivery.stored_at) else {
            return Ok(None);
        };
        if self
            .questions
            .load_up_to(&id, 1)
            .await?
            .state
            .opened
            .is_none()
        {
            return Ok(None);
        }
        let (service, questions) = (&self.service, &self.questions);
        let envelope = envelope.clone();
        handlers::step_of_message(service, questions, id, envelope, &input, delivery)
            .await
            .map(Some)
    }

    /// A deadline of a question has passed.
    pub(crate) async fn elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let id = elapsed.id.clone();
        let known = self.questions.load(&id).await?.state;
        // What everybody is told names the question alone: it may not have been found by the conversation when it was read.
        let unread = self.unread(&id, &known, &[To::Asker, To::All]).await?;
        let cause = EventMeta::decode(&delivery.payload)?.event_id;
        let context = self.service.of_event(cause);
        let input = QuestionInput::Elapsed { elapsed, unread };
        let trace = delivery.trace.clone();
        handlers::step(&self.service, &self.questions, id, context, &input, trace).await
    }

    /// The answers that are stored and not handled yet, while answers count.
    async fn unread(
        &self,
        id: &Token,
        known: &QuestionState,
        told: &[To],
    ) -> Result<Vec<GivenAnswer>, HandleError> {
        let Some(opened) = known.awaiting_answers() else {
            return Ok(Vec::new());
        };
        let asked = opened.asked.iter().map(|asked| &asked.agent);
        let missing: Vec<&AgentId> = asked.filter(|one| !known.has_answer_of(one)).collect();
        let mut found = Vec::new();
        for lane in Lane::ALL {
            let is_own = opened.terms.urgent == (lane == Lane::Urgent);
            let sequence = opened.terms.sequence;
            let start = SearchStart::since_message(is_own, sequence, opened.asked_at);
            let is_wanted = |envelope: &Envelope, at| {
                let read = read_answer(envelope, at)
                    .or_else(|| read_published(envelope, &opened.asker, at));
                let read = read.filter(|(of, _)| of == id);
                read.map(|(_, answer)| answer)
                    .filter(|answer| missing.contains(&&answer.by))
            };
            for to in told {
                let filter = |kind: &Token| self.filter(opened, *to, lane, kind);
                let stored = self.stored(opened, (lane, start), filter, &is_wanted);
                found.extend(stored.await?);
            }
        }
        Ok(found)
    }

    /// The filter of the answers of one type to a question that are told to whoever asked, or to everybody.
    fn filter(&self, opened: &QuestionOpened, to: To, lane: Lane, kind: &Token) -> String {
        let subjects = self.service.ports.subjects();
        match to {
            To::Asker => subjects.between(lane, None, &opened.asker, kind),
            To::All => subjects.told_to_all(lane, opened.case_id.as_ref(), kind),
        }
    }

    /// The stored answers that `wanted` makes something of. It is asked before a payload is fetched, and again with it.
    async fn stored(
        &self,
        opened: &QuestionOpened,
        (lane, start): (Lane, SearchStart),
        filter: impl Fn(&Token) -> String + Send + Sync,
        wanted: impl Fn(&Envelope, Timestamp) -> Option<GivenAnswer> + Send + Sync,
    ) -> Result<Vec<GivenAnswer>, HandleError> {
        let ports = &self.service.ports;
        let (mut found, mut read) = (Vec::new(), BTreeMap::<AgentId, usize>::new());
        for kind in &ANSWERING {
            let filter = filter(&kind.token());
            let mut search = Search::new(lane, &filter, start);
            while let Some(stored) = search.next(ports).await? {
                let at = stored.stored_at;
                let is_wanted = |envelope: &Envelope| wanted(envelope, at).is_some();
                let Some(envelope) = stored.envelope.filter(is_wanted) else {
                    continue;
                };
                let read_of_one = read.entry(envelope.from_agent.clone()).or_default();
                *read_of_one += 1;
                if *read_of_one > READ_OF_ONE_MAX {
                    continue;
                }
                let envelope = ports.readable(envelope).await?;
                if let Some(answer) = envelope.and_then(|one| wanted(&one, at)) {
                    found.push(self.weighed(opened, answer).await?);
                }
            }
        }
        Ok(found)
    }

    /// The answer with its weight: by the track record of who gives it, in the domain that the question states.
    async fn weighed(
        &self,
        opened: &QuestionOpened,
        answer: GivenAnswer,
    ) -> Result<GivenAnswer, HandleError> {
        let Some(domain) = &opened.terms.domain else {
            return Ok(weigh(answer, None));
        };
        let record = self.records.load(&answer.by.token()).await?;
        let query = Query {
            // By the time of the answer, so that everyone who weighs it comes to the same.
            now: answer.at,
            domain: domain.clone(),
            regime: None,
            context: Circumstances::default(),
        };
        let known = credibility_of(&record.state, Version::default(), &query);
        Ok(weigh(answer, Some(&known)))
    }
}
