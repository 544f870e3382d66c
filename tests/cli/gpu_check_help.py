# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of tools/gpu-check: the modules, the program, a call with its results, scripts as mock
programs. It sets the path, so tests import it first. The first argument of a test is the maskc under test."""
import os
import pathlib
import subprocess
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/compare"), str(ROOT / "tests/support")]
from gpu_check import programs, results  # noqa: E402

MASKC = os.path.abspath(sys.argv[1])
BUILD = pathlib.Path(MASKC).parents[2]

# A maskc whose kernels hold; masks named here behave otherwise. $LOG lists what it verified.
MOCK_MASKC = """#!/bin/sh
command=$1 mask=$2
case $command in
compile) eval "last=\\${$#}"; echo "$mask" > "$last";;
verify)
    mask=$(cat "$2"); sleep ${SECONDS_OF_VERIFY:-0}; echo "$mask" >> ${LOG:-/dev/null}
    case $mask in
    crash) kill -9 $$;;
    wrong) error=3 code=1; echo 'maskc: 1 of 1 checks failed' >&2;;
    *) error=1 code=0;;
    esac
    echo "{\\"checks\\": [{\\"name\\": \\"forward\\", \\"error\\": $error, \\"tolerance\\": 2, \\"ok\\": true}]}"; exit $code;;
calibrate) echo '{"probes": [], "path": "there"}';;
esac
"""


def script(path, text):
    """Writes an executable."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def mock_build(folder):
    """A build folder with the mock maskc, and a mock ninja in folder/bin."""
    folder = pathlib.Path(folder)
    script(folder / "bin/ninja", "exit 0")
    script(folder / "build/tools/maskc/maskc", MOCK_MASKC)
    (folder / "build/build.ninja").touch()
    return folder / "build"


def command_of(folder, *arguments):
    return [sys.executable, str(ROOT / "tools/gpu-check"), "--build", f"{folder}/build", "--out", f"{folder}/out", *arguments]


def environment_of(folder, **more):
    return os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"} | more


def gpu_check(*arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "tools/gpu-check"), *arguments], text=True,
                          capture_output=True, check=False, env=os.environ | environment)


def options(**more):
    fields = {"device": "emulated", "masks": None, "length": None, "jobs": 2, "build": BUILD, "stages": None, "harness": None}
    return types.SimpleNamespace(**fields | more)


def call_of(folder, seconds=100, **more):
    """A call with results in `folder`."""
    kept = results.Results(pathlib.Path(folder), "emulated", "abc")
    return programs.Call(options(**more), dict(os.environ), kept, time.monotonic() + seconds)
