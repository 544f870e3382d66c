#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does runtime/python/examples/faster_model.py run, and does it draw what it says?"""
import pathlib
import re
import subprocess
import sys
import tempfile

from common import Case, cmocka_count, has, needs_transformers

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "runtime/python/examples/faster_model.py"


@needs_transformers
class ExampleTest(Case):
    def test_runs_and_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, EXAMPLE, "--quick", folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("a training step: loss", done.stdout)
            # Two implementations round differently; 0 would be one model compared with itself.
            self.assertGreater(float(re.search(r"own mask differ by (\S+)", done.stdout)[1]), 0)
            for name in ["mask.png"] + ["times.png"] * has("matplotlib"):
                self.assertEqual((pathlib.Path(folder) / name).read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    cmocka_count.run_cases()
