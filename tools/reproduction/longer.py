# SPDX-License-Identifier: Apache-2.0
"""The learned dam-s mask where sequences are longer: attention by itself, and whole training steps, each interleaved with dense's.
Distances and border serve every length."""
import shutil
import statistics

import arrays

MASK = "dam-s-1e-3"
GALLERY = "dam-s-example"
ROUNDS = 2  # dense, masked, dense, masked
TEXT_BYTES = 4_000_000


def stage(name, lengths):
    """Name of a stage: other lengths are another one."""
    return "-".join([name, *map(str, lengths)])


def mask_file(d):
    return next((d.folder / "runs" / MASK).glob("mask.*"))


def is_in_gallery(d):
    """Is the gallery's learned mask, at our length, this one, entry by entry?"""
    folder = d.folder / "masks"
    for name, mask in (("gallery", GALLERY), ("own", mask_file(d))):
        d.programs.run("maskc", "make", mask, "-n", d.s.length, "--heads", d.s.heads, "-o", folder / f"{name}.npy")
    return arrays.read_npy(folder / "gallery.npy") == arrays.read_npy(folder / "own.npy")


def attention(d):
    options = ["--head-dim", d.s.head_dim, "--dtype", d.s.dtype, "--seconds", d.bench_seconds(0.5), *d.trainer.threads()]
    timed = d.programs.json("maskc", "bench", mask_file(d), "-n", ",".join(map(str, d.s.lengths)), *options)["results"]
    return {"mask": MASK, "times": [{n: r[n] for n in ("length", "pass", "median_s", "dense_s", "speedup")} for r in timed]}


def steps_of_a_run(minutes):
    return 8 if minutes >= 5 else 3


def training(d):
    """Medians over the steps of all rounds, and of each round's own ratio."""
    return {"mask": MASK, "lengths": [measure(d, n) for n in d.s.lengths]}


def measure(d, n):
    """As many tokens a step as the dense run has at its own length."""
    folder = d.folder / "longer"
    batch = max(1, d.s.batch * d.s.length // n)
    prepare(d, folder, n)
    times = {"dense": [], "masked": []}
    for _ in range(ROUNDS):
        for name, mask in (("dense", "dense"), ("masked", mask_file(d))):
            times[name].append(run(d, folder, (n, batch), mask))
    shutil.rmtree(folder)
    ratios = [statistics.median(m) / statistics.median(a) for a, m in zip(times["dense"], times["masked"])]
    every = {name: statistics.median(t for r in rounds for t in r) for name, rounds in times.items()}
    return {"length": n, "batch": batch, "dense_s": every["dense"], "masked_s": every["masked"], "ratio": every["masked"] / every["dense"], "ratios": ratios}


def prepare(d, folder, n):
    """Data and a new model of that length, of the first part of the text."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(d.text, "rb") as text:
        (folder / "text.txt").write_bytes(text.read(TEXT_BYTES).rpartition(b"\n")[0] + b"\n")
    vocabulary = d.folder / "vocab.txt"
    d.programs.run("maskbert", "prep", folder / "text.txt", "--vocab", vocabulary, "--length", n, "--pairing", "full", "-o", folder / "data")
    d.programs.run("maskbert", "init", "--size", d.s.size, "--vocab", vocabulary, "--positions", n, "--seed", d.s.seed, "-o", folder / "new")


def run(d, folder, shape, mask):
    """Seconds of the steps but the first, which warms up."""
    n, batch = shape
    where = folder / "run"
    shutil.rmtree(where, ignore_errors=True)
    d.programs.run("maskbert", "pretrain", folder / "new", "--data", folder / "data", "-o", where, "--steps", steps_of_a_run(d.s.minutes), "--batch", batch,
                   "--dtype", d.s.dtype, "--dropout", 0, "--objective", "mlm", "--lr", "1e-3", "--seed", d.s.seed, *d.trainer.threads(), "--mask", mask)
    at = [x["elapsed_s"] for x in d.trainer.read_log(where)]
    return [b - a for a, b in zip(at, at[1:])]


def say(longer):
    """A line for each length."""
    return [f"training step, n = {x['length']}, batch {x['batch']}: {1e3 * x['masked_s']:.1f} ms under the mask of {longer['mask']}, {1e3 * x['dense_s']:.1f} ms dense: "
            f"{x['ratio']:.2f} of it (round by round {', '.join(f'{r:.2f}' for r in x['ratios'])})" for x in longer["lengths"]]
