//! Subjects with wildcards, for streams and consumers.

use super::{Lane, NO_CASE, Service, SubjectSpace};
use crate::id::{AgentId, CaseId, Recipient, Token};

impl SubjectSpace {
    /// Everything of one kind: `msg`, `urgent`, `event`, `timer`, `memory`, `dead`.
    pub fn all(&self, kind: &str) -> String {
        format!("{}{kind}.>", self.root)
    }

    /// Everything sent to `to` on `lane`, in any case, by anyone, of any type.
    pub fn inbox(&self, lane: Lane, to: &Recipient) -> String {
        format!("{}{}.*.*.{to}.*", self.root, lane.as_str())
    }

    /// Everything that `from` sends on `lane`, in any case, to anyone, of any type.
    pub fn messages_from(&self, lane: Lane, from: &AgentId) -> String {
        format!("{}{}.*.{from}.*.*", self.root, lane.as_str())
    }

    /// Everything that an agent sends to another on `lane`, in a case or outside of all.
    pub fn messages_between(
        &self,
        lane: Lane,
        case: Option<&CaseId>,
        from: &AgentId,
        to: &AgentId,
    ) -> String {
        let case = case.map_or(NO_CASE, CaseId::as_str);
        format!("{}{}.{case}.{from}.{to}.*", self.root, lane.as_str())
    }

    /// Everything addressed to a service on `lane`, malformed surplus tokens included, so that they can be answered.
    pub fn service_inbox(&self, lane: Lane, service: Service) -> String {
        format!("{}{}.*.*.{service}.>", self.root, lane.as_str())
    }

    /// All messages in `case` on `lane`: its transcript.
    pub fn transcript(&self, lane: Lane, case: &CaseId) -> String {
        format!("{}{}.{case}.>", self.root, lane.as_str())
    }

    /// All messages of type `kind` on `lane`.
    pub fn of_type(&self, lane: Lane, kind: &Token) -> String {
        format!("{}{}.*.*.*.{kind}", self.root, lane.as_str())
    }

    /// Messages of one type from one agent, or from any if none is named, to another on `lane`, in any case.
    pub fn between(
        &self,
        lane: Lane,
        from: Option<&AgentId>,
        to: &AgentId,
        kind: &Token,
    ) -> String {
        let from = from.map_or("*", AgentId::as_str);
        format!("{}{}.*.{from}.{to}.{kind}", self.root, lane.as_str())
    }

    /// Messages of one type that anybody tells everybody on `lane`, in a case or outside of cases.
    pub fn told_to_all(&self, lane: Lane, case: Option<&CaseId>, kind: &Token) -> String {
        let case = case.map_or(NO_CASE, CaseId::as_str);
        let all = Recipient::All;
        let all = all.as_str();
        format!("{}{}.{case}.*.{all}.{kind}", self.root, lane.as_str())
    }

    /// All heartbeats.
    pub fn beats(&self) -> String {
        format!("{}beat.*", self.root)
    }

    /// Root of a service's micro endpoints, without trailing dot.
    pub fn api_root(&self, service: Service) -> String {
        format!("{}api.{service}", self.root)
    }

    /// A filter of messages, narrowed to one sender.
    pub fn only_from(&self, filter: &str, from: &AgentId) -> String {
        // Lane, case, sender.
        self.narrowed(filter, 2, from.as_str())
    }

    /// A filter of messages, narrowed to messages outside of cases.
    pub fn outside_cases(&self, filter: &str) -> String {
        self.narrowed(filter, 1, NO_CASE)
    }

    /// A filter of messages, narrowed to one case.
    pub fn in_case(&self, filter: &str, case: &CaseId) -> String {
        self.narrowed(filter, 1, case.as_str())
    }

    fn narrowed(&self, filter: &str, place: usize, token: &str) -> String {
        let Some(rest) = filter.strip_prefix(&self.root) else {
            return filter.to_owned();
        };
        let mut tokens: Vec<&str> = rest.split('.').collect();
        if let Some(found) = tokens.get_mut(place) {
            *found = token;
        }
        self.join(&tokens)
    }
}
