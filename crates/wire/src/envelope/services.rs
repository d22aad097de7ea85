//! Which service acts on which type of message, and what becomes of the others.

use super::MessageType;
use crate::fault::Fault;
use crate::subject::Service;

impl MessageType {
    /// The services that act on messages of this type. Empty for what agents say among themselves, and for types that this
    /// build does not know.
    pub fn acted_on_by(&self) -> &'static [Service] {
        use MessageType as T;
        match self {
            T::Request => &[Service::Coordinator, Service::DebateFacilitator],
            T::Finding
            | T::FindingWithPrecedent
            | T::Challenge
            | T::Confirmation
            | T::Review
            | T::Status => &[Service::Coordinator],
            T::Alert => &[Service::Coordinator],
            T::TaskResult | T::Bid | T::Refuse | T::Handoff | T::Commitment => {
                &[Service::Coordinator]
            }
            T::Agreement | T::Disagreement | T::Revision => &[Service::DebateFacilitator],
            T::Acknowledgement | T::Clarification | T::Evidence | T::Ruling | T::Outcome => {
                &[Service::DebateFacilitator]
            }
            _ => &[],
        }
    }

    /// Whether it only tells something, so that nobody waits for an answer. A service that does not act on it lets it pass:
    /// an error in return would tell nobody anything, and could be answered by a further one without end.
    pub fn expects_nothing(&self) -> bool {
        use MessageType as T;
        matches!(
            self,
            T::Error | T::Notification | T::Response | T::Status | T::InfoUpdate
        )
    }

    /// The refusal by a service that does not act on this type; none where it acts on it or nobody waits for an answer. The
    /// original of an unknown type is kept, for a newer build to try again.
    pub fn refusal_by(&self, service: Service) -> Option<Fault> {
        if let Self::Unknown(name) = self {
            return Some(Fault::invalid(
                "/message_type",
                format!("The message type \"{name}\" is not known here."),
                format!("Use one of: {}.", Self::KNOWN.join(", ")),
            ));
        }
        let acting = self.acted_on_by();
        if acting.contains(&service) || self.expects_nothing() {
            return None;
        }
        let names: Vec<&str> = acting.iter().map(|service| service.as_str()).collect();
        let advice = match self {
            _ if names.is_empty() => format!(
                "No service acts on a {self}. Send it to an agent, to _any (whoever can help) or to _all (everyone in the case)."
            ),
            Self::Refuse if service == Service::DebateFacilitator => {
                "An empty answer keeps your position in a debate; a task is refused to the coordinator.".into()
            }
            _ => format!("Send it to the {}.", names.join(" or the ")),
        };
        Some(Fault::invalid(
            "/to_agent",
            format!("The {service} acts on no {self}."),
            advice,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Token;

    #[test]
    fn every_known_type_is_acted_on_let_pass_or_refused_with_whom_to_send_it_to() {
        for name in MessageType::KNOWN {
            let kind = MessageType::from(Token::fixed(name));
            for service in Service::ALL.iter().copied() {
                let refusal = kind.refusal_by(service);
                let acts = kind.acted_on_by().contains(&service);
                assert_eq!(
                    refusal.is_none(),
                    acts || kind.expects_nothing(),
                    "{kind} to {service}"
                );
                let Some(fault) = refusal else { continue };
                assert_eq!(fault.pointer, "/to_agent");
                for acting in kind.acted_on_by() {
                    assert!(fault.advice.contains(acting.as_str()), "{fault}");
                }
            }
        }
    }

    #[test]
    fn what_only_tells_is_never_answered_by_an_error() {
        for kind in [MessageType::Error, MessageType::Notification] {
            for service in Service::ALL.iter().copied() {
                assert_eq!(kind.refusal_by(service), None, "{kind} to {service}");
            }
        }
    }

    #[test]
    fn the_refusal_names_the_service_that_acts() {
        let told = |kind: MessageType, service| kind.refusal_by(service).unwrap().advice;
        assert_eq!(
            told(MessageType::Agreement, Service::Coordinator),
            "Send it to the debate-facilitator."
        );
        assert_eq!(
            told(MessageType::Finding, Service::DebateFacilitator),
            "Send it to the coordinator."
        );
        assert_eq!(
            told(MessageType::Request, Service::AgentAdapter),
            "Send it to the coordinator or the debate-facilitator."
        );
        assert!(
            told(MessageType::Refuse, Service::DebateFacilitator).contains("keeps your position")
        );
        assert!(told(MessageType::Award, Service::Coordinator).contains("_any"));
        let unknown = MessageType::Unknown(Token::fixed("gossip"));
        assert_eq!(
            unknown.refusal_by(Service::Coordinator).unwrap().pointer,
            "/message_type"
        );
    }
}
