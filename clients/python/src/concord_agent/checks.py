"""What is checked before it is said: mistakes that would otherwise be heard of late, or never."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def listed(what: str, given: Iterable[str]) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: it is one text, which Python would take for the list of its letters.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{what} is a list of texts, and was given one text: write {what}=[{given!r}]")
    return list(given)


def encoded(said: Mapping[str, Any]) -> bytes:
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
