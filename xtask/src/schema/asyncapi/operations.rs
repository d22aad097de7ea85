//! Who sends and who receives: agents first, then each service.

use std::time::Duration;

use super::{Node, event, list, map, notifications, reference};
use concord_events::all_events;
use concord_events::topology::{
    ConsumerDefinition, ConsumerKind, EXCHANGED, Layout, StorageChoices, StreamKind, WAKING,
};
use concord_wire::MessageType;
use concord_wire::id::Token;
use concord_wire::subject::{DEFAULT_PREFIX, Service};

/// Queue group of NATS micro services, by which the replicas of a service share its requests.
const API_QUEUE: &str = "q";
const ANSWERS: [&str; 3] = ["agreement", "disagreement", "revision"];

pub(super) fn all() -> Vec<(String, Node)> {
    let mut operations = agents();
    let layout = Layout::new(
        &Token::fixed(DEFAULT_PREFIX),
        StorageChoices {
            replicas: 1,
            message_age: Duration::ZERO,
            bytes_max: None,
        },
    );
    // A service that acts on no message refuses all of its inbox.
    let idle = |kind| matches!(kind, ConsumerKind::Inbox(to) | ConsumerKind::UrgentInbox(to) if heard(to).is_empty());
    operations.extend(
        layout
            .consumers()
            .iter()
            .chain(&layout.adapter_consumers())
            .filter(|consumer| !idle(consumer.kind))
            .map(consume),
    );
    operations.extend(
        Service::ALL
            .iter()
            .flat_map(|service| says(*service).into_iter().chain(appends(*service))),
    );
    operations.extend(shared());
    operations
}

/// An operation while it is put together.
struct Operation {
    action: &'static str,
    channel: &'static str,
    tag: &'static str,
    summary: String,
    messages: Vec<String>,
    more: Vec<(&'static str, Node)>,
}

impl Operation {
    fn new(
        action: &'static str,
        channel: &'static str,
        tag: &'static str,
        summary: impl Into<String>,
    ) -> Self {
        Self {
            action,
            channel,
            tag,
            summary: summary.into(),
            messages: Vec::new(),
            more: Vec::new(),
        }
    }

    fn of<M: Into<String>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.messages = messages.into_iter().map(Into::into).collect();
        self
    }

    fn answered_by(self, messages: &[&str]) -> Self {
        let channel = self.channel;
        let reply = map([
            ("channel", reference(format!("#/channels/{channel}"))),
            ("messages", on(channel, messages)),
        ]);
        self.with("reply", reply)
    }

    fn with(mut self, key: &'static str, node: Node) -> Self {
        self.more.push((key, node));
        self
    }

    fn named(self, name: impl Into<String>) -> (String, Node) {
        let mut entries = vec![
            ("action", self.action.into()),
            ("channel", reference(format!("#/channels/{}", self.channel))),
            ("summary", self.summary.into()),
            ("tags", list([map([("name", self.tag.into())])])),
        ];
        if !self.messages.is_empty() {
            entries.push(("messages", on(self.channel, &self.messages)));
        }
        entries.extend(self.more);
        (name.into(), map(entries))
    }
}

/// References to messages of a channel.
fn on(channel: &str, messages: &[impl AsRef<str>]) -> Node {
    list(messages.iter().map(|message| {
        reference(format!(
            "#/channels/{channel}/messages/{}",
            message.as_ref()
        ))
    }))
}

fn agents() -> Vec<(String, Node)> {
    let agent = |action, channel, summary| Operation::new(action, channel, "agent", summary);
    let heard = "Subscribe to {prefix}.v1.msg.*.*.{agent}.* and the same with _all, or use a durable consumer.";
    let urgent = "Whatever is said at priority critical or system_critical.";
    vec![
        agent(
            "send",
            "msg",
            "Ask the coordinator to open a case: action open_case, see open_case.schema.json.",
        )
        .of(["request"])
        .answered_by(&["response", "error"])
        .named("agent-opens-case"),
        agent("receive", "msg", "Take a task.")
            .of(["task_assignment"])
            .answered_by(&["finding"])
            .named("agent-takes-task"),
        agent("send", "msg", "Give a finding to the coordinator.")
            .of(["finding"])
            .named("agent-gives-finding"),
        agent(
            "receive",
            "msg",
            "Be asked, in a debate, to keep, change or give up a position.",
        )
        .of(["question"])
        .answered_by(&ANSWERS)
        .named("agent-is-asked"),
        agent(
            "send",
            "msg",
            "Answer the facilitator, with reply_to or correlation_id.",
        )
        .of(ANSWERS)
        .named("agent-answers"),
        agent("receive", "msg", heard).named("agent-hears"),
        agent("receive", "urgent", urgent).named("agent-hears-urgent"),
        agent(
            "send",
            "msg",
            "Say anything else, to a peer, to _all or to _any.",
        )
        .named("agent-speaks"),
        agent("send", "urgent", urgent).named("agent-speaks-urgently"),
        agent("send", "beat", "Show that it is alive.").named("agent-beats"),
    ]
}

/// The message types a service acts on; it refuses or ignores all others.
fn heard(service: Service) -> Vec<&'static str> {
    let known = MessageType::KNOWN.iter().copied();
    known
        .filter(|name| {
            let kind = MessageType::from(Token::fixed(name));
            kind.acted_on_by().contains(&service)
        })
        .collect()
}

