"""What is checked before it is said: mistakes that would otherwise be heard of late, or never."""

from __future__ import annotations

from collections.abc import Iterable


def listed(what: str, given: Iterable[str]) -> list[str]:
    """A list of texts.

    Raises:
        TypeError: it is one text, which Python would take for the list of its letters.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{what} is a list of texts, and was given one text: write {what}=[{given!r}]")
    return list(given)
