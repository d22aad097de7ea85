//! People: who may do what in a case, and which names are free.
//!
//! A name is that of a person or of an agent, or an agent could speak with the roles of a person. Each is an aggregate of its own, so the
//! other one is read before a name is given away. Two who are registered at the same moment may both have it: then it has no roles
//! of a person ([`People::authority`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_domain::aggregates::agent::{AgentInput, AgentMachine};
use concord_domain::aggregates::board::BoardMachine;
use concord_domain::aggregates::case::{
    CaseInput, OpenRequest, ReceivedChallenge, ReceivedReview, SharedNow, sent_bytes,
};
use concord_domain::aggregates::commitment::CommitmentMachine;
use concord_domain::aggregates::person::{Authority, PersonInput};
use concord_runtime::delivery::HandleError;
use concord_runtime::delivery::handlers::Prepare;
use concord_runtime::{Aggregates, People, Ports};
use concord_wire::envelope::from_json;
use concord_wire::payload::{PersonKind, PersonRecord};
use concord_wire::{AgentId, ErrorCode, Fault, Token};
use futures::future::try_join3;
use serde::Deserialize;

use crate::openers::Openers;
use crate::policies::Policies;

/// What is read before something is decided: who is registered, people and agents, which policies are stored, and what openers
/// have of their quotas.
#[derive(Clone)]
pub(crate) struct Names<P> {
    pub(crate) people: People<P>,
    pub(crate) agents: Arc<Aggregates<AgentMachine, P>>,
    pub(crate) policies: Policies<P>,
    pub(crate) openers: Openers<P>,
    pub(crate) boards: Arc<Aggregates<BoardMachine, P>>,
    pub(crate) commitments: Arc<Aggregates<CommitmentMachine, P>>,
}

impl<P: Ports> Names<P> {
    /// What a case shares, for whoever joins it.
    async fn shared_now(&self, case: &Token) -> Result<SharedNow, HandleError> {
        let board = self.boards.load(case).await?.state;
        let commitments = self.commitments.load(case).await?.state;
        Ok(SharedNow {
            board: board.listings(),
            leases: commitments.leases.values().cloned().collect(),
        })
    }

    /// What those may do now who were the first of two reviewers in a case.
    async fn first_reviewers(
        &self,
        case: &Token,
    ) -> Result<BTreeMap<AgentId, Authority>, HandleError> {
        let case = self.openers.cases.load(case).await?;
        let mut first = BTreeMap::new();
        for (reviewer, _) in &case.state.first_reviews {
            let now = self.people.authority(reviewer).await?;
            first.insert(reviewer.clone(), now);
        }
        Ok(first)
    }

    /// Checks that no person bears the name of an agent.
    async fn check_agent(&self, agent: &AgentId) -> Result<(), HandleError> {
        let known = self.people.authority(agent).await?;
        match known.person {
            Some(person) if person.kind == PersonKind::Person => Err(Fault::new(
                ErrorCode::Unauthorized,
                "/payload/parameters/agent_id",
                format!("{agent} is the name of a person in this installation."),
                "Give the agent another id.",
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Checks that no agent bears the name of a person.
    async fn check_person(&self, person: &PersonRecord) -> Result<(), HandleError> {
        if person.kind == PersonKind::Agent {
            return Ok(());
        }
        let known = self.agents.load(&person.name.token()).await?;
        if known.state.card.is_none() {
            return Ok(());
        }
        let name = &person.name;
        Err(Fault::invalid(
            "/person/name",
            format!("{name} is registered as an agent, and an agent cannot act as a person."),
            format!(
                "Give the person another name; or take the agent off the register first: concord agents deregister {name}"
            ),
        )
        .into())
    }
}

impl<P: Ports> Prepare<AgentInput> for Names<P> {
    async fn prepare(&self, _: &Token, input: AgentInput) -> Result<AgentInput, HandleError> {
        if let AgentInput::Register { card, .. } = &input {
            self.check_agent(&card.agent_id).await?;
        }
        Ok(input)
    }
}

impl<P: Ports> Prepare<PersonInput> for Names<P> {
    async fn prepare(&self, _: &Token, input: PersonInput) -> Result<PersonInput, HandleError> {
        if let PersonInput::Register { person, .. } = &input {
            self.check_person(person).await?;
        }
        Ok(input)
    }
}

/// What a sender may do goes with each input that not everybody may send.
impl<P: Ports> Prepare<CaseInput> for Names<P> {
    async fn prepare(&self, id: &Token, input: CaseInput) -> Result<CaseInput, HandleError> {
        Ok(match input {
            CaseInput::Open(asked) => {
                let (sender, known, is_open) = Box::pin(try_join3(
                    self.people.authority(&asked.opened_by),
                    self.policies.known(&asked.request.policy),
                    self.openers.is_open(id),
                ))
                .await?;
                let asked = OpenRequest {
                    sender,
                    known,
                    ..*asked
                };
                self.openers.admit(id, &asked, is_open).await?;
                CaseInput::Open(Box::new(asked))
            }
            CaseInput::Challenge(received) => {
                let sender = self.people.authority(&received.heard.agent_id).await?;
                let received = ReceivedChallenge {
                    sender,
                    ..*received
                };
                self.openers.admit_challenge(id, &received).await?;
                CaseInput::Challenge(Box::new(received))
            }
            CaseInput::Add(received) => {
                let mut received = received;
                // An order by request and reply is that of an operator, who has been checked.
                if received.request.is_some() {
                    received.sender = self.people.authority(&received.by).await?;
                }
                received.shared = self.shared_now(id).await?;
                let case = self.openers.cases.load(id).await?.state;
                received.sent_bytes = sent_bytes(&case, &received);
                CaseInput::Add(received)
            }
            CaseInput::Review(received) => {
                let sender = self.people.authority(&received.heard.agent_id).await?;
                let first = self.first_reviewers(id).await?;
                CaseInput::Review(Box::new(ReceivedReview {
                    sender,
                    first,
                    ..*received
                }))
            }
            other => other,
        })
    }

    async fn decided(&self, id: &Token, input: &CaseInput) -> Result<(), HandleError> {
        match input {
            CaseInput::Open(asked) => self.openers.settle(id, &asked.opened_by).await,
            _ => Ok(()),
        }
    }
}

/// `register_person`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registration {
    person: PersonRecord,
    by: AgentId,
}

/// The person that an operator registers.
pub(crate) fn read_registration(request: &[u8]) -> Result<(Token, PersonInput), Fault> {
    let Registration { person, by } = from_json(request, "")?;
    let id = person.name.token();
    let person = Box::new(person);
    Ok((id, PersonInput::Register { person, by }))
}

/// `suspend_person` and `resume_person`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    name: AgentId,
    by: AgentId,
    #[serde(default)]
    why: String,
}

/// The person whom an operator suspends.
pub(crate) fn read_suspension(request: &[u8]) -> Result<(Token, PersonInput), Fault> {
    let Order { name, by, why } = from_json(request, "")?;
    Ok((name.token(), PersonInput::Suspend { name, by, why }))
}

/// The person whom an operator lets act again.
pub(crate) fn read_resumption(request: &[u8]) -> Result<(Token, PersonInput), Fault> {
    let Order { name, by, why } = from_json(request, "")?;
    Ok((name.token(), PersonInput::Resume { name, by, why }))
}
