//! Subjects that only services use: events, deadlines and dead letters. Those of messages are in [`concord_wire::subject`].

use concord_wire::Token;
use concord_wire::subject::{Error, Service, Subject, SubjectForm, SubjectSpace, token};

use crate::Aggregate;

/// Form and purpose of each of these subjects, for the generated reference.
pub const GRAMMAR: [(&str, &str); 6] = [
    (
        "event.<aggregate>.<id>.<fact>",
        "events, appended by the owner of the aggregate under an optimistic lock",
    ),
    (
        "timer.armed.<aggregate>.<id>.<name>",
        "a deadline held by the broker's scheduler",
    ),
    (
        "timer.due.<aggregate>.<id>.<name>",
        "where the broker delivers it",
    ),
    (
        "dead.<service>.<reason>",
        "what could not be processed: the original, and why",
    ),
    (
        "replica.beat.<service>.<replica>",
        "a replica of a service says to the others that it is there; not stored",
    ),
    (
        "replica.take.<service>.<replica>",
        "a delivery that another replica works on, or a step that it is asked for; not stored",
    ),
];

/// One concrete subject that only services use, without prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SystemSubject {
    /// An event of an aggregate.
    Event {
        /// The kind of aggregate.
        aggregate: Aggregate,
        /// The id of the aggregate.
        id: Token,
        /// The name of the event.
        event: Token,
    },
    /// A deadline held by the broker's scheduler.
    TimerArmed {
        /// The kind of aggregate.
        aggregate: Aggregate,
        /// The id of the aggregate.
        id: Token,
        /// Name of the deadline inside the aggregate.
        name: Token,
    },
    /// A deadline that the broker's scheduler has delivered.
    TimerDue {
        /// The kind of aggregate.
        aggregate: Aggregate,
        /// The id of the aggregate.
        id: Token,
        /// Name of the deadline inside the aggregate.
        name: Token,
    },
    /// Something that could not be processed.
    DeadLetter {
        /// The service that could not process it.
        service: Service,
        /// The reason, as one token.
        reason: Token,
    },
    /// What the replicas of a service say to each other.
    Replica {
        /// The service.
        service: Service,
        /// What is said.
        verb: ReplicaVerb,
        /// The replica that says or is told it; none in a filter for all of them.
        replica: Option<Token>,
    },
}

/// What the replicas of a service say to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplicaVerb {
    /// The replica that is named is there.
    Beat,
    /// The replica that is named is to work on this delivery, or is asked for this step.
    Take,
}

impl ReplicaVerb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Beat => "beat",
            Self::Take => "take",
        }
    }
}

impl SubjectForm for SystemSubject {
    fn build(&self, space: &SubjectSpace) -> String {
        match self {
            Self::Event {
                aggregate,
                id,
                event,
            } => space.join(&["event", aggregate.as_str(), id.as_str(), event.as_str()]),
            Self::TimerArmed {
                aggregate,
                id,
                name,
            } => space.join(&[
                "timer",
                "armed",
                aggregate.as_str(),
                id.as_str(),
                name.as_str(),
            ]),
            Self::TimerDue {
                aggregate,
                id,
                name,
            } => space.join(&[
                "timer",
                "due",
                aggregate.as_str(),
                id.as_str(),
                name.as_str(),
            ]),
            Self::DeadLetter { service, reason } => {
                space.join(&["dead", service.as_str(), reason.as_str()])
            }
            Self::Replica {
                service,
                verb,
                replica,
            } => {
                let replica = replica.as_ref().map_or("*", Token::as_str);
                space.join(&["replica", verb.as_str(), service.as_str(), replica])
            }
        }
    }

    fn parse(tokens: &[&str]) -> Result<Self, Error> {
        match tokens {
            ["event", aggregate, id, event] => Ok(Self::Event {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                event: token("fact", event)?,
            }),
            ["timer", "armed", aggregate, id, name] => Ok(Self::TimerArmed {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                name: token("name", name)?,
            }),
            ["timer", "due", aggregate, id, name] => Ok(Self::TimerDue {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                name: token("name", name)?,
            }),
            ["dead", service, reason] => Ok(Self::DeadLetter {
                service: Service::parse(service)?,
                reason: token("reason", reason)?,
            }),
            ["replica", verb @ ("beat" | "take"), service, replica] => Ok(Self::Replica {
                service: Service::parse(service)?,
                verb: match *verb {
                    "beat" => ReplicaVerb::Beat,
                    _ => ReplicaVerb::Take,
                },
                replica: Some(token("replica", replica)?),
            }),
            _ => Err(Error::Shape),
        }
    }
}

/// Any subject of an installation, for whoever reads all streams.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AnySubject {
    /// A subject that agents use.
    Agents(Subject),
    /// A subject that only services use.
    System(SystemSubject),
}

