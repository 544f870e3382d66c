# SPDX-License-Identifier: Apache-2.0
"""What the tests of tools/gpu-check share: where its parts are, the program, and a run of its stages. Imported first: it
sets the path. The first argument of the test is the maskc under test."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/compare"), str(ROOT / "tests/support")]
import gpu_check_results as results  # noqa: E402
import gpu_check_stages as stages  # noqa: E402

MASKC = os.path.abspath(sys.argv[1])


def gpu_check(*arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "tools/gpu-check"), *arguments], text=True,
                          capture_output=True, check=False, env=os.environ | environment)


def run_of(folder, deadline=float("inf")):
    """A run of the stage `verify` on the emulated device, its results kept in `folder`."""
    kept = results.Results(pathlib.Path(folder), "emulated", "abc", False)
    options = type("Options", (), {"device": "emulated", "masks": ["star"], "length": [24],
                                   "build": pathlib.Path(MASKC).parents[2]})
    return stages.Run(options, dict(os.environ), kept, "verify", deadline)
