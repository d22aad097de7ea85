//! One case a contract, many at a time.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use concord_domain::Versioned;
use concord_domain::aggregates::case::{CaseMachine, CaseState, Phase};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::{AggregateEvent, CaseEvent};
use concord_runtime::Broker;
use concord_wire::payload::{Decision, OpenCase, SetAsideReason, Status};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Token};
use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::agreement::{Agreement, agreement};
use super::contract::Contract;
use super::{agents, events};
use concord_cli::shared::connection;
use concord_cli::shared::failure::Failure;

/// The longest time without an event of any case. Above the deadline of a case, within which the
/// installation decides by itself.
const SILENCE_MAX: Duration = Duration::from_secs(CASE_TIMEOUT_MS / 1_000 + 60);
const CASE_TIMEOUT_MS: u64 = 900_000;

/// The policy of a panel run: the preset, with more time, because many cases share the same few agents.
fn policy() -> Value {
    json!({
        "preset": "contract-review",
        "finding_timeout_ms": 300_000,
        "answer_timeout_ms": 120_000,
        "case_timeout_ms": CASE_TIMEOUT_MS,
    })
}

/// The counts of one case, which can be added up over many.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Counts {
    /// Conflicts debated or deferred, by type.
    pub(crate) conflicts: BTreeMap<&'static str, u64>,
    /// Debates settled by discussion.
    pub(crate) by_discussion: u64,
    /// Debates settled by vote.
    pub(crate) by_vote: u64,
    /// Debates that settled nothing.
    pub(crate) unresolved: u64,
    /// Conflicts beyond the policy's limit.
    pub(crate) deferred: u64,
    /// Findings that the decision rests on.
    pub(crate) findings: u64,
    /// Findings that came too late, until the decision.
    pub(crate) late: u64,
}

impl Counts {
    fn of(decision: &Decision) -> Self {
        let late = decision
            .set_aside
            .iter()
            .filter(|aside| aside.reason == SetAsideReason::Late);
        let mut counts = Self {
            deferred: decision.deferred.len() as u64,
            findings: decision.findings.len() as u64,
            late: late.count() as u64,
            ..Self::default()
        };
        for conflict in decision.conflicts.iter().chain(&decision.deferred) {
            *counts.conflicts.entry(conflict.kind.as_str()).or_default() += 1;
        }
        for conflict in &decision.conflicts {
            let outcome = decision
                .outcomes
                .iter()
                .find(|outcome| outcome.conflict_id == conflict.conflict_id);
            match outcome.map(|outcome| outcome.status) {
                Some(Status::Discussion) => counts.by_discussion += 1,
                Some(Status::Vote) => counts.by_vote += 1,
                Some(_) | None => counts.unresolved += 1,
            }
        }
        counts
    }

    /// Adds those of another case.
    pub(crate) fn add(&mut self, other: &Self) {
        // All fields by name, so that none can be forgotten.
        let Self {
            conflicts,
            by_discussion,
            by_vote,
            unresolved,
            deferred,
            findings,
            late,
        } = other;
        for (kind, count) in conflicts {
            *self.conflicts.entry(kind).or_default() += count;
        }
        self.by_discussion += by_discussion;
        self.by_vote += by_vote;
        self.unresolved += unresolved;
        self.deferred += deferred;
        self.findings += findings;
        self.late += late;
    }
}

/// The result of one contract's case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CaseResult {
    /// The case.
    pub(crate) case_id: CaseId,
    /// The contract.
    pub(crate) contract_id: String,
    /// The reason for which the case ended; none when it has no decision.
    pub(crate) reason: Option<String>,
    /// The refusal of the coordinator; none where the case was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// From opening to decision.
    pub(crate) took_ms: u64,
    /// The counts of the case.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Participants without a finding.
    pub(crate) missing: Vec<AgentId>,
    /// Comparison with the lawyers, where there are labels.
    pub(crate) lawyers: Option<Agreement>,
}

impl CaseResult {
    fn new(case_id: CaseId, contract: &Contract) -> Self {
        Self {
            case_id,
            contract_id: contract.contract_id.clone(),
            reason: None,
            refused: None,
            took_ms: 0,
            counts: Counts::default(),
            missing: Vec::new(),
            lawyers: None,
        }
    }

    /// Reads the result from a decided case.
    fn decided(case_id: CaseId, contract: &Contract, state: &CaseState) -> Self {
        let mut result = Self::new(case_id, contract);
        let Some(decision) = &state.decision else {
            return result;
        };
        result.reason = Some(decision.reason.clone());
        result.took_ms = state
            .decided_at
            .map_or(0, |decided| decided.millis_since(state.opened_at));
        result.counts = Counts::of(decision);
        result.missing.clone_from(&decision.missing);
        let extractor = state
            .findings
            .iter()
            .find(|received| received.agent_id.as_str() == agents::EXTRACTOR);
        result.lawyers = extractor
            .and_then(|received| agreement(&contract.labels, &received.finding, &decision.outcome));
        result
    }
}

