"""Shared memory: what an agent knows, by topic, with its history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from .errors import ConcordError, RequestError, RequestTimeout
from .message import Json
from .waiting import REQUEST_TIMEOUT

if TYPE_CHECKING:
    from .agent import Agent


class Memory:
    """The memory of an agent, which it alone writes, and a look into that of others."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def put(
        self,
        topic: str,
        value: Any,
        importance: float,
        *,
        confidence: float | None = None,
        evidence: Sequence[str] = (),
        tags: Sequence[str] = (),
        based_on: int | None = None,
        case_id: str | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Json:
        """Writes a topic of this agent's own memory, and waits until it is kept: `{"topic", "version", "since"}`.

        Args:
            topic: letters, digits, `-` and `_`.
            value: any JSON; None says that nothing is known any more. What was known before remains in the history.
            importance: how much it matters, 0 to 1.
            confidence: how sure this agent is, 0 to 1.
            evidence: what it rests on.
            tags: words under which it is found.
            based_on: the version that was read; it is refused where another one stands. 0 where there is to be none.
            case_id: the case that it belongs to; only who is in that case reads it. Everybody reads what belongs to none.

        Raises:
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: nobody says whether it is kept. The same again is another version.
        """
        given = {
            "confidence": confidence,
            "evidence": list(evidence) or None,
            "tags": list(tags) or None,
            "based_on": based_on,
        }
        entry = {"topic": topic, "value": value, "importance": importance}
        entry |= {name: field for name, field in given.items() if field is not None}
        fields = {"timeout": timeout, "case_id": case_id}
        kept: Json = await self._agent.request("coordinator", "memory_put", entry, **fields)
        return kept

    async def get(self, agent: str, topic: str, as_of: str | None = None) -> Json | None:
        """A topic of an agent's memory with its value, as it stands or as of a snapshot; None where there is none, or none that this
        agent may read."""
        entries = (await self._ask(agent=agent, topic=topic, as_of=as_of))["entries"]
        return entries[0] if entries else None

    async def list(self, agent: str | None = None, *, case_id: str | None = None, as_of: str | None = None) -> Json:
        """The topics of an agent, or of a case, without their values: `{"as_of": "snap_...", "entries": [...], "more": ...}`. Asked for
        again as of that snapshot, the answer is the same for ever. With neither: `{"agents": [...]}`, who has any memory."""
        return await self._ask(agent=agent, case_id=case_id, as_of=as_of)

    async def history(self, agent: str, topic: str) -> Sequence[Json]:
        """Every version of a topic, the oldest first."""
        entries: Any = []
        after, as_of = 0, None
        while True:
            page = await self._ask(agent=agent, topic=topic, history=True, after=after, as_of=as_of)
            entries += page["entries"]
            if not page["more"]:
                return tuple(entries)
            after, as_of = entries[-1]["version"], page["as_of"]

    async def _ask(self, **asked: Any) -> Json:
        given: Mapping[str, Any] = {name: field for name, field in asked.items() if field is not None}
        try:
            reply = await self._agent.ask_service("coordinator", "memory", json.dumps(given).encode())
        except NoRespondersError:
            raise ConcordError("no coordinator answers; it does not run, or this agent may not ask it") from None
        except (NatsError, TimeoutError):
            raise RequestTimeout("coordinator", REQUEST_TIMEOUT) from None
        failed = (reply.headers or {}).get("Nats-Service-Error")
        if failed:
            raise RequestError.of(json.loads(failed))
        answer: Json = json.loads(reply.data)
        return answer
