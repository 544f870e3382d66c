# SPDX-License-Identifier: Apache-2.0
"""Stages maskbert and maskbert-f32: whole models with random weights. Hidden states are compared with another device's,
`maskbert bench` measures the model, and a rank trains by NCCL.
"""
import array
import json
import math
import pathlib
import tempfile

from gpu_check import expected
from gpu_check.timing_table import percent, table
from gpu_check.work import Item, Stage, dead

WORDS = [f"w{k}" for k in range(100)]
# name, --size, positions, dtype, mask, transform, standard deviation of the weights
VERIFIED = [
    ("one layer", "1x64x4", 64, "f32", "dense", "softmax", 0.2),
    ("heads of 8", "2x32x4", 64, "f32", "window(3)", "softmax", 0.2),
    ("heads of 26", "1x130x5", 64, "f32", "longformer(5,2)", "softmax", 0.2),
    ("a mask for each head", "2x384x12", 128, "f32", "dam-s-example", "softmax", 0.05),
    ("sparsegen", "2x64x4", 64, "f32", "strided(8)", "sparsegen=-4", 0.2),
    ("MiniLM", "6x384x12", 512, "f32", "dense", "softmax", 0.05),
    ("one layer", "1x64x4", 64, "bf16", "dense", "softmax", 0.2),
    ("MiniLM", "6x384x12", 512, "bf16", "dense", "softmax", 0.05),
    ("BERT-base", "base", 512, "bf16", "longformer(64,2)", "softmax", 0.05),
]
EMULATED = 3  # the first models, which have few layers, run on the emulated device
# --size, mask, batch, length, --lengths
TIMED = [(size, mask, *case) for size in ("base", "6x384x12")
         for mask, case in (("dense", (1, 128, "same")), ("dense", (32, 128, "mixed")), ("dense", (8, 512, "same")),
                            ("longformer(64,2)", (4, 2048, "same")), ("longformer(64,2)", (1, 4096, "same")))]
POSITIONS = 4096
# Relative to the largest value, and to the root mean square. Each device is within half of it of float64.
TOLERANCE = {"f32": (2e-5, 2e-5), "bf16": (0.05, 0.025)}
# Training of one rank by NCCL.
RANK_TEXT = "".join(f"the {w} sees a {v} .\n" + ("\n" if k % 3 == 2 else "")
                    for k, (w, v) in enumerate((w, v) for w in ("cat", "dog", "bird", "king") for v in ("tree", "house", "lake", "road", "hill")))
RANK_STEPS = ("--steps", 2, "--batch", 4, "--accumulate", 1)
RANK_VARIABLES = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}  # as torchrun starts it
UNAVAILABLE = 3


class Failed(Exception):
    pass


def must(attempt, *words):
    code, out, said = attempt.command(attempt.maskbert, *words)
    if code:
        raise Failed(said or f"maskbert {words[0]}: exit status {code}")
    return out


def read_npy(path):
    """f32 values of a .npy file that maskbert wrote."""
    data = pathlib.Path(path).read_bytes()
    header = int.from_bytes(data[8:10], "little")
    values = array.array("f")
    values.frombytes(data[10 + header:])
    return values


def errors(ours, truth):
    """(largest error relative to the largest value, relative rms error); NaN if there is one."""
    if len(ours) != len(truth):
        raise Failed(f"{len(ours)} values, {len(truth)} expected")
    off = [a - b for a, b in zip(ours, truth)]
    worst = math.nan if any(map(math.isnan, off)) else max(map(abs, off))
    return (worst / max(map(abs, truth)),
            math.sqrt(sum(d * d for d in off) / sum(t * t for t in truth)))


