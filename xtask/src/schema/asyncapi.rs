//! The AsyncAPI 3 document: which message may stand on which subject, and who sends and receives it.

mod operations;

use super::yaml::{self, Node, list, map};
use super::{event, file_name, grammar, message};
use concord_events::Aggregate;
use concord_events::all_events;
use concord_events::dead_letter::{self, DeadReason};
use concord_wire::envelope::{ENVELOPE_BYTES_MAX, MessageType};
use concord_wire::header;
use concord_wire::payload::NotificationData;
use concord_wire::payload::notification::NotificationInfo;
use concord_wire::subject::{DEFAULT_PREFIX, Service, VERSION};

/// Version of AsyncAPI. 3.0.0 is what most tools read; nothing here needs a newer one.
const ASYNCAPI: &str = "3.0.0";

/// The document as YAML.
pub fn asyncapi() -> String {
    let about = "Generated from the Rust types by scripts/generate; do not edit.\n";
    let document = map([
        ("asyncapi", ASYNCAPI.into()),
        ("id", "https://concord.dev/asyncapi/v1".into()),
        ("info", info()),
        ("defaultContentType", "application/json".into()),
        (
            "servers",
            map([(
                "local",
                map([
                    ("host", "localhost:4222".into()),
                    ("protocol", "nats".into()),
                ]),
            )]),
        ),
        (
            "channels",
            map(grammar()
                .into_iter()
                .map(|(form, purpose)| (channel_name(form), channel(form, purpose)))),
        ),
        ("operations", map(operations::all())),
        (
            "components",
            map([
                ("messages", map(messages())),
                ("messageTraits", map(traits())),
            ]),
        ),
    ]);
    format!("# {about}{}", yaml::write(&document))
}

fn info() -> Node {
    map([
        ("title", "Concord".into()),
        ("version", "1.0.0".into()),
        (
            "description",
            format!(
                "Lets AI agents, and the people responsible for them, settle disagreements. Every channel is a NATS \
                 subject; {{prefix}} is {DEFAULT_PREFIX} unless the installation is configured otherwise. Schemas are \
                 JSON Schema 2020-12, with formats to be asserted. A message has at most {ENVELOPE_BYTES_MAX} bytes."
            )
            .into(),
        ),
        ("license", map([("name", "Apache-2.0".into())])),
    ])
}

fn reference(target: impl std::fmt::Display) -> Node {
    map([("$ref", target.to_string().into())])
}

/// A channel's key: the fixed tokens its subjects begin with, and for requests under a name that there is one.
fn channel_name(form: &str) -> String {
    let fixed = form.split('.').take_while(|token| !token.starts_with('<'));
    let named = form.ends_with(".<caller>").then_some("caller");
    fixed.chain(named).collect::<Vec<_>>().join("-")
}

/// The names of a subject's variable tokens.
fn parameter_names(form: &str) -> impl Iterator<Item = &str> {
    form.split('.')
        .filter_map(|token| token.strip_prefix('<')?.strip_suffix('>'))
}

fn channel(form: &'static str, purpose: &str) -> Node {
    let name = channel_name(form);
    let address = format!(
        "{{prefix}}.{VERSION}.{}",
        form.replace('<', "{").replace('>', "}")
    );
    let parameters = std::iter::once("prefix")
        .chain(parameter_names(form))
        .map(|name| (name, parameter(name)));
    let messages = messages_of(&name).into_iter().map(|message| {
        let target = reference(format!("#/components/messages/{message}"));
        (message, target)
    });
    map([
        ("address", address.into()),
        ("title", form.into()),
        ("description", sentence(purpose).into()),
        ("messages", map(messages)),
        ("parameters", map(parameters)),
    ])
}

/// A line of a table as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

fn parameter(name: &str) -> Node {
    let described = |text: &str| vec![("description", text.into())];
    let one_of =
        |text: &str, names: Vec<&str>| vec![("description", text.into()), ("enum", list(names))];
    let services = || {
        Service::ALL
            .iter()
            .map(|service| service.as_str())
            .collect()
    };
    let aggregates = Aggregate::ALL
        .iter()
        .map(|aggregate| aggregate.as_str())
        .collect();
    let reasons = DeadReason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .collect();
    map(match name {
        "prefix" => {
            vec![
                ("default", DEFAULT_PREFIX.into()),
                ("description", "The installation; one token.".into()),
            ]
        }
        "case" => described("The case, or `_` outside a case."),
        "from" => described("The sender. The broker lets an agent publish only under its own id."),
        "to" => described(
            "An agent or service, `_all` (everyone in the case) or `_any` (whoever can help).",
        ),
        "type" => {
            described("The message type. One that is not known is stored and otherwise ignored.")
        }
        "aggregate" => one_of(
            "A kind of aggregate; each has one owning service.",
            aggregates,
        ),
        "id" => described("Which aggregate of its kind."),
        "fact" => described("What happened."),
        "name" => described("The name of a deadline inside its aggregate."),
        "agent" => described("The id of the agent that writes."),
        "topic" => described("What it is about."),
        "service" => one_of("A service.", services()),
        "reason" => one_of("Why it could not be processed.", reasons),
        "verb" => described("What to do."),
        "caller" => described("The name of whoever asks; the service checks their role."),
        _ => Vec::new(),
    })
}

