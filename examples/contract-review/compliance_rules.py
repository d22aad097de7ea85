"""What the compliance checker makes of a contract: pure functions over its sentences.

The checker reads for what a regulator or an auditor would ask about. Like the other agents of the
panel it has its own definitions, changes its mind only over a sentence it had missed, and gives the
same answer to the same question every time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

AGENT_ID = "compliance_checker"
TASK_TYPE = "contract_review"
LETTERS_PER_TOKEN = 4
MOST_QUOTES = 6

Json = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """How one clause type is read: what finds it, what confirms a quote, and what it weighs."""

    finds: re.Pattern[str]
    confirms: re.Pattern[str]
    present: int
    missing: int
    severity: str | None = None
    severity_missing: str | None = None


def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.DOTALL)


RULES: dict[str, Rule] = {
    "Governing Law": Rule(
        finds=_pattern(r"\b(govern|constru)\w*\b.{0,80}\blaws?\b"),
        confirms=_pattern(r"\blaws? of\b.{0,120}\b(apply|govern|applicable|accordance)"),
        present=-4,
        missing=10,
        severity_missing="high",
    ),
    "Audit Rights": Rule(
        finds=_pattern(r"\baudit(s|ed|ing)?\b|\binspect(ion)? .{0,60}\b(books|records)\b"),
        confirms=_pattern(r"\b(inspect|examin|review|access)\w*\b.{0,120}\b(books|records|accounts|premises|facilit)"),
        present=-6,
        missing=8,
        severity="low",
        severity_missing="medium",
    ),
    "Insurance": Rule(
        finds=_pattern(r"\b(maintain|carry|procure|obtain)\b.{0,120}\binsurance\b|\binsurance (polic|coverage)"),
        confirms=_pattern(r"\binsur(e|ed|er|ers|ance)\b"),
        present=-5,
        missing=5,
        severity="info",
    ),
    "Anti-Assignment": Rule(
        finds=_pattern(r"\b(not|neither|nor|no)\b.{0,60}\bassign(ed|able|ment)?\b"),
        confirms=_pattern(r"\b(assign|transfer)\w*\b.{0,160}\b(consent|approval|void)\b"),
        present=-2,
        missing=3,
        severity="low",
    ),
    "Exclusivity": Rule(
        finds=_pattern(r"(?<!non-)(?<!non)\bexclusiv(e|ely|ity)\b(?! (jurisdiction|remed|venue|propert))"),
        confirms=_pattern(
            r"\b(sole(ly)?|only|not .{0,40}(grant|appoint)\w*)\b.{0,100}\b(right|licen|distribut|supplier|party)"
        ),
        present=9,
        missing=0,
        severity="medium",
    ),
    "Non-Compete": Rule(
        finds=_pattern(r"\b(not|neither|nor|non)\b.{0,160}\bcompet(e|es|ing|itive|itor|itors|ition)\b"),
        confirms=_pattern(r"\b(not|refrain|prohibit)\w*\b.{0,240}\b(compet|similar)\w*"),
        present=14,
        missing=0,
        severity="high",
    ),
    "Most Favored Nation": Rule(
        finds=_pattern(r"\bmost[- ]favou?red\b|\b(no|not) less favou?rabl|\blowest price"),
        confirms=_pattern(r"\bfavou?rabl[ey]\b.{0,120}\b(than|customer|part(y|ies)|terms)\b"),
        present=8,
        missing=0,
        severity="medium",
    ),
    "Liquidated Damages": Rule(
        finds=_pattern(r"\bliquidated damages\b|\bpenalt(y|ies)\b"),
        confirms=_pattern(r"\b(termination|cancellation|deficiency) (fee|payment|charge)"),
        present=10,
        missing=0,
        severity="high",
    ),
    "Post-Termination Services": Rule(
        finds=_pattern(
            r"\b(upon|after|following|on) (the |any )?(expir|terminat)\w*"
            r".{0,200}\b(return|destroy|records|assist|transition)"
        ),
        confirms=_pattern(r"\b(terminat|expir)\w*\b.{0,200}\b(continue|cooperate|transition|sell|return|wind)"),
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
class Reading:
    """A contract as the checker sees it."""

    found: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str, tuple[Any, str | None, str]] = field(default_factory=dict)

    @property
    def score(self) -> int:
        """The risk, 0 to 100."""
        points = sum(rule.present if name in self.found else rule.missing for name, rule in RULES.items())
        return max(0, min(100, BASE_SCORE + points))

    @property
    def recommendation(self) -> str:
        """The advice that follows from the score."""
        steps = ((REJECT_FROM, "reject"), (ESCALATE_FROM, "escalate"), (NEGOTIATE_FROM, "negotiate"))
        return next((advice for start, advice in steps if self.score >= start), "sign")

    @property
    def confidence(self) -> float:
        """How sure the checker is, 0 to 1."""
        return round(0.6 + 0.3 * len(self.found) / len(RULES), 2)

    def severity(self, clause: str) -> str | None:
        """How grave a clause, or its absence, is."""
        rule = RULES.get(clause)
        if rule is None:
            return None
        return rule.severity if clause in self.found else rule.severity_missing


def read(sentences: list[str], admitted: list[tuple[str, str]] | None = None) -> Reading:
    """Read `sentences`; `admitted` are (clause, sentence) pairs accepted from others."""
    reading = Reading()
    for sentence in sentences:
        for name, rule in RULES.items():
            if rule.finds.search(sentence):
                reading.found.setdefault(name, []).append(sentence)
        _read_facts(reading, sentence)
    for name, sentence in admitted or []:
        known = reading.found.setdefault(name, [])
        if sentence not in known:
            known.append(sentence)
    return reading


def _read_facts(reading: Reading, sentence: str) -> None:
    place = _PLACE.search(sentence)
    if place and RULES["Governing Law"].finds.search(sentence):
        name = " ".join(word for word in place[1].split() if word[0].isupper() and word.lower() != "without")
        if name:
            reading.facts.setdefault("agreement/governing_law", (name.title(), None, sentence))
    if _NOTICE.search(sentence):
        for count, unit in _LENGTH.findall(sentence):
            days = int(count) * _DAYS[unit.lower()]
            shortest = reading.facts.get("termination/notice_period")
            if shortest is None or days < shortest[0]:
                reading.facts["termination/notice_period"] = (days, "days", sentence)


def finding(title: str, sentences: list[str]) -> tuple[Json, float]:
    """Review a contract. Returns the payload of a `finding` and the confidence in it."""
    reading = read(sentences)
    points = [
        {"topic": name, "severity": severity, "detail": _detail(reading, name)}
        for name in RULES
        if (severity := reading.severity(name)) in REPORTED
    ]
    points.sort(key=lambda point: -SEVERITIES.index(point["severity"]))
    payload: Json = {
        "summary": f"{title}: {len(reading.found)} of {len(RULES)} compliance clauses found; "
        f"risk {reading.score}, advice: {reading.recommendation}.",
        "risk_score": reading.score,
        "severity": points[0]["severity"] if points else "info",
        "recommendation": reading.recommendation,
        "critical_findings": points,
        "affected_clauses": sorted(reading.found),
        "facts": [_fact(name, value, unit) for name, (value, unit, _) in reading.facts.items()],
        "evidence": _evidence(reading),
        "assumptions": ["A month counts as 30 days and a year as 12 months."],
    }
    return payload, reading.confidence


def _detail(reading: Reading, clause: str) -> str:
    sentences = reading.found.get(clause)
    return f"Present: “{sentences[0]}”" if sentences else "No sentence of this kind was found."


def _fact(name: str, value: Any, unit: str | None) -> Json:
    subject, attribute = name.split("/")
    fact = {"subject": subject, "attribute": attribute, "value": value}
    return fact | {"unit": unit} if unit else fact


def _evidence(reading: Reading) -> list[str]:
    firsts = [sentences[0] for sentences in reading.found.values()]
    facts = [sentence for _, _, sentence in reading.facts.values()]
    others = [sentence for sentences in reading.found.values() for sentence in sentences[1:]]
    return list(dict.fromkeys(firsts + facts + others))


def answer(question: Json) -> tuple[str, Json]:
    """Answer a `question` of a debate. Returns the message type and the payload."""
    conflict, own = question["conflict"], question["your_position"]
    others = question.get("other_positions") or []
    kind, subject = conflict["type"], conflict.get("subject") or conflict.get("topic") or ""
    task = question.get("task") or {}
    own_quotes = own.get("evidence") or []
    peer_quotes = [quote for peer in others for quote in peer.get("evidence") or []]
    contract = (task.get("input") or {}).get("sentences")
    known = contract or own_quotes
    scope = list(RULES) if kind in ("risk_score_disagreement", "recommendation_conflict") else [subject]

    held = _admit(read(known), scope, own_quotes, known)
    before = read(known, held)
    seen = contract or list(dict.fromkeys(own_quotes + peer_quotes))
    news = _admit(before, scope, peer_quotes, seen)
    after = read(seen, held + news)

    was, now = _value(before, kind, subject), _value(after, kind, subject)
    changed = now is not None and now != was and not _same(now, own.get("value"))
    value = now if changed or own.get("value") is None else own["value"]
    agreeing = [peer for peer in others if _same(value, peer.get("value"))]
    # Whoever has not moved agrees only if there is nobody left to disagree with.
    peer = agreeing[0] if agreeing and (changed or len(agreeing) == len(others)) else None
    kinds = {True: "agreement", False: "revision" if changed else "disagreement"}
    return kinds[peer is not None], {
        "revised_position": _words(value) if changed else own.get("position") or _words(value),
        "value": value,
        "confidence": _confidence(own, before, changed, bool(peer_quotes)),
        "agrees_with_peer": peer is not None,
        "agrees_with": peer["agent_id"] if peer else None,
        "reasoning": _reasoning(changed, peer is not None, news),
        "evidence": _fit(
            [sentence for _, sentence in news]
            + [sentence for name in scope for sentence in after.found.get(name, [])[:1]]
            + ([after.facts[subject][2]] if subject in after.facts else []),
            (question.get("limits") or {}).get("max_tokens"),
        ),
    }


def _admit(reading: Reading, scope: list[str], quotes: list[str], contract: list[str]) -> list[tuple[str, str]]:
    """The quotes that are in the contract, were missed, and pass the stated check."""
    admitted = []
    for quote in quotes:
        sentence = _find(quote, contract)
        for name in scope:
            rule = RULES.get(name)
            if rule and sentence and sentence not in reading.found.get(name, []) and rule.confirms.search(sentence):
                admitted.append((name, sentence))
    return admitted


def _find(quote: str, contract: list[str]) -> str | None:
    """The sentence a quote is from; a quote that was cut ends in an ellipsis."""
    if quote.endswith("…") and len(quote) > 1:
        return next((sentence for sentence in contract if sentence.startswith(quote[:-1])), None)
    return quote if quote in contract else None


def _value(reading: Reading, kind: str, subject: str) -> Any:
    if kind == "risk_score_disagreement":
        return reading.score
    if kind == "recommendation_conflict":
        return reading.recommendation
    if kind == "clause_presence_disagreement":
        return subject in reading.found if subject in RULES else None
    if kind == "severity_disagreement":
        return reading.severity(subject)
    if subject in reading.facts:
        value, unit, _ = reading.facts[subject]
        return {"value": value, "unit": unit} if unit else value
    return None


def _parts(value: Any) -> tuple[Any, str | None]:
    return (value.get("value"), value.get("unit")) if isinstance(value, dict) else (value, None)


def _same(left: Any, right: Any) -> bool:
    """Whether two positions say the same, whatever the unit."""
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


def _confidence(own: Json, reading: Reading, changed: bool, met_evidence: bool) -> float:
    held = own.get("confidence")
    loss = 0.1 if changed else 0.02 if met_evidence else 0.0
    return round(max(0.3, min(0.99, (reading.confidence if held is None else held) - loss)), 2)


def _reasoning(changed: bool, agrees: bool, news: list[tuple[str, str]]) -> str:
    if changed:
        clauses = ", ".join(dict.fromkeys(name for name, _ in news)) or "this"
        return f"I had missed the quoted wording on {clauses}; judged again with it by my own weights."
    if agrees:
        return "We say the same in different words."
    if news:
        return "The quoted wording is new to me but does not change my result."
    return "No quote shows me a sentence that I had missed and that meets my test; I keep my reading."


def _fit(sentences: list[str], max_tokens: int | None) -> list[str]:
    """As many quotes as the limit leaves room for, the last one cut at a word if need be."""
    room = 10**9 if max_tokens is None else max(0, max_tokens * LETTERS_PER_TOKEN - 480)
    quotes: list[str] = []
    for sentence in list(dict.fromkeys(sentences))[:MOST_QUOTES]:
        if len(sentence) > room:
            cut = sentence[: max(0, room - 1)].rpartition(" ")[0]
            return quotes + [cut + "…"] if len(cut) >= LETTERS_PER_TOKEN * 10 else quotes
        quotes.append(sentence)
        room -= len(sentence)
    return quotes
