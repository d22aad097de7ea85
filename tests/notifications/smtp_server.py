"""An SMTP server for the tests: aiosmtpd, which says on standard output, a JSON object a line, what it was given.

Usage: smtp_server.py --port N [--refuse MAILBOX]... [--busy N] [--certificate FILE --key FILE --user NAME --password WORD]
"""

import argparse
import asyncio
import email
import email.policy
import json
import ssl

from aiosmtpd.smtp import SMTP, AuthResult


def say(**what):
    print(json.dumps(what), flush=True)


class Mailboxes:
    def __init__(self, refused, busy):
        self.refused, self.busy = set(refused), busy

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refused:
            say(refused=address)
            return "550 5.1.1 There is no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if self.busy > 0:
            self.busy -= 1
            say(busy=envelope.rcpt_tos)
            return "451 4.3.0 Try again later"
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        say(
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            headers=[[name.lower(), str(value)] for name, value in mail.items()],
            text=mail.get_content().replace("\r\n", "\n"),
            tls=session.ssl is not None,
            authenticated=bool(session.authenticated),
        )
        return "250 OK"


async def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--refuse", action="append", default=[])
    arguments.add_argument("--busy", type=int, default=0)
    for name in ["--certificate", "--key", "--user", "--password"]:
        arguments.add_argument(name)
    given = arguments.parse_args()
    options = {}
    if given.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.certificate, given.key)
        options.update(tls_context=context, require_starttls=True)
    if given.user:
        expected = (given.user.encode(), given.password.encode())

        def authenticate(server, session, envelope, mechanism, data):
            return AuthResult(success=(data.login, data.password) == expected, handled=False)

        options.update(authenticator=authenticate, auth_required=True)
    handler = Mailboxes(given.refuse, given.busy)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, loop=loop, **options), "127.0.0.1", given.port)
    say(listening=given.port)
    await server.serve_forever()


asyncio.run(main())
