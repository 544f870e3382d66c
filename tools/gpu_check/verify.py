# SPDX-License-Identifier: Apache-2.0
"""Stage verify: each kernel is compiled and compared with the float64 reference, forward and backward."""
import json
import os
import pathlib
import tempfile

from gpu_check import cases, expected
from gpu_check.work import Item, Stage, dead


def target_of(device, kernel):
    """All targets of a GPU, but for a family that one target has."""
    if device == "cuda":
        return "sm_90a" if set(cases.HOPPER) <= set(kernel.options) else "cuda"
    return "sm_80"


def threads_of(jobs):
    """CPU threads of one of so many verifications at a time."""
    return max(1, len(os.sched_getaffinity(0)) // jobs)


def compile_kernel(attempt, kernel, path):
    """The reason of a failure, or an empty text."""
    code, _, said = attempt.command(attempt.maskc, "compile", *kernel.compile_options(), "--target",
                                    target_of(attempt.o.device, kernel), "-o", path)
    return f"compile: {said or f'exit status {code}'}" if code else ""


def read_checks(code, out, said):
    """The result of what `maskc verify --json` printed."""
    try:
        checks = json.loads(out[out.index("{"):out.rindex("}") + 1])["checks"]
    except (ValueError, KeyError):
        return dead(said or f"verify: exit status {code}")
    worst = max(checks, key=lambda c: (c["error"] or 0) / (c["tolerance"] or 1), default=None)
    return {"ok": code == 0, "checks": len(checks), "worst": worst, "said": said}


def verify_kernel(attempt, kernel, under=()):
    """under: a program and its options that runs `maskc verify`, as compute-sanitizer does."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "kernel.mkb"
        failed = compile_kernel(attempt, kernel, path)
        if failed:
            return dead(failed)
        return read_checks(*attempt.command(*under, attempt.maskc, "verify", path, "--device", attempt.o.device,
                                            "--threads", threads_of(attempt.o.jobs), "--json"))


def stage(o):
    seconds = expected.of("verify", o.device)
    items = [Item(k.name, seconds, lambda attempt, k=k: verify_kernel(attempt, k)) for k in cases.verified(o)]
    return Stage("verify", items, o.jobs)
