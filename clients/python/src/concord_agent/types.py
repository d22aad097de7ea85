"""What is said, by message type. Generated from proto-schemas/ by clients/python/generate.py; do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Timestamp = str


class Acknowledgement(TypedDict):
    """The payload of `acknowledgement`: the challenged agent has seen the challenge."""

    commit_by: NotRequired[Timestamp | None]
    note: NotRequired[str | None]


Priority = Literal["low", "normal", "high", "critical", "system_critical"]


class CardAction(TypedDict):
    """An action that an agent can be asked for, beside the standard ones."""

    description: NotRequired[str]
    name: str
    parameters: NotRequired[dict[str, Any] | None]
    result: NotRequired[dict[str, Any] | None]


AgentId = str
Dialect = Literal["concord", "panel", "collaboration", "analyst", "session", "exchange"]
Encoding = Literal["identity", "gzip", "zstd"]


class Skill(TypedDict):
    """One thing that an agent can do."""

    description: NotRequired[str]
    examples: NotRequired[list[str]]
    name: str
    tags: NotRequired[list[str]]


class Card(TypedDict):
    """The description that an agent gives of itself."""

    actions: NotRequired[list[CardAction]]
    agent_id: AgentId
    capacity: NotRequired[int | None]
    description: NotRequired[str]
    dialect: NotRequired[Dialect]
    domains: NotRequired[list[str]]
    encodings: NotRequired[list[Encoding]]
    heartbeat_ms: NotRequired[int | None]
    name: NotRequired[str | None]
    skills: NotRequired[list[Skill]]
    triggers: NotRequired[list[str]]
    version: NotRequired[str | None]


AgentStatus = Literal["available", "busy", "unavailable"]


class AgentJoined(TypedDict):
    """The payload of `agent_joined`."""

    card: Card
    status: AgentStatus


class Answer(TypedDict):
    """The payload of `agreement`, `disagreement` and `revision`: what a party answers, and what the other parties are told of it."""

    agrees_with: NotRequired[AgentId | None]
    agrees_with_peer: NotRequired[bool | None]
    answered_by: NotRequired[AgentId | None]
    confidence: NotRequired[float | None]
    evidence: NotRequired[list[str]]
    reasoning: NotRequired[str]
    revised_position: NotRequired[str | None]
    value: NotRequired[Any]


Token = str


class AlertSource(TypedDict):
    """Which rule has raised an alert, and by which entry of memory."""

    agent: AgentId
    because: str
    rule: Token
    rules_version: int
    topic: Token
    version: int


class Alert(TypedDict):
    """The payload of an `alert`."""

    alert: NotRequired[Token | None]
    confidence: NotRequired[float | None]
    event_type: str
    evidence: NotRequired[list[str]]
    implications: NotRequired[dict[str, Any]]
    new_regime: NotRequired[str | None]
    new_state: NotRequired[Any]
    old_regime: NotRequired[str | None]
    old_state: NotRequired[Any]
    raised_by: NotRequired[AgentId | None]
    recommended_actions: NotRequired[list[str]]
    source: NotRequired[AlertSource | None]


class Bid(TypedDict):
    """The payload of `bid`."""

    capability: NotRequired[float]
    confidence: float
    price: float
    proposal: NotRequired[str]
    time_ms: int


class Task(TypedDict):
    """The matter of a case."""

    input: NotRequired[Any]
    title: NotRequired[str]
    type: str


HandedContext = TypedDict('HandedContext', {
    'context': 'NotRequired[Any]',
    'from': 'AgentId',
    'reason': 'NotRequired[str]',
})


class Work(TypedDict):
    """What an agent that is given a task by a strategy knows of it."""

    handed_on: NotRequired[HandedContext | None]
    result_bytes_max: int
    strategy: str
    task_id: Token


class Award(TypedDict):
    """The payload of `award`: the bidder is to do the task."""

    bid: NotRequired[Bid | None]
    deadline: Timestamp
    reply_with: list[Token]
    task: Task
    work: Work


class BidWeights(TypedDict):
    """What each part of a bid weighs."""

    capability: NotRequired[float]
    confidence: NotRequired[float]
    price: NotRequired[float]
    reliability: NotRequired[float]
    time: NotRequired[float]


class CallForProposals(TypedDict):
    """The payload of `call_for_proposals`: who does this, and for what? Answered by a `bid` or a `refuse`."""

    bids_due: Timestamp
    deadline: Timestamp
    reply_with: list[Token]
    task: Task
    task_id: Token
    weights: BidWeights


MessageId = str


class ConfidenceInterval(TypedDict):
    """A confidence interval of a proportion."""

    high: float
    low: float


class HistoricalContext(TypedDict):
    """What an agent says about earlier cases."""

    confidence_interval: NotRequired[ConfidenceInterval | None]
    my_accuracy_on_pattern: NotRequired[float | None]
    observations: NotRequired[int | None]
    pattern_success_rate: NotRequired[float | None]
    similar_patterns: NotRequired[list[dict[str, Any]]]


DebatePriority = Literal["critical-path", "valuation", "supporting", "valuation-impact", "supporting-analysis"]


class Challenge(TypedDict):
    """The payload of `challenge`: one agent disputes another's finding on purpose."""

    added_context: NotRequired[str | None]
    challenge_basis: str
    challenge_id: NotRequired[MessageId | None]
    challenged: AgentId
    challenged_value: NotRequired[Any]
    challenger: AgentId
    dependants: NotRequired[list[str]]
    disputed_finding: str
    domain: NotRequired[str | None]
    escalation_timer: NotRequired[int | None]
    evidence: NotRequired[list[str]]
    finding_id: NotRequired[MessageId | None]
    historical_context: NotRequired[HistoricalContext | None]
    metric: NotRequired[str | None]
    position: NotRequired[str | None]
    priority: NotRequired[DebatePriority]
    provisional_resolution: NotRequired[Any]
    required_evidence: NotRequired[list[str]]
    value: NotRequired[Any]


