"""Requests that wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from .checks import SERVICES
from .errors import ConcordError
from .message import Message

#: How long a request waits for its answer when nothing else is said, in seconds.
REQUEST_TIMEOUT = 30.0
#: What may end a request; see :func:`ends`.
ENDS = ("response", "error", "task_result", "refuse", "notification")
#: Answers that are remembered until they come from the durable inbox as well.
AHEAD_MAX = 16_384


class Waiting:
    """The requests of one agent that wait, by their `message_id`."""

    def __init__(self) -> None:
        self._answers: dict[str, asyncio.Future[Message]] = {}
        # Whose answers alone end it, where not everybody's do.
        self._only: dict[str, frozenset[str]] = {}
        # Those whose answers were heard ahead of the durable inbox, the earliest first.
        self._ahead: dict[str, None] = {}

    def begin(self, request: str, only_from: frozenset[str] | None = None) -> asyncio.Future[Message]:
        """Waits for the answer to a request, until :meth:`end`; with `only_from` for an answer of one of these.

        Raises:
            ConcordError: the answer to this request is waited for already.
        """
        if request in self._answers:
            raise ConcordError(f"the answer to {request} is waited for already; wait for that one, or ask under another message_id")
        if only_from is not None:
            self._only[request] = only_from
        answer = self._answers[request] = asyncio.get_running_loop().create_future()
        return answer

    def end(self, request: str) -> None:
        """Waits no more."""
        del self._answers[request]
        self._only.pop(request, None)

    def waits_for(self, message: Message) -> bool:
        """Whether it is an answer that a request waits for."""
        return ends(message) and any(
            name in self._answers and self._may_end(name, message) for name in _named(message)
        )

    def _may_end(self, request: str, message: Message) -> bool:
        only = self._only.get(request)
        return only is None or message.from_agent in only

    def hand_over(self, message: Message, *, ahead: bool = False) -> bool:
        """Gives an answer to the request that waits for it; false when none does, nor has had it ahead of the durable inbox."""
        if not ends(message):
            return False
        for name in _named(message):
            answer = self._answers.get(name)
            if answer is not None and not answer.done() and self._may_end(name, message):
                answer.set_result(message)
                if ahead:
                    self._remember(name)
                return True
        if not ahead:
            for name in _named(message):
                if name in self._ahead:
                    del self._ahead[name]
                    return True
        return self.waits_for(message)

    def _remember(self, request: str) -> None:
        self._ahead[request] = None
        if len(self._ahead) > AHEAD_MAX:
            del self._ahead[next(iter(self._ahead))]


def ends(message: Message) -> bool:
    """Whether it ends the request that it names: news of Concord are about what was asked for, and say of progress that it goes on."""
    if message.message_type != "notification":
        return message.message_type in ENDS
    return message.from_agent not in SERVICES and message.payload.get("event") != "progress"


def _named(answer: Message) -> Iterator[str]:
    """The request that an answer names: in `correlation_id`, or at least in `reply_to`."""
    return (name for name in (answer.correlation_id, answer.reply_to) if name)
