"""Payloads that are too large for a message: they are put into the object store, and fetched from it.

The coordinator does so for the agent; where none answers, the agent goes to the store itself.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from .checks import encoded
from .errors import ConcordError, RequestError
from .message import Json
from .parts import get_parts, put_parts

#: The one field of a payload that is elsewhere.
REFERENCE = "payload_reference"
#: A body with more bytes than this is no message any more; the broker counts headers too.
MESSAGE_BYTES_MAX = 1_048_576 - 4_096
#: Largest payload that is put or fetched, in bytes.
PAYLOAD_BYTES_MAX = 8 * 1_048_576
#: How long an object may take to come, in seconds.
PATIENCE = 10.0


class PayloadError(ValueError):
    """A payload that cannot be had."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Bounded(io.BytesIO):
    """Takes no more than was announced, whatever an object says of itself."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > self._size:
            raise PayloadError("INVALID_REQUEST", f"the object has more than {self._size} bytes")
        return super().write(data)


def digest(payload: bytes) -> str:
    """A digest as the object store writes it."""
    return f"SHA-256={base64.urlsafe_b64encode(hashlib.sha256(payload).digest()).decode()}"


def bucket(prefix: str) -> str:
    """The bucket of an installation."""
    return f"{prefix.upper()}_PAYLOADS"


def is_reference(payload: Mapping[str, Any]) -> bool:
    """Whether a payload is elsewhere."""
    return REFERENCE in payload


def _api(prefix: str) -> str:
    """The root of the verbs by which the coordinator puts and gives payloads."""
    return f"{prefix}.v1.api.coordinator"


async def put(client: Client, prefix: str, agent_id: str, message_id: str, payload: Mapping[str, Any]) -> Json:
    """Puts a payload into the object store; the payload that refers to it.

    Raises:
        ConcordError: it is too large, or is not taken.
    """
    data = encoded(payload)
    if len(data) > PAYLOAD_BYTES_MAX:
        raise ConcordError(f"a payload has {len(data)} bytes; at most {PAYLOAD_BYTES_MAX} can be sent")
    stated = digest(data)
    name = f"{message_id}-{stated.removeprefix('SHA-256=')[:16]}"
    reference = {"bucket": bucket(prefix), "object": name, "size": len(data), "digest": stated}
    try:
        stored = await put_parts(client, _api(prefix), agent_id, reference, data)
        if stored is None:
            await _put_oneself(client, reference, data)
    except (NatsError, TimeoutError) as why:
        raise ConcordError(f"the broker did not take a payload: {why or type(why).__name__}") from why
    return {REFERENCE: stored or reference}


async def _put_oneself(client: Client, reference: Mapping[str, Any], data: bytes) -> None:
    store = await client.jetstream().object_store(reference["bucket"])
    try:
        # The same answer given twice is one object; it is there already.
        there = (await store.get_info(reference["object"])).digest == reference["digest"]
    except NotFoundError:
        there = False
    if not there:
        await store.put(reference["object"], data)


async def fetch(client: Client, prefix: str, agent_id: str, payload: Mapping[str, Any]) -> Json:
    """The payload that another refers to.

    Raises:
        PayloadError: it is not there, or not as the reference says.
    """
    match payload[REFERENCE]:
        case {"bucket": str(named), "object": str(name), "size": int(size), "digest": str(stated), **others} if (
            len(payload) == 1 and not others
        ):
            pass
        case _:
            raise PayloadError("INVALID_REQUEST", "the reference to the payload is none")
    if named != bucket(prefix):
        raise PayloadError("INVALID_REQUEST", f"payloads of this installation are in {bucket(prefix)}")
    if size > PAYLOAD_BYTES_MAX:
        raise PayloadError("CAPACITY_EXCEEDED", f"the payload has {size} bytes; at most {PAYLOAD_BYTES_MAX} are read")
    try:
        async with asyncio.timeout(PATIENCE):
            found = await get_parts(client, _api(prefix), agent_id, payload[REFERENCE])
            if found is None:
                data = _Bounded(size)
                store = await client.jetstream().object_store(named)
                await store.get(name, writeinto=data)
                found = data.getvalue()
    except RequestError as why:
        raise PayloadError(why.code, why.message) from why
    except (NotFoundError, TimeoutError) as why:
        raise PayloadError("INVALID_REQUEST", "there is no such object, or not all of it") from why
    except NatsError as why:
        raise PayloadError("INTERNAL_ERROR", f"the payload could not be fetched: {why}") from why
    if len(found) != size or digest(found) != stated:
        raise PayloadError("INVALID_REQUEST", "the object has another size or digest than the reference says")
    try:
        whole = json.loads(found)
    except ValueError as why:
        raise PayloadError("INVALID_REQUEST", "the object is not JSON") from why
    if not isinstance(whole, dict):
        raise PayloadError("INVALID_REQUEST", "the object is not a JSON object")
    return whole
