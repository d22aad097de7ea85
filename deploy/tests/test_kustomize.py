"""The overlay: it is what the chart makes, in a namespace, without what is Helm's alone, and still makes sense."""

import pathlib
import shutil
import subprocess
import unittest

import yaml
from meaning import faults

DEPLOY = pathlib.Path(__file__).resolve().parent.parent


class Kustomize(unittest.TestCase):
    def test_the_overlay_is_the_render_in_a_namespace(self):
        command = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
        done = subprocess.run([*command, DEPLOY / "kustomize"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = [document for document in yaml.safe_load_all(done.stdout) if document]
        rendered = [document for document in yaml.safe_load_all((DEPLOY / "rendered" / "production.yaml").read_text()) if document]

        def names(documents):
            return {(document["kind"], document["metadata"]["name"]) for document in documents}

        self.assertEqual(names(made) - names(rendered), {("Namespace", "concord")})
        self.assertEqual(names(rendered) - names(made), {("Pod", "concord-test-doctor")})
        for document in made:
            if document["kind"] != "Namespace":
                self.assertEqual(document["metadata"]["namespace"], "concord")
        self.assertEqual(faults(made), [])


if __name__ == "__main__":
    unittest.main()
