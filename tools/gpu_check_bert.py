# SPDX-License-Identifier: Apache-2.0
"""The maskbert stage of tools/gpu-check: whole models with random weights. First the hidden states of lines of text
against those of another device, then what `maskbert bench` says, a case a result.
"""
import array
import json
import math
import pathlib
import tempfile

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
EMULATED = 3  # so many of them where there is no GPU: layers are few
# --size, mask, batch, length, --lengths
TIMED = [(size, mask, *case) for size in ("6x384x12", "base")
         for mask, case in (("dense", (1, 128, "same")), ("dense", (32, 128, "mixed")), ("dense", (8, 512, "same")),
                            ("longformer(64,2)", (4, 2048, "same")), ("longformer(64,2)", (1, 4096, "same")))]
POSITIONS = 4096
# Of the largest value; of the root of the mean square. Each device is within half of it of float64.
TOLERANCE = {"f32": (2e-5, 2e-5), "bf16": (0.05, 0.025)}


class Failed(Exception):
    pass


def must(run, *words):
    code, out, said = run.command(run.maskbert, *words)
    if code:
        raise Failed(said or f"maskbert {words[0]}: exit status {code}")
    return out


def read_npy(path):
    """The f32 values of a .npy of ours."""
    data = pathlib.Path(path).read_bytes()
    header = int.from_bytes(data[8:10], "little")
    values = array.array("f")
    values.frombytes(data[10 + header:])
    return values


def errors(ours, truth):
    """(worst of the largest value, rms); NaN where there is one."""
    if len(ours) != len(truth):
        raise Failed(f"{len(ours)} values, {len(truth)} expected")
    off = [a - b for a, b in zip(ours, truth)]
    worst = math.nan if any(map(math.isnan, off)) else max(map(abs, off))
    return (worst / max(map(abs, truth)),
            math.sqrt(sum(d * d for d in off) / sum(t * t for t in truth)))


def write_texts(folder, longest):
    """Lines of 1 to `longest` tokens, and a vocabulary for them."""
    folder = pathlib.Path(folder)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n",
                                      encoding="utf-8")
    counts = [1, 5, 17, longest - 2, longest // 2, 2, longest - 3, 30]
    (folder / "text").write_text("".join(" ".join(WORDS[(7 * k + i * i) % len(WORDS)] for i in range(n)) + "\n"
                                         for k, n in enumerate(counts)), encoding="utf-8")


def states(run, folder, device, dtype, mask, transform):
    out = pathlib.Path(folder) / f"{device}.npy"
    must(run, "embed", f"{folder}/model", "--input", f"{folder}/text", "--pooling", "none", "--dtype", dtype,
         "--mask", mask, "--transform", transform, "--device", device, "-o", out)
    return read_npy(out)


def reference(run, *rest):
    """The CPU's, or the emulated device's where no oneDNN is built in."""
    try:
        return "cpu", states(run, rest[0], "cpu", *rest[1:])
    except Failed:
        return "emulated", states(run, rest[0], "emulated", *rest[1:])


def verify_one(run, size, positions, dtype, mask, transform, deviation):
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            write_texts(folder, min(positions, 128))
            must(run, "init", "--size", size, "--positions", positions, "--vocab", f"{folder}/vocab.txt", "--std",
                 deviation, "-o", f"{folder}/model")
            against, truth = reference(run, folder, dtype, mask, transform)
            worst, rms = errors(states(run, folder, run.o.device, dtype, mask, transform), truth)
    except Failed as e:
        return {"ok": False, "dead": True, "said": str(e)}
    most = TOLERANCE[dtype]
    ok = worst <= most[0] and rms <= most[1]
    return {"ok": ok, "against": against, "worst": worst, "rms": rms,
            "said": "" if ok else f"off by {worst:.2g} of the largest value, rms {rms:.2g}, from {against}"}


def time_one(run, size, mask, batch, length, lengths, dtype):
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            must(run, "init", "--size", size, "--positions", POSITIONS, "-o", f"{folder}/model")
            out = must(run, "bench", f"{folder}/model", "--device", run.o.device, "--dtype", dtype, "--mask", mask,
                       "--batch", batch, "-n", length, "--lengths", lengths, "--json")
            return {"ok": True} | json.loads(out)
    except Failed as e:
        return {"ok": False, "dead": True, "said": str(e)}


def cases(run):
    """{name: function without arguments that returns a result}."""
    made = {}
    for name, *rest in VERIFIED if run.o.device == "cuda" else VERIFIED[:EMULATED]:
        _, _, dtype, mask, transform, _ = rest
        made[f"verify {name} {dtype} {mask} {transform}"] = lambda rest=rest: verify_one(run, *rest)
    for case in TIMED if run.o.device == "cuda" else []:
        for dtype in ("bf16", "f32"):
            size, mask, batch, length, lengths = case
            made[f"time {size} {batch} x {length} {lengths} {mask} {dtype}"] = (
                lambda case=case, dtype=dtype: time_one(run, *case, dtype))
    return made


def lines(results):
    """The stage in Markdown."""
    verified = {k: r for k, r in results.items() if k.startswith("verify ")}
    bad = [f"- **{k}**: {r['said']}" for k, r in results.items() if not r["ok"]]
    made = ["## maskbert", "", f"{len(verified)} models verified, {len(bad)} cases wrong.", *bad, ""]
    timed = {k[5:]: r for k, r in results.items() if k.startswith("time ") and r["ok"]}
    if timed:
        made += ["| model, batch x length, mask | ms | texts/s | attention | dense ms | ceiling |",
                 "| --- | --- | --- | --- | --- | --- |"]
    for name, r in timed.items():
        ours, dense = r["results"][0], r["results"][-1]
        made.append(f"| {name} | {1e3 * ours['median_s']:.3f} | {ours['sentences_per_s']:.0f} | "
                    f"{100 * ours['shares']['attention']:.0f} % | {1e3 * dense['median_s']:.3f} | {r['ceiling']:.2f} |")
    return made + [""]
