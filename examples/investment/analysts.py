"""The eight agents: what each finds, which analyses each publishes, and how it does them again."""

from __future__ import annotations

import asyncio
import pathlib
import sys
from typing import Any

from concord_agent import Agent, Message

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from installation import PATIENCE  # noqa: E402

#: What each agent finds: its words, the confidence, and an estimate of the margin in percent.
ANALYSTS: dict[str, tuple[str, float, float | None]] = {
    "screening_agent": ("ACME passes the screen.", 0.8, None),
    "business_analyst": ("Customers stay for nine years on average.", 0.8, None),
    "financial_analyst": ("An operating margin of 25 % can be held.", 0.8, 25),
    "strategy_analyst": ("Margins are rising.", 0.75, None),
    "macro_analyst": ("Rates are low, and will stay so for now.", 0.7, None),
    "valuation_agent": ("A discounted cash flow is the measure here.", 0.8, None),
    "risk_analyst": ("The debt is long-term.", 0.8, None),
    "lead_coordinator": ("The study is complete.", 0.8, None),
}
MARGIN = {"kind": "assumption", "id": "operating_margin", "value": 25}
#: What the macro analyst's alert of another regime implies, as specification 3 prints it.
IMPLICATIONS = {
    "sector_favorability_changes": {"Technology": -15, "Healthcare": 10},
    "discount_rate_changes": {"Technology": 0.025, "Utilities": 0.015},
}
DISCOUNT = {"kind": "assumption", "id": "discount_rate", "value": 0.08}
PRICE = {"kind": "analysis", "id": "dcf", "metric": "target_price"}
RATING = {"kind": "analysis", "id": "scenarios", "metric": "rating"}
#: Whose analyses there are, and what they rest on.
ANALYSES: dict[str, list[dict[str, Any]]] = {
    "valuation_agent": [
        {"analysis_id": "dcf", "type": "valuation", "depends_on": [MARGIN, DISCOUNT], "rerun_minutes": 5},
        {"analysis_id": "scenarios", "type": "sensitivity", "depends_on": [PRICE], "rerun_minutes": 10},
    ],
    "risk_analyst": [{
        "analysis_id": "risk", "type": "risk", "depends_on": [MARGIN], "rerun_minutes": 5,
        "models": [{"model": "sensitivity", "metric": "risk_score", "input": "operating_margin", "percent": -1}],
    }],
    "screening_agent": [{
        "analysis_id": "peers", "type": "comparison", "depends_on": [MARGIN], "rerun_minutes": 20,
        "models": [{"model": "sensitivity", "metric": "multiple", "input": "operating_margin", "percent": 0.5}],
    }],
    "business_analyst": [{"analysis_id": "moat", "type": "text", "depends_on": [], "rerun_minutes": 60}],
    "lead_coordinator": [{"analysis_id": "memo", "type": "text", "depends_on": [RATING], "rerun_minutes": 30}],
}


def figures(analysis: str, used: dict[str, Any]) -> dict[str, Any]:
    """What an analysis comes to with these values of what it uses."""
    match analysis:
        case "dcf":
            return {"target_price": round(85 * used["operating_margin"] / 25, 2)}
        case "scenarios":
            price = used["target_price"]
            # Twenty percent above today's 80 dollars would be a reason to buy.
            return {"low": round(price * 0.8, 2), "high": round(price * 1.2, 2), "rating": "buy" if price > 96 else "hold"}
        case "risk":
            return {"risk_score": 40}
        case "peers":
            return {"multiple": 14}
        case "moat":
            return {"years": 9}
        case _:
            return {"recommendation": used["rating"]}


class Analyst:
    """One of the eight."""

    def __init__(self, name: str) -> None:
        self.agent, self.name = Agent(name, skills=[{"name": name}]), name
        self._told: dict[str, asyncio.Queue[Any]] = {}
        self.agent.on("task_assignment")(self._work)
        self.agent.on("notification")(self._hear)
        self.agent.on("alert")(self._alerted)

    async def told(self, event: str) -> Any:
        """The next notification of this event: its data."""
        return await asyncio.wait_for(self._told.setdefault(event, asyncio.Queue()).get(), PATIENCE)

    async def _alerted(self, told: Message) -> None:
        """Each role does something else about another regime; what it does is in its memory."""
        alert = told.payload
        done: dict[str, Any] = {"regime": alert["new_regime"], "alert": alert["alert"]}
        match self.name:
            case "screening_agent":
                done["sector_scores"] = {sector: 50 + by for sector, by in alert["implications"]["sector_favorability_changes"].items()}
            case "valuation_agent":
                done["discount_rate"] = round(DISCOUNT["value"] + alert["implications"]["discount_rate_changes"]["Technology"], 3)
            case "financial_analyst" | "business_analyst" | "strategy_analyst":
                done["context"] = "The analysis was begun in another regime."
            case "lead_coordinator":
                done["to_look_at_again"] = alert["recommended_actions"]
            case _:
                done["heard"] = True
        await self.agent.memory.put("reaction", done, 0.7)
        self._told.setdefault("alert", asyncio.Queue()).put_nowait(done)

    async def publish(self, case: str) -> list[dict[str, Any]]:
        """Publishes its analyses, with the values that stand now."""
        published = []
        for analysis in ANALYSES[self.name]:
            used = {"operating_margin": 25, "target_price": 85, "rating": "hold"}
            parameters = analysis | {"figures": figures(analysis["analysis_id"], used), "confidence": 0.8}
            await self.agent.request("coordinator", "publish_analysis", parameters, case_id=case)
            published.append(parameters)
        return published

    async def _hear(self, told: Message) -> None:
        self._told.setdefault(told.payload["event"], asyncio.Queue()).put_nowait(told.payload["data"])

    async def _work(self, assigned: Message) -> None:
        task = assigned.payload["task"]
        if task["type"] == "rerun_analysis":
            used = {one.get("metric", one["id"]): one["value"] for one in task["input"]["uses"]}
            result = {"figures": figures(task["input"]["analysis_id"], used), "confidence": 0.8}
            await self.agent.reply(assigned, "task_result", {"status": "success", "result": result})
            return
        summary, confidence, margin = ANALYSTS[self.name]
        finding: dict[str, Any] = {"summary": summary, "recommendation": "hold", "risk_score": 40}
        if margin is not None:
            finding["estimates"] = [{"metric": "operating margin", "value": margin, "unit": "percent"}]
        await self.agent.finding(assigned, finding, confidence=confidence)