class Clarification(TypedDict):
    """The payload of `clarification`: a question or an answer between challenger and challenged."""

    text: str


class CollaborationInvite(TypedDict):
    """The payload of `collaboration_invite`: an agent asks another to work with it."""

    also_invited: NotRequired[list[AgentId]]
    content: NotRequired[str | None]
    purpose: NotRequired[str | None]
    role: NotRequired[str | None]


CommitmentAct = Literal["commit", "renew", "release"]


class Commitment(TypedDict):
    """The payload of `commitment`, to the coordinator."""

    act: NotRequired[CommitmentAct]
    lease_ms: NotRequired[int | None]
    resource: str
    why: NotRequired[str]


class Confirmation(TypedDict):
    """The payload of `confirmation`."""

    author: NotRequired[AgentId | None]
    confirms: MessageId
    reasoning: NotRequired[str | None]


ErrorCode = Literal[
    "AGENT_UNAVAILABLE",
    "INVALID_REQUEST",
    "TIMEOUT",
    "CAPACITY_EXCEEDED",
    "UNAUTHORIZED",
    "INTERNAL_ERROR",
]


class ErrorReport(TypedDict):
    """The payload of `error`."""

    details: NotRequired[dict[str, Any]]
    error_code: ErrorCode
    error_message: str
    recovery_suggestions: NotRequired[list[str]]


class Evidence(TypedDict):
    """The payload of `evidence`: what supports a finding, and what it does not claim."""

    evidence: NotRequired[list[str]]
    limitation: NotRequired[str | None]
    statement: NotRequired[str]


class ExpertiseOffer(TypedDict):
    """The payload of `expertise_offer`: an agent says what it could help with."""

    content: NotRequired[str | None]
    domains: NotRequired[list[str]]
    skills: NotRequired[list[str]]


class Clause(TypedDict):
    """A clause that was looked for."""

    present: bool
    text: NotRequired[str | None]
    type: str


Severity = Literal["info", "low", "medium", "high", "critical"]


class CriticalFinding(TypedDict):
    """A problem about a topic."""

    detail: NotRequired[str]
    severity: Severity
    topic: str


class Estimate(TypedDict):
    """A number that later work may depend on."""

    metric: str
    subject: NotRequired[str | None]
    unit: NotRequired[str | None]
    value: float


class FactClaim(TypedDict):
    """One statement: this attribute of this subject has this value."""

    attribute: str
    subject: str
    unit: NotRequired[str | None]
    value: float | bool | str


class Finding(TypedDict):
    """The payload of `finding`."""

    affected_clauses: NotRequired[list[str]]
    assumptions: NotRequired[list[str]]
    clauses: NotRequired[list[Clause]]
    critical_findings: NotRequired[list[CriticalFinding]]
    estimates: NotRequired[list[Estimate]]
    evidence: NotRequired[list[str]]
    facts: NotRequired[list[FactClaim]]
    historical_context: NotRequired[HistoricalContext | None]
    impact: NotRequired[str | None]
    recommendation: NotRequired[str | None]
    risk_score: NotRequired[float | None]
    severity: NotRequired[Severity | None]
    summary: str


AnswerMode = Literal["confidence", "first_responder", "collaborative"]


