"""What an agent asks of another or of a service, and waits for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from .batch import BATCH, outcomes
from .checks import encoded
from .errors import ConcordError, NotConfirmed, RequestError, RequestTimeout, result_of
from .message import Json, Message, envelope, later
from .speaker import Speaker
from .types import Alert, Request
from .waiting import REQUEST_TIMEOUT, Waiting

#: How much longer than a batch lasts its asker waits, in seconds: it is told by the coordinator that the time is over.
BATCH_GRACE = 2.0
#: The latest deadline of a request that is waited for longer, in seconds: one that is more than thirty days away is refused.
LASTS_MAX = 29 * 86_400.0


class Asker(Speaker):
    """Waits for answers."""

    def __init__(self, agent_id: str, prefix: str, compress_over: int | None) -> None:
        super().__init__(agent_id, prefix, compress_over)
        self._waiting = Waiting()

    async def request(
        self,
        to: str,
        action: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float = REQUEST_TIMEOUT,
        **fields: Any,
    ) -> Any:
        """Asks another to do something, and waits for its result: the whole answer, where that does not say how it went.

        A request without a `deadline` lasts 30 seconds. Where `timeout` is longer, and `fields` have no deadline, it lasts as long as that.

        Raises:
            RequestError: the answer is an error.
            RequestTimeout: there is no answer within `timeout` seconds.
        """
        payload = {"action": action, "parameters": dict(parameters or {})}
        if timeout > REQUEST_TIMEOUT:
            fields = {"deadline": later(min(timeout, LASTS_MAX))} | fields
        said = envelope(self.agent_id, to, "request", payload, requires_response=True, **fields)
        return await self._result_of(said, timeout)

    async def request_batch(
        self,
        to: str,
        requests: Sequence[Request],
        *,
        timeout: float | None = None,
        **fields: Any,
    ) -> list[Any]:
        """Asks another for several things in one message, 100 at most, and waits for the one answer to all of them.

        Args:
            requests: what is asked for: `{"action": ..., "parameters": {...}}`.
            timeout: the deadline of the whole, in seconds; 30 where none is stated. What the other has not done by then is a `RequestError`.

        Returns:
            what came of each request, in their order: its result, or the `RequestError` that :meth:`request` would have raised.

        Raises:
            RequestError: the batch is refused as a whole; none of it was done.
            RequestTimeout: there is no answer at all.
        """
        payload = {"action": BATCH, "parameters": {"requests": [dict(one) for one in requests]}}
        deadline = None if timeout is None else later(timeout)
        fields = {"requires_response": True, "deadline": deadline} | fields
        said = envelope(self.agent_id, to, "request", payload, **fields)
        message = await self._answer_to(said, (timeout or REQUEST_TIMEOUT) + BATCH_GRACE)
        if message.message_type in ("error", "refuse"):
            result_of(message)
        return outcomes(message.payload, len(requests))

    async def alert(
        self, alert: Alert, *, message_id: str | None = None, timeout: float = REQUEST_TIMEOUT
    ) -> Any:
        """Alerts everybody at once, and waits until the coordinator has taken it: `{"alert", "registered"}`.

        That needs the role `alerter`, which an operator gives. The same alert again under the same `message_id` is told once.
        Whoever is told handles it with `@agent.on("alert")`.

        Raises:
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: nobody says whether everybody is told.
        """
        fields = {"priority": "system_critical", "requires_response": True}
        if message_id is not None:
            fields["message_id"] = message_id
        said = envelope(self.agent_id, "coordinator", "alert", alert, **fields)
        return await self._result_of(said, timeout)

    async def report_alert(self, alert: str, report: str, *, timeout: float = REQUEST_TIMEOUT) -> Any:
        """Reports what follows from an alert, as is awaited after a change of regime, and waits until it is stored.

        Raises:
            RequestError: the alert is unknown, has its report, or is none of this agent's; the text says what to do.
            RequestTimeout: nobody says whether it is stored.
        """
        return await self.request("coordinator", "report_alert", {"alert": alert, "report": report}, timeout=timeout)

    async def _result_of(self, said: Json, timeout: float, only_from: frozenset[str] | None = None) -> Any:
        return result_of(await self._answer_to(said, timeout, only_from))

    async def _answer_to(self, said: Json, timeout: float, only_from: frozenset[str] | None = None) -> Message:
        answer = self._waiting.begin(said["message_id"], only_from)
        left, unsure = timeout, ""
        try:
            began = time.monotonic()
            try:
                await self._publish(said, awaited=True)
            except NotConfirmed as why:
                if self._forbidden():
                    raise
                # It may be answered all the same.
                left, unsure = timeout - (time.monotonic() - began), str(why).capitalize()
            return await asyncio.wait_for(answer, left)
        except TimeoutError:
            raise RequestTimeout(said["to_agent"], timeout, self._forbidden(), unsure) from None
        finally:
            self._waiting.end(said["message_id"])

    async def ask_service(self, service: str, verb: str, body: bytes) -> Msg:
        """Asks a service for a verb of its API under this agent's name: its answer, or its error in a header."""
        subject = f"{self._prefix}.v1.api.{service}.{verb}.{self.agent_id}"
        return await self._connected().request(subject, body, timeout=REQUEST_TIMEOUT)

    async def query_service(self, service: str, verb: str, asked: Mapping[str, Any]) -> Json:
        """What a service answers to a verb of its API.

        Raises:
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: there is no answer.
            ConcordError: nobody answers; the service does not run, or this agent may not ask it.
        """
        given = {name: field for name, field in asked.items() if field is not None}
        try:
            reply = await self.ask_service(service, verb, encoded(given))
        except NoRespondersError:
            raise ConcordError(f"no {service} answers; it does not run, or this agent may not ask it") from None
        except (NatsError, TimeoutError):
            raise RequestTimeout(service, REQUEST_TIMEOUT, self._forbidden()) from None
        failed = (reply.headers or {}).get("Nats-Service-Error")
        if failed:
            raise RequestError.of(json.loads(failed))
        answer: Json = json.loads(reply.data)
        return answer