def write_texts(folder, longest):
    """Writes lines of 1 to `longest` tokens, and a vocabulary for them."""
    folder = pathlib.Path(folder)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n",
                                      encoding="utf-8")
    counts = [1, 5, 17, longest - 2, longest // 2, 2, longest - 3, 30]
    (folder / "text").write_text("".join(" ".join(WORDS[(7 * k + i * i) % len(WORDS)] for i in range(n)) + "\n"
                                         for k, n in enumerate(counts)), encoding="utf-8")


def states(attempt, folder, device, dtype, mask, transform):
    out = pathlib.Path(folder) / f"{device}.npy"
    must(attempt, "embed", f"{folder}/model", "--input", f"{folder}/text", "--pooling", "none", "--dtype", dtype,
         "--mask", mask, "--transform", transform, "--device", device, "-o", out)
    return read_npy(out)


def reference(attempt, *rest):
    """(device, hidden states) of the CPU, or of the emulated device in a build without oneDNN."""
    try:
        return "cpu", states(attempt, rest[0], "cpu", *rest[1:])
    except Failed as e:
        if "built without oneDNN" not in str(e):
            raise
        return "emulated", states(attempt, rest[0], "emulated", *rest[1:])


def verify_one(attempt, size, positions, dtype, mask, transform, deviation):
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            write_texts(folder, min(positions, 128))
            must(attempt, "init", "--size", size, "--positions", positions, "--vocab", f"{folder}/vocab.txt", "--std",
                 deviation, "-o", f"{folder}/model")
            against, truth = reference(attempt, folder, dtype, mask, transform)
            worst, rms = errors(states(attempt, folder, attempt.o.device, dtype, mask, transform), truth)
    except Failed as e:
        return dead(str(e))
    most = TOLERANCE[dtype]
    ok = worst <= most[0] and rms <= most[1]
    return {"ok": ok, "against": against, "worst": worst, "rms": rms,
            "said": "" if ok else f"off by {worst:.2g} of the largest value, rms {rms:.2g}, from {against}"}


def time_one(attempt, size, mask, batch, length, lengths, dtype):
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            must(attempt, "init", "--size", size, "--positions", POSITIONS, "-o", f"{folder}/model")
            out = must(attempt, "bench", f"{folder}/model", "--device", attempt.o.device, "--dtype", dtype, "--mask", mask,
                       "--batch", batch, "-n", length, "--lengths", lengths, "--json")
            return {"ok": True} | json.loads(out)
    except Failed as e:
        return dead(str(e))


def verified(o):
    seconds = expected.of("maskbert verify", o.device)
    for name, *rest in VERIFIED if o.device == "cuda" else VERIFIED[:EMULATED]:
        _, _, dtype, mask, transform, _ = rest
        yield Item(f"verify {name} {dtype} {mask} {transform}", seconds, lambda attempt, rest=rest: verify_one(attempt, *rest))


def timed(o, dtype):
    seconds = expected.of("maskbert time", o.device)
    for case in TIMED if o.device == "cuda" else ():
        size, mask, batch, length, lengths = case
        yield Item(f"time {size} {batch} x {length} {lengths} {mask} {dtype}", seconds,
                   lambda attempt, case=case: time_one(attempt, *case, dtype), alone=True)


def train(attempt, folder, name, *options, environment=None):
    """(exit code, reason of a failure) of a run of training."""
    code, _, said = attempt.command(attempt.maskbert, "pretrain", f"{folder}/model", "--data", f"{folder}/data", "-o", f"{folder}/{name}",
                                    *RANK_STEPS, "--device", attempt.o.device, *options, environment=environment)
    return code, said


def prepare_training(attempt, folder):
    """(exit code, reason of a failure) of the first command that fails."""
    pathlib.Path(folder, "text").write_text(RANK_TEXT, encoding="utf-8")
    words = sorted(set(RANK_TEXT.split()))
    pathlib.Path(folder, "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n", encoding="utf-8")
    for command in (("init", "--size", "1x64x2", "--positions", 32, "--vocab", f"{folder}/vocab.txt", "-o", f"{folder}/model"),
                    ("prep", f"{folder}/text", "--vocab", f"{folder}/model", "--length", 32, "-o", f"{folder}/data")):
        code, _, said = attempt.command(attempt.maskbert, *command)
        if code:
            return code, said
    return 0, ""


def one_rank(attempt):
    """Training whose gradients go through a real NCCL communicator of one rank leaves the bits of training without it."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        code, said = prepare_training(attempt, folder)
        if code == 0:
            code, said = train(attempt, folder, "alone")
        if code:
            return dead(said)
        code, said = train(attempt, folder, "rank", "--rendezvous", f"{folder}/meet", environment=RANK_VARIABLES)
        if code == UNAVAILABLE and "no NCCL" in said:
            return {"ok": True, "said": f"skipped: {said}"}
        if code:
            return dead(said)
        alone, rank = (pathlib.Path(folder, name, "model.safetensors").read_bytes() for name in ("alone", "rank"))
        return {"ok": alone == rank, "said": "" if alone == rank else "sums of one rank by NCCL change the bits"}


def communicators(o):
    return [Item("a communicator of one rank", expected.of("maskbert verify", o.device), one_rank)] if o.device == "cuda" else []


def missing(call):
    return "" if call.maskbert.exists() else f"{call.maskbert} is missing: maskbert is built where libutf8proc is"


def stage(o):
    return Stage("maskbert", [*verified(o), *communicators(o), *timed(o, "bf16")], o.jobs, missing=missing)


def stage_f32(o):
    return Stage("maskbert-f32", list(timed(o, "f32")), missing=missing)


def lines(results, name="maskbert"):
    """The stage in Markdown."""
    verified_cases = [k for k in results if k.startswith("verify ")]
    bad = [f"- **{k}**: {r.get('said')}" for k, r in results.items() if not r["ok"]]
    notes = [f"- {k}: {r['said']}" for k, r in results.items() if r["ok"] and r.get("said")]
    made = [f"## {name}", "", f"{len(verified_cases)} models verified, {len(bad)} cases wrong.", *bad, *notes, ""]
    rows = []
    for case, r in results.items():
        if case.startswith("time ") and r["ok"]:
            ours, dense = r["results"][0], r["results"][-1]
            rows.append([case[5:], f"{1e3 * ours['median_s']:.3f}", f"{ours['sentences_per_s']:.0f}",
                         percent(ours["shares"]["attention"]), f"{1e3 * dense['median_s']:.3f}", f"{r['ceiling']:.2f}"])
    return made + table(["model, batch x length, mask", "ms", "texts/s", "attention", "dense ms", "ceiling"], rows)
