"""A nats-server for the tests that need a real one."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

PROGRAM = os.environ.get("CONCORD_NATS_SERVER", "nats-server")


class Broker:
    """A nats-server with JetStream: `with Broker() as broker`, and whatever else its configuration says."""

    def __init__(self, configuration: str = "", port: int = -1) -> None:
        self._configuration = configuration
        self.port = port

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def __enter__(self) -> Broker:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "nats.conf")
        store = f'jetstream {{ store_dir: "{self._folder.name}/store" }}\n'
        path.write_text(f"listen: 127.0.0.1:{self.port}\n{store}{self._configuration}\n")
        self._process = subprocess.Popen([PROGRAM, "--config", str(path)], stderr=subprocess.PIPE, text=True)
        log = self._process.stderr
        assert log is not None
        lines: list[str] = []
        for line in log:
            lines.append(line)
            if found := re.search(r"Listening for client connections on 127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
            if "Server is ready" in line:
                break
        else:
            raise AssertionError("".join(lines))
        # A program whose log nobody reads comes to a halt.
        self._reading = threading.Thread(target=log.read)
        self._reading.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._folder.cleanup()