/// A case under way.
struct UnderWay<'a> {
    contract: &'a Contract,
    case: Versioned<CaseMachine>,
}

/// Opens a case for every contract, at most `concurrency` at a time, and waits until all are decided. `progress` is called
/// with each result as it comes.
pub(crate) async fn run(
    broker: &Broker,
    contracts: &[Contract],
    concurrency: usize,
    mut progress: impl FnMut(&CaseResult),
) -> Result<Vec<CaseResult>, Failure> {
    let of_cases = CaseEvent::EVENTS
        .iter()
        .map(|event| broker.subjects().event_of_kind(Aggregate::Case, event.name))
        .collect();
    let mut events = events::follow(broker, of_cases).await?;
    let run = run_name();
    let mut waiting = contracts.iter().enumerate();
    let mut under_way: HashMap<Token, UnderWay<'_>> = HashMap::new();
    let mut results = Vec::with_capacity(contracts.len());
    loop {
        while under_way.len() < concurrency {
            let Some((index, contract)) = waiting.next() else {
                break;
            };
            let case_id = case_id(&run, index, &contract.contract_id);
            let case = Versioned::default();
            under_way.insert(case_id.token(), UnderWay { contract, case });
            if let Some(refused) = open(broker, &case_id, contract).await? {
                under_way.remove(&case_id.token());
                progress(&refused);
                results.push(refused);
            }
        }
        if under_way.is_empty() {
            return Ok(results);
        }
        let event = match tokio::time::timeout(SILENCE_MAX, events.next()).await {
            Ok(Some(event)) => event?,
            Ok(None) => return Err(Failure::failed("the stream of events has ended")),
            Err(_) => return Err(stuck(&under_way)),
        };
        let Some(there) = under_way.get_mut(&event.id) else {
            continue;
        };
        there.case.apply(event.read::<CaseEvent>()?);
        if there.case.state.phase != Phase::Decided {
            continue;
        }
        if let (Some(done), Ok(case_id)) =
            (under_way.remove(&event.id), CaseId::new(event.id.as_str()))
        {
            let result = CaseResult::decided(case_id, done.contract, &done.case.state);
            progress(&result);
            results.push(result);
        }
    }
}

/// Opens the case of a contract. One contract that is refused, as one that is too large for the broker, does not end the
/// others: its result is returned.
async fn open(
    broker: &Broker,
    case_id: &CaseId,
    contract: &Contract,
) -> Result<Option<CaseResult>, Failure> {
    let request = OpenCase {
        case_id: Some(case_id.clone()),
        policy: policy(),
        ..OpenCase::new(agents::names(), contract.task())
    };
    match connection::ask_of_input::<Value>(broker, Service::Coordinator, "open_case", &request)
        .await
    {
        Ok(_) => Ok(None),
        Err(failure) if failure.code() == Failure::DATA => Ok(Some(CaseResult {
            refused: Some(failure.to_string()),
            ..CaseResult::new(case_id.clone(), contract)
        })),
        Err(failure) => Err(failure),
    }
}

fn stuck(under_way: &HashMap<Token, UnderWay<'_>>) -> Failure {
    let mut names: Vec<&str> = under_way.keys().map(Token::as_str).collect();
    names.sort_unstable();
    let (minutes, first) = (SILENCE_MAX.as_secs() / 60, names.first().unwrap_or(&"none"));
    Failure::failed(format!(
        "nothing has happened for {minutes} minutes; {} cases are not decided, first {first}",
        names.len()
    ))
}

/// A name for this run, so that the same contract can be tried again on an installation that is kept.
fn run_name() -> String {
    let millis = concord_runtime::service::clock::now().unix_millis();
    format!("panel-{millis:x}")
}

/// The run, the place in the file, and as much of the contract's id as fits.
fn case_id(run: &str, index: usize, contract_id: &str) -> CaseId {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '-'
        }
    };
    let name: String = contract_id.chars().map(plain).take(32).collect();
    let id = format!("{run}-{}-{name}", index + 1);
    CaseId::new(&id).unwrap_or_else(|_| CaseId::derived(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_contract_id_gives_a_case_id_of_its_own() {
        for (contract, expected) in [
            ("54cc4954f513", "panel-1-7-54cc4954f513"),
            ("a b/c.d*", "panel-1-7-a-b-c-d-"),
            ("", "panel-1-7-"),
        ] {
            assert_eq!(case_id("panel-1", 6, contract).as_str(), expected);
        }
        assert!(case_id(&run_name(), 9_999, &"é".repeat(500)).as_str().len() <= 64);
    }

    #[test]
    fn the_policy_is_one_that_the_coordinator_accepts() {
        let policy = concord_wire::policy::Policy::resolve(&policy(), "").unwrap();
        assert!(policy.case_timeout_ms > policy.finding_timeout_ms);
        assert_eq!(policy.rounds_max, 2);
    }
}
