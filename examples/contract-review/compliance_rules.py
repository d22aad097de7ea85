"""The rules of the compliance checker, and pure functions that apply them to a contract.

The checker looks for clauses that a regulator or an auditor asks about. Like the other agents of
the panel it has its own definitions, changes its position only for a sentence that it had missed,
and always gives the same answer to the same question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

AGENT_ID = "compliance_checker"
TASK_TYPE = "contract_review"
LETTERS_PER_TOKEN = 4
QUOTES_MAX = 6

Json = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """How one clause type is recognised, and what it means for the contract.

    `finds` matches a sentence of this type. `accepts` matches a sentence that a colleague quotes
    and that `finds` had missed. `present` and `missing` are points of risk.
    """

    finds: re.Pattern[str]
    accepts: re.Pattern[str]
    present: int
    missing: int
    severity: str | None = None
    severity_missing: str | None = None


def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.DOTALL)


RULES: dict[str, Rule] = {
    "Governing Law": Rule(
        finds=_pattern(r"\b(govern|constru)\w*\b.{0,80}\blaws?\b"),
        accepts=_pattern(r"\blaws? of\b.{0,120}\b(apply|govern|applicable|accordance)"),
        present=-4,
        missing=10,
        severity_missing="high",
    ),
    "Audit Rights": Rule(
        finds=_pattern(r"\baudit(s|ed|ing)?\b|\binspect(ion)? .{0,60}\b(books|records)\b"),
        accepts=_pattern(r"\b(inspect|examin|review|access)\w*\b.{0,120}\b(books|records|accounts|premises|facilit)"),
        present=-6,
        missing=8,
        severity="low",
        severity_missing="medium",
    ),
    "Insurance": Rule(
        finds=_pattern(r"\b(maintain|carry|procure|obtain)\b.{0,120}\binsurance\b|\binsurance (polic|coverage)"),
        accepts=_pattern(r"\binsur(e|ed|er|ers|ance)\b"),
        present=-5,
        missing=5,
        severity="info",
    ),
    "Anti-Assignment": Rule(
        finds=_pattern(r"\b(not|neither|nor|no)\b.{0,60}\bassign(ed|able|ment)?\b"),
        accepts=_pattern(r"\b(assign|transfer)\w*\b.{0,160}\b(consent|approval|void)\b"),
        present=-2,
        missing=3,
        severity="low",
    ),
    "Exclusivity": Rule(
        finds=_pattern(r"(?<!non-)(?<!non)\bexclusiv(e|ely|ity)\b(?! (jurisdiction|remed|venue|propert))"),
        accepts=_pattern(
            r"\b(sole(ly)?|only|not .{0,40}(grant|appoint)\w*)\b.{0,100}\b(right|licen|distribut|supplier|party)"
        ),
        present=9,
        missing=0,
        severity="medium",
    ),
    "Non-Compete": Rule(
        finds=_pattern(r"\b(not|neither|nor|non)\b.{0,160}\bcompet(e|es|ing|itive|itor|itors|ition)\b"),
        accepts=_pattern(r"\b(not|refrain|prohibit)\w*\b.{0,240}\b(compet|similar)\w*"),
        present=14,
        missing=0,
        severity="high",
    ),
    "Most Favored Nation": Rule(
        finds=_pattern(r"\bmost[- ]favou?red\b|\b(no|not) less favou?rabl|\blowest price"),
        accepts=_pattern(r"\bfavou?rabl[ey]\b.{0,120}\b(than|customer|part(y|ies)|terms)\b"),
        present=8,
        missing=0,
        severity="medium",
    ),
    "Liquidated Damages": Rule(
        finds=_pattern(r"\bliquidated damages\b|\bpenalt(y|ies)\b"),
        accepts=_pattern(r"\b(termination|cancellation|deficiency) (fee|payment|charge)"),
        present=10,
        missing=0,
        severity="high",
    ),
    "Post-Termination Services": Rule(
        finds=_pattern(
            r"\b(upon|after|following|on) (the |any )?(expir|terminat)\w*"
            r".{0,200}\b(return|destroy|records|assist|transition)"
        ),
        accepts=_pattern(r"\b(terminat|expir)\w*\b.{0,200}\b(continue|cooperate|transition|sell|return|wind)"),
        present=4,
        missing=0,
        severity="medium",
    ),
}

BASE_SCORE = 30
NEGOTIATE_FROM, ESCALATE_FROM, REJECT_FROM = 32, 52, 78
SEVERITIES = ("info", "low", "medium", "high", "critical")
REPORTED = SEVERITIES[2:]

_PLACE = re.compile(
    r"laws? of (?:the )?(?:(?:state|commonwealth|province) of )?((?:[A-Z][A-Za-z]+ ?){1,3})", re.IGNORECASE
)
_NOTICE = _pattern(r"\b(terminat|cancel|renew)\w*\b.*\bnotice\b|\bnotice\b.*\b(terminat|cancel|renew)")
_LENGTH = _pattern(r"\b(\d+)\)?[ -](?:calendar |business )?(day|month|year)s?\b")
_DAYS = {"day": 1, "month": 30, "year": 360}


@dataclass
class Review:
    """A contract as the checker sees it: clause type to sentences, and the facts by name.

    A fact is its value, its unit and the sentence that states it.
    """

    found: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str, tuple[Any, str | None, str]] = field(default_factory=dict)

    @property
    def score(self) -> int:
        """The risk score, 0 to 100."""
        points = sum(rule.present if name in self.found else rule.missing for name, rule in RULES.items())
        return max(0, min(100, BASE_SCORE + points))

    @property
    def recommendation(self) -> str:
        """The recommendation that follows from the score."""
        steps = ((REJECT_FROM, "reject"), (ESCALATE_FROM, "escalate"), (NEGOTIATE_FROM, "negotiate"))
        return next((advice for start, advice in steps if self.score >= start), "sign")

    @property
    def confidence(self) -> float:
        """The confidence, 0 to 1: higher the more of the known clause types were found."""
        return round(0.6 + 0.3 * len(self.found) / len(RULES), 2)

    def severity(self, clause: str) -> str | None:
        """The severity of a clause, or of its absence; None if it is not worth reporting."""
        rule = RULES.get(clause)
        if rule is None:
            return None
        return rule.severity if clause in self.found else rule.severity_missing


def review(sentences: list[str], accepted: list[tuple[str, str]] | None = None) -> Review:
    """Review `sentences`. The (clause, sentence) pairs of `accepted` count in addition."""
    result = Review()
    for sentence in sentences:
        for name, rule in RULES.items():
            if rule.finds.search(sentence):
                result.found.setdefault(name, []).append(sentence)
        _read_facts(result, sentence)
    for name, sentence in accepted or []:
        known = result.found.setdefault(name, [])
        if sentence not in known:
            known.append(sentence)
    return result


def _read_facts(result: Review, sentence: str) -> None:
    place = _PLACE.search(sentence)
    if place and RULES["Governing Law"].finds.search(sentence):
        name = " ".join(word for word in place[1].split() if word[0].isupper() and word.lower() != "without")
        if name:
            result.facts.setdefault("agreement/governing_law", (name.title(), None, sentence))
    if _NOTICE.search(sentence):
        for count, unit in _LENGTH.findall(sentence):
            days = int(count) * _DAYS[unit.lower()]
            shortest = result.facts.get("termination/notice_period")
            if shortest is None or days < shortest[0]:
                result.facts["termination/notice_period"] = (days, "days", sentence)


def finding(title: str, sentences: list[str]) -> tuple[Json, float]:
    """Review a contract. Return the payload of a `finding` and the confidence, 0 to 1."""
    result = review(sentences)
    points = [
        {"topic": name, "severity": severity, "detail": _detail(result, name)}
        for name in RULES
        if (severity := result.severity(name)) in REPORTED
    ]
    points.sort(key=lambda point: -SEVERITIES.index(point["severity"]))
    payload: Json = {
        "summary": f"{title}: {len(result.found)} of {len(RULES)} compliance clauses found; "
        f"risk {result.score}, advice: {result.recommendation}.",
        "risk_score": result.score,
        "severity": points[0]["severity"] if points else "info",
        "recommendation": result.recommendation,
        "critical_findings": points,
        "affected_clauses": sorted(result.found),
        "facts": [_fact(name, value, unit) for name, (value, unit, _) in result.facts.items()],
        "evidence": _evidence(result),
        "assumptions": ["A month counts as 30 days and a year as 12 months."],
    }
    return payload, result.confidence


def _detail(result: Review, clause: str) -> str:
    sentences = result.found.get(clause)
    return f"Present: “{sentences[0]}”" if sentences else "No sentence of this kind was found."


def _fact(name: str, value: Any, unit: str | None) -> Json:
    subject, attribute = name.split("/")
    fact = {"subject": subject, "attribute": attribute, "value": value}
    return fact | {"unit": unit} if unit else fact


def _evidence(result: Review) -> list[str]:
    firsts = [sentences[0] for sentences in result.found.values()]
    facts = [sentence for _, _, sentence in result.facts.values()]
    others = [sentence for sentences in result.found.values() for sentence in sentences[1:]]
    return list(dict.fromkeys(firsts + facts + others))


def answer(question: Json) -> tuple[str, Json]:
    """Answer a `question` of a debate. Return the message type and the payload.

    Raises KeyError or TypeError if the question has not the expected shape.
    """
    conflict, own = question["conflict"], question["your_position"]
    others = question.get("other_positions") or []
    kind, subject = conflict["type"], conflict.get("subject") or conflict.get("topic") or ""
    task = question.get("task") or {}
    own_quotes = own.get("evidence") or []
    peer_quotes = [quote for peer in others for quote in peer.get("evidence") or []]
    contract = (task.get("input") or {}).get("sentences")
    known = contract or own_quotes
    scope = list(RULES) if kind in ("risk_score_disagreement", "recommendation_conflict") else [subject]

    # What the checker accepted in an earlier round is among its own quotes.
    held = _accept(review(known), scope, own_quotes, known)
    before = review(known, held)
    seen = contract or list(dict.fromkeys(own_quotes + peer_quotes))
    new = _accept(before, scope, peer_quotes, seen)
    after = review(seen, held + new)

    value_before = _value(before, kind, subject)
    value_after = _value(after, kind, subject)
    changed = value_after is not None and value_after != value_before
    changed = changed and not _same(value_after, own.get("value"))
    value = value_after if changed or own.get("value") is None else own["value"]
    agreeing = [peer for peer in others if _same(value, peer.get("value"))]
    # An agent that has not moved agrees only if all colleagues mean the same.
    peer = agreeing[0] if agreeing and (changed or len(agreeing) == len(others)) else None
    kinds = {True: "agreement", False: "revision" if changed else "disagreement"}
    return kinds[peer is not None], {
        "revised_position": _words(value) if changed else own.get("position") or _words(value),
        "value": value,
        "confidence": _confidence(own, before, changed, bool(peer_quotes)),
        "agrees_with_peer": peer is not None,
        "agrees_with": peer["agent_id"] if peer else None,
        "reasoning": _reasoning(changed, peer is not None, new),
        "evidence": _fit(
            [sentence for _, sentence in new]
            + [sentence for name in scope for sentence in after.found.get(name, [])[:1]]
            + ([after.facts[subject][2]] if subject in after.facts else []),
            (question.get("limits") or {}).get("max_tokens"),
        ),
    }


def _accept(result: Review, scope: list[str], quotes: list[str], contract: list[str]) -> list[tuple[str, str]]:
    """The quoted sentences that are in the contract, that were missed, and that a rule accepts."""
    accepted = []
    for quote in quotes:
        sentence = _find(quote, contract)
        for name in scope:
            rule = RULES.get(name)
            if rule and sentence and sentence not in result.found.get(name, []) and rule.accepts.search(sentence):
                accepted.append((name, sentence))
    return accepted


def _find(quote: str, contract: list[str]) -> str | None:
    """The sentence that a quote is taken from. A quote that was cut ends in an ellipsis."""
    if quote.endswith("…") and len(quote) > 1:
        return next((sentence for sentence in contract if sentence.startswith(quote[:-1])), None)
    return quote if quote in contract else None


def _value(result: Review, kind: str, subject: str) -> Any:
    if kind == "risk_score_disagreement":
        return result.score
    if kind == "recommendation_conflict":
        return result.recommendation
    if kind == "clause_presence_disagreement":
        return subject in result.found if subject in RULES else None
    if kind == "severity_disagreement":
        return result.severity(subject)
    if subject in result.facts:
        value, unit, _ = result.facts[subject]
        return {"value": value, "unit": unit} if unit else value
    return None


def _parts(value: Any) -> tuple[Any, str | None]:
    return (value.get("value"), value.get("unit")) if isinstance(value, dict) else (value, None)


def _same(left: Any, right: Any) -> bool:
    """True if two positions mean the same, whatever the unit."""
    (left, left_unit), (right, right_unit) = _parts(left), _parts(right)
    if left is None or right is None:
        return False
    if _is_number(left) and _is_number(right):
        days = [_DAYS.get((unit or "").rstrip("s"), 1) for unit in (left_unit, right_unit)]
        return bool(abs(left * days[0] - right * days[1]) < 0.01 * max(1, abs(left * days[0])))
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().lower() == right.strip().lower()
    return bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(value: Any) -> str:
    plain, unit = _parts(value)
    text = {True: "present", False: "absent"}[plain] if isinstance(plain, bool) else str(plain)
    return f"{text} {unit}" if unit else text


def _confidence(own: Json, result: Review, changed: bool, met_evidence: bool) -> float:
    held = own.get("confidence")
    loss = 0.1 if changed else 0.02 if met_evidence else 0.0
    return round(max(0.3, min(0.99, (result.confidence if held is None else held) - loss)), 2)


def _reasoning(changed: bool, agrees: bool, new: list[tuple[str, str]]) -> str:
    if changed:
        clauses = ", ".join(dict.fromkeys(name for name, _ in new)) or "this"
        return f"I had missed the quoted wording on {clauses}; judged again with it by my own weights."
    if agrees:
        return "We say the same in different words."
    if new:
        return "The quoted wording is new to me but does not change my result."
    return "No quote shows me a sentence that I had missed and that meets my test; I keep my reading."


def _fit(sentences: list[str], max_tokens: int | None) -> list[str]:
    """The quotes that fit into the limit. The last one is cut after a word if necessary."""
    left = 10**9 if max_tokens is None else max(0, max_tokens * LETTERS_PER_TOKEN - 480)
    quotes: list[str] = []
    for sentence in list(dict.fromkeys(sentences))[:QUOTES_MAX]:
        if len(sentence) > left:
            cut = sentence[: max(0, left - 1)].rpartition(" ")[0]
            return quotes + [cut + "…"] if len(cut) >= LETTERS_PER_TOKEN * 10 else quotes
        quotes.append(sentence)
        left -= len(sentence)
    return quotes
