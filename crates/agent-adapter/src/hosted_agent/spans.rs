//! The spans of a message to a hosted agent: one for the message, and below it one for each wait and each call.
//!
//! Spans hold names, ids and outcomes, never the text of a message and never a key. They are not entered, because each log
//! line that is written in an entered span becomes a part of it.

use concord_runtime::service::ServiceContext;
use concord_runtime::{Trace, TraceContext, service::telemetry};
use concord_wire::{AgentId, CaseId, MessageType};
use tracing::Span;
use tracing::field::Empty;

use crate::hosted_agent::failure::Failure;

/// The span of one message, from its delivery to its answer.
pub(crate) struct AnswerSpan {
    root: TracedSpan,
    agent: AgentId,
    kind: &'static str,
}

/// A span, and the trace context to pass on from it.
pub(crate) struct TracedSpan {
    span: Span,
    context: Option<Trace>,
}

/// The message that a span is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanSubject<'a> {
    /// The trace context that the message brought.
    pub(crate) brought: Option<&'a Trace>,
    pub(crate) case: Option<&'a CaseId>,
    pub(crate) message_type: &'a MessageType,
}

impl AnswerSpan {
    /// Begins the span of a message that an agent is to answer. `kind` is `program`, `http` or `openai`.
    pub(crate) fn begin<P>(
        context: &ServiceContext<P>,
        agent: &AgentId,
        kind: &'static str,
        subject: SpanSubject<'_>,
    ) -> Self {
        let span = tracing::info_span!(
            target: "concord", parent: None, "turn", otel.kind = "consumer", otel.status_code = Empty, agent.id = %agent,
            agent.kind = kind, message.type = subject.message_type.as_str(), deliberation.id = Empty,
            deliberation.outcome = Empty
        );
        Self {
            root: TracedSpan::root(context, span, subject),
            agent: agent.clone(),
            kind,
        }
    }

    /// Begins the span of an answer that the agent posts later, to whichever replica.
    pub(crate) fn begin_later_answer<P>(
        context: &ServiceContext<P>,
        agent: &AgentId,
        subject: SpanSubject<'_>,
    ) -> TracedSpan {
        let span = tracing::info_span!(
            target: "concord", parent: None, "later_answer", otel.kind = "server", otel.status_code = Empty,
            agent.id = %agent, agent.kind = "http", message.type = subject.message_type.as_str(), deliberation.id = Empty,
            deliberation.outcome = Empty
        );
        TracedSpan::root(context, span, subject)
    }

    /// Begins the span of the wait for a permit.
    pub(crate) fn queue(&self) -> TracedSpan {
        self.root.child(tracing::info_span!(
            target: "concord", parent: &self.root.span, "queue", otel.status_code = Empty, deliberation.outcome = Empty
        ))
    }

    /// Begins the span of the wait for the provider's budget.
    pub(crate) fn budget(&self) -> TracedSpan {
        self.root.child(tracing::info_span!(
            target: "concord", parent: &self.root.span, "budget", otel.status_code = Empty, deliberation.outcome = Empty
        ))
    }

    /// Begins the span of one call. `tried` is 1 for the first.
    pub(crate) fn call(&self, tried: u32) -> TracedSpan {
        self.root.child(tracing::info_span!(
            target: "concord", parent: &self.root.span, "call", otel.kind = "client", otel.status_code = Empty,
            agent.id = %self.agent, agent.kind = self.kind, agent.tried = tried, deliberation.outcome = Empty
        ))
    }

    /// The trace context to pass on.
    pub(crate) fn context(&self) -> Option<&Trace> {
        self.root.context()
    }

    /// Records how the message ended.
    pub(crate) fn set_outcome(&self, outcome: &str) {
        self.root.set_outcome(outcome);
    }

    /// Records that the message failed, and why.
    pub(crate) fn set_failure(&self, outcome: &str) {
        self.root.set_failure(outcome);
    }

    /// A span that nobody records, with a trace context to pass on.
    #[cfg(test)]
    pub(crate) fn unrecorded(agent: &AgentId, context: Option<Trace>) -> Self {
        Self {
            root: TracedSpan {
                span: Span::none(),
                context,
            },
            agent: agent.clone(),
            kind: "http",
        }
    }
}

impl TracedSpan {
    fn root<P>(context: &ServiceContext<P>, span: Span, subject: SpanSubject<'_>) -> Self {
        if let Some(case) = subject.case {
            span.record("deliberation.id", case.as_str());
        }
        let brought = subject.brought.cloned();
        let context = TraceContext::of(context, brought, subject.case).begin(&span);
        Self { span, context }
    }

    fn child(&self, span: Span) -> Self {
        let context = telemetry::trace_of_span(&span, self.context.clone());
        Self { span, context }
    }

    /// The trace context to pass on.
    pub(crate) fn context(&self) -> Option<&Trace> {
        self.context.as_ref()
    }

    /// Records how the work of the span ended.
    pub(crate) fn set_outcome(&self, outcome: &str) {
        self.span.record("deliberation.outcome", outcome);
    }

    /// Records that the work of the span failed, and why.
    pub(crate) fn set_failure(&self, outcome: &str) {
        self.set_outcome(outcome);
        self.span.record("otel.status_code", "ERROR");
    }

    /// Ends the span and passes `result` on. `success` is recorded as the outcome where it is no failure.
    pub(crate) fn finish<T>(self, success: &str, result: Result<T, Failure>) -> Result<T, Failure> {
        match &result {
            Ok(_) => self.set_outcome(success),
            Err(failure) => self.set_failure(failure.outcome),
        }
        result
    }
}
