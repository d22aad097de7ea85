//! What a trace shows of a message to a hosted agent: its turn, and in it what it waited for and each call.
//!
//! Spans hold names, ids and outcomes, never what was said and never a key. They are not entered, because each log line that
//! is written in an entered span becomes a part of it.

use concord_runtime::service::ServiceRunner;
use concord_runtime::{Trace, TraceContext, service::telemetry};
use concord_wire::{AgentId, CaseId, MessageType};
use tracing::Span;
use tracing::field::Empty;

use crate::failure::Failure;

/// The turn of one message, until it is dropped.
pub(crate) struct Turn {
    part: Part,
    agent: AgentId,
    kind: &'static str,
}

/// A span, and the context to pass on from it.
pub(crate) struct Part {
    span: Span,
    context: Option<Trace>,
}

/// What a span is about: what was said in which case, and brought which context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) brought: Option<&'a Trace>,
    pub(crate) case: Option<&'a CaseId>,
    pub(crate) message_type: &'a MessageType,
}

impl Turn {
    /// Of a message that an agent of this kind is to answer.
    pub(crate) fn begin(
        shell: &ServiceRunner,
        agent: &AgentId,
        kind: &'static str,
        about: About<'_>,
    ) -> Self {
        let span = tracing::info_span!(
            target: "concord", parent: None, "turn", otel.kind = "consumer", otel.status_code = Empty, agent.id = %agent,
            agent.kind = kind, message.type = about.message_type.as_str(), deliberation.id = Empty,
            deliberation.outcome = Empty
        );
        Self {
            part: Part::root(shell, span, about),
            agent: agent.clone(),
            kind,
        }
    }

    /// Of an answer that the agent posts later, to whichever replica.
    pub(crate) fn later(shell: &ServiceRunner, agent: &AgentId, about: About<'_>) -> Part {
        let span = tracing::info_span!(
            target: "concord", parent: None, "later_answer", otel.kind = "server", otel.status_code = Empty,
            agent.id = %agent, agent.kind = "http", message.type = about.message_type.as_str(), deliberation.id = Empty,
            deliberation.outcome = Empty
        );
        Part::root(shell, span, about)
    }

    /// The wait for the agent's turn.
    pub(crate) fn queue(&self) -> Part {
        self.part.inner(tracing::info_span!(
            target: "concord", parent: &self.part.span, "queue", otel.status_code = Empty, deliberation.outcome = Empty
        ))
    }

    /// The wait for the provider's budget.
    pub(crate) fn budget(&self) -> Part {
        self.part.inner(tracing::info_span!(
            target: "concord", parent: &self.part.span, "budget", otel.status_code = Empty, deliberation.outcome = Empty
        ))
    }

    /// One call, the first or a further one.
    pub(crate) fn call(&self, tried: u32) -> Part {
        self.part.inner(tracing::info_span!(
            target: "concord", parent: &self.part.span, "call", otel.kind = "client", otel.status_code = Empty,
            agent.id = %self.agent, agent.kind = self.kind, agent.tried = tried, deliberation.outcome = Empty
        ))
    }

    /// The context to pass on.
    pub(crate) fn context(&self) -> Option<&Trace> {
        self.part.context()
    }

    /// What came of it.
    pub(crate) fn came_to(&self, outcome: &str) {
        self.part.came_to(outcome);
    }

    /// That it came to nothing, and why.
    pub(crate) fn failed(&self, outcome: &str) {
        self.part.failed(outcome);
    }

    /// One that nobody records, in a context.
    #[cfg(test)]
    pub(crate) fn unrecorded(agent: &AgentId, context: Option<Trace>) -> Self {
        Self {
            part: Part {
                span: Span::none(),
                context,
            },
            agent: agent.clone(),
            kind: "http",
        }
    }
}

impl Part {
    fn root(shell: &ServiceRunner, span: Span, about: About<'_>) -> Self {
        if let Some(case) = about.case {
            span.record("deliberation.id", case.as_str());
        }
        let context = TraceContext::of(shell, about.brought.cloned(), about.case).begin(&span);
        Self { span, context }
    }

    fn inner(&self, span: Span) -> Self {
        let context = telemetry::trace_of_span(&span, self.context.clone());
        Self { span, context }
    }

    /// The context to pass on.
    pub(crate) fn context(&self) -> Option<&Trace> {
        self.context.as_ref()
    }

    /// What came of it.
    pub(crate) fn came_to(&self, outcome: &str) {
        self.span.record("deliberation.outcome", outcome);
    }

    /// That it came to nothing, and why.
    pub(crate) fn failed(&self, outcome: &str) {
        self.came_to(outcome);
        self.span.record("otel.status_code", "ERROR");
    }

    /// Ends with a result, which is `good` when it is none of failure.
    pub(crate) fn ended<T>(self, good: &str, result: Result<T, Failure>) -> Result<T, Failure> {
        match &result {
            Ok(_) => self.came_to(good),
            Err(failure) => self.failed(failure.outcome),
        }
        result
    }
}
