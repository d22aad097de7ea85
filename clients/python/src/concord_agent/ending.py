"""Ending what is under way, in a time that has a limit: what does not let itself be cancelled would be waited for without end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

#: How long what is to end may take for it, in seconds.
ENDS_WITHIN = 5.0


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Ends tasks that may still run."""
    for task in tasks:
        task.cancel()
    await settle(tasks)


async def settle(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Waits for tasks that are about to end, however they do."""
    # `asyncio.wait_for` would wait for whatever it has cancelled.
    await asyncio.wait([asyncio.gather(*tasks, return_exceptions=True)], timeout=ENDS_WITHIN)
