//! Trace context as it travels: two header values, whatever may be installed to record spans.

use concord_wire::CaseId;
use concord_wire::trace::traceparent_of_case;

/// W3C trace context of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`, if any.
    pub state: Option<String>,
}

/// Longer values are passed over: they go along with all that follows from a message. The standard asks for no more to be passed on
/// (<https://www.w3.org/TR/trace-context/#tracestate-limits>).
const VALUE_BYTES_MAX: usize = 512;

impl Trace {
    /// The context that a message brings in its two headers; none where the first is no context.
    pub(crate) fn brought(parent: &str, state: Option<&str>) -> Option<Self> {
        let fits = |value: &&str| value.len() <= VALUE_BYTES_MAX;
        ids(parent)?;
        Some(Self {
            parent: Some(parent).filter(fits)?.to_owned(),
            state: state.filter(fits).map(str::to_owned),
        })
    }

    /// The context of a case whose messages bring none.
    pub fn of_case(case: &CaseId) -> Self {
        Self {
            parent: traceparent_of_case(case),
            state: None,
        }
    }

    /// The context in which a message of `case` is handled, and what to link it with.
    ///
    /// One case is one trace, whatever its agents and its opener send: a span of this trace is continued, sampled or
    /// not, so that no sender can blind the operator; another trace is linked; what is no context is passed over.
    pub fn within_case(brought: Option<Self>, case: &CaseId) -> (Self, Option<Self>) {
        let own = Self::of_case(case);
        let Some(brought) = brought else {
            return (own, None);
        };
        let Some((trace, span)) = ids(&brought.parent) else {
            return (own, None);
        };
        if ids(&own.parent).is_none_or(|(of_case, _)| of_case != trace) {
            return (own, Some(brought));
        }
        let parent = format!("00-{trace}-{span}-01");
        (
            Self {
                parent,
                state: brought.state,
            },
            None,
        )
    }
}

/// Trace id and span id of a `traceparent`, unless it is malformed
/// (<https://www.w3.org/TR/trace-context/#traceparent-header-field-values>).
fn ids(traceparent: &str) -> Option<(&str, &str)> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // Later versions may add parts behind these.
    let ends = version != "00" || parts.next().is_none();
    let good = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let none = version == "ff" || is_zero(trace) || is_zero(span);
    (ends && good && !none).then_some((trace, span))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREIGN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn trace(parent: &str) -> Trace {
        Trace {
            parent: parent.to_owned(),
            state: Some("vendor=1".into()),
        }
    }

    #[test]
    fn a_span_of_the_case_is_continued_and_always_sampled() {
        let case = CaseId::new("c-1").unwrap();
        let of_case = Trace::of_case(&case).parent;
        let of_agent = format!("{}-00f067aa0ba902b7-", &of_case[..35]);
        for flags in ["00", "01", "ff"] {
            let (parent, link) =
                Trace::within_case(Some(trace(&format!("{of_agent}{flags}"))), &case);
            assert_eq!((parent, link), (trace(&format!("{of_agent}01")), None));
        }
        assert_eq!(
            Trace::within_case(None, &case),
            (Trace::of_case(&case), None)
        );
    }

    #[test]
    fn what_is_no_context_or_too_long_is_passed_over() {
        let long = "v".repeat(VALUE_BYTES_MAX + 1);
        let brought = |parent: &str, state: &str| Trace::brought(parent, Some(state));
        assert_eq!(brought(FOREIGN, "vendor=1"), Some(trace(FOREIGN)));
        let without = Trace {
            state: None,
            ..trace(FOREIGN)
        };
        assert_eq!(brought(FOREIGN, &long), Some(without));
        let later_version = format!("cc{}-{long}", &FOREIGN[2..]);
        for parent in ["", "nonsense", &later_version] {
            assert_eq!(brought(parent, "vendor=1"), None, "{parent}");
        }
    }

    #[test]
    fn another_trace_is_linked_and_nonsense_is_passed_over() {
        let case = CaseId::new("c-1").unwrap();
        let later_version = format!("cc{}-what-follows", &FOREIGN[2..]);
        for foreign in [FOREIGN, &later_version] {
            assert_eq!(
                Trace::within_case(Some(trace(foreign)), &case),
                (Trace::of_case(&case), Some(trace(foreign)))
            );
        }
        let too_long = format!("{FOREIGN}-01");
        for nonsense in [
            "",
            "what",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            &too_long,
        ] {
            assert_eq!(
                Trace::within_case(Some(trace(nonsense)), &case),
                (Trace::of_case(&case), None),
                "{nonsense:?}"
            );
        }
    }
}
