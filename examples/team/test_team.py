"""The example does what its README says. Needs the programs (CONCORD_BINARIES or target/debug) and nats-server."""

import json
import pathlib
import subprocess
import sys
import unittest

TEAM = pathlib.Path(__file__).with_name("team.py")


class Team(unittest.TestCase):
    def test_as_a_team_all_three_targets_are_met_and_through_the_lead_none(self) -> None:
        run = subprocess.run([sys.executable, TEAM, "--json"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads(run.stdout)
        self.assertTrue(result["met"], run.stdout)
        before, after = result["through_lead"], result["as_a_team"]
        self.assertEqual(before["lead_share"]["value"], 1.0)
        self.assertEqual(before["collaboration_events"], 0)
        self.assertLess(after["lead_share"]["value"], 0.5)
        self.assertGreater(after["events_per_session"]["value"], 5)

    def test_a_wrong_flag_is_refused(self) -> None:
        run = subprocess.run([sys.executable, TEAM, "--fast"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--fast", run.stderr)


if __name__ == "__main__":
    unittest.main()
