"""What scripts/release makes: whole, checked by its own sums, the same again, and with a list of parts that its standard accepts."""

import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

from processes import BINARIES

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("concord", "concord-coordinator", "concord-conflict-detector", "concord-debate-facilitator", "concord-escalation-timer",
            "concord-agent-adapter")


def release(*arguments, **environment):
    return subprocess.run([ROOT / "scripts" / "release", *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, "CONTAINER_TOOL": "no-container-tool", **environment}, timeout=600)


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        stripped = cls.folder / "bin"
        stripped.mkdir()
        for program in PROGRAMS:
            subprocess.run(["strip", "-o", stripped / program, BINARIES / program], check=True)
        cls.binaries = str(stripped)
        cls.out = cls.folder / "one"
        done = release("--out", cls.out, "--allow-changes", CONCORD_BINARIES=cls.binaries)
        assert done.returncode == 0, done.stderr
        cls.said = done.stderr

    def one(self, pattern):
        found = list(self.out.glob(pattern))
        self.assertEqual(len(found), 1, f"{pattern}: {sorted(path.name for path in self.out.iterdir())}")
        return found[0]

    def test_its_sums_hold_and_cover_everything(self):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=self.out, check=True)
        named = {line.split()[1] for line in (self.out / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual(named, {path.name for path in self.out.iterdir()} - {"SHA256SUMS"})
        self.assertIn("LEFT OUT: the image", self.said)

    def test_the_same_tree_gives_the_same_archives(self):
        again = self.folder / "two"
        done = release("--out", again, "--allow-changes", CONCORD_BINARIES=self.binaries)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((again / "SHA256SUMS").read_text(), (self.out / "SHA256SUMS").read_text())

    def test_the_programs_run_from_the_archive(self):
        with tarfile.open(self.one("concord-*-*.tar.gz")) as archive:
            archive.extractall(self.folder / "unpacked", filter="data")
        top = next((self.folder / "unpacked").iterdir())
        said = subprocess.run([top / "bin" / "concord", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(top.name.split("-")[1], said)
        for program in PROGRAMS[1:]:
            done = subprocess.run([top / "bin" / program, "--check-config"], capture_output=True, text=True, check=True)
            self.assertIn("the settings are good", done.stdout)
        self.assertTrue((top / "LICENSE").exists() and (top / "README.md").exists())

    def test_the_chart_is_packed_as_helm_expects_it(self):
        with tarfile.open(self.one("concord-chart-*.tgz")) as chart:
            names = chart.getnames()
        self.assertIn("concord/Chart.yaml", names)
        self.assertIn("concord/values.schema.json", names)
        self.assertTrue(all(name.split("/")[0] == "concord" for name in names))

    def test_the_list_of_parts_names_what_ships_and_nothing_of_tests(self):
        text = self.one("*.cdx.json").read_text()
        names = {part["name"] for part in json.loads(text)["components"]}
        self.assertLessEqual({"async-nats", "tokio", "concord-domain"}, names)
        self.assertFalse(names & {"jsonschema", "proptest", "concord-simulation", "concord-testkit", "concord-lab"})
        try:
            from cyclonedx.schema import SchemaVersion
            from cyclonedx.validation.json import JsonStrictValidator
        except ImportError:
            self.skipTest("cyclonedx-python-lib is not here")
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))

    def test_what_exists_is_not_overwritten_and_a_wrong_option_is_named(self):
        for arguments, words in (((("--out", self.out)), "exists. Remove it"), (("--fast",), "there is no option --fast")):
            done = release(*arguments, CONCORD_BINARIES=self.binaries)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