class GroupQuestion(TypedDict):
    """The payload of `group_query` and of `peer_request`: a question to whoever can help."""

    asks_for: NotRequired[str | None]
    content: NotRequired[str | None]
    domain: NotRequired[str | None]
    mode: NotRequired[AnswerMode | None]
    preferred_agents: NotRequired[list[AgentId] | None]
    synthesiser: NotRequired[AgentId | None]


class Handoff(TypedDict):
    """The payload of `handoff`, to the coordinator: the sender passes its assignment on."""

    context: NotRequired[dict[str, Any] | None]
    reason: NotRequired[str]
    to: NotRequired[AgentId | None]


class InfoUpdate(TypedDict):
    """The payload of `info_update`: news without a question."""

    about: NotRequired[str | None]
    content: NotRequired[str | None]
    text: NotRequired[str | None]


class AnsweredLate(TypedDict):
    """The data of `answered_late`."""

    message: dict[str, Any]


NotificationSeverity = Literal["info", "warning", "error"]


class BidRejected(TypedDict):
    """The data of `bid_rejected`."""

    in_reserve: bool
    task_id: Token


class BoardListing(TypedDict):
    """An entry of a board without its value: what there is to read."""

    at: Timestamp
    author: AgentId
    bytes: int
    confidence: NotRequired[float | None]
    name: str
    version: int


class BoardChanged(TypedDict):
    """The data of `board_changed`: the entry without its value, which whoever is in the case asks for."""

    entry: BoardListing


class CaseCancelled(TypedDict):
    """The data of `case_cancelled`."""

    by: AgentId
    why: str


DebateId = str


class Position(TypedDict):
    """The position of one agent in a conflict."""

    agent_id: AgentId
    confidence: float
    evidence: NotRequired[list[str]]
    evidence_omitted: NotRequired[int]
    position: str
    reasoning: NotRequired[str | None]
    value: NotRequired[Any]


ConflictType = Literal[
    "recommendation_conflict",
    "risk_score_disagreement",
    "severity_disagreement",
    "clause_presence_disagreement",
    "factual_disagreement",
    "estimate_disagreement",
    "challenge",
]


class Conflict(TypedDict):
    """A typed disagreement, detected, not asked for."""

    conflict_id: DebateId
    positions: list[Position]
    positions_omitted: NotRequired[int]
    subject: str
    topic: str
    type: ConflictType
    weight: float


Figure = float | str


class RecordedFigures(TypedDict):
    """The figures of an analysis in one of its versions."""

    figures: dict[str, Figure]
    version: int


class FindingReference(TypedDict):
    """A finding that the decision rests on."""

    agent_id: AgentId
    confidence: float
    message_id: MessageId


class ClauseOutcome(TypedDict):
    """Whether a clause is there, after deliberation."""

    basis: str
    present: bool


class Outcome(TypedDict):
    """The result of the case: findings where they agreed, resolutions where they did not."""

    clauses: NotRequired[dict[str, ClauseOutcome]]
    clauses_omitted: NotRequired[int]
    recommendation: NotRequired[str | None]
    risk_score: NotRequired[float | None]
    severity: NotRequired[Severity | None]


Level = int


class MediatedSide(TypedDict):
    """One side of a mediation."""

    agent_id: AgentId
    credibility: float
    data_points: float
    half_width: float
    position_id: str


class Mediation(TypedDict):
    """The result of mediation by track record, with everything it rests on."""

    evidence_considered: int
    gap: float
    opinion: NotRequired[str | None]
    reason: Token
    reasoning: str
    sides: list[MediatedSide]
    threshold: float


class Resolution(TypedDict):
    """A position that was chosen."""

    position: str
    supporters: list[AgentId]
    value: NotRequired[Any]


class Provisional(TypedDict):
    """What a provisional decision must say besides its position."""

    alternatives: list[Resolution]
    dependants: NotRequired[list[str]]
    expert: NotRequired[AgentId | None]
    rationale: str
    review_at: NotRequired[str | None]
    until: Timestamp


class RoundRecord(TypedDict):
    """One round of discussion in figures: talk buys agreement, not always accuracy, so before and after are kept."""

    agreements: int
    answered: list[AgentId]
    positions_after: int
    positions_before: int
    round: int
    silent: list[AgentId]


class RuledBy(TypedDict):
    """The person who decided, and the reason."""

    digest: NotRequired[str | None]
    expert: AgentId
    first_rationale: NotRequired[str | None]
    first_reviewer: NotRequired[AgentId | None]
    key: NotRequired[str | None]
    rationale: str


