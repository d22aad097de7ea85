"""The example does what its README says. Needs the programs (CONCORD_BINARIES or target/debug) and nats-server."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

INVESTMENT = pathlib.Path(__file__).with_name("investment.py")


class Investment(unittest.TestCase):
    def test_an_override_reaches_what_rests_on_it_and_the_decision(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            package = pathlib.Path(directory, "acme.html")
            run = subprocess.run(
                [sys.executable, INVESTMENT, "--json", "--package", package], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            page = package.read_text()
        self.assertIn("ACME Corp", page)
        self.assertIn("The regime changed from BULL_LOW_RATES to BEAR_HIGH_RATES", page)
        self.assertIn("<td>95.2</td>", page)
        self.assertNotIn("has not passed the gate", page)
        self.assertNotIn("not done again yet", page)
        shown = json.loads(run.stdout)
        self.assertEqual(shown["provisional"], {"value": 25, "unit": "percent"})
        alert = shown["alert"]
        self.assertEqual(set(shown["reactions"]), {
            "screening_agent", "business_analyst", "financial_analyst", "strategy_analyst", "macro_analyst", "valuation_agent",
            "risk_analyst", "lead_coordinator"})
        self.assertEqual(shown["reactions"]["valuation_agent"]["discount_rate"], 0.105)
        self.assertEqual([one["name"] for one in shown["flag"]["affected"]], ["discount rate"])
        self.assertEqual(shown["at_gate"], [alert["id"]])
        self.assertTrue(alert["is_present"])
        self.assertEqual(alert["alert"]["source"]["rule"], "regime")
        impacts = {one["analysis_id"]: one for one in shown["report"]["impacts"]}
        self.assertEqual(set(impacts), {"dcf", "scenarios", "risk", "peers", "memo"})
        self.assertAlmostEqual(impacts["dcf"]["estimated_new_value"], 110.5)
        self.assertFalse(impacts["risk"]["requires_rerun"])
        figures = shown["decision"]["figures"]
        self.assertEqual(figures["dcf"]["figures"]["target_price"], 95.2)
        # The rating is the same, so what rests on it alone was not done again.
        self.assertEqual(figures["scenarios"]["figures"]["rating"], "hold")
        self.assertNotIn("memo", figures)
        self.assertGreater(shown["decision"]["version"], 1)

    def test_a_wrong_flag_is_refused(self) -> None:
        run = subprocess.run([sys.executable, INVESTMENT, "--fast"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--fast", run.stderr)


if __name__ == "__main__":
    unittest.main()
