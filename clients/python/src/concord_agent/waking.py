"""What an agent does about questions to the group: its handler runs when the agent adapter has woken it, and then knows why."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Any

from .checks import ANY
from .message import Message
from .types import NOTIFICATIONS

#: The services that send notifications of Concord.
SENDERS = frozenset({"coordinator", "debate-facilitator", "agent-adapter"})
#: The events that the library acts on itself.
DONE_BY_LIBRARY = frozenset({"woken", "memory_sync"})
#: What asks the group.
QUESTIONS = frozenset({"group_query", "peer_request"})
#: The types whose handlers run only for messages that concern the agent.
GROUP = QUESTIONS | {"expertise_offer"}

# What is handled where this is asked, and by whom. A task that a handler begins has it from the handler.
_handled: ContextVar[tuple[str, Message] | None] = ContextVar("handled", default=None)


def begin(agent_id: str, message: Message) -> None:
    """An agent begins to handle a message, in a task of its own."""
    _handled.set((agent_id, message))


def question_under_way(agent_id: str, conversation_id: str | None) -> Message | None:
    """The question to the group that the agent is handling here, unless it belongs to another conversation."""
    by, message = _handled.get() or ("", None)
    if message is None or by != agent_id or message.message_type not in QUESTIONS:
        return None
    return message if message.case_id in (None, conversation_id) else None


def conversation_under_way(agent_id: str) -> str | None:
    """The conversation of the message that the agent is handling here."""
    by, message = _handled.get() or ("", None)
    return message.case_id if message is not None and by == agent_id else None


def awake(message: Message, agent_id: str, handled: dict[str, Any], hears_all: set[str]) -> Message | None:
    """The message to handle: a question to the group in place of the notification that it woke this agent, and none in place of
    a question that has not woken it."""
    if message.message_type in GROUP:
        is_for_it = message.to_agent == agent_id or message.message_type in hears_all
        return message if is_for_it else None
    data = message.payload.get("data") if message.message_type == "notification" else None
    if not isinstance(data, dict) or message.payload.get("event") != "woken" or message.from_agent != "agent-adapter":
        return message
    try:
        asked = Message.of(data.get("message"))
    except ValueError:
        # Too large to be repeated: whoever handles notifications is told of it.
        return message
    if asked.message_type not in GROUP or not handled.keys() & {asked.message_type, "*"}:
        return message
    if asked.message_type in hears_all and asked.to_agent != ANY:
        # It was handled when it was said.
        return None
    woken = {name: data.get(name) for name in ("reason", "score", "context")}
    return dataclasses.replace(asked, woken=woken)


def event_of(message: Message) -> str | None:
    """The event of a notification of Concord, for which the agent may have a handler of its own."""
    if message.message_type != "notification" or message.from_agent not in SENDERS:
        return None
    event = message.payload.get("event")
    return event if event in NOTIFICATIONS and event not in DONE_BY_LIBRARY else None
