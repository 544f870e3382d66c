# SPDX-License-Identifier: Apache-2.0
"""The same model for ranks on this CPU, and what 2 and 4 of them take: processor time of a step, which other programs on the machine
disturb little. A rank has one thread. Predicted from one rank's times with two batches, and the rate of copies in memory."""
import dataclasses
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import time

import report

LAYERS, HIDDEN, HEADS, VOCABULARY, LENGTH = 4, 256, 4, 30522, 128
BATCH, SMALL, STEPS, RANKS = 32, 8, (2, 8), (2, 4)
GROUPS = 4     # of parts, which one rank adds up by itself: PARTS_GROUPS of model/train/part_sums.h
MOVES = 2      # copies of a byte from one rank to another: into memory that they share, and out of it
ADD = 1.5      # x += y moves three bytes where a copy moves two
DRAIN = 2.0    # x += y, y = 0


class Unavailable(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class OneRank:
    """fixed: s of a step whatever the batch; sequence: s of a sequence more; copy: bytes/s of a copy; size: bytes of the gradients."""
    fixed: float
    sequence: float
    copy: float
    size: float


def fitted(small, large, copy, size):
    """From the times of a step with SMALL and with BATCH sequences."""
    sequence = (large - small) / (BATCH - SMALL)
    return OneRank(large - BATCH * sequence, sequence, copy, size)


def rank_seconds(one, ranks):
    """Returns the seconds that each of so many ranks takes for a step of BATCH sequences."""
    share = (ranks - 1) / ranks * one.size
    sums = (2 * share * MOVES + share * ADD) / one.copy
    drains = (GROUPS // ranks - GROUPS) * DRAIN * one.size / one.copy
    return one.fixed + BATCH * one.sequence / ranks + sums + drains


def predicted(one):
    """{ranks: tokens/s over those of one rank, each rank on a core of its own}."""
    return {n: rank_seconds(one, 1) / rank_seconds(one, n) for n in RANKS}


# ---- measured ----

def copy_rate(size=64 << 20, turns=8):
    """Bytes/s of memcpy, the best of some turns."""
    a, b = memoryview(bytearray(os.urandom(1 << 16) * (size >> 16))), memoryview(bytearray(size))
    best = float("inf")
    for _ in range(turns):
        begin = time.process_time()
        b[:] = a
        best = min(best, time.process_time() - begin)
    return size / best


def run(command, work):
    made = subprocess.run(list(map(str, command)), cwd=work, capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if made.returncode:
        raise Unavailable(f"{command[0]} ended with {made.returncode}: {made.stderr.strip().splitlines()[-1:]}")


def prepare(maskbert, work):
    """A model of random weights and a text of random words."""
    words = [f"w{k}" for k in range(VOCABULARY - 5)]
    draw = random.Random(1)
    work.joinpath("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    lines = [" ".join(draw.choices(words, k=20)) + ("\n" if k % 10 == 9 else "") for k in range(2000)]
    work.joinpath("text.txt").write_text("\n".join(lines) + "\n")
    run([maskbert, "init", "--size", f"{LAYERS}x{HIDDEN}x{HEADS}", "--vocab", "vocab.txt", "--positions", LENGTH, "-o", "model"], work)
    run([maskbert, "prep", "text.txt", "--vocab", "model", "--length", LENGTH, "-o", "data"], work)


def processor_seconds(maskbert, work, ranks, batch, steps):
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(["mpirun", "--oversubscribe", "--bind-to", "none", *root, "-n", ranks, maskbert, "pretrain", "model", "--data", "data", "-o", "run",
         "--lr", 1e-4, "--batch", batch, "--accumulate", GROUPS, "--threads", 1, "--save-every", 0, "--dropout", 0.1, "--steps", steps], work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(work / "run")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_seconds(maskbert, work, ranks, batch):
    """Returns the seconds of a step on each rank: the difference of a long run and a short one, which leaves the start out. A run
    before them compiles kernels and products."""
    processor_seconds(maskbert, work, ranks, batch, STEPS[0])
    short, long = (processor_seconds(maskbert, work, ranks, batch, n) for n in STEPS)
    return (long - short) / (STEPS[1] - STEPS[0]) / ranks


def check(maskbert):
    maskbert = pathlib.Path(maskbert).resolve()
    if not maskbert.exists() or not (maskbert.parent / "maskbert-mpi.so").exists() or not shutil.which("mpirun"):
        raise Unavailable(f"{maskbert}: expected maskbert with maskbert-mpi.so beside it, and mpirun")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prepare(maskbert, work)
        small, large = (step_seconds(maskbert, work, 1, n) for n in (SMALL, BATCH))
        one = fitted(small, large, copy_rate(), 4 * report.bert.Bert("mini", LAYERS, HIDDEN, HEADS, positions=LENGTH).parameters())
        each = {n: step_seconds(maskbert, work, n, BATCH) for n in RANKS}
    rows = [{"ranks": n, "measured_s": each[n], "predicted_s": rank_seconds(one, n), "measured": large / each[n], "predicted": predicted(one)[n]} for n in RANKS]
    return {"measured": True, "one_rank_s": large, "one_rank": dataclasses.asdict(one), "ranks": rows}


def text(made):
    one = made["one_rank"]
    rows = [[r["ranks"], f"{1e3 * r['measured_s']:.0f}", f"{1e3 * r['predicted_s']:.0f}", f"{r['measured']:.2f} x", f"{r['predicted']:.2f} x",
             f"{100 * (r['predicted'] / r['measured'] - 1):+.1f} %"] for r in made["ranks"]]
    return (f"one rank: {1e3 * made['one_rank_s']:.0f} ms of processor time a step of {BATCH} x {LENGTH}: {1e3 * one['fixed']:.0f} ms fixed, "
            f"{1e3 * one['sequence']:.1f} ms a sequence; copies {one['copy'] / 1e9:.1f} GB/s\n" +
            report.table(("ranks", "measured ms", "model ms", "measured", "model", ""), rows))
