"""What the examples share: a broker and the services of their own, and the command `concord`."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
from typing import Any

PROGRAMS = pathlib.Path(os.environ.get("CONCORD_BINARIES") or pathlib.Path(__file__).parents[1] / "target" / "debug")

#: How long any single step may take, in seconds.
PATIENCE = 30.0


class Installation:
    """A running installation: `async with Installation() as installation`."""

    def __init__(self, *arguments: str) -> None:
        self.server = ""
        self._arguments = arguments
        self._up: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Installation:
        if not (PROGRAMS / "concord").is_file():
            sys.exit(f"error: there is no {PROGRAMS / 'concord'}; scripts/example builds it")
        self._up = await asyncio.create_subprocess_exec(
            PROGRAMS / "concord", "up", "--port", "0", "--json", *self._arguments, stdout=asyncio.subprocess.PIPE)
        assert self._up.stdout is not None
        while line := (await asyncio.wait_for(self._up.stdout.readline(), 60)).decode():
            if server := json.loads(line).get("server"):
                self.server = server
                return self
        sys.exit("error: concord up has ended; its logs say why")

    async def __aexit__(self, *_: object) -> None:
        if self._up and self._up.returncode is None:
            self._up.terminate()
            await self._up.wait()

    async def concord(self, *arguments: str, given: Any = None, may_fail: bool = False) -> str:
        """Runs the command with these arguments and, as its standard input, `given` as JSON: what it prints."""
        program = await asyncio.create_subprocess_exec(
            PROGRAMS / "concord", *arguments, "--server", self.server,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        said = None if given is None else json.dumps(given).encode()
        try:
            out, _ = await asyncio.wait_for(program.communicate(said), PATIENCE)
        except TimeoutError:
            program.kill()
            sys.exit(f"error: concord {' '.join(arguments)} has taken more than {PATIENCE:.0f} seconds")
        if program.returncode and not may_fail:
            sys.exit(f"error: concord {' '.join(arguments)} ended with {program.returncode}")
        return out.decode()

    async def json(self, *arguments: str, **options: Any) -> Any:
        """The same, where it prints JSON."""
        return json.loads(await self.concord(*arguments, "--json", **options))