Status = Literal[
    "discussion",
    "vote",
    "unresolved",
    "accepted",
    "mediation",
    "ruling",
    "provisional",
    "fallback",
    "confirmed",
    "overridden",
    "redebated",
    "cancelled",
]


class Voter(TypedDict):
    """One voter of an option, with the weight its vote had."""

    agent_id: AgentId
    confidence: float
    weight: float


class VoteOption(TypedDict):
    """One option of a vote."""

    position: str
    position_id: str
    value: NotRequired[Any]
    voters: list[Voter]
    weight: float


VoteRule = Literal["confidence", "majority", "reconcile", "credibility", "unanimous"]


class Tally(TypedDict):
    """A vote with every weight, so that anyone can count again."""

    margin: float
    options: list[VoteOption]
    rule: VoteRule
    tie_broken_by: NotRequired[str | None]
    winner: NotRequired[str | None]


class ConflictOutcome(TypedDict):
    """The result of one debated conflict."""

    conflict_id: DebateId
    debated_again_as: NotRequired[DebateId | None]
    dependants: NotRequired[list[str]]
    level: NotRequired[Level | None]
    mediation: NotRequired[Mediation | None]
    positions: list[Position]
    positions_omitted: NotRequired[int]
    provisional: NotRequired[Provisional | None]
    resolution: NotRequired[Resolution | None]
    resolved_at: Timestamp
    rounds: list[RoundRecord]
    ruled_by: NotRequired[RuledBy | None]
    status: Status
    tally: NotRequired[Tally | None]


SetAsideReason = Literal["late", "repeated"]


class SetAside(TypedDict):
    """A message that was recorded and not used."""

    agent_id: AgentId
    at: Timestamp
    message_id: MessageId
    reason: SetAsideReason


class Decision(TypedDict):
    """The decision of a case, in one of its versions."""

    conflicts: list[Conflict]
    conflicts_omitted: NotRequired[int]
    deferred: list[Conflict]
    figures: NotRequired[dict[str, Any]]
    figures_omitted: NotRequired[int]
    findings: list[FindingReference]
    gates: NotRequired[list[str]]
    missing: list[AgentId]
    open: NotRequired[list[DebateId]]
    outcome: Outcome
    outcomes: list[ConflictOutcome]
    policy_digest: str
    provisional: NotRequired[list[DebateId]]
    reason: str
    rules: NotRequired[int]
    set_aside: list[SetAside]
    version: NotRequired[int]


class CaseDecided(TypedDict):
    """The data of `case_decided`."""

    decision: Decision


class ChangedPart(TypedDict):
    """One part of a decision's result that is different in a new version."""

    after: Any
    before: Any
    part: str


class DecisionChange(TypedDict):
    """What made a new version of a decision, and what is different in its result."""

    by: NotRequired[AgentId | None]
    changed: NotRequired[list[ChangedPart]]
    changed_omitted: NotRequired[int]
    debate_id: DebateId
    first_reviewer: NotRequired[AgentId | None]
    level: Level
    replaces: int
    status: Status
    topic: str
    version: int


class CaseDecisionChanged(TypedDict):
    """The data of `case_decision_changed`."""

    change: DecisionChange
    decision: Decision


class CaseFiguresRecorded(TypedDict):
    """The data of `case_figures_recorded`."""

    figures: dict[str, Any]
    replaces: int
    run: int
    version: int


class AffectedPart(TypedDict):
    """Part of a case that an alert concerns."""

    implication: str
    kind: str
    name: str


class CaseFlagged(TypedDict):
    """The data of `case_flagged`."""

    affected: NotRequired[list[AffectedPart]]
    alert: Token
    at: Timestamp
    confidence: NotRequired[float | None]
    event_type: str
    gates: NotRequired[list[str]]
    implications: NotRequired[dict[str, Any]]
    new_regime: NotRequired[str | None]
    old_regime: NotRequired[str | None]
    raised_by: AgentId


class CaseJoined(TypedDict):
    """The data of `case_joined`."""

    agent_id: AgentId
    by: AgentId


class ChallengeAcknowledged(TypedDict):
    """The data of `challenge_acknowledged`."""

    by: AgentId
    commit_by: NotRequired[Timestamp | None]
    debate_id: DebateId


CommitmentEnd = Literal["released", "expired", "holder_gone", "work_done", "case_over"]


class CommitmentEnded(TypedDict):
    """The data of `commitment_ended`."""

    holder: AgentId
    reason: CommitmentEnd
    resource: str
    term: int


class Lease(TypedDict):
    """A commitment that stands."""

    holder: AgentId
    resource: str
    term: int
    until: Timestamp
    why: NotRequired[str]


