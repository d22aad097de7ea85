//! Who is in a case, and so shares its board, its commitments and its briefing.
//!
//! | who                        | reads | writes, while the case is not over |
//! |----------------------------|-------|------------------------------------|
//! | a participant              | yes   | yes                                |
//! | who opened the case        | yes   | yes                                |
//! | an operator                | yes   | yes                                |
//! | an auditor                 | yes   | no                                 |
//! | everybody else             | no    | no                                 |
//!
//! Whoever is suspended does neither.

use concord_events::CaseOpened;
use concord_wire::payload::{ConflictOutcome, Role, Status};
use concord_wire::{AgentId, ErrorCode, Fault};

use super::state::{CaseState, Phase};
use crate::aggregates::memory::WrittenIn;
use crate::aggregates::person::Authority;

/// What somebody does with what a case shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Reads it.
    Read,
    /// Changes it.
    Write,
}

/// Who is told what concerns a case: the participants, and who opened it. Each is addressed alone, so that it also reaches agents
/// that are hosted.
pub fn everyone_in(opened: &CaseOpened) -> Vec<AgentId> {
    let opener = Some(&opened.opened_by).filter(|opener| !opened.participants.contains(opener));
    opened.participants.iter().chain(opener).cloned().collect()
}

/// Whose messages a deadline of the case waits for: those of everyone in it, as long as it is not decided.
pub fn heard_in_time(case: &CaseState) -> Vec<AgentId> {
    let opened = case.opened.as_ref();
    let opened = opened.filter(|_| case.phase < Phase::Decided);
    opened.map_or_else(Vec::new, |opened| everyone_in(opened))
}

/// Whether everyone in the case is told together, and nobody alone, that a debate has ended so: where its parties have settled it
/// themselves or by vote. They have heard each other, and so many messages for each case would cost more than the debate.
pub fn is_told_together(status: Status) -> bool {
    matches!(
        status,
        Status::Discussion | Status::Vote | Status::Unresolved
    )
}

/// Who is told alone how a debate has ended: everyone in the case, or nobody where all are told together.
pub fn told_alone(opened: &CaseOpened, outcome: &ConflictOutcome) -> Vec<AgentId> {
    if is_told_together(outcome.status) {
        Vec::new()
    } else {
        everyone_in(opened)
    }
}

/// The case as far as an entry of shared memory that is written in it must know it; none where its policy tells nobody of entries.
pub fn written_in(case: &CaseState) -> Option<WrittenIn> {
    let opened = case.opened.as_ref()?;
    let policy = &opened.policy.importance;
    policy.filtered.then(|| WrittenIn {
        policy: policy.clone(),
        everyone: everyone_in(opened),
        debate_is_open: case.open_debates().next().is_some(),
        regime_changed: !case.flags.is_empty(),
    })
}

/// Checks that `who` is in the case and may do this in it.
pub fn check_member(
    case: &CaseState,
    who: &AgentId,
    authority: &Authority,
    sharing: Sharing,
) -> Result<(), Fault> {
    let Some(opened) = &case.opened else {
        return Err(no_such_case());
    };
    authority.check_active(who)?;
    let is_inside = opened.participants.contains(who)
        || opened.opened_by == *who
        || authority.holds(Role::Operator);
    let reads = is_inside || authority.holds(Role::Auditor);
    match sharing {
        Sharing::Read if reads => Ok(()),
        Sharing::Write if is_inside && !case.is_over() => Ok(()),
        Sharing::Write if is_inside => Err(Fault::new(
            ErrorCode::Timeout,
            "",
            "The case is over; nothing that it shares changes any more.",
            "Read what there is, or open another case.",
        )),
        _ => Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            format!("{who} is not in this case."),
            "Ask whoever opened it to name you as a participant; an operator or auditor can read it.",
        )),
    }
}

/// The fault for a message about a case that was never opened.
pub(super) fn no_such_case() -> Fault {
    Fault::invalid(
        "/case_id",
        "There is no such case.",
        "Use the case id of the task assignment you were sent, or open the case first.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregates::case::{CaseInput, CaseMachine};
    use crate::fixtures::*;

    fn opened() -> Story<CaseMachine> {
        let mut story = Story::<CaseMachine>::of("c-1");
        story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
        story
    }

    #[test]
    fn the_table_of_who_is_in_a_case() {
        let mut story = opened();
        let nobody = Authority::default();
        let suspended = |name| Authority {
            suspended: Some("on leave".into()),
            ..authority(name, &[])
        };
        let rows = [
            ("ann", nobody.clone(), true, true),
            ("olga", nobody.clone(), true, true),
            ("opal", authority("opal", &[Role::Operator]), true, true),
            ("audrey", authority("audrey", &[Role::Auditor]), true, false),
            ("eve", authority("eve", &[Role::Arbiter]), false, false),
            ("mallory", nobody, false, false),
            ("ben", suspended("ben"), false, false),
        ];
        let check = |story: &Story<CaseMachine>, name: &str, authority: &Authority, sharing| {
            check_member(story.state(), &agent(name), authority, sharing).is_ok()
        };
        for (name, authority, reads, writes) in &rows {
            assert_eq!(
                check(&story, name, authority, Sharing::Read),
                *reads,
                "{name}"
            );
            assert_eq!(
                check(&story, name, authority, Sharing::Write),
                *writes,
                "{name}"
            );
        }
        let cancel = CaseInput::Cancel {
            by: agent("opal"),
            why: "a mistake".into(),
        };
        assert_eq!(story.hears(&said("m-2", 1), &cancel), "cancelled");
        for (name, authority, reads, _) in &rows {
            assert_eq!(
                check(&story, name, authority, Sharing::Read),
                *reads,
                "{name}"
            );
            assert!(!check(&story, name, authority, Sharing::Write), "{name}");
        }
    }

    #[test]
    fn nobody_is_in_a_case_that_was_never_opened() {
        let fault = check_member(
            &CaseState::default(),
            &agent("ann"),
            &Authority::of_installation(),
            Sharing::Read,
        );
        assert_eq!(fault.unwrap_err().pointer, "/case_id");
    }
}
