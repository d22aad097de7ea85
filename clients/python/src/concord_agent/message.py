"""Messages: the envelope, and how one is written."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from .checks import ALL, named, recipient

Json = dict[str, Any]

#: The case in the subject of a message that belongs to none.
NO_CASE = "_"
#: Longest `message_id`.
MESSAGE_ID_MAX = 128
URGENT = frozenset({"critical", "system_critical"})


@dataclass(frozen=True, slots=True)
class Message:
    """What was said. `raw` is the whole envelope, with fields that this version does not know.

    `woken` says why a question to the group woke this agent: `reason`, `score` and `context`; none where it was addressed to it.
    """

    message_id: str
    timestamp: str
    from_agent: str
    to_agent: str
    message_type: str
    payload: Json
    case_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    round: int | None = None
    priority: str = "normal"
    requires_response: bool = False
    deadline: str | None = None
    metadata: Json = field(default_factory=dict)
    raw: Json = field(default_factory=dict, repr=False)
    woken: Json | None = None

    @property
    def confidence(self) -> float | None:
        """How sure the sender is, 0 to 1."""
        confidence = self.metadata.get("confidence")
        return float(confidence) if isinstance(confidence, (int, float)) else None

    @classmethod
    def decode(cls, data: bytes, subject: str) -> Message:
        """From the bytes of a message, and the subject that it came on, whose case it belongs to also where it names none.

        The broker lets nobody publish under another's name, and looks into no body: the subject says who speaks.

        Raises:
            ValueError: it is not an envelope, or says otherwise than its subject.
        """
        message = cls.of(json.loads(data))
        case, *tokens = subject.split(".")[-4:]
        for name, token in zip(("from_agent", "to_agent", "message_type"), tokens, strict=True):
            if getattr(message, name) != token:
                raise ValueError(f"its {name} is {getattr(message, name)!r}, and its subject says {token!r}")
        # Whoever has no name that may be said could not be answered.
        named("from_agent", message.from_agent)
        if case != NO_CASE:
            named("case_id", case)
        if message.case_id is not None and (case == NO_CASE or message.case_id != case):
            raise ValueError(f"its case_id is {message.case_id!r}, and its subject says {case!r}")
        if message.case_id is None and case != NO_CASE:
            return replace(message, case_id=case)
        return message

    @classmethod
    def of(cls, raw: Any) -> Message:
        """From an envelope.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(raw, dict) or not isinstance(raw.get("payload"), dict):
            raise ValueError("it is not an envelope with a payload")
        known = {name: raw[name] for name in FIELDS if raw.get(name) is not None}
        missing = [name for name in FIELDS[:6] if name not in known]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        for name, value in known.items():
            kind = KINDS.get(name, str)
            # True and False are no numbers, whatever Python says.
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ValueError(f"its {name} is no {KIND_NAMES[kind]}")
        return cls(**known, raw=raw)


FIELDS = tuple(name for name in Message.__dataclass_fields__ if name not in ("raw", "woken"))
#: What the fields are that are no texts.
KINDS: dict[str, type] = {"payload": dict, "round": int, "requires_response": bool, "metadata": dict}
KIND_NAMES: dict[type, str] = {str: "text", dict: "object", int: "whole number", bool: "true or false"}


def envelope(from_agent: str, to: str, message_type: str, payload: Mapping[str, Any], **fields: Any) -> Json:
    """A new envelope; of `fields` those that are not None.

    Raises:
        ValueError: it names somebody or something that can have no such name.
    """
    if fields.get("case_id") is not None:
        named("case_id", fields["case_id"])
    said: Json = {
        "message_id": str(uuid.uuid4()),
        "timestamp": later(0),
        "from_agent": from_agent,
        "to_agent": recipient(to),
        "message_type": named("message_type", message_type),
        "payload": dict(payload),
        "metadata": {"version": "1.0"},
    }
    metadata = fields.pop("metadata", None)
    confidence = fields.pop("confidence", None)
    said["metadata"].update(metadata or {})
    if confidence is not None:
        said["metadata"]["confidence"] = confidence
    said.update({name: value for name, value in fields.items() if value is not None})
    return said


def later(seconds: float) -> str:
    """The time in so many seconds, as an envelope has it."""
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def subject(prefix: str, said: Mapping[str, Any]) -> str:
    """The subject that an envelope belongs on."""
    lane = "urgent" if said.get("priority") in URGENT else "msg"
    tokens = (said.get("case_id") or NO_CASE, said["from_agent"], said["to_agent"], said["message_type"])
    return ".".join((prefix, "v1", lane, *tokens))


#: Answers: of all of these there is one to a message. Others may be said beside it, one of each type.
ANSWERS = frozenset(
    {"response", "error", "finding", "finding_with_precedent", "agreement", "disagreement", "revision", "task_result"}
)


def answer_id(asked: str, agent_id: str, message_type: str = "response") -> str:
    """The id of an agent's answer to a message: the same however often it is given."""
    readable = f"{asked}-{agent_id}" if message_type in ANSWERS else f"{asked}-{agent_id}-{message_type}"
    # Two long ids do not fit side by side.
    return readable if len(readable) <= MESSAGE_ID_MAX else str(uuid.uuid5(uuid.NAMESPACE_OID, readable))


def is_unconfirmed(message: Message) -> bool:
    """Whether it is an alert to everybody, as urgent as can be, that the coordinator has not told: it asks whether its sender may alert."""
    is_alert = message.message_type == "alert" and message.to_agent == ALL and message.priority == "system_critical"
    return is_alert and message.from_agent != "coordinator"


def part_id(batch: str, place: int) -> str:
    """The id of the request at a place of a batch, counted from 0."""
    readable = f"{batch}-part-{place}"
    return readable if len(readable) <= MESSAGE_ID_MAX else str(uuid.uuid5(uuid.NAMESPACE_OID, readable))
