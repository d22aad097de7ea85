"""What the compliance checker takes for a message."""

from __future__ import annotations

import json
import unittest

import compliance_checker as checker

SUBJECT = "concord.v1.msg.c-1.coordinator.compliance_checker.task_assignment"
GOOD = {
    "message_id": "m-1",
    "from_agent": "coordinator",
    "to_agent": "compliance_checker",
    "message_type": "task_assignment",
    "case_id": "c-1",
    "payload": {},
}


class Reading(unittest.TestCase):
    """The subject says who speaks."""

    def test_what_says_the_same_as_its_subject_is_read(self) -> None:
        self.assertEqual(checker.read(SUBJECT, json.dumps(GOOD).encode()), GOOD)
        without = {name: value for name, value in GOOD.items() if name != "case_id"}
        self.assertEqual(checker.read(SUBJECT, json.dumps(without).encode()), without)

    def test_what_says_otherwise_is_refused(self) -> None:
        for token, other in (
            ("coordinator", "mallory"),
            ("compliance_checker", "_all"),
            ("task_assignment", "question"),
            ("c-1", "c-2"),
            ("c-1", "_"),
        ):
            with self.assertRaises(ValueError):
                checker.read(SUBJECT.replace(f".{token}", f".{other}"), json.dumps(GOOD).encode())


if __name__ == "__main__":
    unittest.main()
