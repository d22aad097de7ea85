//! The decision tree: what each agent does about a message.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::{AgentId, MessageType, Recipient};

use super::calibration::Participation;
use super::decision::{Decision, Outcome, Reason, Rival};
use super::keyword;
use super::matcher::{Candidate, Matcher, Previous, Query};
use super::mention::{Named, mentions};

/// The parts of a message that decide which agents it wakes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The message type.
    pub message_type: &'a MessageType,
    /// The sender.
    pub from: &'a AgentId,
    /// The addressee.
    pub to: &'a Recipient,
    /// The content as text.
    pub content: &'a str,
    /// The agent that an assignment names, where it is not the addressee.
    pub assigned: Option<&'a AgentId>,
    /// The agents that a peer request prefers.
    pub preferred: &'a [AgentId],
    /// The author of the message that this one answers.
    pub reply_to_author: Option<&'a AgentId>,
}

impl Message<'_> {
    /// Whether any agent that can help may answer, so that the message is matched with skills.
    ///
    /// These are the four types of the specification, the call for proposals, and messages that are
    /// addressed to any agent.
    pub fn is_group_visible(&self) -> bool {
        use MessageType::{CallForProposals, ExpertiseOffer, GroupQuery, PeerRequest};
        matches!(
            self.message_type,
            GroupQuery | PeerRequest | ExpertiseOffer | CallForProposals
        ) || *self.to == Recipient::Any
    }

    /// Whether agents that it does not wake observe it.
    fn is_information(&self) -> bool {
        use MessageType::{AgentJoined, InfoUpdate, SessionBriefing, TaskResult};
        matches!(
            self.message_type,
            InfoUpdate | TaskResult | SessionBriefing | AgentJoined
        ) || *self.to == Recipient::All
    }
}

/// The conversation that a message belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The message before this one.
    pub previous: Option<Previous<'a>>,
    /// The agents that have taken part.
    pub participations: &'a BTreeMap<AgentId, Participation>,
    /// The agents that can read it; `None` for all.
    pub audience: Option<&'a BTreeSet<AgentId>>,
}

/// The decisions of all agents about a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// The decision for each agent, in the order of their ids; without the sender.
    pub decisions: BTreeMap<AgentId, Decision>,
    /// How many agents were mentioned or preferred beyond the number that one message may wake in
    /// this way.
    pub named_beyond: usize,
}

impl Decisions {
    /// The agents that wake.
    pub fn woken(&self) -> impl Iterator<Item = (&AgentId, &Decision)> {
        self.decisions
            .iter()
            .filter(|(_, decision)| decision.outcome == Outcome::Wake)
    }
}

/// Decides for every agent that the matcher knows and that can read the conversation.
///
/// `vector` is the vector of the message's content. It is used only when the message [is visible to
/// the group](Message::is_group_visible), so it need not be computed for others.
pub fn decide_all(
    matcher: &Matcher,
    message: &Message<'_>,
    vector: Option<&[f32]>,
    conversation: &Conversation<'_>,
) -> Decisions {
    let can_read = |agent: &AgentId| {
        conversation
            .audience
            .is_none_or(|audience| audience.contains(agent))
    };
    let mentioned = mentions(message.content, |name| {
        matcher
            .agent_named(name)
            .filter(|agent| can_read(agent) && *agent != message.from)
    });
    let preferred: Named<'_> = message
        .preferred
        .iter()
        .filter(|agent| can_read(agent) && *agent != message.from)
        .collect();
    let query = Query {
        text: message.content,
        vector,
        previous: conversation.previous,
        participations: conversation.participations,
        audience: conversation.audience,
        from: Some(message.from),
    };
    let ranked = match message.is_group_visible() {
        true => matcher.rank(&query),
        false => Vec::new(),
    };
    let matched: BTreeMap<&AgentId, usize> = ranked
        .iter()
        .enumerate()
        .map(|(place, candidate)| (candidate.agent, place))
        .collect();
    let lower = keyword::lower_case(message.content);
    let decide_one = |agent: &AgentId| {
        let candidate = matched.get(agent).and_then(|place| ranked.get(*place));
        let rival = ranked.iter().find(|other| other.agent != agent);
        let view = View {
            mentioned: standing(&mentioned, agent),
            preferred: standing(&preferred, agent),
            takes_part: conversation.participations.contains_key(agent),
            candidate,
            rival: rival.map(Rival::of),
            threshold: matcher.calibration(vector.is_some()).threshold,
            observe: matcher.parameters().observe,
            trigger: candidate
                .filter(|candidate| candidate.cosine.is_none() || candidate.skill.is_none())
                .and_then(|_| matcher.phrase_in(agent, &lower)),
        };
        decide(message, agent, &view)
    };
    let others = |agent: &&AgentId| can_read(agent) && *agent != message.from;
    let decided = |agent: &AgentId| (agent.clone(), decide_one(agent));
    let agents = matcher.agents().filter(others);
    let decisions: BTreeMap<AgentId, Decision> = agents.map(decided).collect();
    let is_own = |decision: &Decision| decision.reason == Reason::OwnMessage;
    debug_assert!(
        !decisions.values().any(is_own),
        "the sender decides nothing about its own message"
    );
    Decisions {
        decisions,
        named_beyond: mentioned.beyond.len() + preferred.beyond.len(),
    }
}

