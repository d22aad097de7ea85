//! Everybody who fits votes on a proposal: yes, no or abstain.

use concord_wire::Fault;
use concord_wire::payload::Majority;
use serde_json::{Value, json};

use super::{MORE_OR_FEWER, Next, Progress, TaskStrategy, no_quorum};

pub(super) struct Poll;

const VOTES: [&str; 3] = ["yes", "no", "abstain"];

impl TaskStrategy for Poll {
    fn after(&self, progress: &Progress<'_>) -> Next {
        match progress.is_active() {
            true => Next::Wait,
            false => counted(progress),
        }
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        counted(progress)
    }

    fn read_result(&self, result: &Value) -> Result<Value, Fault> {
        vote(result).map(Value::from).ok_or_else(|| {
            Fault::invalid(
                "/payload/result",
                "It is no vote.",
                "Give one of \"yes\", \"no\", \"abstain\" as the result, or true or false.",
            )
        })
    }
}

/// The vote that a result is. Specification 2 has true and false.
fn vote(result: &Value) -> Option<&'static str> {
    match result {
        Value::Bool(true) => Some("yes"),
        Value::Bool(false) => Some("no"),
        Value::String(word) => VOTES
            .into_iter()
            .find(|vote| vote.eq_ignore_ascii_case(word.trim())),
        _ => None,
    }
}

fn counted(progress: &Progress<'_>) -> Next {
    let count = |vote: &str| progress.results().filter(|(_, cast)| *cast == vote).count();
    let [yes, no, abstain] = VOTES.map(count);
    let (cast, of) = (yes + no + abstain, progress.parts.len());
    let quorum = progress.quorum(of);
    if cast < quorum {
        return Next::Fail(no_quorum(
            format!("{cast} of {of} have voted; {quorum} must."),
            MORE_OR_FEWER,
        ));
    }
    let accepted = match progress.terms.majority {
        Majority::Majority => yes > no,
        Majority::Supermajority => yes > 0 && yes * 3 >= (yes + no) * 2,
        Majority::Unanimous => yes > 0 && no == 0,
    };
    Next::Complete {
        result: json!({ "accepted": accepted, "yes": yes, "no": no, "abstain": abstain, "of": of }),
        by: progress.results().map(|(agent, _)| agent.clone()).collect(),
        partial: cast < of,
    }
}
