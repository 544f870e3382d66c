# SPDX-License-Identifier: Apache-2.0
"""Stages in the order of their value: what is found first is worth most when the budget ends early."""
from gpu_check import calibrate, harness, maskbert, peers, python_tests, sanitize, timing, verify
from gpu_check.training import train

STAGES = {"verify": verify.stage, "harness": harness.stage, "time": timing.stage, "python": python_tests.stage, "maskbert": maskbert.stage, "train": train.stage,
          "calibrate": calibrate.stage, "sanitize": sanitize.stage, "maskbert-f32": maskbert.stage_f32, "peers": peers.stage}
EMULATED = ("verify", "maskbert", "train")  # by default on the emulated device
NEED_GPU = ("harness", "time", "calibrate", "sanitize", "maskbert-f32", "peers")


def names(o):
    """Stages of a call."""
    return [name for name in STAGES if name in chosen(o) and (name != "harness" or o.harness)]


def chosen(o):
    """Stages that the options ask for."""
    return o.stages or (EMULATED if o.device == "emulated" else tuple(STAGES))


def skipped(o):
    """One line for each stage that lacks its option."""
    return ["harness skipped: no --harness DIR"] if "harness" in chosen(o) and not o.harness else []


def of(o):
    return [STAGES[name](o) for name in names(o)]