/// The message types a service sends.
fn said(service: Service) -> Vec<&'static str> {
    match service {
        Service::Coordinator => {
            vec![
                "task_assignment",
                "response",
                "notification",
                "error",
                "agent_joined",
                "status",
            ]
        }
        Service::ConflictDetector => vec!["request"],
        Service::DebateFacilitator => vec!["question", "notification", "error"],
        Service::AgentAdapter => vec!["notification"],
        Service::EscalationTimer => Vec::new(),
    }
}

/// What a consumer receives: the key of its channel, a line about it, and its messages.
struct Received {
    channel: &'static str,
    what: &'static str,
    messages: Vec<String>,
}

fn received(consumer: &ConsumerDefinition) -> Received {
    let (channel, what) = match consumer.kind {
        ConsumerKind::Inbox(_) => ("msg", "Messages addressed to it."),
        ConsumerKind::UrgentInbox(_) => ("urgent", "Urgent messages addressed to it."),
        ConsumerKind::Events(_) => ("event", "Events of others that it acts on."),
        ConsumerKind::Effects(_) => (
            "event",
            "Its own events, to publish what follows from them.",
        ),
        ConsumerKind::Deadlines => ("event", "Events that may move a deadline."),
        ConsumerKind::Completions => (
            "event",
            "Ends of requests, which are posted where a request asks for it.",
        ),
        ConsumerKind::Notices(_) => ("event", "Events of which people are notified outside NATS."),
        ConsumerKind::Wake => (
            lane(consumer),
            "What may concern others than whom it is addressed to.",
        ),
        ConsumerKind::Exchange => (lane(consumer), "What agents ask each other for and answer."),
        ConsumerKind::Due => ("timer-due", "Deadlines that the broker delivers."),
    };
    Received {
        channel,
        what,
        messages: messages_of(consumer),
    }
}

fn messages_of(consumer: &ConsumerDefinition) -> Vec<String> {
    let types = |types: &[MessageType]| types.iter().map(ToString::to_string).collect();
    match consumer.kind {
        ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_) => {
            let heard = heard(consumer.service).into_iter();
            heard.map(str::to_owned).collect()
        }
        ConsumerKind::Wake => types(&WAKING),
        ConsumerKind::Exchange => types(&EXCHANGED),
        ConsumerKind::Due => vec!["deadline-due".to_owned()],
        ConsumerKind::Events(_)
        | ConsumerKind::Effects(_)
        | ConsumerKind::Deadlines
        | ConsumerKind::Completions
        | ConsumerKind::Notices(_) => {
            let event = consumer.event.iter();
            event
                .map(|(aggregate, info)| event::name(*aggregate, info.name))
                .collect()
        }
    }
}

fn lane(consumer: &ConsumerDefinition) -> &'static str {
    match consumer.stream_kind {
        StreamKind::Urgent => "urgent",
        _ => "msg",
    }
}

fn consume(consumer: &ConsumerDefinition) -> (String, Node) {
    let Received {
        channel,
        what,
        messages,
    } = received(consumer);
    let how = format!(
        "Durable consumer {} on the stream {}, shared by all replicas.",
        consumer.name, consumer.stream
    );
    Operation::new("receive", channel, consumer.service.as_str(), what)
        .of(messages)
        .with("description", how.into())
        .named(consumer.name.clone())
}

fn says(service: Service) -> Option<(String, Node)> {
    let types = said(service).into_iter().map(str::to_owned);
    let told = notifications().filter(|(_, info)| info.from == service);
    let messages: Vec<String> = types.chain(told.map(|(name, _)| name)).collect();
    if messages.is_empty() {
        return None;
    }
    let operation = Operation::new(
        "send",
        "msg",
        service.as_str(),
        "What it says, under its own name.",
    )
    .of(messages);
    Some(operation.named(format!("{service}-says")))
}

fn appends(service: Service) -> Option<(String, Node)> {
    let events: Vec<String> = all_events()
        .filter(|(aggregate, _)| aggregate.owner() == service)
        .map(|(aggregate, info)| event::name(aggregate, info.name))
        .collect();
    if events.is_empty() {
        return None;
    }
    let summary = "Append an event under the optimistic lock of its aggregate.";
    Some(
        Operation::new("send", "event", service.as_str(), summary)
            .of(events)
            .named(format!("{service}-appends")),
    )
}

/// The operations that all services have, or that need bindings of their own.
fn shared() -> [(String, Node); 4] {
    let queue = map([(
        "nats",
        map([
            ("queue", API_QUEUE.into()),
            ("bindingVersion", "0.1.0".into()),
        ]),
    )]);
    let timer = Service::EscalationTimer.as_str();
    [
        Operation::new(
            "send",
            "timer-armed",
            timer,
            "Have the broker's scheduler hold a deadline.",
        )
        .named(format!("{timer}-arms")),
        Operation::new(
            "send",
            "dead",
            "services",
            "Keep what could not be processed, with the reason.",
        )
        .named("services-give-up"),
        Operation::new(
            "receive",
            "api",
            "services",
            "Answer a query or an operator's command.",
        )
        .of(["api-request"])
        .answered_by(&["api-reply"])
        .with("bindings", queue.clone())
        .named("services-answer"),
        Operation::new(
            "receive",
            "api-caller",
            "services",
            "Answer somebody with a name, if they have a role that the verb needs.",
        )
        .of(["api-request"])
        .answered_by(&["api-reply"])
        .with("bindings", queue)
        .named("services-answer-people"),
    ]
}
