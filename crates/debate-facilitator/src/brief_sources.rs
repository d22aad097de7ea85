//! What is read of others when an expert is given a debate: the case, the track records of the parties, and what proved right
//! after earlier debates. It is read then and never before, so a debate that no person sees costs nothing.

use concord_domain::aggregates::debate::verdicts::domain_of;
use concord_domain::aggregates::debate::{self, Command, DebateInput, Sources};
use concord_domain::aggregates::track_record::credibility_of;
use concord_events::{DebateEvent, DebateOpened};
use concord_runtime::delivery::HandleError;
use concord_runtime::{Consistency, Ports, Since};
use concord_wire::Token;
use concord_wire::payload::Background;
use concord_wire::payload::track_record::Query;

use crate::stores::Stores;

/// The event that says what proved right after a debate.
const OUTCOME_KNOWN: &str = "outcome_known";

impl<P: Ports> Stores<P> {
    /// What follows from an event, with what the step must know for it.
    pub(crate) async fn informed(
        &self,
        debate: &Token,
        input: DebateInput,
    ) -> Result<DebateInput, HandleError> {
        let DebateInput::Command(command) = input else {
            return Ok(input);
        };
        let command = match *command {
            Command::Assigned {
                expert, contact, ..
            } => Command::Assigned {
                expert,
                contact,
                // Boxed, as few inputs need it and all would have to have room for it.
                background: Box::pin(self.background(debate)).await?.map(Box::new),
            },
            other => other,
        };
        Ok(DebateInput::Command(Box::new(command)))
    }

    async fn background(&self, id: &Token) -> Result<Option<Background>, HandleError> {
        let history = self
            .ports
            .load::<DebateEvent>(id, Since::FIRST, Consistency::Leader)
            .await?
            .records;
        let opened = history.iter().find_map(|record| match &record.event {
            DebateEvent::Opened(opened) => Some(opened),
            _ => None,
        });
        let Some(opened) = opened else {
            return Ok(None);
        };
        let case = self.cases.load(&opened.case_id.token()).await?;
        let sources = self.sources(opened).await?;
        Ok(debate::background(opened, &history, &case.state, sources))
    }

    async fn sources(&self, opened: &DebateOpened) -> Result<Sources, HandleError> {
        let mut sources = Sources::default();
        let query = Query {
            now: self.ports.now(),
            domain: domain_of(&opened.terms, &opened.conflict),
            regime: opened.terms.circumstances.regime.clone(),
            context: opened.terms.circumstances.judging(&opened.conflict.subject),
        };
        let version = opened.policy.ladder.credibility;
        for agent in debate::believed(opened) {
            let record = self.records.load(&agent.token()).await?;
            let mut credibility = credibility_of(&record.state, version, &query);
            // The brief is among the debate's events, which the opener of the case reads: who other openers are is not for them.
            if let Some(held_back) = &mut credibility.held_back {
                held_back.opened_by = None;
            }
            sources.credibility.insert(agent, credibility);
        }
        for precedent in &opened.precedents {
            let earlier = &precedent.debate_id;
            let known = self
                .ports
                .last_named::<DebateEvent>(&earlier.token(), OUTCOME_KNOWN, Consistency::Any)
                .await?;
            if let Some(DebateEvent::OutcomeKnown(known)) = known.map(|record| record.event) {
                sources.proved.insert(earlier.clone(), *known);
            }
        }
        Ok(sources)
    }
}