/// Whether a message names an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// It does not name the agent.
    Unnamed,
    /// It names the agent.
    Named,
    /// It names the agent after as many others as it may.
    Beyond,
}

fn standing(named: &Named<'_>, agent: &AgentId) -> Naming {
    match (named.within.contains(&agent), named.beyond.contains(&agent)) {
        (true, _) => Naming::Named,
        (false, true) => Naming::Beyond,
        (false, false) => Naming::Unnamed,
    }
}

/// An agent beside a message.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Whether the text mentions it.
    pub mentioned: Naming,
    /// Whether the request prefers it.
    pub preferred: Naming,
    /// Whether it has taken part in the conversation.
    pub takes_part: bool,
    /// How well it matches, where the message was matched.
    pub candidate: Option<&'a Candidate<'a>>,
    /// The best other agent.
    pub rival: Option<Rival<'a>>,
    /// The probability from which on it wakes.
    pub threshold: f64,
    /// The probability below which it does not observe.
    pub observe: f64,
    /// The phrase of its card that the message contains, where phrases count.
    pub trigger: Option<&'a str>,
}

/// What one agent does about a message: the first branch that applies.
///
/// | | branch | decision |
/// |---|---|---|
/// | 0 | its own message | ignore: `own_message` |
/// | 1 | addressed to it | wake: `direct_target` |
/// | 2 | mentioned, among the first eight | wake: `mention` |
/// | 3 | an assignment that names it | wake: `task_assignment` |
/// | 3a | preferred by a peer request, among the first eight | wake: `preferred_peer` |
/// | 3b | answers a message of its own | wake: `reply` |
/// | 4 | visible to the group, probability at the threshold or above | wake: `semantic:<skill>` |
/// | | the same without a model or without skills, has one of its phrases | wake: `keyword:<phrase>` |
/// | | the same, below | observe: `below_threshold` |
/// | | the same, far below, and it has not spoken | ignore: `irrelevant` |
/// | 5 | news, or to everyone | observe: `information` |
/// | 6 | anything else | ignore: `not_concerned` |
///
/// Who is named beyond the eighth goes on down the tree, and observes at least: `named_beyond`.
pub fn decide(message: &Message<'_>, agent: &AgentId, view: &View<'_>) -> Decision {
    let named = |reason| Decision::new(Outcome::Wake, reason);
    if message.from == agent {
        return Decision::new(Outcome::Ignore, Reason::OwnMessage);
    }
    if matches!(message.to, Recipient::Agent(to) if to == agent) {
        return named(Reason::DirectTarget);
    }
    if view.mentioned == Naming::Named {
        return named(Reason::Mention);
    }
    if *message.message_type == MessageType::TaskAssignment && message.assigned == Some(agent) {
        return named(Reason::TaskAssignment);
    }
    let is_peer_request = *message.message_type == MessageType::PeerRequest;
    if is_peer_request && view.preferred == Naming::Named {
        return named(Reason::PreferredPeer);
    }
    if message.reply_to_author == Some(agent) {
        return named(Reason::Reply);
    }
    let beyond =
        view.mentioned == Naming::Beyond || (is_peer_request && view.preferred == Naming::Beyond);
    let decision = if let Some(candidate) = view.candidate {
        by_match(candidate, view)
    } else if message.is_information() {
        Decision::new(Outcome::Observe, Reason::Information)
    } else {
        Decision::new(Outcome::Ignore, Reason::NotConcerned)
    };
    if beyond && decision.outcome != Outcome::Wake {
        return Decision {
            outcome: Outcome::Observe,
            reason: Reason::NamedBeyond,
            ..decision
        };
    }
    decision
}

fn by_match(candidate: &Candidate<'_>, view: &View<'_>) -> Decision {
    let (outcome, reason) = match (candidate.skill, view.trigger) {
        (Some(skill), _) if candidate.probability >= view.threshold => {
            (Outcome::Wake, Reason::Semantic(skill.to_owned()))
        }
        (_, Some(trigger)) => (Outcome::Wake, Reason::Keyword(trigger.to_owned())),
        _ if candidate.probability >= view.observe || view.takes_part => {
            (Outcome::Observe, Reason::BelowThreshold)
        }
        _ => (Outcome::Ignore, Reason::Irrelevant),
    };
    Decision::matched(outcome, reason, candidate, view.rival)
}