impl SubjectForm for AnySubject {
    fn build(&self, space: &SubjectSpace) -> String {
        match self {
            Self::Agents(subject) => subject.build(space),
            Self::System(subject) => subject.build(space),
        }
    }

    fn parse(tokens: &[&str]) -> Result<Self, Error> {
        match Subject::parse(tokens) {
            Err(Error::Shape) => SystemSubject::parse(tokens).map(Self::System),
            parsed => parsed.map(Self::Agents),
        }
    }
}

/// Subjects with wildcards for streams, consumers and locks of events and deadlines.
pub trait SystemFilters {
    /// All events of one aggregate; also the subject that its optimistic lock is taken on.
    fn events_of(&self, aggregate: Aggregate, id: &Token) -> String;
    /// All events of every aggregate of a kind.
    fn events_of_kind(&self, aggregate: Aggregate) -> String;
    /// The event called `event` of every aggregate of a kind.
    fn event_of_kind(&self, aggregate: Aggregate, event: &str) -> String;
    /// All armed deadlines.
    fn armed(&self) -> String;
    /// All deadlines that the broker's scheduler has delivered.
    fn due(&self) -> String;
}

impl SystemFilters for SubjectSpace {
    fn events_of(&self, aggregate: Aggregate, id: &Token) -> String {
        self.join(&["event", aggregate.as_str(), id.as_str(), "*"])
    }

    fn events_of_kind(&self, aggregate: Aggregate) -> String {
        self.join(&["event", aggregate.as_str(), "*", "*"])
    }

    fn event_of_kind(&self, aggregate: Aggregate, event: &str) -> String {
        self.join(&["event", aggregate.as_str(), "*", event])
    }

    fn armed(&self) -> String {
        self.join(&["timer", "armed", ">"])
    }

    fn due(&self) -> String {
        self.join(&["timer", "due", ">"])
    }
}

/// Whether a subject matches a filter with wildcards, as the broker matches it.
pub fn matches(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for expected in filter.split('.') {
        match (expected, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (expected, Some(found)) if expected == found => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token_text() -> impl Strategy<Value = String> {
        "[A-Za-z0-9-][A-Za-z0-9_-]{0,63}"
    }

    fn any_subject() -> impl Strategy<Value = SystemSubject> {
        let token = || token_text().prop_map(|text| Token::new(text).unwrap());
        let aggregate = || proptest::sample::select(Aggregate::ALL);
        let service = proptest::sample::select(Service::ALL);
        prop_oneof![
            (aggregate(), token(), token()).prop_map(|(aggregate, id, event)| {
                SystemSubject::Event {
                    aggregate,
                    id,
                    event,
                }
            }),
            (aggregate(), token(), token()).prop_map(|(aggregate, id, name)| {
                SystemSubject::TimerArmed {
                    aggregate,
                    id,
                    name,
                }
            }),
            (aggregate(), token(), token()).prop_map(|(aggregate, id, name)| {
                SystemSubject::TimerDue {
                    aggregate,
                    id,
                    name,
                }
            }),
            (service.clone(), token())
                .prop_map(|(service, reason)| SystemSubject::DeadLetter { service, reason }),
            (service, proptest::bool::ANY, token()).prop_map(|(service, beats, replica)| {
                SystemSubject::Replica {
                    service,
                    verb: if beats {
                        ReplicaVerb::Beat
                    } else {
                        ReplicaVerb::Take
                    },
                    replica: Some(replica),
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn the_parser_is_the_inverse_of_the_builder(subject in any_subject(), prefix in token_text()) {
            let space = SubjectSpace::new(&Token::new(prefix).unwrap());
            prop_assert_eq!(space.parse(&space.build(&subject)), Ok(subject));
        }

        #[test]
        fn any_text_parses_or_is_refused_and_what_parses_is_rebuilt_exactly(
            text in "(concord\\.v1\\.)?(event|timer|dead)[a-z._*> -]{0,60}"
        ) {
            let space = SubjectSpace::default();
            if let Ok(subject) = space.parse::<SystemSubject>(&text) {
                prop_assert_eq!(space.build(&subject), text);
            }
        }
    }

    #[test]
    fn hostile_subjects_are_refused() {
        let space = SubjectSpace::default();
        for text in [
            "concord.v1.event.case.c-1.opened.extra",
            "concord.v1.event.nothing.c-1.opened",
            "concord.v2.event.case.c-1.opened",
        ] {
            assert!(space.parse::<SystemSubject>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn filters_match_as_the_broker_matches_them() {
        for (subject, matching) in [
            ("a.b.c.d", true),
            ("a.x.c.d.e", true),
            ("a.b.c", false),
            ("a.b.d.d", false),
            ("b.b.c.d", false),
        ] {
            assert_eq!(matches("a.*.c.>", subject), matching, "{subject}");
        }
        assert!(matches("a.b", "a.b") && !matches("a.b", "a.b.c"));
    }
}
