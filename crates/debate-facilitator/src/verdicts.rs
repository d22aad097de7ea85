//! What people decided enters the track records of those who held a position, and the precedents.

use concord_domain::precedent;
use concord_domain::record::Observe;
use concord_domain::{Context, vote};
use concord_protocol::event::{DebateOpened, DebateResolved};
use concord_protocol::payload::track_record::{Context as Circumstances, Source};
use concord_protocol::payload::{ConflictOutcome, Observation, Position, Precedent, Status};
use concord_protocol::{AgentId, Timestamp};
use concord_runtime::Trace;
use concord_runtime::consume::Problem;
use concord_runtime::feed;
use concord_runtime::service::Shell;

use crate::stores::Stores;

/// Enters the end of a debate.
pub(crate) async fn enter(
    shell: &Shell,
    stores: &Stores,
    context: &Context,
    trace: &Option<Trace>,
    resolved: &DebateResolved,
) -> Result<(), Problem> {
    let outcome = &resolved.outcome;
    let debate = stores.debates.load(&outcome.conflict_id.token()).await?;
    let Some(opened) = debate.state.opened.clone() else { return Ok(()) };
    let provisional = debate.state.ladder.as_ref().and_then(|ladder| ladder.provisional.as_ref());
    for observe in observations(&opened, provisional, resolved, context.now) {
        let (agent, observe) = observe;
        feed::step(shell, &stores.records, agent.token(), context.clone(), &observe, trace.clone()).await?;
    }
    if outcome.resolution.is_some() {
        let id = precedent::id_of(opened.conflict.kind, &opened.conflict.subject);
        let precedent = precedent_of(resolved);
        feed::step(shell, &stores.precedents, id, context.clone(), &precedent, trace.clone()).await?;
    }
    Ok(())
}

/// Who was right and who was not, where a person has said so.
fn observations(
    opened: &DebateOpened,
    provisional: Option<&ConflictOutcome>,
    resolved: &DebateResolved,
    now: Timestamp,
) -> Vec<(AgentId, Observe)> {
    let outcome = &resolved.outcome;
    let source = match outcome.status {
        Status::Ruling | Status::Confirmed => Source::Ruling,
        Status::Overridden => Source::Override,
        _ => return Vec::new(),
    };
    let (Some(right), Some(ruled)) = (&outcome.resolution, &outcome.ruled_by) else { return Vec::new() };
    let stood = provisional.and_then(|provisional| provisional.resolution.as_ref());
    let domain = opened.terms.domain.clone().unwrap_or_else(|| opened.conflict.subject.clone());
    let observed = outcome.positions.iter().map(|held| {
        let overridden = source == Source::Override && stood.is_some_and(|one| one.supporters.contains(&held.agent_id));
        let observation = Observation {
            at: outcome.resolved_at.min(now),
            correct: is_held(opened, held, right),
            domain: domain.clone(),
            regime: None,
            context: Circumstances { metric: Some(opened.conflict.subject.clone()), ..Circumstances::default() },
            source,
            overridden,
        };
        let observe = Observe {
            observation,
            debate_id: Some(outcome.conflict_id.clone()),
            case_id: Some(resolved.case_id.clone()),
            by: ruled.expert.clone(),
        };
        (held.agent_id.clone(), observe)
    });
    observed.collect()
}

/// Whether a position is the one that was decided on, by the comparison of the vote.
fn is_held(opened: &DebateOpened, held: &Position, right: &concord_protocol::payload::Resolution) -> bool {
    let decided = Position { position: right.position.clone(), value: right.value.clone(), ..held.clone() };
    vote::option_count(opened.conflict.kind, &opened.policy, &[held.clone(), decided]) == 1
}

fn precedent_of(resolved: &DebateResolved) -> Precedent {
    let outcome = &resolved.outcome;
    Precedent {
        debate_id: outcome.conflict_id.clone(),
        topic: resolved.topic.clone(),
        position: outcome.resolution.as_ref().map(|one| one.position.clone()).unwrap_or_default(),
        level: outcome.level.map_or(1, u8::from),
        status: outcome.status.as_str().to_owned(),
        at: outcome.resolved_at,
    }
}
