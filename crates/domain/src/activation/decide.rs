//! The decision tree: what each agent does about a message.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::{AgentId, MessageType, Recipient};

use super::calibration::Participation;
use super::decision::{Decision, Outcome, Reason, Rival};
use super::keyword;
use super::matcher::{Candidate, Embedded, Matcher, Part, Previous, Query};
use super::mention::{Named, mentions};
use super::objection;

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
    /// The agents that a question to the group, or a peer request, prefers.
    pub preferred: &'a [AgentId],
    /// The author of the message that this one answers.
    pub reply_to_author: Option<&'a AgentId>,
    /// Whether its sender says that it asks for objections; many say so in the text alone.
    pub asks_for_objections: bool,
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

    /// Whether its sender wants the help of others.
    fn is_help_wanted(&self) -> bool {
        matches!(
            self.message_type,
            MessageType::PeerRequest | MessageType::GroupQuery
        )
    }

    /// Whether it is about who agrees and who does not: it asks for objections, or is one.
    fn is_about_objections(&self) -> bool {
        (self.is_group_visible() || *self.to == Recipient::All)
            && (self.asks_for_objections || objection::is_in(self.content))
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
    /// The [parts](super::parts()) of this one, where it has several.
    pub parts: &'a [Part<'a>],
    /// The assignment that its sender works on, if it was given in this conversation.
    pub assignment: Option<Embedded<'a>>,
    /// The agents that hold a position on what is discussed.
    pub positions: &'a BTreeSet<AgentId>,
    /// The agents that have taken part.
    pub participations: &'a BTreeMap<AgentId, Participation>,
    /// The agents that can read it; `None` for all.
    pub audience: Option<&'a BTreeSet<AgentId>>,
}

/// The decisions of all agents about a message.
#[derive(Debug, Clone, PartialEq, Default)]
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
        parts: conversation.parts,
        previous: conversation.previous,
        participations: conversation.participations,
        audience: conversation.audience,
        from: Some(message.from),
    };
    let weighed = Weighing::of(matcher, message, &query, conversation);
    let lower = keyword::lower_case(message.content);
    let calibration = matcher.calibration(vector.is_some());
    let decide_one = |agent: &AgentId| {
        let candidate = weighed.candidate(agent);
        let view = View {
            mentioned: standing(&mentioned, agent),
            preferred: standing(&preferred, agent),
            takes_part: conversation.participations.contains_key(agent),
            candidate,
            in_context: weighed.in_context(agent),
            has_position: weighed.about_objections && conversation.positions.contains(agent),
            rival: weighed.rival(agent),
            threshold: calibration.threshold,
            observe: matcher.parameters().observe,
            background: calibration.background,
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

/// How well agents match a message, and the assignment that its sender works on.
struct Weighing<'m> {
    /// The candidates for the message, the most probable first.
    ranked: Vec<Candidate<'m>>,
    places: BTreeMap<&'m AgentId, usize>,
    in_context: BTreeMap<&'m AgentId, Candidate<'m>>,
    about_objections: bool,
}

impl<'m> Weighing<'m> {
    fn of(
        matcher: &'m Matcher,
        message: &Message<'_>,
        query: &Query<'_>,
        conversation: &Conversation<'_>,
    ) -> Self {
        let about_objections = message.is_about_objections();
        let ranked = match message.is_group_visible() {
            true => matcher.rank(query),
            false => Vec::new(),
        };
        let wants_help = message.is_help_wanted() && !about_objections;
        let assignment = conversation.assignment.filter(|_| wants_help);
        let of_assignment = assignment.map_or_else(Vec::new, |assignment| {
            matcher.rank(&Query {
                text: assignment.text,
                vector: assignment.vector,
                parts: &[],
                previous: None,
                ..*query
            })
        });
        let places = ranked.iter().enumerate();
        Self {
            places: places.map(|(place, one)| (one.agent, place)).collect(),
            ranked,
            in_context: of_assignment
                .into_iter()
                .map(|one| (one.agent, one))
                .collect(),
            about_objections,
        }
    }

    fn candidate(&self, agent: &AgentId) -> Option<&Candidate<'m>> {
        self.ranked.get(*self.places.get(agent)?)
    }

    fn in_context(&self, agent: &AgentId) -> Option<&Candidate<'m>> {
        self.in_context.get(agent)
    }

    /// The best other agent.
    fn rival(&self, agent: &AgentId) -> Option<Rival<'m>> {
        let mut others = self.ranked.iter().filter(|other| other.agent != agent);
        others.next().map(Rival::of)
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
    /// Whether the question or request prefers it.
    pub preferred: Naming,
    /// Whether it has taken part in the conversation.
    pub takes_part: bool,
    /// How well it matches, where the message was matched.
    pub candidate: Option<&'a Candidate<'a>>,
    /// How well it matches the assignment that the sender works on, where the sender asks for help.
    pub in_context: Option<&'a Candidate<'a>>,
    /// Whether the message is about objections, and the agent holds a position.
    pub has_position: bool,
    /// The best other agent.
    pub rival: Option<Rival<'a>>,
    /// The probability from which on it wakes.
    pub threshold: f64,
    /// The probability below which it does not observe, unless its score is above the background.
    pub observe: f64,
    /// The score that any text has with any other.
    pub background: f64,
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
/// | 3a | preferred by a question to the group or a peer request, among the first eight | wake: `preferred_peer` |
/// | 3b | answers a message of its own | wake: `reply` |
/// | 3c | asks for objections or is one, and it holds a position | wake: `position` |
/// | 4 | visible to the group, probability at the threshold or above | wake: `semantic:<skill>` |
/// | 4a | asks for help with an assignment that matches it, at the threshold or above | wake: `context:<skill>` |
/// | 4b | visible to the group, without a model or without skills, has one of its phrases | wake: `keyword:<phrase>` |
/// | 4c | visible to the group, below | observe: `below_threshold` |
/// | | the same, far below and no more alike than any two texts, and it has not spoken | ignore: `irrelevant` |
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
    if message.is_help_wanted() && view.preferred == Naming::Named {
        return named(Reason::PreferredPeer);
    }
    if message.reply_to_author == Some(agent) {
        return named(Reason::Reply);
    }
    let beyond = view.mentioned == Naming::Beyond
        || (message.is_help_wanted() && view.preferred == Naming::Beyond);
    let decision = if let Some(candidate) = view.candidate {
        by_match(candidate, view)
    } else if view.has_position {
        named(Reason::Position)
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
    if view.has_position {
        return Decision::matched(Outcome::Wake, Reason::Position, candidate, view.rival);
    }
    let concerns = |candidate: &Candidate<'_>| candidate.probability >= view.threshold;
    if let Some(skill) = candidate.skill.filter(|_| concerns(candidate)) {
        let reason = Reason::Semantic(skill.to_owned());
        return Decision::matched(Outcome::Wake, reason, candidate, view.rival);
    }
    if let Some(in_context) = view.in_context.filter(|candidate| concerns(candidate))
        && let Some(skill) = in_context.skill
    {
        let reason = Reason::Context(skill.to_owned());
        return Decision::matched(Outcome::Wake, reason, in_context, None);
    }
    let is_alike = candidate.probability >= view.observe || candidate.score >= view.background;
    let (outcome, reason) = match view.trigger {
        Some(trigger) => (Outcome::Wake, Reason::Keyword(trigger.to_owned())),
        None if is_alike || view.takes_part => (Outcome::Observe, Reason::BelowThreshold),
        None => (Outcome::Ignore, Reason::Irrelevant),
    };
    Decision::matched(outcome, reason, candidate, view.rival)
}
