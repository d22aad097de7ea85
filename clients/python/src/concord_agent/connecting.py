"""The first connection to a broker: it is there within a time, or it is said why not. Every later one is tried for without end."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from .errors import ConcordError

#: How long a broker is waited for when nothing else is said, in seconds.
CONNECT_WITHIN = 10.0
#: How long the client that did not connect may take to end, in seconds.
CLOSE_WITHIN = 0.5
#: What a file of credentials has.
PARTS = (b"BEGIN NATS USER JWT", b"BEGIN USER NKEY SEED")
#: More than such a file has, in bytes.
CREDENTIALS_BYTES_MAX = 1_048_576
#: What brokers say, in lower case, to somebody whom they will let in no sooner for waiting.
NOT_LET_IN = ("authorization violation", "authentication expired", "authentication revoked", "invalid user credentials")
log = logging.getLogger("concord_agent")


class Reports:
    """What the client of NATS reports beside answers: while it connects for the first time, what waiting does not mend ends that."""

    def __init__(self, agent_id: str, places: str, told: Callable[[Exception], Awaitable[None]] | None) -> None:
        if told is not None and not inspect.iscoroutinefunction(told):
            raise TypeError("error_cb is a coroutine function (async def), as nats-py wants its callbacks")
        self._agent_id = agent_id
        self._places = places
        self._told = told
        self.connecting = True
        self.last: Exception | None = None

    async def hear(self, why: Exception) -> None:
        """What nats-py calls with each error."""
        self.last = why
        if self._told is not None:
            await self._told(why)
        else:
            log.warning("%s: the connection to the broker: %s", self._agent_id, _words(why))
        if self.connecting and (advice := _advice(why)) is not None:
            # The client goes on after every error that it knows, so this must be none of them.
            raise ConcordError(f"{self._agent_id} is not let in at {self._places}: {_words(why)}. {advice}") from why


async def connected(
    agent_id: str, servers: str | list[str], within: float | None, options: Mapping[str, Any]
) -> Client:
    """A client that is connected.

    Raises:
        ConcordError: it is not let in, or nobody has answered within so many seconds; the text says what was tried and what to do.
    """
    _check_files(options)
    places = _places(servers)
    client, reports = Client(), Reports(agent_id, places, options.get("error_cb"))
    attempt = asyncio.ensure_future(client.connect(servers, **{**options, "error_cb": reports.hear}))
    try:
        await asyncio.wait([attempt], timeout=within)
        if not attempt.done():
            raise ConcordError(_late(places, within, reports.last))
        attempt.result()
    except BaseException as why:
        reports.connecting = False
        await _end(attempt, client)
        if isinstance(why, (NatsError, OSError)):
            raise ConcordError(f"no connection to {places}: {_words(reports.last or why)}") from why
        if isinstance(why, ModuleNotFoundError):
            raise ConcordError(f"credentials need concord-agent[nkeys]: {why}") from why
        raise
    reports.connecting = False
    return client


def _check_files(options: Mapping[str, Any]) -> None:
    """Credentials that cannot be read: the client would try again for ever, or say what nobody understands."""
    given = options.get("user_credentials")
    for path in (*(given if isinstance(given, tuple) else (given,)), options.get("nkeys_seed")):
        if not isinstance(path, (str, os.PathLike)):
            continue
        try:
            with open(path, "rb") as file:
                found = file.read(CREDENTIALS_BYTES_MAX)
        except OSError as why:
            raise ConcordError(f"the credentials cannot be read: {why}") from why
        # In a file by itself; with a tuple, and `nkeys_seed`, each part has its own.
        if path is given and not all(part in found for part in PARTS):
            raise ConcordError(f"{path} is no file of credentials; `concord credentials issue` writes one")


async def _end(attempt: asyncio.Future[None], client: Client) -> None:
    # Once is not enough: where an attempt fails just then, nats-py hears of nothing but that.
    while not attempt.done():
        attempt.cancel()
        await asyncio.wait([attempt], timeout=CLOSE_WITHIN)
    if not attempt.cancelled():
        # Otherwise Python says that nobody has looked at it.
        attempt.exception()
    try:
        # After TLS has failed nats-py waits for an end of the connection that nobody tells it of; the socket is closed by then.
        async with asyncio.timeout(CLOSE_WITHIN):
            await client.close()
    except Exception as why:  # noqa: BLE001 - one that has not begun cannot be closed; why there is no connection is what counts.
        log.debug("the client that did not connect: %s", _words(why))


def _advice(why: Exception) -> str | None:
    """What to do about an error that waiting does not mend."""
    # One that ends amid the handshake may be a broker that begins or goes.
    if isinstance(why, ssl.SSLError) and not isinstance(why, ssl.SSLEOFError):
        return "Give tls=, an ssl.SSLContext with the broker's authority and, where it asks for one, a certificate (docs/credentials.md)."
    if any(words in str(why).lower() for words in NOT_LET_IN):
        return "Give user_credentials=FILE, or what else the broker knows this agent by (docs/credentials.md)."
    return None


def _late(places: str, within: float | None, last: Exception | None) -> str:
    cause = "" if last is None else f": {_words(last)}"
    advice = "Is it running there? connect_within= is how long it is waited for, None for ever."
    return f"no broker has answered at {places} within {within:g} s{cause}. {advice}"


def _places(servers: str | list[str]) -> str:
    """The servers, without the passwords that a URL may have."""
    each = servers.split(",") if isinstance(servers, str) else servers
    return ", ".join(one.rpartition("@")[2].strip() for one in each)


def _words(why: BaseException) -> str:
    return str(why) or type(why).__name__