class CommitmentMade(TypedDict):
    """The data of `commitment_made`."""

    lease: Lease


class CredibilityScore(TypedDict):
    """How far an agent is to be believed, in short."""

    data_points: float
    interval: ConfidenceInterval
    score: float


ObservationSource = Literal["outcome", "ruling", "override", "import"]


class CredibilityChanged(TypedDict):
    """The data of `credibility_changed`: what became of an agent's credibility in one domain because a debate was decided by a person, or because it became known what was right in it."""

    after: CredibilityScore
    agent_id: AgentId
    before: CredibilityScore
    by: AgentId
    correct: bool
    debate_id: DebateId
    domain: str
    source: ObservationSource
    topic: str


class DebateAwaitsGate(TypedDict):
    """The data of `debate_awaits_gate`."""

    debate_id: DebateId
    gate: str


class DebateConcluded(TypedDict):
    """The data of `debate_concluded`: a debate has ended, and its case has taken the result into account."""

    outcome: ConflictOutcome
    topic: str


EscalationReason = Literal[
    "unacknowledged",
    "no_evidence",
    "not_evaluated",
    "rejected",
    "not_settled",
    "narrow_vote",
    "credibility_inconclusive",
    "mediation_overdue",
]


class Deadline(TypedDict):
    """A point in time that an aggregate waits for."""

    due: Timestamp
    name: Token


DebateEscalated = TypedDict('DebateEscalated', {
    'debate_id': 'DebateId',
    'from': 'Level',
    'mediation': 'NotRequired[Mediation | None]',
    'reason': 'EscalationReason',
    'to': 'Level',
    'topic': 'str',
    'waits_for': 'list[Deadline]',
})


class DebateProvisional(TypedDict):
    """The data of `debate_provisional`."""

    debate_id: DebateId
    outcome: ConflictOutcome
    topic: str


class DebateResolved(TypedDict):
    """The data of `debate_resolved`."""

    outcome: ConflictOutcome
    topic: str


UnassignedReason = Literal["left", "did_not_act", "reassigned"]


class DebateUnassigned(TypedDict):
    """The data of `debate_unassigned`."""

    debate_id: DebateId
    reason: NotRequired[UnassignedReason]
    topic: str


class FindingConfirmed(TypedDict):
    """The data of `finding_confirmed`."""

    by: AgentId
    confidence: float
    finding: MessageId
    reasoning: NotRequired[str | None]
    strengthened: float


class GatePassed(TypedDict):
    """The data of `gate_passed`."""

    by: AgentId
    first_reviewer: NotRequired[AgentId | None]
    gate: str
    next: NotRequired[str | None]
    unreviewed: list[DebateId]


ReviewAction = Literal["confirm", "override", "redebate", "pass"]


class Signature(TypedDict):
    """An ed25519 signature of what a person rules or reviews, and the key that it was made with."""

    key: str
    value: str


class Review(TypedDict):
    """The payload of `review`: what a person decides at a gate."""

    action: ReviewAction
    context: NotRequired[str | None]
    debate_id: NotRequired[DebateId | None]
    digest: NotRequired[str | None]
    gate: str
    position: NotRequired[str | None]
    rationale: NotRequired[str]
    signature: NotRequired[Signature | None]
    value: NotRequired[Any]


class GateReviewed(TypedDict):
    """The data of `gate_reviewed`."""

    by: AgentId
    debate_id: DebateId
    debated_again_as: NotRequired[DebateId | None]
    first_reviewer: NotRequired[AgentId | None]
    review: Review


DependencyKind = Literal["decision", "assumption", "analysis"]


class ChangedAssumption(TypedDict):
    """What has changed."""

    confidence: NotRequired[float | None]
    id: str
    kind: DependencyKind
    metric: NotRequired[str | None]
    new_value: NotRequired[Figure | None]
    old_value: NotRequired[Figure | None]
    version: NotRequired[int | None]


EstimateBasis = Literal["none", "sensitivity", "elasticity", "formula", "cascade", "agent"]


class AnalysisImpact(TypedDict):
    """What becomes of one analysis."""

    analysis_id: Token
    basis: EstimateBasis
    confidence: float
    confidence_after: NotRequired[float | None]
    delta: NotRequired[float | None]
    estimated_new_value: NotRequired[Figure | None]
    magnitude: NotRequired[float | None]
    metric: NotRequired[str | None]
    old_value: NotRequired[Figure | None]
    reason: NotRequired[str | None]
    requires_rerun: bool
    rerun_minutes: int
    type: str
    unknown: NotRequired[list[str]]


