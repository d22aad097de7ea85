"""Tests of the rules of the compliance checker. Run: python -m unittest test_compliance_rules"""

from __future__ import annotations

import unittest

import compliance_rules as rules

LAW = "This Agreement shall be governed by the laws of the State of New York without regard to conflicts."
AUDIT = "Licensor may audit the books of Licensee."
QUIET_AUDIT = "Licensor may examine the accounts of Licensee on its premises."
NOTICE = "Either party may terminate this Agreement upon ninety (90) days or two (2) months written notice."


def question(
    kind: str, subject: str | None, value: object, quotes: list[str], sentences: list[str] | None
) -> rules.Json:
    """A question with one colleague, who quotes `quotes`."""
    return {
        "conflict": {"type": kind, "subject": subject},
        "your_position": {"agent_id": rules.AGENT_ID, "position": "mine", "value": value, "confidence": 0.8},
        "other_positions": [
            {"agent_id": "x", "position": "theirs", "value": True, "confidence": 1, "evidence": quotes}
        ],
        "task": {"input": {"sentences": sentences}} if sentences else None,
        "limits": {"max_tokens": 500},
    }


class FindingTest(unittest.TestCase):
    """The content of a finding."""

    def test_clauses_facts_and_evidence(self) -> None:
        finding, confidence = rules.finding("T", [AUDIT, LAW, NOTICE])
        self.assertEqual(finding["affected_clauses"], ["Audit Rights", "Governing Law"])
        facts = {fact["attribute"]: fact["value"] for fact in finding["facts"]}
        self.assertEqual(facts, {"governing_law": "New York", "notice_period": 60})
        self.assertEqual(finding["evidence"], [AUDIT, LAW, NOTICE])
        self.assertTrue(0 < confidence < 1)

    def test_what_is_missing_raises_the_risk(self) -> None:
        with_both, _ = rules.finding("T", [AUDIT, LAW])
        without, _ = rules.finding("T", ["Nothing of interest."])
        self.assertLess(with_both["risk_score"], without["risk_score"])
        topics = [point["topic"] for point in without["critical_findings"]]
        self.assertEqual(topics, ["Governing Law", "Audit Rights"])

    def test_non_exclusive_is_not_exclusive(self) -> None:
        for text in ("a non-exclusive licence", "the courts have exclusive jurisdiction"):
            self.assertNotIn("Exclusivity", rules.review([text]).found)
        self.assertIn("Exclusivity", rules.review(["an exclusive licence"]).found)


class DebateTest(unittest.TestCase):
    """What changes a position, and what does not."""

    def test_a_missed_sentence_that_passes_the_check_does(self) -> None:
        for sentences in ([LAW, QUIET_AUDIT], None):
            kind, reply = rules.answer(
                question("clause_presence_disagreement", "Audit Rights", False, [QUIET_AUDIT], sentences)
            )
            self.assertEqual((kind, reply["value"], reply["agrees_with"]), ("agreement", True, "x"))
            self.assertEqual(reply["evidence"], [QUIET_AUDIT])

    def test_confidence_weak_quotes_and_invented_ones_do_not(self) -> None:
        for quotes in ([], [LAW], [QUIET_AUDIT]):
            kind, reply = rules.answer(question("clause_presence_disagreement", "Audit Rights", False, quotes, [LAW]))
            self.assertEqual((kind, reply["value"]), ("disagreement", False))
            self.assertEqual(reply["revised_position"], "mine")

    def test_a_score_is_computed_again(self) -> None:
        before = rules.review([LAW, QUIET_AUDIT]).score
        kind, reply = rules.answer(question("risk_score_disagreement", None, before, [QUIET_AUDIT], [LAW, QUIET_AUDIT]))
        audit = rules.RULES["Audit Rights"]
        self.assertEqual((kind, reply["value"]), ("revision", before + audit.present - audit.missing))

    def test_the_same_time_in_other_units_is_agreement(self) -> None:
        asked = question(
            "factual_disagreement", "termination/notice_period", {"value": 60, "unit": "days"}, [], [NOTICE]
        )
        asked["other_positions"][0]["value"] = {"value": 2, "unit": "months"}
        self.assertEqual(rules.answer(asked)[0], "agreement")

    def test_quotes_are_cut_to_the_limit_and_found_again(self) -> None:
        long = "Licensor may examine the accounts " + "of Licensee and of its affiliates " * 200
        asked = question("clause_presence_disagreement", "Audit Rights", False, [long], [long])
        quote = rules.answer(asked)[1]["evidence"][0]
        self.assertLess(len(quote), 2000)
        asked["other_positions"][0]["evidence"] = [quote]
        self.assertEqual(rules.answer(asked)[0], "agreement")


if __name__ == "__main__":
    unittest.main()
