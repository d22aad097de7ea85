//! The aggregates of the facilitator, and what is read of them before a debate is opened.

use std::sync::Arc;

use concord_domain::debate::{DebateInput, DebateMachine, Known, Opening};
use concord_domain::precedent::{self, PrecedentMachine};
use concord_domain::queue::QueueMachine;
use concord_domain::record::{RecordMachine, credibility_of};
use concord_protocol::Timestamp;
use concord_protocol::payload::OpenDebate;
use concord_protocol::payload::track_record::{Context, Credibility, Query};
use concord_protocol::policy::{ConflictHandling, VoteRule};
use concord_runtime::consume::Problem;
use concord_runtime::feed::Prepare;
use concord_runtime::nats_ledger::NatsLedger;
use concord_runtime::service::Shell;
use concord_runtime::{Aggregates, step};

/// Earlier debates that are shown to those who decide.
const PRECEDENTS_SHOWN: usize = 5;

type Of<M> = Arc<Aggregates<M, NatsLedger>>;

/// Everything the facilitator owns.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) debates: Of<DebateMachine>,
    pub(crate) queue: Of<QueueMachine>,
    pub(crate) records: Of<RecordMachine>,
    pub(crate) precedents: Of<PrecedentMachine>,
}

impl Stores {
    pub(crate) fn new(shell: &Shell, ledger: &NatsLedger) -> Self {
        let cached_max = shell.work.cached_max;
        Self {
            debates: Arc::new(Aggregates::new(ledger.clone(), cached_max)),
            queue: Arc::new(Aggregates::new(ledger.clone(), cached_max)),
            records: Arc::new(Aggregates::new(ledger.clone(), cached_max)),
            precedents: Arc::new(Aggregates::new(ledger.clone(), cached_max)),
        }
    }

    /// A request with what is known from before, where its policy decides by it.
    pub(crate) async fn opening(&self, request: OpenDebate, now: Timestamp) -> Result<Opening, step::Error> {
        if !needs_the_past(&request) {
            return Ok(Opening::of(request));
        }
        let mut known = Known::default();
        let ladder = &request.policy.ladder;
        for position in &request.conflict.positions {
            let record = self.records.load(&position.agent_id.token()).await?;
            let query = Query {
                now,
                domain: domain_of(&request),
                regime: None,
                context: Context { metric: Some(request.conflict.subject.clone()), ..Context::default() },
            };
            let credibility = credibility_of(&record.state, ladder.credibility, &query);
            // Why it is so is told by `concord record show`; a debate keeps what decides.
            let decisive = Credibility { factors: Vec::new(), ..credibility };
            known.credibility.insert(position.agent_id.clone(), decisive);
        }
        let id = precedent::id_of(request.conflict.kind, &request.conflict.subject);
        let precedents = self.precedents.load(&id).await?;
        known.precedents = precedent::recent(&precedents.state, PRECEDENTS_SHOWN).into_iter().cloned().collect();
        Ok(Opening { request, known })
    }
}

/// In which field track records count: the debate's domain, else what it is about.
pub(crate) fn domain_of(request: &OpenDebate) -> String {
    request.terms.domain.clone().unwrap_or_else(|| request.conflict.subject.clone())
}

fn needs_the_past(request: &OpenDebate) -> bool {
    let policy = &request.policy;
    policy.conflict_handling != ConflictHandling::Vote
        || policy.vote_rule == VoteRule::Credibility
        || request.terms.challenge.is_some()
}

impl Prepare<DebateInput> for Stores {
    async fn prepare(&self, input: DebateInput) -> Result<DebateInput, Problem> {
        match input {
            DebateInput::Open(opening) => {
                let opening = self.opening(opening.request, concord_runtime::clock::now()).await?;
                Ok(DebateInput::Open(Box::new(opening)))
            }
            other => Ok(other),
        }
    }
}