class ImpactReport(TypedDict):
    """What a change does to the analyses of a case."""

    affected_count: int
    changed_assumption: ChangedAssumption
    high_impact_count: int
    impacts: list[AnalysisImpact]
    impacts_omitted: NotRequired[int]
    total_rerun_time: int


class ImpactAssessed(TypedDict):
    """The data of `impact_assessed`."""

    by: NotRequired[AgentId | None]
    debate_id: NotRequired[DebateId | None]
    report: ImpactReport
    status: NotRequired[Status | None]


Snapshot = str


class Insight(TypedDict):
    """An entry of a case as everybody in the case is told of it."""

    agent: AgentId
    confidence: NotRequired[float | None]
    importance: float
    left_out: NotRequired[bool]
    since: Snapshot
    tags: NotRequired[list[str]]
    topic: Token
    value: Any
    version: int


Adapted = Literal["debate_open", "regime_changed", "often_told"]
Reach = Literal["broadcast", "held", "kept"]


class MemoryReach(TypedDict):
    """Whom an entry of a case reaches, and why."""

    adapted: NotRequired[list[Adapted]]
    broadcast_above: float
    hold_above: float
    reach: Reach


class InsightShared(TypedDict):
    """The data of `insight_shared`."""

    insight: Insight
    reach: MemoryReach


class Pattern(TypedDict):
    """Something that entries of several agents have in common: a topic, or a tag."""

    about: str
    agents: list[AgentId]
    confidence: NotRequired[float | None]
    entries: int


CheckpointReason = Literal["detected", "decided", "gate_passed", "case_over", "period", "full", "late"]


class InsightsConsolidated(TypedDict):
    """The data of `insights_consolidated`."""

    checkpoint: int
    insights: list[Insight]
    patterns: NotRequired[list[Pattern]]
    reason: CheckpointReason


LoopBroken = TypedDict('LoopBroken', {
    'depth': 'int',
    'message_id': 'MessageId',
    'thread': 'str',
    'until': 'Timestamp',
    'what_to_do': 'str',
    'window_ms': 'int',
    'with': 'AgentId',
})


class MemorySync(TypedDict):
    """The data of `memory_sync`."""

    debate_id: DebateId
    parties: list[AgentId]
    until: Timestamp


class MemorySynced(TypedDict):
    """The data of `memory_synced`."""

    debate_id: DebateId
    silent: list[AgentId]
    snapshot: Snapshot


class ProvedParty(TypedDict):
    """Whether one party was right, as it proved."""

    agent_id: AgentId
    correct: bool


class OutcomeKnown(TypedDict):
    """The data of `outcome_known`."""

    by: AgentId
    debate_id: DebateId
    explanation: str
    parties: list[ProvedParty]
    position: str
    topic: str
    value: NotRequired[Any]


class PassedOn(TypedDict):
    """The data of `passed_on`."""

    message: dict[str, Any]


ResponseStatus = Literal["success", "failure", "partial"]


class RequestCompleted(TypedDict):
    """The data of `request_completed`."""

    action: str
    by: AgentId
    error_code: NotRequired[ErrorCode | None]
    payload: NotRequired[dict[str, Any] | None]
    request_id: MessageId
    status: NotRequired[ResponseStatus | None]
    took_ms: int


class RerunProgress(TypedDict):
    """The data of `rerun_progress`."""

    analysis_id: NotRequired[Token | None]
    done: int
    failed: NotRequired[str | None]
    is_over: bool
    of: int
    run: int


class ReviewRecorded(TypedDict):
    """The data of `review_recorded`."""

    by: AgentId
    review: Review


class RulingDue(TypedDict):
    """The data of `ruling_due`."""

    debate_id: DebateId
    due: Timestamp
    percent: int
    topic: str


class Notification(TypedDict):
    """The payload of `notification`."""

    data: NotRequired[dict[str, Any] | None]
    event: str
    severity: NotRequired[NotificationSeverity]


class StandDown(TypedDict):
    """The data of `stand_down`."""

    asker: AgentId
    question: MessageId
    why: str


class TaskCompleted(TypedDict):
    """The data of `task_completed`."""

    by: list[AgentId]
    partial: bool
    request_id: MessageId
    result: NotRequired[Any]
    strategy: str
    task_id: Token


TaskHandedOn = TypedDict('TaskHandedOn', {
    'context': 'NotRequired[dict[str, Any] | None]',
    'from': 'AgentId',
    'reason': 'str',
    'task_id': 'Token',
    'to': 'AgentId',
})


