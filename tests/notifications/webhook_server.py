"""What receives webhooks in the tests. It checks signatures by the text of the Standard Webhooks specification and
nothing but Python's own library, and says on standard output, a JSON object a line, what it was given.

Usage: webhook_server.py --port N --secret whsec_... [--answers 500,200] [--takes SECONDS] [--certificate FILE --key FILE]   (the last answer is given for ever)
"""

import argparse
import base64
import hashlib
import hmac
import http.server
import json
import ssl
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, required=True)
arguments.add_argument("--secret", required=True)
arguments.add_argument("--answers", default="204")
arguments.add_argument("--takes", type=float, default=0)
arguments.add_argument("--certificate")
arguments.add_argument("--key")
given = arguments.parse_args()
answers = [int(status) for status in given.answers.split(",")]
key = base64.b64decode(given.secret.removeprefix("whsec_"))


def say(**what):
    print(json.dumps(what), flush=True)


def is_signed(headers, body):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    signatures = [one.split(",", 1) for one in headers["webhook-signature"].split(" ")]
    is_now = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return is_now and any(version == "v1" and hmac.compare_digest(one, expected) for version, one in signatures)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = answers.pop(0) if len(answers) > 1 else answers[0]
        say(
            path=self.path,
            status=status,
            id=self.headers["webhook-id"],
            signed=is_signed(self.headers, body),
            type=self.headers["content-type"],
            body=json.loads(body),
        )
        time.sleep(given.takes)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", given.port), Receiver)
if given.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given.certificate, given.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
say(listening=given.port)
server.serve_forever()
