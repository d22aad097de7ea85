//! The questions of one round of a debate.

use concord_wire::payload::{Conflict, ConflictView, DebateLimits, PrecedentGuidance, Question};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp, Token};

use super::Effect;

/// What a party is asked in one round.
pub(crate) struct Round<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) conflict: &'a Conflict,
    pub(crate) round: u32,
    pub(crate) rounds_max: u32,
    pub(crate) tokens_max: u32,
    pub(crate) asked: &'a [AgentId],
    pub(crate) due: Timestamp,
    pub(crate) guidance: Option<&'a PrecedentGuidance>,
    pub(crate) added_context: Option<&'a str>,
    pub(crate) dependants: &'a [String],
}

impl Round<'_> {
    /// One question for each party asked.
    pub(crate) fn questions(&self) -> Vec<Effect> {
        let debate_id: DebateId = self.conflict.conflict_id.clone();
        let questions = self.asked.iter().filter_map(|agent| {
            let (own, others): (Vec<_>, Vec<_>) = self
                .conflict
                .positions
                .iter()
                .cloned()
                .partition(|position| position.agent_id == *agent);
            let question = Question {
                debate_id: debate_id.clone(),
                case_id: self.case_id.clone(),
                conflict: ConflictView {
                    conflict_id: debate_id.clone(),
                    kind: self.conflict.kind,
                    topic: self.conflict.topic.clone(),
                    subject: self.conflict.subject.clone(),
                },
                round: self.round,
                max_rounds: self.rounds_max,
                your_position: own.into_iter().next()?,
                other_positions: others,
                guidance: self.guidance.cloned().map(Box::new),
                added_context: self.added_context.map(str::to_owned),
                dependants: self.dependants.to_vec(),
                limits: DebateLimits {
                    max_tokens: self.tokens_max,
                },
                deadline: self.due,
                reply_with: ["agreement", "disagreement", "revision"]
                    .map(Token::fixed)
                    .to_vec(),
            };
            Some(Effect::AskParty {
                to: agent.clone(),
                question: Box::new(question),
            })
        });
        questions.collect()
    }
}
