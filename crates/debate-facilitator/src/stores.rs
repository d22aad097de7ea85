//! The aggregates of the facilitator, and what is read of them before a debate is opened.

use std::collections::BTreeSet;
use std::sync::Arc;

use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::debate::verdicts::domain_of;
use concord_domain::aggregates::debate::{
    DebateInput, DebateMachine, LadderMessage, MessageBody, Opening, OutcomeMessage,
    PriorKnowledge, strategy,
};
use concord_domain::aggregates::impact::{ImpactMachine, ImpactState};
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::precedent::{self, PrecedentMachine};
use concord_domain::aggregates::review_queue::{self, ReviewQueueMachine};
use concord_domain::aggregates::track_record::{TrackRecordMachine, credibility_of};
use concord_domain::aggregates::watch::{self, WatchMachine, WatchState};
use concord_domain::rules::impact::resting::{named, resting_on};
use concord_runtime::delivery::HandleError;
use concord_runtime::delivery::handlers::Prepare;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, People, Ports, event_store::step};
use concord_wire::payload::track_record::{Credibility, Query};
use concord_wire::payload::{OpenDebate, Precedent, PrecedentMatter};
use concord_wire::{AgentId, DebateId, Timestamp, Token};
use futures::future::{TryFutureExt, try_join, try_join3};
use tokio::sync::OnceCell;

/// Earlier debates that are shown to those who decide.
const PRECEDENTS_SHOWN: usize = 10;

type Of<M, P> = Arc<Aggregates<M, P>>;

/// What is read once for all debates of one case that are opened together.
#[derive(Default)]
pub(crate) struct ReadOnce {
    watch: OnceCell<Arc<WatchState>>,
    analyses: OnceCell<Arc<ImpactState>>,
}

/// Everything the facilitator owns.
#[derive(Clone)]
pub(crate) struct Stores<P> {
    pub(crate) ports: P,
    pub(crate) debates: Of<DebateMachine, P>,
    pub(crate) queue: Of<ReviewQueueMachine, P>,
    pub(crate) records: Of<TrackRecordMachine, P>,
    pub(crate) precedents: Of<PrecedentMachine, P>,
    /// Cases are the coordinator's: they are only read, to know who opened them, and for an expert's brief.
    pub(crate) cases: Of<CaseMachine, P>,
    /// So are the analyses of cases: what rests on a conflict is known before it is debated.
    analyses: Of<ImpactMachine, P>,
    /// So is the present regime.
    watch: Of<WatchMachine, P>,
    /// So are people.
    people: People<P>,
}

impl<P: Ports> Stores<P> {
    pub(crate) fn new(context: &ServiceContext<P>) -> Self {
        let cache = &context.cache;
        let ports = &context.ports;
        Self {
            ports: ports.clone(),
            debates: Arc::new(Aggregates::new(ports.clone(), cache)),
            queue: Arc::new(Aggregates::new(ports.clone(), cache)),
            records: Arc::new(Aggregates::new(ports.clone(), cache)),
            precedents: Arc::new(Aggregates::new(ports.clone(), cache)),
            cases: Arc::new(Aggregates::new(ports.clone(), cache)),
            analyses: Arc::new(Aggregates::new(ports.clone(), cache)),
            watch: Arc::new(Aggregates::new(ports.clone(), cache)),
            people: People::new(context),
        }
    }

    /// The input that opens a debate as it is asked for.
    pub(crate) async fn opened(
        &self,
        request: OpenDebate,
        once: &ReadOnce,
    ) -> Result<DebateInput, HandleError> {
        // Boxed, as few inputs need it and all would have to have room for it.
        let opening = Box::pin(self.opening(request, self.ports.now(), once)).await?;
        Ok(DebateInput::Open(Box::new(opening)))
    }

    /// A request with what is known from before: precedents and what rests on it always, track records where its policy decides by them.
    async fn opening(
        &self,
        request: OpenDebate,
        now: Timestamp,
        once: &ReadOnce,
    ) -> Result<Opening, step::Error> {
        let mut request = request;
        let (regime, dependants, mut precedents) = try_join3(
            self.present_regime(&request, once),
            self.dependants(&request, once),
            self.precedents(&request),
        )
        .await?;
        if let Some(present) = &regime {
            // What is looked up below is looked up in the regime in which the debate is held.
            request.terms.circumstances.regime = Some(present.clone());
            precedents = self.precedents(&request).await?;
        }
        let mut known = PriorKnowledge {
            precedents,
            dependants,
            regime,
            ..PriorKnowledge::default()
        };
        let strategy = strategy::of_debate(&request.policy, &request.terms);
        if !strategy.needs_prior_knowledge(&request.policy) {
            return Ok(Opening {
                request,
                prior_knowledge: known,
            });
        }
        let ladder = &request.policy.ladder;
        for position in &request.conflict.positions {
            let record = self.records.load(&position.agent_id.token()).await?;
            let query = Query {
                now,
                domain: domain_of(&request.terms, &request.conflict),
                regime: request.terms.circumstances.regime.clone(),
                context: request
                    .terms
                    .circumstances
                    .judging(&request.conflict.subject),
            };
            let credibility = credibility_of(&record.state, ladder.credibility, &query);
            // Why it is so is told by `concord record show`; a debate keeps what decides.
            let decisive = Credibility {
                factors: Vec::new(),
                held_back: None,
                ..credibility
            };
            known
                .credibility
                .insert(position.agent_id.clone(), decisive);
        }
        Ok(Opening {
            request,
            prior_knowledge: known,
        })
    }

