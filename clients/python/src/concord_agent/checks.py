"""What is checked before it is said: mistakes that would otherwise be heard of late, or never."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: The longest name, in characters: crates/wire/src/id.rs has the same.
NAME_MAX = 64
#: Everyone in the case, and whoever can help.
ALL, ANY = "_all", "_any"
#: The services, which speak under their own names.
SERVICES = frozenset(
    {"coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter"}
)
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]")


def named(what: str, name: Any) -> str:
    """A name that may be a part of a subject. A message with any other would be published where nobody listens.

    Raises:
        ValueError: it is none, and why.
    """
    if not isinstance(name, str):
        raise TypeError(f"{what} is a text, and was given {name!r}")
    wrong = _NOT_IN_NAMES.search(name)
    why = ""
    if not name:
        why = "is empty"
    elif wrong is not None:
        why = f"has {wrong[0]!r} in it; only A-Z a-z 0-9 _ - may be"
    elif len(name) > NAME_MAX:
        why = f"has {len(name)} characters; at most {NAME_MAX} may be"
    elif name.startswith("_"):
        why = "begins with an underscore, which is kept for Concord itself"
    if why:
        raise ValueError(f"{what} {name!r} {why}")
    return name


def own_name(agent_id: Any) -> str:
    """A name for an agent.

    Raises:
        ValueError: it is none, or a service has it.
    """
    if named("agent_id", agent_id) in SERVICES:
        raise ValueError(f"agent_id {agent_id!r} is the name of a service; give the agent one of its own")
    return str(agent_id)


def recipient(to: Any) -> str:
    """Somebody to whom a message can go.

    Raises:
        ValueError: it is none.
    """
    return str(to) if to in (ALL, ANY) else named("to_agent", to)


def listed(what: str, given: Iterable[str]) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: it is one text, which Python would take for the list of its letters.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{what} is a list of texts, and was given one text: write {what}=[{given!r}]")
    return list(given)


def encoded(said: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """What is said, as JSON.

    Raises:
        ValueError: it has a number that JSON does not have, which whoever reads it could not read.
    """
    try:
        return json.dumps(said, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as why:
        # What contains itself is one too, and is not searched.
        if "float" not in str(why) or (found := _no_number(said)) is None:
            raise
        pointer, number = found
        raise ValueError(f"{pointer} is {number}, which JSON has no number for: write None, or leave it out") from None


def _no_number(said: Any, pointer: str = "") -> tuple[str, float] | None:
    """The first number that JSON does not have, and its place."""
    if isinstance(said, float):
        return None if math.isfinite(said) else (pointer, said)
    named = said.items() if isinstance(said, Mapping) else enumerate(said) if isinstance(said, (list, tuple)) else ()
    each = (_no_number(one, f"{pointer}/{name}") for name, one in named)
    return next((found for found in each if found is not None), None)
