//! What a reviewer was shown: a review may name the digest of it, and does not count when that is of something else.

use concord_events::CaseOpened;
use concord_wire::payload::{DecisionChange, Review};
use concord_wire::{DebateId, Fault};
use serde_json::json;

use super::state::CaseState;
use crate::digest;

/// Most changes that are named to whoever has seen something else.
const CHANGES_MAX: usize = 3;

/// Where the digest stands in the message.
const POINTER: &str = "/payload/digest";

/// The digest of what is to be reviewed: of the provisional decision of a debate as the case has it, or, for passing the gate
/// ahead, of the gate and the present decision. `None` where there is no such thing.
pub fn digest_of_shown(state: &CaseState, debate: Option<&DebateId>) -> Option<String> {
    let shown = match debate {
        Some(debate) => {
            let outcome = state
                .unreviewed()
                .find(|outcome| outcome.conflict_id == *debate)?;
            serde_json::to_vec(outcome)
        }
        None => {
            let (gate, decision) = (state.gate()?, state.decision.as_ref()?);
            serde_json::to_vec(&json!([gate, decision]))
        }
    };
    // What is stored as JSON can be written as JSON.
    Some(digest(&shown.unwrap_or_default()))
}

/// Checks that the reviewer saw what is there, as far as the review says so or the policy asks for it.
pub(super) fn check(state: &CaseState, opened: &CaseOpened, review: &Review) -> Result<(), Fault> {
    let advice = "Read what is to be reviewed with `concord gate show`, and send the digest that it shows with --digest.";
    match &review.digest {
        None if opened.policy.ladder.digest_required => Err(Fault::invalid(
            POINTER,
            "The policy of this case asks for the digest of what the reviewer saw.",
            advice,
        )),
        None => Ok(()),
        Some(seen) => {
            let present = digest_of_shown(state, review.debate_id.as_ref());
            if present.as_ref() == Some(seen) {
                return Ok(());
            }
            let now = present.unwrap_or_default();
            let advice = format!("{advice} It is {now} now.");
            Err(Fault::invalid(POINTER, changed(state, review), advice))
        }
    }
}

/// What stands now, for somebody who has seen something else.
fn changed(state: &CaseState, review: &Review) -> String {
    const OTHER: &str = "What is to be reviewed is other than what that digest is of";
    if let Some(debate) = &review.debate_id {
        let stands = state
            .outcomes
            .get(debate)
            .and_then(|outcome| outcome.resolution.as_ref())
            .map_or("nothing", |one| one.position.as_str());
        return format!("{OTHER}: now this stands provisionally: {stands}.");
    }
    let latest = state.changes.iter().rev().take(CHANGES_MAX);
    let changes: Vec<String> = latest.map(|(_, change)| in_words(change)).collect();
    if changes.is_empty() {
        return format!("{OTHER}: the gate ahead, or the decision.");
    }
    format!("{OTHER}. The latest changes: {}.", changes.join("; "))
}

fn in_words(change: &DecisionChange) -> String {
    let parts: Vec<&str> = change.changed.iter().map(|one| one.part.as_str()).collect();
    let by = change
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(" by {by}"));
    let version = format!("version {} ({}{by})", change.version, change.status);
    // Where only the standing of a part changed, as from provisional to confirmed, there is none to name.
    if parts.is_empty() {
        return version;
    }
    format!("{version}: {}", parts.join(", "))
}
