#!/usr/bin/env python3
"""Eight agents study a company. Two differ about its margin, nobody rules, the regime changes mid-way, and at the gate a person overrides
what stood meanwhile.

It starts a broker and the services, lets the agents work and the people decide, and shows what follows from the override.
Usage: investment.py [--json] [--package FILE]        (scripts/example investment builds the programs first)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import sys
import time
from typing import Any

from analysts import ANALYSTS, IMPLICATIONS, Analyst

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from installation import PATIENCE, Installation  # noqa: E402

CASE, GATE = "acme", "investment committee"
#: Four hours of the ladder are a second.
TIME_SCALE = 14_400
OPENING = {
    "case_id": CASE,
    "policy": {"preset": "investment", "ladder": {"time_scale": TIME_SCALE}},
    "participants": list(ANALYSTS),
    "gates": [GATE],
    "circumstances": {"regime": "BULL_LOW_RATES"},
    "task": {"type": "valuation", "title": "ACME Corp", "input": {"ticker": "ACME", "price": 80}},
}
#: What the strategy analyst disputes, in the words of specification 3.
CHALLENGE = {
    "challenge_id": "CH-001", "challenger": "strategy_analyst", "challenged": "financial_analyst",
    "disputed_finding": "Operating margin of 25 %", "challenge_basis": "Margins have been rising for three years",
    "required_evidence": ["Historical margins", "Peer comparison"], "escalation_timer": 3600, "priority": "critical-path",
    "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30, "domain": "valuation",
}
#: When what the macro analyst knows of the regime is told to everybody, and at which gate the case shows it.
RULES = {
    "regime_change": {"report_within_ms": 7_200_000, "gates": [GATE]},
    "rules": [{
        "name": "regime", "topic": "regime", "field": "regime", "event_type": "regime_change",
        "when": {"confidence_above": {"confidence": 0.8}},
        "recommended_actions": ["Review in-progress analyses for regime sensitivity"],
    }],
}


class Journey:
    """The steps, one after the other, and what each has shown."""

    def __init__(self, installation: Installation, analysts: dict[str, Analyst], say: Any) -> None:
        self.installation, self.analysts, self.say = installation, analysts, say
        self.shown: dict[str, Any] = {}

    async def until_told(self, event: str) -> Any:
        """What the coordinator's lead is told of this event."""
        return await self.analysts["lead_coordinator"].told(event)

    async def open(self) -> None:
        self.say("\n1. Eight agents study ACME")
        concord = self.installation.concord
        await concord("person", "register", "eva", "--role", "arbiter", "--domain", "valuation")
        await concord("person", "register", "gail", "--role", "reviewer", "--gate", GATE)
        await concord("person", "register", "macro_analyst", "--agent", "--role", "alerter")
        await concord("alert", "rules", "set", "-", "--by", "gail", "--why", "as the house does it", given=RULES)
        await self.analysts["macro_analyst"].agent.memory.put("regime", {"regime": "BULL_LOW_RATES"}, 0.9, confidence=0.9)
        await concord("case", "open", "-", given=OPENING)
        decided = (await self.until_told("case_decided"))["decision"]
        self.say(f"   the case is decided: {decided['outcome'].get('recommendation')}, risk {decided['outcome'].get('risk_score')}")

    async def dispute(self) -> None:
        self.say("\n2. Two of them differ about the margin, and nobody rules")
        await self.analysts["strategy_analyst"].agent.send("coordinator", "challenge", CHALLENGE, case_id=CASE)
        for level in (2, 3):
            escalated = await self.until_told("debate_escalated")
            self.say(f"   level {level}: {escalated['reason'].replace('_', ' ')}")
        await self.until_told("debate_provisional")
        await self.until_told("case_decision_changed")
        gate = await self.installation.json("gate", "show", CASE)
        (waiting,) = gate["provisional"]
        self.debate, self.digest = waiting["conflict_id"], waiting["digest"]
        self.shown["provisional"] = waiting["resolution"]["value"]
        self.say(f"   level 4: {waiting['resolution']['position']}, provisionally.\n   {waiting['provisional']['rationale']}")

    async def analyse(self) -> None:
        self.say("\n3. The others go on with it")
        for name in ("valuation_agent", "risk_analyst", "screening_agent", "business_analyst", "lead_coordinator"):
            for analysis in await self.analysts[name].publish(CASE):
                figures = ", ".join(f"{metric} {value}" for metric, value in analysis["figures"].items())
                self.say(f"   {name}: {analysis['analysis_id']}: {figures}")

    async def regime(self) -> None:
        self.say("\n4. The regime changes mid-way")
        macro = self.analysts["macro_analyst"].agent
        value = {
            "regime": "BEAR_HIGH_RATES", "implications": IMPLICATIONS,
            "recommended_actions": ["Re-screen candidates with updated sector scores", "Recalculate DCF models with new discount rates"],
        }
        kept = await macro.memory.put("regime", value, 0.95, confidence=0.85, evidence=["Ten-year yield above 5 % for a month"])
        (alert,) = kept["alerts"]
        self.say(f"   the macro analyst writes what it knows, and the rule alerts everybody: {value['regime']}, confidence 0.85")
        self.shown["reactions"] = {name: await one.told("alert") for name, one in self.analysts.items()}
        reactions = self.shown["reactions"]
        self.say(f"   screening_agent weighs anew: {reactions['screening_agent']['sector_scores']}\n"
                 f"   valuation_agent discounts with {reactions['valuation_agent']['discount_rate']:.1%}\n"
                 "   the financial, business and strategy analysts note it\n"
                 f"   lead_coordinator looks again: {len(reactions['lead_coordinator']['to_look_at_again'])} things to do")
        flag = self.shown["flag"] = await self.until_told("case_flagged")
        concerned = ", ".join(f"the {one['kind']} {one['name']}" for one in flag["affected"])
        self.say(f"   the case is flagged: {flag['old_regime']} -> {flag['new_regime']}, which concerns {concerned}")
        rules = await self.installation.json("alert", "rules", "show")
        self.say(f"   debates from now on weigh records by the regime {rules['regime']['regime']}")
        gate = await self.installation.json("gate", "show", CASE)
        self.shown["at_gate"] = [one["alert"] for one in gate["alerts"]]
        await macro.report_alert(alert, "Sector scores: my memory, regime, version 2.")
        self.shown["alert"] = await self.installation.json("alert", "show", alert)
        self.say(f"   the gate shows it, and the report that was due within two hours is there: {self.shown['alert']['report']['report']}")

    async def override(self) -> None:
        self.say("\n5. At the gate gail overrides it")
        await self.installation.concord(
            "gate", "review", CASE, "--gate", GATE, "--by", "gail", "--override", self.debate, "--position", "28 %", "--value", "28",
            "--rationale", "Management guidance.", "--digest", self.digest)
        await self.until_told("impact_assessed")
        (record,) = await self.installation.json("impact", "show", CASE, "--last")
        report = self.shown["report"] = record["report"]
        changed = report["changed_assumption"]
        self.say(f"   {changed['id']}: {changed['old_value']:g} is {changed['new_value']}; "
                 f"{report['affected_count']} analyses are affected, {report['high_impact_count']} of them much")

    async def do_again(self) -> None:
        self.say("\n6. What rests on it is done again")
        plan = self.shown["plan"] = await self.installation.json("impact", "plan", CASE)
        required = [one["analysis_id"] for one in plan["required"]]
        self.say(f"   {', '.join(required)}: {plan['strategy']}, {plan['estimated_minutes']} minutes of work")
        run = await self.installation.concord("impact", "run", CASE, "--wait")
        for line in run.splitlines():
            self.say(f"   {line}")
        await self.until_told("case_figures_recorded")

    async def conclude(self, file: pathlib.Path | None) -> None:
        self.say("\n7. The committee gets a new decision, and its package")
        await self.installation.concord("gate", "review", CASE, "--gate", GATE, "--by", "gail", "--pass")
        case = await self.installation.json("case", "show", CASE)
        decision = self.shown["decision"] = case["decision"]
        price = decision["figures"]["dcf"]["figures"]["target_price"]
        self.say(f"   version {decision['version']}: a target price of {price:g}, with a margin of 28 %")
        self.shown["package"] = await self.installation.json("case", "package", CASE)
        if file:
            await self.installation.concord("case", "package", CASE, "--out", str(file))
            self.say(f"   the package is in {file}; open it in a browser")


async def play(say: Any, package: pathlib.Path | None) -> dict[str, Any]:
    async with Installation() as installation:
        analysts = {name: Analyst(name) for name in ANALYSTS}
        for one in analysts.values():
            await one.agent.connect(installation.server)
        journey = Journey(installation, analysts, say)
        try:
            await journey.open()
            await journey.dispute()
            await journey.analyse()
            await journey.regime()
            await journey.override()
            await journey.do_again()
            await journey.conclude(package)
        finally:
            for one in analysts.values():
                await one.agent.close()
        return journey.shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print what the steps have shown as JSON, and nothing else")
    parser.add_argument("--package", type=pathlib.Path, metavar="FILE", help="write the decision package here: .html, .md or .json")
    arguments = parser.parse_args()
    say = (lambda _: None) if arguments.json else (lambda text: print(text, flush=True))
    begun = time.monotonic()
    shown = asyncio.run(play(say, arguments.package))
    if arguments.json:
        print(json.dumps(shown))
    say(f"\n{time.monotonic() - begun:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