/// The keys of the messages that a channel carries.
fn messages_of(channel: &str) -> Vec<String> {
    match channel {
        "urgent" => message_types().collect(),
        "msg" => message_types()
            .chain(notifications().map(|(name, _)| name))
            .collect(),
        "event" => all_events()
            .map(|(aggregate, info)| event::name(aggregate, info.name))
            .collect(),
        "api-caller" => messages_of("api"),
        other => UNTYPED
            .iter()
            .filter(|(name, ..)| *name == other)
            .map(|(.., key, _, _)| (*key).to_owned())
            .collect(),
    }
}

/// The keys of the messages that are named after their type.
fn message_types() -> impl Iterator<Item = String> {
    MessageType::KNOWN.iter().map(|name| (*name).to_owned())
}

/// The notifications of Concord, with the keys of their messages.
fn notifications() -> impl Iterator<Item = (String, &'static NotificationInfo)> {
    let all = NotificationData::ALL.iter();
    all.map(|info| (message::notification_name(info.event), info))
}

/// Messages whose contents no schema describes: channel, key, summary, trait.
const UNTYPED: [(&str, &str, &str, Option<&str>); 9] = [
    (
        "timer-armed",
        "deadline-armed",
        "A deadline that the broker's scheduler holds.",
        Some("scheduled"),
    ),
    (
        "timer-due",
        "deadline-due",
        "A deadline that the broker's scheduler has delivered.",
        None,
    ),
    (
        "replica-beat",
        "replica-beat",
        "A replica of a service is there.",
        None,
    ),
    (
        "replica-take",
        "replica-take",
        "A delivery that another replica works on, or a step that it is asked for.",
        None,
    ),
    (
        "memory",
        "memory-entry",
        "What the processes of a service share, in any form.",
        Some("stored"),
    ),
    (
        "dead",
        "dead-letter",
        "What could not be processed, byte for byte; the headers say why.",
        Some("dead"),
    ),
    (
        "beat",
        "heartbeat",
        "A sign of life; the subject says whose.",
        None,
    ),
    (
        "api",
        "api-request",
        "The parameters of a query or command, as a JSON object.",
        None,
    ),
    (
        "api",
        "api-reply",
        "The answer, as JSON; a failure is an error payload in the header Nats-Service-Error.",
        None,
    ),
];

fn messages() -> Vec<(String, Node)> {
    let typed = |key: String, summary: &str, kind: &'static str| {
        let node = map([
            ("summary", summary.into()),
            ("payload", reference(format!("./{}", file_name(&key)))),
            (
                "traits",
                list([reference(format!("#/components/messageTraits/{kind}"))]),
            ),
        ]);
        (key, node)
    };
    let said = MessageType::DOCS
        .iter()
        .map(|(name, doc)| typed((*name).to_owned(), doc, "said"));
    let told = notifications().map(|(name, info)| typed(name, info.when, "said"));
    let stored = all_events()
        .map(|(aggregate, info)| typed(event::name(aggregate, info.name), info.doc, "stored"));
    let untyped = UNTYPED.iter().map(|(_, key, summary, kind)| {
        let mut entries = vec![("summary", Node::from(*summary))];
        entries.extend(kind.map(|kind| {
            (
                "traits",
                list([reference(format!("#/components/messageTraits/{kind}"))]),
            )
        }));
        ((*key).to_owned(), map(entries))
    });
    said.chain(told).chain(stored).chain(untyped).collect()
}

fn traits() -> Vec<(&'static str, Node)> {
    let common = [header::MESSAGE_ID, header::TRACEPARENT, header::TRACESTATE];
    let scheduled = [
        header::SCHEDULE,
        header::SCHEDULE_TARGET,
        header::SCHEDULE_TTL,
    ];
    let location = map([("location", "$message.payload#/correlation_id".into())]);
    let of = |names: &[&str], all: &[(&str, &str)]| {
        headers(all.iter().filter(|(name, _)| names.contains(name)))
    };
    vec![
        (
            "said",
            map([
                ("headers", of(&common, header::ALL)),
                ("correlationId", location),
            ]),
        ),
        ("stored", map([("headers", of(&common, header::ALL))])),
        ("scheduled", map([("headers", of(&scheduled, header::ALL))])),
        (
            "dead",
            map([("headers", headers(dead_letter::header::ALL.iter()))]),
        ),
    ]
}

fn headers<'a>(headers: impl Iterator<Item = &'a (&'a str, &'a str)>) -> Node {
    let properties = headers.map(|(name, doc)| {
        (
            *name,
            map([("type", "string".into()), ("description", (*doc).into())]),
        )
    });
    map([("type", "object".into()), ("properties", map(properties))])
}
