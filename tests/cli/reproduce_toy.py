# SPDX-License-Identifier: Apache-2.0
"""A corpus, results and rows that are made up, for the tests of tools/reproduce."""
import array
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from programs import Fatal

ROOT = pathlib.Path(__file__).resolve().parents[2]

SUBJECTS = "the cat|a dog|my friend|the old man|this woman|a small bird|the teacher|our king".split("|")
VERBS = "sees likes eats finds takes brings hears wants".split()
OBJECTS = "a red apple|the green tree|some water|the big house|an open door|the blue sky".split("|")


class Scratch(unittest.TestCase):
    """Cases with a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


def in_process(arguments):
    """tools/reproduce with these arguments, the first of which is its name: exit code, stdout and stderr, without another process."""
    loader = importlib.machinery.SourceFileLoader("reproduce", str(ROOT / "tools/reproduce"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproduce", loader))
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = arguments
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            loader.exec_module(module)
            code = module.main()
    except Fatal as e:
        code = e.code
        err.write(f"reproduce: {e}\n")
    except SystemExit as e:
        code = e.code
    finally:
        sys.argv = before
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def write_text(path):
    draw = random.Random(1)
    lines = []
    for _ in range(300):
        lines += [f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(OBJECTS)} ." for _ in range(draw.randint(3, 9))] + [""]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def row_result(mlm, sparsity=50.0, seed=0, **more):
    """Fakes the result of Dam.row()."""
    times = {"median_s": 1e-3, "dense_s": 2e-3, "speedup": 2.0}
    return {"label": "x", "group": "dense", "seed": seed, "steps": 4, "tokens": 1000, "step_s": 0.01, "train_mlm": mlm, "mlm": mlm,
            "perplexity": 1.0, "accuracy": 0.25, "active": 100, "sparsity": sparsity, "empty_rows": 0, "lowering": "tiles",
            "attention": {"forward": dict(times), "backward": dict(times)}, "memory": 2**20, **more}


def learned_result(diagonal, near, rest=0.5, seed=0, plateau=False):
    """Fakes Dam.learn(): P, and whether training is on the plateau."""
    P = {kind: {"mean": mean, "deviation": 0.0, "entries": count} for kind, mean, count in
         (("diagonal", diagonal, 126), ("distance 1", near, 250), ("distance 2", near, 248), ("special", 0.6, 508), ("rest", rest, 15252))}
    return {"P": P, "seed": seed, "steps": 4, "tokens": 1000, "mlm": 2.0, "own_mlm": 2.0, "plateau": plateau}


def write_alpha(path, shape, values):
    """alpha.safetensors as a run has it."""
    assert math.prod(shape) == len(values)
    data = array.array("f", values).tobytes()
    header = json.dumps({"alpha": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
