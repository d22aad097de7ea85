"""Batches: requests that are asked, and answered, as one. The handler is given each of them by itself."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .checks import encoded
from .ending import end
from .errors import RequestError, sentences, why_refused
from .message import ANSWERS, Json, Message, part_id

if TYPE_CHECKING:
    from .speaker import Speaker

#: The action of a request that carries several.
BATCH = "batch"
#: Most requests of a batch.
BATCH_MAX = 100
#: How long a batch may take that says nothing of it, in seconds.
USUAL, WITH_CALLBACK = 30.0, 3_600.0
#: How long before its deadline it is answered at the latest, in seconds, and as a part of the time that there is.
MARGIN, MARGIN_PART = 1.0, 0.1
#: Characters of each failure that are repeated for the whole.
WORDS_MAX = 200
#: The largest answer to a batch, in bytes: a payload in the object store has 8 MiB, of which the rest of the answer has some.
ANSWER_BYTES_MAX = 8 * 1_048_576 - 131_072


def is_batch(message: Message) -> bool:
    """Whether it is a request that carries several."""
    return message.message_type == "request" and message.payload.get("action") == BATCH


class Batches:
    """The batches of one agent that are worked on."""

    def __init__(self) -> None:
        # By the ids of their requests.
        self._parts: dict[str, asyncio.Future[Json]] = {}
        self._under_way: set[str] = set()

    def take(self, said: Mapping[str, Any]) -> bool:
        """Whether it is an answer to a request of a batch: then it is part of the answer to the whole, and not published."""
        answer = self._parts.get(str(said.get("reply_to")))
        if answer is None:
            return False
        if _ends(said) and not answer.done():
            answer.set_result({"message_type": said["message_type"], "payload": said["payload"]})
        return True

    async def answer(self, agent: Speaker, batch: Message, handle: Callable[[Message], Awaitable[None]]) -> None:
        """Has each request handled, and answers all of them together, shortly before the deadline at the latest.

        Raises:
            ConcordError: the answer could not be published.
        """
        if batch.message_id in self._under_way:
            # It was delivered again meanwhile.
            return
        try:
            requests = _requests(batch)
        except RequestError as why:
            await agent.refuse(batch, why.code, why.message, why.recovery_suggestions)
            return
        self._under_way.add(batch.message_id)
        parts = [_part(batch, place, request) for place, request in enumerate(requests)]
        answers = [asyncio.get_running_loop().create_future() for _ in parts]
        self._parts.update(zip((part.message_id for part in parts), answers, strict=True))
        handling = [asyncio.ensure_future(handle(part)) for part in parts]
        try:
            await asyncio.wait(answers, timeout=_seconds(batch))
            responses = [_response(answer, agent.agent_id) for answer in answers]
            await agent.reply(batch, "response", _whole(responses))
            # What comes later has its place in no answer.
            await asyncio.gather(*handling, return_exceptions=True)
        finally:
            try:
                # Where this one is ended, as when its agent closes, they would go on.
                await end(handling)
            finally:
                self._under_way.discard(batch.message_id)
                for part in parts:
                    self._parts.pop(part.message_id, None)


def _ends(said: Mapping[str, Any]) -> bool:
    """Whether it ends the request that it answers, as it would end one that is asked alone."""
    if said["message_type"] == "notification":
        return said["payload"].get("event") != "progress"
    return said["message_type"] in ANSWERS or said["message_type"] == "refuse"


def outcomes(payload: Mapping[str, Any], count: int) -> list[Any]:
    """What came of each request, from the answer to a batch.

    Raises:
        RequestError: the answer does not say it of each.
    """
    result = payload.get("result")
    responses = result.get("responses") if isinstance(result, dict) else None
    if not isinstance(responses, list) or len(responses) != count:
        why = sentences(payload.get("errors"), "The answer does not say what came of each request.")
        raise RequestError("INTERNAL_ERROR", why, ["Ask each request by itself."])
    return [_outcome(one) for one in responses]


def _outcome(response: Any) -> Any:
    if not isinstance(response, dict):
        return RequestError("INTERNAL_ERROR", "The answer to this request is none.")
    if isinstance(response.get("error"), dict):
        return RequestError.of(response["error"])
    if response.get("status") == "failure":
        return RequestError("INTERNAL_ERROR", sentences(response.get("errors"), "It failed."))
    result = response.get("result")
    return {} if result is None else result


def _requests(batch: Message) -> list[Json]:
    parameters = batch.payload.get("parameters")
    requests = parameters.get("requests") if isinstance(parameters, dict) else None
    if not isinstance(requests, list) or not all(isinstance(one, dict) for one in requests):
        advice = "Put the requests into parameters.requests, each with action and parameters."
        raise RequestError("INVALID_REQUEST", "The batch has no list of requests.", [advice])
    if not 1 <= len(requests) <= BATCH_MAX:
        advice = f"Put 1 to {BATCH_MAX} requests into a batch."
        code = "CAPACITY_EXCEEDED" if requests else "INVALID_REQUEST"
        raise RequestError(code, f"There are {len(requests)} requests.", [advice])
    for one in requests:
        if one.get("action") == BATCH or not isinstance(one.get("action"), str):
            advice = "Put all requests into one batch, each with its action."
            raise RequestError("INVALID_REQUEST", "A request of the batch is a batch itself, or none.", [advice])
    return requests


def _part(batch: Message, place: int, request: Json) -> Message:
    raw = batch.raw | {"message_id": part_id(batch.message_id, place), "payload": request, "requires_response": True}
    return dataclasses.replace(
        batch, message_id=raw["message_id"], payload=request, requires_response=True, raw=raw
    )


def _seconds(batch: Message) -> float:
    """How long the requests have."""
    usual = WITH_CALLBACK if batch.payload.get("callback_url") else USUAL
    left = min([_left(one) for one in (batch.deadline, batch.payload.get("deadline")) if one] or [usual])
    return max(0.0, left - min(MARGIN, left * MARGIN_PART))


def _left(deadline: str) -> float:
    try:
        at = datetime.fromisoformat(str(deadline))
    except ValueError:
        return USUAL
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp() - time.time()


def _response(answer: asyncio.Future[Json], agent_id: str) -> Json:
    if not answer.done():
        late = "gave no answer in the time of the batch."
        advice = "Ask again with a later deadline, or put fewer requests into the batch."
        return _failed(
            {
                "error_code": "TIMEOUT",
                "error_message": f"{agent_id} {late}",
                "details": {},
                "recovery_suggestions": [advice],
            }
        )
    said = answer.result()
    payload: Json = dict(said["payload"])
    if said["message_type"] == "error":
        return _failed(payload)
    if said["message_type"] == "refuse":
        return {"status": "failure", "errors": [why_refused(payload)]}
    if payload.get("status") in ("success", "failure", "partial"):
        return payload
    return {"status": "success", "result": payload}


def _failed(report: Json) -> Json:
    return {"status": "failure", "errors": [RequestError.of(report).message], "error": report}


#: In place of a result.
NO_ROOM = _failed(
    {
        "error_code": "CAPACITY_EXCEEDED",
        "error_message": "The result has no room in the answer to the batch.",
        "details": {},
        "recovery_suggestions": ["Ask this request by itself."],
    }
)


def _size(response: Json) -> int:
    return len(encoded(response)) + 1


def _whole(responses: list[Json], bytes_max: int = ANSWER_BYTES_MAX) -> Json:
    """The answer to all. Results for which there is no room any more become errors, the last first."""
    # What stands in place of a result must have room itself.
    reserve = _size(NO_ROOM)
    left = bytes_max - reserve * len(responses)
    for place, response in enumerate(responses):
        more = max(0, _size(response) - reserve)
        if more > left:
            responses[place] = NO_ROOM
        else:
            left -= more
    said = {one["status"] for one in responses}
    status = said.pop() if len(said) == 1 else "partial"
    errors = [
        f"requests/{place}: {sentences(one.get('errors'), 'It failed.')[:WORDS_MAX]}"
        for place, one in enumerate(responses)
        if one["status"] == "failure"
    ]
    return {"status": status, "result": {"responses": responses}, "errors": errors}
