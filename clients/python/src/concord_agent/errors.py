"""What can go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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


class RequestTimeout(RequestError):
    """A request was not answered in time."""

    def __init__(self, to: str, seconds: float) -> None:
        super().__init__("TIMEOUT", f"{to} gave no answer within {seconds:g} s.", ["Ask again later, or ask another."])
