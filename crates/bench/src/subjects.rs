//! The subjects that the measurement publishes on, built where all subjects are.

use concord_protocol::subject::{Lane, Subject, SubjectSpace};
use concord_protocol::{AgentId, CaseId, Recipient, Token};

/// The subject of a message in a case.
pub(crate) fn message(case: &str, from: &str, to: &str, kind: &str) -> anyhow::Result<String> {
    let subject = Subject::Message {
        lane: Lane::Normal,
        case: Some(CaseId::new(case)?),
        from: AgentId::new(from)?,
        to: Recipient::new(to)?,
        kind: Token::new(kind)?,
    };
    Ok(SubjectSpace::default().build(&subject))
}

/// Everything addressed to `to`.
pub(crate) fn inbox(to: &str) -> anyhow::Result<String> {
    Ok(SubjectSpace::default().inbox(Lane::Normal, &Recipient::new(to)?))
}