    /// The regime that alerts have named, where it counts in place of the case's.
    async fn present_regime(
        &self,
        request: &OpenDebate,
        once: &ReadOnce,
    ) -> Result<Option<String>, step::Error> {
        // Of a moment ago: an alert reaches the parties of debates in no other order either.
        let id = watch::id();
        let read = self.watch.peek(&id).map_ok(|known| known.state);
        let watch = once.watch.get_or_try_init(|| read).await?;
        if watch.regime.is_none() {
            return Ok(None);
        }
        let case = self.cases.load(&request.case_id.token()).await?.state;
        let stated = request.terms.circumstances.regime.as_deref();
        Ok(watch.regime_of(case.opened_sequence, stated))
    }

    /// Debates of other cases like the one that is to be opened, the newest first.
    async fn precedents(&self, request: &OpenDebate) -> Result<Vec<Precedent>, step::Error> {
        let conflict = &request.conflict;
        let matter = PrecedentMatter {
            kind: conflict.kind,
            subject: conflict.subject.clone(),
            policy: request.policy.preset.clone(),
            domain: request.terms.domain.clone(),
            circumstances: request.terms.circumstances.clone(),
        };
        let exact = precedent::id_of(conflict.kind, &conflict.subject);
        let field = precedent::field_id_of(&matter);
        let (exact, field) =
            try_join(self.precedents.peek(&exact), self.precedents.peek(&field)).await?;
        let own = Box::pin(self.earlier_in_case(request)).await?;
        let known = (&*exact.state, &*field.state);
        let found = precedent::alike_elsewhere(&matter, known, &own, PRECEDENTS_SHOWN);
        Ok(found.into_iter().cloned().collect())
    }

    /// Debates of the same case that may have ended. Those of one detection begin together, so there the case is not even read.
    async fn earlier_in_case(
        &self,
        request: &OpenDebate,
    ) -> Result<BTreeSet<DebateId>, step::Error> {
        let terms = &request.terms;
        if terms.challenge.is_none() && terms.refers_to.is_none() {
            return Ok(BTreeSet::new());
        }
        let case = self.cases.peek(&request.case_id.token()).await?.state;
        let own = case.debated.iter().map(|one| one.conflict_id.clone());
        Ok(own.chain(terms.refers_to.clone()).collect())
    }

    /// The analyses of the case that rest on what is disputed; the first of them by name, and how many more there are.
    async fn dependants(
        &self,
        request: &OpenDebate,
        once: &ReadOnce,
    ) -> Result<Vec<String>, step::Error> {
        let OpenDebate {
            case_id, conflict, ..
        } = request;
        let taken_up = self.taken_up(request).await?;
        let id = case_id.token();
        let read = self.analyses.peek(&id).map_ok(|known| known.state);
        let analyses = once.analyses.get_or_try_init(|| read).await?;
        Ok(named(&resting_on(
            &analyses.graph,
            case_id,
            conflict,
            &taken_up,
        )))
    }

    /// The debates that this one takes up again; an analysis may have used their results.
    async fn taken_up(&self, request: &OpenDebate) -> Result<Vec<DebateId>, step::Error> {
        let Some(earlier) = &request.terms.refers_to else {
            return Ok(Vec::new());
        };
        let case = self.cases.load(&request.case_id.token()).await?.state;
        Ok(case.taken_up(earlier).cloned().collect())
    }

    /// Whether the sender of an outcome has opened the case.
    async fn has_opened(&self, told: &OutcomeMessage) -> Result<bool, step::Error> {
        let Some(case) = &told.case_id else {
            return Ok(false);
        };
        let case = self.cases.load(&case.token()).await?;
        let opened = case.state.opened.as_ref();
        Ok(opened.is_some_and(|opened| opened.opened_by == told.agent_id))
    }

    /// What the sender of a ruling may do. Whoever the queue knows as an expert from before people were registered is an
    /// arbiter.
    async fn arbiter(&self, from: &AgentId) -> Result<Authority, step::Error> {
        let known = self.people.authority(from).await?;
        if known.person.is_some() {
            return Ok(known);
        }
        let queue = self.queue.load(&review_queue::id()).await?;
        let is_expert = queue.state.experts.contains_key(from);
        Ok(if is_expert {
            Authority::of_expert(from)
        } else {
            known
        })
    }
}

impl<P: Ports> Prepare<DebateInput> for Stores<P> {
    async fn prepare(&self, _: &Token, input: DebateInput) -> Result<DebateInput, HandleError> {
        match input {
            DebateInput::Open(opening) => self.opened(opening.request, &ReadOnce::default()).await,
            DebateInput::Outcome(told) => {
                let sender = Box::pin(self.people.authority(&told.agent_id)).await?;
                let opened_case = Box::pin(self.has_opened(&told)).await?;
                Ok(DebateInput::Outcome(Box::new(OutcomeMessage {
                    sender,
                    opened_case,
                    ..*told
                })))
            }
            DebateInput::Message(said) if matches!(said.body, MessageBody::Ruling(_)) => {
                let sender = Box::pin(self.arbiter(&said.agent_id)).await?;
                Ok(DebateInput::Message(Box::new(LadderMessage {
                    sender,
                    ..*said
                })))
            }
            other => Ok(other),
        }
    }
}
