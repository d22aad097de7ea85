//! Opening a task: what can be asked for, and who is asked first.

use concord_events::{TaskEvent, TaskOpened, TaskStep};
use concord_wire::payload::{BIDS_MS, Criteria, OpenTask, Task};
use concord_wire::{AgentId, ErrorCode, Fault, Priority};

use super::strategy::{self, TaskStrategy};
use super::{OpenedTask, TaskState};
use crate::aggregates::case::reused_message_id;
use crate::aggregates::person::Act;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::json_bytes;

/// Most agents that one task is given to at once.
pub const AGENTS_MAX: usize = 64;
/// The longest that a task may take, in milliseconds: thirty days.
pub const TASK_MS_MAX: u64 = 30 * 86_400_000;
/// Most bytes of what is to be done, as JSON. Each agent is sent it, and each assignment stores it.
const WORK_BYTES_MAX: usize = 32 * 1024;
/// Most names in one list of the criteria.
const NAMES_MAX: usize = AGENTS_MAX;
/// Most bytes of a name or text of the criteria.
const NAME_BYTES_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The largest weight of a part of a bid.
const WEIGHT_MAX: f64 = 1_000.0;

pub(super) fn open(
    state: &TaskState,
    context: &Context,
    asked: &OpenedTask,
) -> Decision<TaskEvent> {
    if let Some(opened) = &state.opened {
        let same = (&opened.opened_by, &opened.request_id, &opened.terms)
            == (&asked.opened_by, &asked.request_id, &asked.terms);
        return match (same, &asked.terms.task_id) {
            (true, _) => Decision::Ignore(Ignored::Repetition),
            (false, Some(task_id)) => Decision::Reject(Fault::invalid(
                "/payload/parameters/task_id",
                format!("The task {task_id} exists already."),
                "Choose another task_id, or leave it out and one is made.",
            )),
            (false, None) => Decision::Reject(reused_message_id()),
        };
    }
    match begin(context, asked) {
        Ok(opened) => Decision::Append(TaskEvent::Opened(opened)),
        Err(fault) => Decision::Reject(fault),
    }
}

fn begin(context: &Context, asked: &OpenedTask) -> Result<TaskOpened, Fault> {
    asked.sender.allow(&asked.opened_by, &Act::Open)?;
    let terms = &asked.terms;
    let strategy = check_terms(terms)?;
    let agents: Vec<AgentId> = asked
        .candidates
        .iter()
        .map(|candidate| candidate.agent.clone())
        .collect();
    check_agents(strategy, &agents, terms)?;
    let mut next = TaskStep::default();
    if strategy.opens_case() {
        // Its participants are asked by the case.
    } else if strategy.calls_for_proposals() {
        next.call = agents;
    } else if strategy.asks_one() {
        let with_room = asked.candidates.iter().find(|candidate| !candidate.full);
        let first = with_room.or(asked.candidates.first());
        next.ask = first.iter().map(|one| one.agent.clone()).collect();
    } else {
        next.ask = agents;
    }
    let bids_due = strategy.calls_for_proposals().then(|| {
        // Whoever is given a short task needs some of its time.
        let usual = BIDS_MS.min(terms.deadline_ms / 2);
        context.now.plus_millis(terms.bids_ms.unwrap_or(usual))
    });
    Ok(TaskOpened {
        opened_by: asked.opened_by.clone(),
        request_id: asked.request_id.clone(),
        terms: terms.clone(),
        candidates: asked.candidates.clone(),
        due: context.now.plus_millis(terms.deadline_ms),
        bids_due,
        next,
    })
}

fn check_terms(terms: &OpenTask) -> Result<&'static dyn TaskStrategy, Fault> {
    let Some(strategy) = strategy::named(&terms.strategy) else {
        let names: Vec<&str> = strategy::ALL.iter().map(|(name, _)| *name).collect();
        let shown: String = terms.strategy.chars().take(64).collect();
        return Err(Fault::invalid(
            "/payload/parameters/strategy",
            format!("There is no strategy {shown:?}."),
            format!("Use one of {}.", names.join(", ")),
        ));
    };
    check_task(&terms.task)?;
    check_criteria(&terms.criteria)?;
    check_times(terms)?;
    check_numbers(terms)?;
    strategy.check_terms(terms)?;
    Ok(strategy)
}

fn check_task(task: &Task) -> Result<(), Fault> {
    let bytes = json_bytes(task);
    if bytes <= WORK_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload/parameters/task",
        format!("The task has {bytes} bytes as JSON; at most {WORK_BYTES_MAX} are accepted."),
        "Give a reference to what is large instead of the thing itself.",
    ))
}