class TaskWithdrawn(TypedDict):
    """The data of `task_withdrawn`."""

    task_id: Token
    why: str


Recipient = str
Remembered = TypedDict('Remembered', {
    'at': 'Timestamp',
    'from': 'AgentId',
    'message_id': 'MessageId',
    'message_type': 'str',
    'reply_to': 'NotRequired[str | None]',
    'text': 'str',
    'to': 'Recipient',
})


class Woken(TypedDict):
    """The data of `woken`."""

    context: list[Remembered]
    message: NotRequired[dict[str, Any] | None]
    reason: str
    said: Remembered
    score: NotRequired[float | None]


class RecordContext(TypedDict):
    """The circumstances in which something was judged."""

    horizon: NotRequired[str | None]
    metric: NotRequired[str | None]
    sector: NotRequired[str | None]
    size: NotRequired[str | None]
    stage: NotRequired[str | None]


class Circumstances(TypedDict):
    """What is known of the circumstances of a case: what its agents' track records are weighed by."""

    context: NotRequired[RecordContext]
    regime: NotRequired[str | None]


class OutcomeReport(TypedDict):
    """The payload of `outcome`: what proved right of what was debated."""

    at: NotRequired[Timestamp | None]
    circumstances: NotRequired[Circumstances]
    debate_id: DebateId
    explanation: str
    held_by: NotRequired[AgentId | None]
    position: NotRequired[str | None]
    value: NotRequired[Any]


CaseId = str


class ConflictView(TypedDict):
    """The conflict as a party is told of it."""

    conflict_id: DebateId
    subject: str
    topic: str
    type: ConflictType


class SuccessRate(TypedDict):
    """How often something proved right, of how many times."""

    interval: ConfidenceInterval
    known: int
    right: int


class PositionRate(TypedDict):
    """How often a position that is held in a debate proved right in debates like it."""

    position: str
    rate: SuccessRate


class PrecedentGuidance(TypedDict):
    """What earlier debates say about one like them: how likely each side is to prove right, and how far that can be relied on."""

    chosen: SuccessRate
    conditions: list[str]
    found: int
    lower: NotRequired[SuccessRate | None]
    positions: list[PositionRate]
    risks: NotRequired[list[str]]


class DebateLimits(TypedDict):
    """Limits an answer must keep."""

    max_tokens: int


class Question(TypedDict):
    """The payload of `question` in a debate: asks one party to keep, change or give up its position."""

    added_context: NotRequired[str | None]
    case_id: CaseId
    conflict: ConflictView
    deadline: Timestamp
    debate_id: DebateId
    dependants: NotRequired[list[str]]
    guidance: NotRequired[PrecedentGuidance | None]
    limits: DebateLimits
    max_rounds: int
    other_positions: list[Position]
    reply_with: list[Token]
    round: int
    your_position: Position


class Decline(TypedDict):
    """The payload of `refuse`: an agent does not do what a call for proposals or an assignment asks for."""

    why: NotRequired[str]


class Request(TypedDict):
    """The payload of `request`."""

    action: str
    callback_url: NotRequired[str | None]
    constraints: NotRequired[dict[str, Any]]
    context: NotRequired[Any]
    deadline: NotRequired[Timestamp | None]
    parameters: NotRequired[dict[str, Any] | None]


class Response(TypedDict):
    """The payload of `response`."""

    errors: NotRequired[list[str]]
    result: NotRequired[dict[str, Any] | None]
    status: ResponseStatus
    warnings: NotRequired[list[str]]


class Ruling(TypedDict):
    """The payload of `ruling`: a person's binding answer."""

    debate_id: DebateId
    digest: str
    position: NotRequired[str | None]
    position_id: NotRequired[str | None]
    rationale: str
    signature: NotRequired[Signature | None]
    value: NotRequired[Any]


class SessionBriefing(TypedDict):
    """The payload of `session_briefing`, and the coordinator's answer to the verb `briefing`."""

    awaited: NotRequired[list[AgentId]]
    board: NotRequired[list[BoardListing]]
    case_due: NotRequired[Timestamp | None]
    case_id: NotRequired[CaseId | None]
    commitments: NotRequired[list[Lease]]
    debates: NotRequired[list[DebateId]]
    findings_due: NotRequired[Timestamp | None]
    opened_by: NotRequired[AgentId | None]
    participants: NotRequired[list[AgentId]]
    phase: NotRequired[str | None]
    so_far: str
    task: NotRequired[Task | None]


class StatusReport(TypedDict):
    """The payload of `status`, about an agent."""

    agent_id: NotRequired[AgentId | None]
    status: AgentStatus
    why: NotRequired[str]


