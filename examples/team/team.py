#!/usr/bin/env python3
"""Five agents review a lease, twice: everything through the lead, and as a team.

It starts a broker and the services (`concord up`), lets the agents work, and prints what `concord metrics` makes of either session.
Usage: team.py [--json]        (scripts/example team builds the programs first)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import sys
import time
from typing import Any

from concord_agent import Agent, Message

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from installation import PATIENCE, Installation  # noqa: E402

#: What each expert knows, and what it says when it is asked. The words are what wakes it.
EXPERTS: dict[str, dict[str, Any]] = {
    "jurist": {"skills": ["liability", "termination"], "knows": "The cap of 12 months' rent is usual.", "sure": 0.9},
    "accountant": {"skills": ["taxes", "invoices"], "knows": "Value added tax is due on the rent.", "sure": 0.8},
    "engineer": {"skills": ["building", "heating"], "knows": "The heating is from 1998, and is the tenant's to repair.", "sure": 0.7},
    "translator": {"skills": ["translation"], "knows": "The German text says 'grob fahrlässig'.", "sure": 0.9},
}
#: The clauses of the lease: whose they are, and whom that expert asks about them.
CLAUSES = [
    ("liability", "jurist", ["accountant", "engineer", "translator"]),
    ("termination", "jurist", ["accountant", "translator"]),
    ("rent", "accountant", ["jurist", "translator"]),
    ("deposit", "accountant", ["jurist", "engineer"]),
    ("repairs", "engineer", ["jurist", "accountant", "translator"]),
    ("heating", "engineer", ["jurist", "accountant"]),
    ("language", "translator", ["jurist", "accountant"]),
    ("annexes", "translator", ["engineer", "jurist", "accountant"]),
]
PLAN = "We sign the lease on Friday, and the tenant repairs the heating."


class Expert:
    """An expert, with its agent and what it has heard from its peers."""

    def __init__(self, name: str, say: Any) -> None:
        self.name, self.knowledge = name, EXPERTS[name]
        skills = [{"name": skill} for skill in self.knowledge["skills"]]
        # Two can translate, and bid for it.
        if name in ("jurist", "translator"):
            skills.append({"name": "certified translation"})
        self.agent, self.say = Agent(name, skills=skills), say
        self.assigned: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        for kind, handler in [
            ("group_query", self.help), ("peer_request", self.help), ("request", self.serve),
            ("task_assignment", self.assign), ("call_for_proposals", self.bid), ("award", self.translate),
        ]:
            self.agent.on(kind)(handler)

    async def help(self, asked: Message) -> None:
        """A question to the group that has woken this agent, or one of a peer."""
        if asked.payload.get("asks_for") == "objections":
            if self.name == "engineer":
                await self.answer(asked, "I object: a heating of 1998 will not last the term.", 0.8)
            else:
                await self.agent.reply(asked, "response", {"accepted": False})
            return
        await self.answer(asked, self.knowledge["knows"], self.knowledge["sure"])

    async def answer(self, asked: Message, text: str, sure: float) -> None:
        await self.agent.reply(asked, "response", {"status": "success", "result": {"content": text}}, confidence=sure)

    async def serve(self, asked: Message) -> None:
        """What the lead asks for, where everything goes through it."""
        await self.agent.respond(asked, {"content": self.knowledge["knows"]})

    async def assign(self, task: Message) -> None:
        if not self.assigned.done():
            self.assigned.set_result(task)

    async def bid(self, call: Message) -> None:
        price = 90.0 if self.name == "translator" else 200.0
        await self.agent.reply(call, "bid", {"price": price, "time_ms": 2_000, "confidence": self.knowledge["sure"], "capability": 1.0})

    async def translate(self, award: Message) -> None:
        await self.agent.reply(award, "task_result", {"status": "success", "result": {"content": "The lease, in English."}})

    async def ask(self, peer: str, question: dict[str, str], case: str) -> str:
        """Asks a peer, without the lead."""
        heard = asyncio.get_running_loop().create_future()

        async def hear(answer: Message) -> None:
            if answer.from_agent == peer and not heard.done():
                heard.set_result(answer.payload["result"]["content"])

        self.agent.on("response")(hear)
        await self.agent.send(peer, "peer_request", question, case_id=case, requires_response=True)
        text: str = await asyncio.wait_for(heard, PATIENCE)
        return text

    async def work(self, case: str) -> None:
        """Does its clauses, asks its peers about them and tells them what it makes of it, and shares what it has found on the board."""
        asked = 0
        for clause, owner, peers in CLAUSES:
            for peer in peers if owner == self.name else []:
                question = {"content": f"The clause about {clause}: what do I have to know about {EXPERTS[peer]['skills'][0]}?"}
                answer = await self.ask(peer, question, case)
                verdict = {"content": f"{clause}: it can stay. You said: {answer}"}
                await self.agent.send(peer, "info_update", verdict, case_id=case)
                asked += 1
        mine = [clause for clause, owner, _ in CLAUSES if owner == self.name]
        entry = {"name": self.name, "value": {"clauses": mine, "finding": self.knowledge["knows"]}, "based_on": 0}
        await self.agent.request("coordinator", "board_put", entry, case_id=case)
        task = await asyncio.wait_for(self.assigned, PATIENCE)
        await self.agent.finding(task, {"summary": self.knowledge["knows"], "risk_score": 30}, confidence=self.knowledge["sure"])
        self.say(f"{self.name}: did {' and '.join(mine)}, asked its peers {asked} times, and wrote it on the board")


class Lead:
    """The agent that leads."""

    def __init__(self, say: Any) -> None:
        skills = [{"name": "planning", "tags": ["lead"]}]
        self.agent, self.say = Agent("lead", skills=skills), say
        self.ended: dict[str, asyncio.Future[Message]] = {}
        self.agent.on("notification")(self.notified)

    async def notified(self, told: Message) -> None:
        key = {"task_completed": "task", "case_decided": "case"}.get(told.payload.get("event", ""))
        if key in self.ended and not self.ended[key].done():
            self.ended[key].set_result(told)

    def expect(self, key: str) -> asyncio.Future[Message]:
        self.ended[key] = asyncio.get_running_loop().create_future()
        return self.ended[key]

    async def alone(self, case: str) -> None:
        """Everything through the lead: it asks each for each clause, and carries what one knows to the next."""
        for clause, owner, peers in CLAUSES:
            for name in [*peers, owner]:
                await self.agent.request(name, "advise", {"clause": clause}, case_id=case)
        self.say(f"lead: asked for {len(CLAUSES)} clauses, one after the other")

    async def with_team(self, case: str, experts: list[Expert]) -> None:
        """Finds experts, lets them work, lets two bid, and asks who disagrees."""
        decided = self.expect("case")
        opening = {"case_id": case, "participants": [one.name for one in experts], "task": {"type": "lease_review"}}
        await self.agent.request("coordinator", "open_case", opening)
        found = await self.agent.ask_group("Who knows whether this liability, and these taxes, are usual?", case, timeout=10)
        woken = [answer["by"] for answer in [found["primary"], *found["supplementary"]]]
        self.say(f"lead: {', '.join(sorted(woken))} answered the group; the most confident is {found['primary']['by']}")

        completed = self.expect("task")
        task = {"type": "translation", "title": "The lease in English, certified."}
        terms = {"strategy": "contract_net", "task": task, "criteria": {"skills": ["certified translation"]}, "bids_ms": 5_000}
        translating = self.agent.request("coordinator", "open_task", terms, case_id=case)
        await asyncio.gather(translating, *(one.work(case) for one in experts))
        done = (await asyncio.wait_for(completed, PATIENCE)).payload["data"]
        self.say(f"lead: two have bid for the translation, and {done['by'][0]} did it")

        objections = {"content": PLAN + " Does anyone disagree?", "asks_for": "objections"}
        said = await self.objections(case, objections)
        self.say(f"lead: {said}")
        decision = (await asyncio.wait_for(decided, PATIENCE)).payload["data"]["decision"]
        self.say(f"the case is decided: {decision['reason']}, risk {decision['outcome']['risk_score']}")

    async def objections(self, case: str, payload: dict[str, str]) -> str:
        heard: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def hear(answer: Message) -> None:
            result = answer.payload.get("result") or {}
            if not heard.done() and "object" in str(result.get("content", "")):
                heard.set_result(answer)

        self.agent.on("response")(hear)
        await self.agent.send("_any", "group_query", payload, case_id=case, requires_response=True)
        answer = await asyncio.wait_for(heard, PATIENCE)
        return f"{answer.from_agent} disagrees: {answer.payload['result']['content']}"


async def measured(installation: Installation, case: str) -> dict[str, Any]:
    report: dict[str, Any] = await installation.json("metrics", "--case", case)
    return report


async def sessions(installation: Installation, say: Any) -> dict[str, Any]:
    lead, experts = Lead(say), [Expert(name, say) for name in EXPERTS]
    agents = [lead.agent, *(one.agent for one in experts)]
    for agent in agents:
        await agent.connect(installation.server)
    try:
        say("\nThrough the lead:")
        await lead.alone("through-lead")
        say("\nAs a team:")
        await lead.with_team("as-a-team", experts)
        board = await installation.json("board", "show", "as-a-team")
        say(f"the board: {', '.join(entry['name'] for entry in board['entries'])}")
    finally:
        for agent in agents:
            await agent.close()
    return {"through_lead": await measured(installation, "through-lead"), "as_a_team": await measured(installation, "as-a-team")}


ROWS = [
    ("messages through the lead", "lead_share", lambda value: f"{value * 100:.0f} %"),
    ("response time of peer help", "peer_help_seconds", lambda value: f"{value:.3f} s"),
    ("collaboration events a session", "events_per_session", lambda value: f"{value:.0f}"),
]


def table(result: dict[str, Any]) -> str:
    def shown(measure: dict[str, Any], form: Any) -> str:
        return "none" if measure.get("value") is None else form(measure["value"])

    lines = [f"\n{'':32}{'through the lead':>18}{'as a team':>12}{'wanted':>12}"]
    for name, key, form in ROWS:
        before, after = result["through_lead"][key], result["as_a_team"][key]
        wanted = ("> " if after["above"] else "< ") + form(after["target"])
        verdict = "met" if after.get("met") else "MISSED"
        lines.append(f"{name:32}{shown(before, form):>18}{shown(after, form):>12}{wanted:>12}  {verdict}")
    return "\n".join(lines)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the metrics as JSON, and nothing else")
    arguments = parser.parse_args()
    say = (lambda _: None) if arguments.json else (lambda text: print(text, flush=True))
    begun = time.monotonic()
    async with Installation() as installation:
        result = await sessions(installation, say)
    met = all(result["as_a_team"][key].get("met") for _, key, _ in ROWS)
    if arguments.json:
        print(json.dumps(result | {"met": met}))
    else:
        print(table(result))
        print(f"\n{time.monotonic() - begun:.0f} seconds.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
