"""The first connection, which fails, and what an agent does when its broker goes; with a real nats-server."""

import asyncio
import importlib.util
import logging
import socket
import ssl
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from broker import Broker

from concord_agent import Agent, ConcordError

#: Longer than anything here takes, and longer than an agent is told to wait where it is to fail at once.
PATIENCE = 60.0
SOON = {"reconnect_time_wait": 0.05}
USERS = 'authorization { users: [{ user: ann, password: "secret" }] }'


def unused() -> socket.socket:
    """A port that is taken, and on which nobody listens."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


def setUpModule() -> None:
    # Each attempt that fails is a line.
    logging.getLogger("concord_agent").setLevel(logging.ERROR)


def tearDownModule() -> None:
    logging.getLogger("concord_agent").setLevel(logging.NOTSET)


class Failing(unittest.IsolatedAsyncioTestCase):
    async def fails(self, servers: str, *words: str, within: float | None = None, **options: Any) -> str:
        """It does not connect, for a reason that is said in these words, and could be told to try again."""
        agent = Agent("ann")
        for _ in range(2):
            with self.assertRaises(ConcordError) as raised:
                connecting = agent.connect(servers, connect_within=within, **SOON, **options)
                await asyncio.wait_for(connecting, PATIENCE)
        for word in words:
            self.assertIn(word, str(raised.exception))
        return str(raised.exception)

    async def test_a_broker_that_is_not_there_is_waited_for_so_long(self) -> None:
        with unused() as port:
            number = port.getsockname()[1]
            await self.fails(f"nats://127.0.0.1:{number}", f"127.0.0.1:{number}", "0.3 s", "Connect call failed", within=0.3)
            said = await self.fails(f"nats://ann:secret@127.0.0.1:{number}", f"127.0.0.1:{number}", within=0.3)
            self.assertNotIn("secret", said)

    async def test_so_is_a_name_that_nobody_has(self) -> None:
        await self.fails("nats://nowhere.invalid:4222", "nowhere.invalid:4222", within=0.3)

    async def test_so_is_somebody_who_says_nothing(self) -> None:
        with unused() as port:
            port.listen()
            await self.fails(f"nats://127.0.0.1:{port.getsockname()[1]}", "no broker has answered", within=0.3)

    async def test_what_is_no_address_and_no_callback_is_refused(self) -> None:
        await self.fails("nats://127.0.0.1:port", "127.0.0.1:port")
        with self.assertRaisesRegex(TypeError, "error_cb"):
            await Agent("ann").connect(error_cb=print)

    async def test_who_is_not_let_in_is_told_at_once_what_to_give(self) -> None:
        with Broker(USERS) as broker:
            await self.fails(broker.url, "Authorization Violation", "user_credentials", f"127.0.0.1:{broker.port}")
            await self.fails(broker.url, "Authorization Violation", user="ann", password="wrong")
            async with await Agent("ann").connect(broker.url, user="ann", password="secret"):
                pass

    async def test_so_is_who_gives_a_file_that_is_not_there(self) -> None:
        with Broker() as broker, tempfile.TemporaryDirectory() as folder:
            await self.fails(broker.url, "/nope", user_credentials="/nope")
            await self.fails(broker.url, folder, user_credentials=Path(folder))
            Path(folder, "notes.txt").write_text("Ask ben for the file.")
            await self.fails(broker.url, "no file of credentials", user_credentials=f"{folder}/notes.txt")

    @unittest.skipIf(importlib.util.find_spec("nkeys"), "what reads credentials is installed")
    async def test_so_is_who_has_not_installed_what_reads_credentials(self) -> None:
        with Broker() as broker, tempfile.NamedTemporaryFile() as file:
            file.write(b"-----BEGIN NATS USER JWT-----\neyJ\n-----BEGIN USER NKEY SEED-----\nSUA\n")
            file.flush()
            await self.fails(broker.url, "concord-agent[nkeys]", user_credentials=file.name)

    async def test_so_is_who_does_not_know_the_broker_or_is_not_known_to_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files = ("-keyout", "key.pem", "-out", "certificate.pem")
            command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker", *files)
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            for asks in ("", f', verify: true, ca_file: "{folder}/certificate.pem"'):
                own = f'cert_file: "{folder}/certificate.pem", key_file: "{folder}/key.pem"'
                with Broker(f"tls {{ {own}{asks} }}") as broker:
                    await self.fails(broker.url, "certificate verify failed", "tls=")
                    if asks:
                        known = ssl.create_default_context(cafile=f"{folder}/certificate.pem")
                        known.check_hostname = False
                        await self.fails(broker.url, "certificate required", "tls=", tls=known)


class Waiting(unittest.IsolatedAsyncioTestCase):
    async def test_who_waits_for_ever_connects_when_the_broker_comes(self) -> None:
        tried = asyncio.Event()

        async def told(_: Exception) -> None:
            tried.set()

        with unused() as port:
            number = port.getsockname()[1]
            connecting = Agent("ann").connect(f"nats://127.0.0.1:{number}", connect_within=None, error_cb=told, **SOON)
            waiting = asyncio.create_task(connecting)
            await asyncio.wait_for(tried.wait(), PATIENCE)
        with Broker(port=number):
            async with await asyncio.wait_for(waiting, PATIENCE):
                pass

    async def test_a_broker_that_goes_later_is_waited_for_without_end(self) -> None:
        failures, again = asyncio.Semaphore(0), asyncio.Event()

        async def told(_: Exception) -> None:
            failures.release()

        async def reconnected() -> None:
            again.set()

        agent = Agent("ann")
        callbacks = {"error_cb": told, "reconnected_cb": reconnected}
        with Broker() as broker:
            await agent.connect(broker.url, connect_within=0.5, **callbacks, **SOON)
        # Longer than the first connection may take.
        for _ in range(20):
            await asyncio.wait_for(failures.acquire(), PATIENCE)
        with Broker(port=broker.port):
            await asyncio.wait_for(again.wait(), PATIENCE)
            await agent.close()

    async def test_who_closes_when_the_broker_is_gone_may_connect_again(self) -> None:
        gone = asyncio.Event()

        async def told() -> None:
            gone.set()

        agent = Agent("ann")
        with Broker() as broker:
            await agent.connect(broker.url, disconnected_cb=told)
        await asyncio.wait_for(gone.wait(), PATIENCE)
        # As a heartbeat does: the client of NATS keeps it, and has nowhere to put it when it closes.
        await agent._say_status("busy")
        await asyncio.wait_for(agent.close(), PATIENCE)
        with Broker() as broker:
            async with await agent.connect(broker.url):
                pass


if __name__ == "__main__":
    unittest.main()