class WorkStatus(TypedDict):
    """The payload of `status` about work."""

    about: NotRequired[str | None]
    progress: NotRequired[float | None]
    state: str


StatusMessage = StatusReport | WorkStatus


class TaskAssignment(TypedDict):
    """The payload of `task_assignment`."""

    deadline: Timestamp
    participants: list[AgentId]
    reply_with: list[Token]
    task: Task
    work: NotRequired[Work | None]


ResultStatus = Literal["success", "failure", "partial"]


class TaskResult(TypedDict):
    """The payload of `task_result`."""

    content: NotRequired[Any]
    result: NotRequired[Any]
    status: NotRequired[ResultStatus]
    why: NotRequired[str]


MessageType = Literal[
    "acknowledgement",
    "agent_joined",
    "agreement",
    "alert",
    "award",
    "bid",
    "call_for_proposals",
    "challenge",
    "clarification",
    "collaboration_invite",
    "commitment",
    "confirmation",
    "disagreement",
    "error",
    "evidence",
    "expertise_offer",
    "finding",
    "finding_with_precedent",
    "group_query",
    "handoff",
    "info_update",
    "notification",
    "outcome",
    "peer_request",
    "question",
    "refuse",
    "request",
    "response",
    "review",
    "revision",
    "ruling",
    "session_briefing",
    "status",
    "task_assignment",
    "task_result",
]
#: The payload's type by message type.
PAYLOADS: dict[str, str] = {
    "acknowledgement": "Acknowledgement",
    "agent_joined": "AgentJoined",
    "agreement": "Answer",
    "alert": "Alert",
    "award": "Award",
    "bid": "Bid",
    "call_for_proposals": "CallForProposals",
    "challenge": "Challenge",
    "clarification": "Clarification",
    "collaboration_invite": "CollaborationInvite",
    "commitment": "Commitment",
    "confirmation": "Confirmation",
    "disagreement": "Answer",
    "error": "ErrorReport",
    "evidence": "Evidence",
    "expertise_offer": "ExpertiseOffer",
    "finding": "Finding",
    "finding_with_precedent": "Finding",
    "group_query": "GroupQuestion",
    "handoff": "Handoff",
    "info_update": "InfoUpdate",
    "notification": "Notification",
    "outcome": "OutcomeReport",
    "peer_request": "GroupQuestion",
    "question": "Question",
    "refuse": "Decline",
    "request": "Request",
    "response": "Response",
    "review": "Review",
    "revision": "Answer",
    "ruling": "Ruling",
    "session_briefing": "SessionBriefing",
    "status": "StatusMessage",
    "task_assignment": "TaskAssignment",
    "task_result": "TaskResult",
}
#: The type of the data of Concord's notifications, by event.
NOTIFICATIONS: dict[str, str] = {
    "answered_late": "AnsweredLate",
    "bid_rejected": "BidRejected",
    "board_changed": "BoardChanged",
    "case_cancelled": "CaseCancelled",
    "case_decided": "CaseDecided",
    "case_decision_changed": "CaseDecisionChanged",
    "case_figures_recorded": "CaseFiguresRecorded",
    "case_flagged": "CaseFlagged",
    "case_joined": "CaseJoined",
    "challenge_acknowledged": "ChallengeAcknowledged",
    "commitment_ended": "CommitmentEnded",
    "commitment_made": "CommitmentMade",
    "credibility_changed": "CredibilityChanged",
    "debate_awaits_gate": "DebateAwaitsGate",
    "debate_concluded": "DebateConcluded",
    "debate_escalated": "DebateEscalated",
    "debate_provisional": "DebateProvisional",
    "debate_resolved": "DebateResolved",
    "debate_unassigned": "DebateUnassigned",
    "finding_confirmed": "FindingConfirmed",
    "gate_passed": "GatePassed",
    "gate_reviewed": "GateReviewed",
    "impact_assessed": "ImpactAssessed",
    "insight_shared": "InsightShared",
    "insights_consolidated": "InsightsConsolidated",
    "loop_broken": "LoopBroken",
    "memory_sync": "MemorySync",
    "memory_synced": "MemorySynced",
    "outcome_known": "OutcomeKnown",
    "passed_on": "PassedOn",
    "request_completed": "RequestCompleted",
    "rerun_progress": "RerunProgress",
    "review_recorded": "ReviewRecorded",
    "ruling_due": "RulingDue",
    "stand_down": "StandDown",
    "task_completed": "TaskCompleted",
    "task_handed_on": "TaskHandedOn",
    "task_withdrawn": "TaskWithdrawn",
    "woken": "Woken",
}
