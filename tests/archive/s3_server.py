"""An S3-compatible store for the tests: moto keeps the objects, and botocore checks each request's signature.

Usage: s3_server.py --port N --bucket NAME --user KEY:SECRET:VERBS... [--token WORD] [--region NAME] [--certificate FILE --key FILE]

A user may do what its VERBS say, such as GET,PUT; LIST is a GET of the bucket. A line on standard input is a command, a JSON object, and each is
answered by a line: {"keys": ""}, {"fail": STATUS, "times": N}, {"hold": PART}, {"tamper": PART}, {"clock": SECONDS}. It ends with
standard input.
"""

import argparse
import datetime
import hmac
import json
import os
import re
import ssl
import sys
import threading

os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "2"

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.s3.models import s3_backends
from moto.server import create_backend_app
from urllib.parse import parse_qs, quote, urlencode
from werkzeug.http import http_date
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response


def say(**what):
    print(json.dumps(what), flush=True)


class Refused(Exception):
    def __init__(self, status, code, **more):
        super().__init__(code)
        fields = {"Code": code, "Message": f"The store says {code}.", **more}
        text = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
        self.response = Response(f"<Error>{text}</Error>", status=status, content_type="application/xml")


class Store:
    """What is asked of moto, where signature and rights are good."""

    def __init__(self, given):
        self.region, self.token, self.bucket = given.region, given.token, given.bucket
        users = [user.split(":") for user in given.user]
        self.users = {key: (secret, set(verbs.split(","))) for key, secret, verbs in users}
        self.moto = create_backend_app("s3")
        created = Client(self.moto).put(f"/{given.bucket}", base_url="http://127.0.0.1")
        assert created.status_code == 200, created.data
        self.clock = datetime.timedelta()
        self.failing, self.failures = 0, 0
        self.held, self.is_held, self.let_go = None, threading.Event(), threading.Event()

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + self.clock

    def __call__(self, environment, start):
        response = self.answer(Request(environment), environment)
        return response(environment, start) if response else self.moto(environment, start)

    def answer(self, request, environment):
        """What is answered in moto's place."""
        if self.failures > 0:
            self.failures -= 1
            return Response("", status=self.failing)
        try:
            self.check(request)
        except Refused as refused:
            return refused.response
        if self.held and request.method == "PUT" and self.held in request.path:
            self.is_held.set()
            self.let_go.wait()
            return Response("", status=500)
        return None

    def check(self, request):
        said = {name: values[0] for name, values in parse_qs(request.query_string.decode()).items()}
        signature = said.pop("X-Amz-Signature", "")
        key, day, region, _, _ = said.get("X-Amz-Credential", "////").split("/")
        if region != self.region:
            raise Refused(400, "AuthorizationQueryParametersError", Region=self.region)
        if key not in self.users:
            raise Refused(403, "InvalidAccessKeyId")
        secret, verbs = self.users[key]
        if said.get("X-Amz-Security-Token") != self.token:
            raise Refused(400, "InvalidToken")
        begun = datetime.datetime.strptime(said["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        lasts = datetime.timedelta(seconds=int(said["X-Amz-Expires"]))
        if not begun - datetime.timedelta(minutes=15) < self.now() < begun + lasts:
            raise Refused(403, "AccessDenied")
        if not hmac.compare_digest(signature, self.signature(request, said, Credentials(key, secret))):
            raise Refused(403, "SignatureDoesNotMatch")
        verb = "LIST" if "list-type" in said else request.method
        if verb not in verbs:
            raise Refused(403, "AccessDenied")

    def signature(self, request, said, credentials):
        signed = said["X-Amz-SignedHeaders"].split(";")
        query = urlencode(said, quote_via=quote)
        url = f"{request.root_url.rstrip('/')}{request.path}?{query}"
        headers = {name: request.headers[name] for name in signed}
        asked = AWSRequest(method=request.method, url=url, headers=headers)
        asked.context["timestamp"] = said["X-Amz-Date"]
        auth = S3SigV4QueryAuth(credentials, "s3", self.region)
        return auth.signature(auth.string_to_sign(asked, auth.canonical_request(asked)), asked)

    def objects(self):
        (account,) = s3_backends.values()
        return account["aws"].buckets[self.bucket].keys

    def do(self, command):
        match command:
            case {"keys": begin}:
                return {"keys": sorted(key for key in self.objects() if key.startswith(begin))}
            case {"fail": status, "times": times}:
                self.failing, self.failures = status, times
            case {"failures": _}:
                return {"failures": self.failures}
            case {"hold": part}:
                self.held = part
                self.is_held.clear()
                self.let_go.clear()
            case {"await": "held"}:
                self.is_held.wait()
            case {"release": _}:
                self.held = None
                self.let_go.set()
            case {"tamper": part}:
                key = next(key for key in sorted(self.objects()) if part in key)
                found = bytearray(self.objects()[key].value)
                found[len(found) // 2] ^= 1
                self.objects()[key].value = bytes(found)
                return {"tampered": key}
            case {"clock": seconds}:
                self.clock = datetime.timedelta(seconds=seconds)
        return {}


class Handler(WSGIRequestHandler):
    """Logs nothing, and dates answers by the store's clock."""

    def log(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return http_date(self.server.app.now())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--user", action="append", required=True)
    arguments.add_argument("--region", default="us-east-1")
    for name in ["--bucket", "--token", "--certificate", "--key"]:
        arguments.add_argument(name)
    given = arguments.parse_args()
    context = None
    if given.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.certificate, given.key)
    store = Store(given)
    server = make_server("127.0.0.1", given.port, store, threaded=True, request_handler=Handler, ssl_context=context)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(listening=given.port)
    for line in sys.stdin:
        say(**store.do(json.loads(line)))
    os._exit(0)


main()
