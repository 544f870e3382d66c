# SPDX-License-Identifier: Apache-2.0
"""Stage python: tests/python/*_test.py against the package of the build folder, on CUDA tensors where there is a GPU."""
import pathlib
import re
import sys

from gpu_check import expected
from gpu_check.work import Item, Stage, dead

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/python"
SKIPPED = 77  # exit code of a test that needs what this python lacks
THREADS = "2"  # of torch in each test, as meson sets it
NEEDS = """import sys
try:
    import torch
    import maskc.torch_op
except Exception as e:
    sys.exit(f"the operator cannot be loaded: {str(e).splitlines()[0]}")
if "cuda" in sys.argv and not torch.cuda.is_available():
    sys.exit("torch sees no CUDA GPU here")
"""


def environment_of(package):
    return {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": THREADS}


def counted(text):
    """{"passed", "failed", "skipped"} of cmocka's lines."""
    sums = {word: sum(map(int, re.findall(rf"^\[ *{word.upper()} *\] (\d+) test", text, re.M)))
            for word in ("passed", "failed", "skipped")}
    return sums


def failed_cases(text):
    return sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+)", text, re.M)))


def run_test(attempt, path):
    """A test program is wrong if it fails, or prints no count."""
    device = ["--device", "cuda"] if attempt.o.device == "cuda" else []
    words = ["sh", "-c", 'exec "$@" 2>&1', "sh", sys.executable, path, *device]
    code, out, said = attempt.command(*words, environment=environment_of(attempt.package))
    sums = counted(out)
    if code == SKIPPED:
        return {"ok": True, **sums, "skipped": max(1, sums["skipped"]), "said": "skipped: " + last_line(out)}
    if code and not sums["failed"]:
        return dead(said or last_line(out) or f"exit status {code}") | sums | {"report": out[-8000:]}
    if not code and not sums["passed"] + sums["skipped"]:
        return dead("it prints no count of its tests") | sums
    return {"ok": code == 0, **sums, "said": ", ".join(failed_cases(out))} | ({"report": out[-8000:]} if code else {})


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def missing(call):
    """Why the operator cannot be loaded."""
    attempt = call.attempt(0)
    code, _, said = attempt.command(sys.executable, "-c", NEEDS, call.o.device, environment=environment_of(call.package))
    return (said or f"needs Python's torch: exit status {code}") if code else ""


def stage(o):
    items = [Item(p.name.removesuffix("_test.py"), expected.of(f"python {p.name.removesuffix('_test.py')}", o.device),
                  lambda attempt, p=p: run_test(attempt, p)) for p in sorted(FOLDER.glob("*_test.py"))]
    items.sort(key=lambda item: -item.seconds)  # the longest first, so that none of them runs alone at the end
    return Stage("python", items, o.jobs, missing=missing)


def lines(results):
    """The stage in Markdown."""
    made = ["## python", "", "| test | passed | failed | skipped | seconds | |", "|" + " --- |" * 6]
    for name, r in results.items():
        made.append(f"| {name} | {r.get('passed', 0)} | {r.get('failed', 0)} | {r.get('skipped', 0)} | "
                    f"{r.get('seconds', 0):.0f} | {r.get('said', '')[:60]} |")
    return made + [""]
