"""Large payloads, given to the coordinator and got from it part by part: no right on the object store is needed for that."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import NoRespondersError

from .errors import RequestError
from .message import Json

#: Bytes of each part but the last.
PART_BYTES = 512 * 1_024
#: How long the answer to a part is awaited, in seconds.
PATIENCE = 30.0


async def _ask(client: Client, subject: str, asked: Mapping[str, Any]) -> Json:
    reply = await client.request(subject, json.dumps(asked).encode(), timeout=PATIENCE)
    failed = (reply.headers or {}).get("Nats-Service-Error")
    if failed:
        raise RequestError.of(json.loads(failed))
    answer: Json = json.loads(reply.data)
    return answer


async def put_parts(
    client: Client, api: str, agent_id: str, stated: Mapping[str, Any], data: bytes
) -> Json | None:
    """Has the coordinator put a payload: the reference to it, or None where no coordinator answers.

    Args:
        api: the root of the coordinator's verbs.
        stated: `object`, `size` and `digest` of the payload.

    Raises:
        RequestError: it is refused, and its text says what to do.
        NatsError, TimeoutError: the broker or the coordinator does not answer.
    """
    # Another upload than that of any attempt before: of such a one some parts may be there.
    upload = f"{stated['object']}-{uuid.uuid4().hex}"
    after = 0
    for part, start in enumerate(range(0, len(data), PART_BYTES)):
        asked = {
            "upload": upload,
            "size": stated["size"],
            "digest": stated["digest"],
            "part": part,
            "after": after,
            "data": base64.b64encode(data[start : start + PART_BYTES]).decode(),
        }
        try:
            stored = await _ask(client, f"{api}.put_payload.{agent_id}", asked)
        except NoRespondersError:
            if part == 0:
                return None
            raise
        after = stored["after"]
        if (reference := stored.get("reference")) is not None:
            return dict(reference)
    return None


async def get_parts(client: Client, api: str, agent_id: str, reference: Mapping[str, Any]) -> bytes | None:
    """Has the coordinator give a payload: its bytes, or None where no coordinator answers.

    Raises:
        RequestError: it is not there, or not as the reference says.
        NatsError, TimeoutError: the broker or the coordinator does not answer.
    """
    found = bytearray()
    after = 0
    while len(found) < reference["size"]:
        asked = {"reference": dict(reference), "after": after}
        try:
            part = await _ask(client, f"{api}.payload.{agent_id}", asked)
        except NoRespondersError:
            if after == 0:
                return None
            raise
        found += base64.b64decode(part["data"])
        after = part["after"]
    return bytes(found)