fn check_criteria(criteria: &Criteria) -> Result<(), Fault> {
    let too_much = |field: &str| {
        Fault::new(
            ErrorCode::CapacityExceeded,
            format!("/payload/parameters/criteria/{field}"),
            "There is too much of it.",
            format!(
                "Give at most {NAMES_MAX} names of at most {NAME_BYTES_MAX} bytes, and at most {TEXT_BYTES_MAX} bytes of text."
            ),
        )
    };
    for (field, names) in [("skills", &criteria.skills), ("domains", &criteria.domains)] {
        let is_long = |name: &String| name.len() > NAME_BYTES_MAX;
        if names.len() > NAMES_MAX || names.iter().any(is_long) {
            return Err(too_much(field));
        }
    }
    if criteria.agents.len() > NAMES_MAX {
        return Err(too_much("agents"));
    }
    let text = criteria.text.as_ref();
    match text.is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
        true => Err(too_much("text")),
        false => Ok(()),
    }
}

fn check_times(terms: &OpenTask) -> Result<(), Fault> {
    let times = [
        ("deadline_ms", Some(terms.deadline_ms), TASK_MS_MAX),
        ("answer_ms", terms.answer_ms, TASK_MS_MAX),
        (
            "bids_ms",
            terms.bids_ms,
            terms.deadline_ms.saturating_sub(1),
        ),
    ];
    for (field, stated, most) in times {
        if let Some(stated) = stated.filter(|stated| !(1..=most).contains(stated)) {
            return Err(Fault::invalid(
                format!("/payload/parameters/{field}"),
                format!("{field} is {stated}."),
                format!("Give 1 to {most} milliseconds."),
            ));
        }
    }
    Ok(())
}

fn check_numbers(terms: &OpenTask) -> Result<(), Fault> {
    if terms.priority > Priority::High {
        return Err(Fault::invalid(
            "/payload/parameters/priority",
            "Tasks wait in three classes.",
            "Use low, normal or high.",
        ));
    }
    if !(0.0..=1.0).contains(&terms.tolerance) {
        return Err(Fault::invalid(
            "/payload/parameters/tolerance",
            format!("tolerance is {}.", terms.tolerance),
            "Give a share from 0 to 1, for example 0.05.",
        ));
    }
    let weights = &terms.weights;
    let all = [
        weights.price,
        weights.time,
        weights.confidence,
        weights.capability,
        weights.reliability,
    ];
    let is_usable = all.iter().all(|one| (0.0..=WEIGHT_MAX).contains(one));
    if is_usable && all.iter().sum::<f64>() >= f64::EPSILON {
        return Ok(());
    }
    Err(Fault::invalid(
        "/payload/parameters/weights",
        "The weights cannot be used.",
        format!("Give numbers from 0 to {WEIGHT_MAX}, at least one of them above 0."),
    ))
}

fn check_agents(
    strategy: &dyn TaskStrategy,
    agents: &[AgentId],
    terms: &OpenTask,
) -> Result<(), Fault> {
    if agents.is_empty() && !strategy.has_members() {
        return Err(Fault::new(
            ErrorCode::AgentUnavailable,
            "/payload/parameters/criteria",
            "No agent is eligible: nobody who fits is registered and there, or only who opens the task.",
            "Ask with find_agents who there is, and widen the criteria.",
        ));
    }
    if agents.len() > AGENTS_MAX && !strategy.asks_one() {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/parameters/criteria",
            format!("More than {AGENTS_MAX} agents fit."),
            "Narrow the criteria, or name the agents.",
        ));
    }
    let most = agents.len().min(AGENTS_MAX);
    let quorum = terms.quorum.and_then(|quorum| usize::try_from(quorum).ok());
    let is_possible = |quorum: usize| quorum > 0 && (quorum <= most || strategy.has_members());
    match quorum.filter(|quorum| !is_possible(*quorum)) {
        Some(quorum) => Err(Fault::invalid(
            "/payload/parameters/quorum",
            format!("The quorum is {quorum}, and {most} agents are asked."),
            "Give a number from 1 to the number of agents, or leave it out for more than half.",
        )),
        None => Ok(()),
    }
}

/// About how many bytes of messages follow: everybody who is asked is sent the task.
pub(super) fn fan_out_bytes(asked: &OpenedTask) -> usize {
    let asks_one = strategy::named(&asked.terms.strategy).is_none_or(TaskStrategy::asks_one);
    let count = if asks_one { 1 } else { asked.candidates.len() };
    json_bytes(&asked.terms.task).saturating_mul(count)
}
