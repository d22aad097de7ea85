"""What can go wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .message import Message


#: The longest advice that the text of an error repeats, in characters.
ADVICE_MAX = 300


class ConcordError(Exception):
    """Something that an agent meant to do was not done."""


class NotConfirmed(ConcordError):
    """The broker has not said in time whether it has stored a message: it may have."""


class RequestError(ConcordError):
    """A request was answered by an `error` message."""

    def __init__(
        self,
        code: str,
        message: str,
        recovery_suggestions: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.recovery_suggestions = list(recovery_suggestions)
        self.details = dict(details or {})
        super().__init__(self._line())

    def _line(self) -> str:
        """Code, place, message and advice, as the command `concord` prints them."""
        pointer = self.details.get("pointer")
        place = f" at {pointer}" if isinstance(pointer, str) and pointer else ""
        advice = " ".join(self.recovery_suggestions)
        # Longer ones are no part of a line; they are in `recovery_suggestions`.
        said = f" {advice}" if advice and len(advice) <= ADVICE_MAX else ""
        return f"{self.code}{place}: {self.message}{said}"

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> RequestError:
        """From the payload of an `error` message."""
        said = [payload.get(name) for name in ("error_message", "content")]
        words = [one for one in said if isinstance(one, str)]
        suggestions = payload.get("recovery_suggestions")
        details = payload.get("details")
        return cls(
            str(payload.get("error_code", "INTERNAL_ERROR")),
            words[0] if words else json.dumps(payload),
            [str(one) for one in suggestions] if isinstance(suggestions, list) else [],
            details if isinstance(details, dict) else {},
        )


def why_refused(refuse: Mapping[str, Any]) -> str:
    """Why an agent refuses what it was asked for, in the words of its `refuse`."""
    said = [refuse.get(name) for name in ("why", "reason", "content")]
    words = [one for one in said if isinstance(one, str) and one.strip()]
    return words[0] if words else "It was refused."


def sentences(said: Any, otherwise: str) -> str:
    """The errors of a response as one text: the specification does not say what they are made of."""
    if not said:
        return otherwise
    each = said if isinstance(said, list) else [said]
    return "; ".join(one if isinstance(one, str) else json.dumps(one) for one in each)


def result_of(answer: Message) -> Any:
    """The result that an answer brings: the whole payload, where that does not say how it went.

    Raises:
        RequestError: it is an error, or says that nothing was done.
    """
    if answer.message_type == "error":
        raise RequestError.of(answer.payload)
    if answer.message_type == "refuse":
        raise RequestError("INTERNAL_ERROR", why_refused(answer.payload), ["Ask another agent."])
    status = answer.payload.get("status")
    if status not in ("success", "failure", "partial"):
        return answer.payload
    if status == "failure":
        raise RequestError("INTERNAL_ERROR", sentences(answer.payload.get("errors"), "It failed."))
    result = answer.payload.get("result")
    return {} if result is None else result


class RequestTimeout(RequestError):
    """A request was not answered in time."""

    def __init__(self, to: str, seconds: float, forbidden: str = "", unsure: str = "") -> None:
        """`forbidden` is what the broker has not let the asker do, as a sentence: waiting does not mend that. `unsure` is what is not known
        of the request."""
        advice = [] if forbidden else ["Ask again later, or ask another."]
        said = [f"{to} gave no answer within {seconds:g} s.", unsure, forbidden]
        super().__init__("TIMEOUT", " ".join(filter(None, said)), advice)
