"""What can go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .message import Message


class ConcordError(Exception):
    """Something that an agent meant to do was not done."""


class RequestError(ConcordError):
    """A request was answered by an `error` message."""

    def __init__(
        self,
        code: str,
        message: str,
        recovery_suggestions: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.recovery_suggestions = list(recovery_suggestions)
        self.details = dict(details or {})

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> RequestError:
        """From the payload of an `error` message."""
        suggestions = payload.get("recovery_suggestions")
        details = payload.get("details")
        return cls(
            str(payload.get("error_code", "INTERNAL_ERROR")),
            str(payload.get("error_message", "")),
            [str(one) for one in suggestions] if isinstance(suggestions, list) else [],
            details if isinstance(details, dict) else {},
        )


def result_of(answer: Message) -> Any:
    """The result that an answer brings: the whole payload, where that does not say how it went.

    Raises:
        RequestError: it is an error, or says that nothing was done.
    """
    if answer.message_type == "error":
        raise RequestError.of(answer.payload)
    status = answer.payload.get("status")
    if status not in ("success", "failure", "partial"):
        return answer.payload
    if status == "failure":
        raise RequestError("INTERNAL_ERROR", "; ".join(map(str, answer.payload.get("errors") or ["It failed."])))
    result = answer.payload.get("result")
    return {} if result is None else result


class RequestTimeout(RequestError):
    """A request was not answered in time."""

    def __init__(self, to: str, seconds: float) -> None:
        super().__init__("TIMEOUT", f"{to} gave no answer within {seconds:g} s.", ["Ask again later, or ask another."])
