"""Real processes for the tests: brokers and services on free ports of loopback, ended when the test ends."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

BINARIES = pathlib.Path(os.environ.get("CONCORD_BINARIES", "target/debug"))
NATS = os.environ.get("CONCORD_NATS_SERVER", "nats-server")


def free_ports(count, host="127.0.0.1"):
    """Ports that nobody has, below those that systems give to outgoing connections: one of these could take it meanwhile."""
    with contextlib.ExitStack() as held:
        ports = []
        for port in random.sample(range(10_000, 32_000), 100 + count):
            if len(ports) < count:
                with contextlib.suppress(OSError):
                    held.enter_context(socket.socket()).bind((host, port))
                    ports.append(port)
        if len(ports) < count:
            raise AssertionError("there are no free ports")
        return ports


def until(what, condition, seconds=60):
    """Waits until `condition` gives something true, and gives it back."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for this in vain: {what}")
        time.sleep(0.1)


def get(url):
    """Status and body; (0, "") where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (OSError, ValueError):
        return 0, ""


def get_json(url):
    status, body = get(url)
    return json.loads(body) if status == 200 else None


class Stage(contextlib.ExitStack):
    """A folder, and the processes that are started in it."""

    def __init__(self):
        super().__init__()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory(prefix="concord-deploy-")))

    def run(self, name, arguments, environment=None, cwd=None):
        log = open(self.folder / f"{name}.log", "ab")
        self.callback(log.close)
        process = subprocess.Popen([str(argument) for argument in arguments], stdout=log, stderr=subprocess.STDOUT,
                                   env={**(environment or {}), "PATH": os.environ["PATH"]}, cwd=cwd or self.folder)
        self.callback(self._end, process)
        return process

    @staticmethod
    def _end(process):
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def broker(self, name, config, environment=None):
        """A nats-server with this configuration; its monitoring port is the caller's to know."""
        path = self.folder / f"{name}.conf"
        path.write_text(config)
        return self.run(name, [NATS, "--config", path], environment)

    def service(self, service, settings, name=None, wait=True, config=None):
        """A service with these settings (key to value) and this file of settings; gives the process and the address of its health."""
        (port,) = free_ports(1)
        arguments = [BINARIES / f"concord-{service}", *(["--config", config] if config else [])]
        for key, value in {"http.address": f"127.0.0.1:{port}", "telemetry.log": "info", **settings}.items():
            arguments += ["--set", f"{key}={value}"]
        name = name or service
        process = self.run(name, arguments)
        address = f"http://127.0.0.1:{port}"
        if wait:
            def ready():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended:\n{self.log(name)[-3000:]}")
                return get(f"{address}/readyz")[0] == 200
            until(f"{name} is ready", ready)
        return process, address

    def command(self, *arguments, server, check=True):
        done = subprocess.run([BINARIES / "concord", "--server", server, *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, env={}, check=False, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f"concord {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done


class Wire:
    """A connection to a port that can be cut: whoever connects to `port` speaks to the other port, until it is."""

    def __init__(self, port):
        self._ends, self._target, self._whole = [], port, True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while self._whole:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def cut(self):
        self._whole = False
        for end in [self._listener, *self._ends]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Authority:
    """A certificate authority of the moment, and what it has signed."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca = self.folder / "ca.crt"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                      "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt")

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name, hosts):
        """Certificate and key for these names, in files of their own."""
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={hosts}\nextendedKeyUsage=serverAuth,clientAuth\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout",
                      f"{name}.key", "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                      "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
