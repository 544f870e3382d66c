# SPDX-License-Identifier: Apache-2.0
"""Stage train: models trained on the device. Gradients of one step and ten steps are compared with the CPU's, a second run, without graphs,
with the first; then seconds and memory of a step, beside a step of the same model in torch.
"""
import array
import functools
import importlib.util
import json
import math
import pathlib
import random
import re
import statistics
import sys
import tempfile

from gpu_check import expected
from gpu_check.maskbert import Failed, missing, must
from gpu_check.timing_table import percent, table
from gpu_check.work import Item, Stage, dead

TORCH = pathlib.Path(__file__).with_name("train_torch.py")
SCALE_MODEL = pathlib.Path(__file__).resolve().parents[2] / "scale_model"
SMALL = {"cuda": ("2x64x4", 32, 8), "emulated": ("2x32x2", 16, 4)}  # --size, tokens of a sample, --batch: what is compared
STEPS = 10
GRADIENT = {"f32": 1e-5, "bf16": 1.5}  # of a tensor; times the reference's own error against f32
FLOOR, KEY_BIAS_FLOOR = 1e-3, 0.1  # of the largest gradient in the layer: below it, only rounding is left
PATHS = {"adamw": 1e-5, "lamb": 1e-5}  # of losses and norms over STEPS
# size, mask, batch, n, attention dropout, steps, vocabulary
TIMED = [("base", "dense", 128, 128, 0.1, 30, 30522), ("base", "dense", 32, 512, 0.1, 30, 30522),
         ("base", "longformer(64,2)", 2, 8192, 0.0, 30, 30522)]
TIMED_EMULATED = [("1x32x2", "longformer(3,1)", 2, 16, 0.0, 2, 64)]
PEAKS = (("H100", 989e12), ("H200", 989e12), ("A100", 312e12))  # dense bf16, FLOP/s: tools/scale_model/machine.py


# ---- a model and its data ----

def sentences_of(n, whole):
    """Words of each sentence of a document: one sample of n tokens, [CLS] and [SEP] included, or several of different lengths."""
    sentence = max(1, min(14, n // 4))
    if not whole:
        return [sentence] * (2 * n // sentence)
    return [min(sentence, n - 2 - k) for k in range(0, n - 2, sentence)]


def write_texts(folder, vocabulary, n, tokens, whole):
    """A vocabulary of so many words, and documents of sentences. whole: every sample has n tokens."""
    folder, draw = pathlib.Path(folder), random.Random(1)
    words, sizes = [f"w{k}" for k in range(vocabulary - 5)], sentences_of(n, whole)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n", encoding="utf-8")
    lines = []
    for _ in range(max(20, tokens // sum(sizes))):
        lines += [" ".join(draw.choices(words, k=k)) for k in sizes] + [""]
    (folder / "text").write_text("\n".join(lines), encoding="utf-8")


def prepare(attempt, folder, size, n, tokens, vocabulary, whole):
    write_texts(folder, vocabulary, n, tokens, whole)
    must(attempt, "init", "--size", size, "--positions", n, "--vocab", f"{folder}/vocab.txt", "--seed", 1, "-o", f"{folder}/model")
    must(attempt, "prep", f"{folder}/text", "--vocab", f"{folder}/vocab.txt", "-n", n, "--pairing", "full", "-o", f"{folder}/data")


def pretrain(attempt, folder, run, device, dtype, *more):
    """The run's summary, with its folder."""
    out = must(attempt, "pretrain", f"{folder}/model", "--data", f"{folder}/data", "--objective", "mlm", "--device", device,
               "--dtype", dtype, "--save-every", 0, "--json", "-o", f"{folder}/{run}", *more)
    return json.loads(out) | {"folder": f"{folder}/{run}"}


def reference(attempt, *rest):
    """(device, result) of the CPU; in a build without oneDNN of the emulated device, unless that is what is checked."""
    folder, run, *more = rest
    try:
        return "cpu", pretrain(attempt, folder, run, "cpu", *more)
    except Failed as e:
        if "without oneDNN" not in str(e) or attempt.o.device == "emulated":
            raise
        return "emulated", pretrain(attempt, folder, run, "emulated", *more)


def steps_of(run):
    """Lines of log.jsonl that are steps."""
    lines = pathlib.Path(run["folder"], "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [x for x in map(json.loads, lines) if "lr" in x]


# ---- gradients ----

def read_gradients(path):
    """{parameter: f32 values} of a file of --save-gradients."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, made = json.loads(data[8:8 + size]), {}
    for name, tensor in header.items():
        if name.startswith(("batch.", "__")) or tensor["dtype"] != "F32":
            continue
        begin, end = tensor["data_offsets"]
        made[name] = array.array("f")
        made[name].frombytes(data[8 + size + begin:8 + size + end])
    return made


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def distance(ours, truth):
    if len(ours) != len(truth):
        raise Failed(f"{len(ours)} values of a gradient, {len(truth)} expected")
    return norm([a - b for a, b in zip(ours, truth)])


def layer_of(name):
    found = re.search(r"layer\.(\d+)\.", name)
    return int(found[1]) if found else None


def same_names(ours, truth):
    if not truth or ours.keys() != truth.keys():
        raise Failed(f"gradients of other parameters: {', '.join(sorted(ours.keys() ^ truth.keys())) or 'none'}")


def worst_tensor(ours, truth):
    """(error, name): the largest |d| / max(|g|, a share of the largest |g| in its layer), norms by tensor. NaN is the largest."""
    same_names(ours, truth)
    largest = {}
    for name, values in truth.items():
        largest[layer_of(name)] = max(largest.get(layer_of(name), 0), norm(values))
    found = (0.0, "")
    for name, values in truth.items():
        floor = KEY_BIAS_FLOOR if name.endswith("key.bias") else FLOOR
        error = distance(ours[name], values) / max(norm(values), floor * largest[layer_of(name)])
        found = (error, name) if not error <= found[0] else found
    return found


def error_of_all(ours, truth):
    same_names(ours, truth)
    return norm([distance(ours[name], values) for name, values in truth.items()]) / norm(map(norm, truth.values()))


def gradients_of(attempt, folder, run, device, dtype):
    """(device, gradients of the first step); device None: the reference."""
    path = f"{folder}/{run}.safetensors"
    words = (dtype, "--steps", 1, "--batch", SMALL[attempt.o.device][2], "--dropout", 0.1, "--mask", "longformer(3,1)", "--save-gradients", path)
    found = reference(attempt, folder, run, *words)[0] if device is None else device
    if device is not None:
        pretrain(attempt, folder, run, device, *words)
    return found, read_gradients(path)


def compare_gradients(attempt, folder, dtype):
    against, truth = gradients_of(attempt, folder, "truth", None, "f32")
    ours = gradients_of(attempt, folder, "ours", attempt.o.device, dtype)[1]
    if dtype == "f32":
        error, name = worst_tensor(ours, truth)
        most, what = GRADIENT[dtype], f"{name} is off by {error:.2g} of its norm"
    else:
        error = error_of_all(ours, truth)
        theirs = error_of_all(gradients_of(attempt, folder, "theirs", None, dtype)[1], truth)
        most, what = GRADIENT[dtype] * theirs, f"all gradients are off by {error:.2g}, those of {against} in {dtype} by {theirs:.2g}"
    ok = error <= most
    return {"ok": ok, "against": against, "error": error, "most": most, "said": "" if ok else f"{what}, from {against} in f32"}


# ---- ten steps ----

def off(ours, truth, field):
    """The largest relative error of a field over the steps; a value that is not finite is infinitely off."""
    if len(ours) != len(truth) or len(truth) != STEPS:
        raise Failed(f"{len(ours)} steps, {STEPS} expected")
    values = [(a[field], b[field]) for a, b in zip(ours, truth)]
    return max(math.inf if a is None or b is None else abs(a - b) / abs(b) for a, b in values)


def compare_steps(attempt, folder, optimizer):
    words = ("f32", "--steps", STEPS, "--batch", SMALL[attempt.o.device][2], "--lr", 1e-3, "--warmup", 2, "--dropout", 0.1, "--mask",
             "longformer(3,1)", "--optimizer", optimizer)
    against, theirs = reference(attempt, folder, "theirs", *words)
    ours, again = (steps_of(pretrain(attempt, folder, run, attempt.o.device, *words, *more)) for run, more in (("ours", ()), ("again", ("--no-graphs",))))
    truth = steps_of(theirs)
    errors = {field: off(ours, truth, field) for field in ("loss", "grad_norm")}
    said = [f"{field} is off by {x:.2g} from {against}" for field, x in errors.items() if not x <= PATHS[optimizer]]
    if [(x["loss"], x["grad_norm"]) for x in ours] != [(x["loss"], x["grad_norm"]) for x in again]:
        said.append("a second run, without CUDA graphs, has other losses")
    return {"ok": not said, "against": against, "error": max(errors.values()), "most": PATHS[optimizer], "said": "; ".join(said)}


def in_folder(work, attempt, size, n, tokens, vocabulary, whole=False):
    """work(attempt, folder) with a model and its data there; a failed command is no result."""
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            prepare(attempt, folder, size, n, tokens, vocabulary, whole)
            return work(attempt, folder)
    except Failed as e:
        return dead(str(e))


def compare(attempt, work, what):
    size, n, batch = SMALL[attempt.o.device]
    return in_folder(lambda a, folder: work(a, folder, what), attempt, size, n, (STEPS + 1) * batch * n, 105)


# ---- seconds and memory ----

@functools.cache
def scale_bert():
    """tools/scale_model/bert.py, which counts the FLOPs of a step, without its folder on the path: its names are common."""
    spec = importlib.util.spec_from_file_location("scale_bert", SCALE_MODEL / "bert.py")
    module = sys.modules["scale_bert"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flops_of(size, mask, batch, n, vocabulary):
    """A step over whole samples has so many. Other sizes than base are LxHxA."""
    bert = scale_bert()
    layers, hidden, heads = (12, 768, 12) if size == "base" else map(int, size.split("x"))
    model = bert.Bert(size, layers, hidden, heads, vocabulary, n)
    found = re.fullmatch(r"longformer\((\d+),(\d+)\)", mask)
    active = bert.longformer_active(n, int(found[1]), int(found[2])) if found else n * n
    return bert.step_flops(model, bert.Batch(batch, n, mask, active))


def peak_of(device):
    return next((peak for part, peak in PEAKS if part in device), None)


def figures(attempt, case, seconds, tokens, memory):
    """A row of results: rates count the tokens of a step, FLOPs are scaled to them."""
    size, mask, batch, n, _, _, vocabulary = case
    rate = flops_of(size, mask, batch, n, vocabulary) * tokens / (batch * n) / seconds
    peak = peak_of(attempt.kept.data["device"])
    return {"step_s": seconds, "tokens_per_s": tokens / seconds, "memory_bytes": memory, "flops_per_s": rate,
            "share": rate / peak if peak else None}


def time_ours(attempt, case):
    size, mask, batch, n, attention_dropout, steps, vocabulary = case

    def work(attempt, folder):
        made = pretrain(attempt, folder, "run", attempt.o.device, "bf16", "--steps", steps, "--batch", batch, "--mask", mask, "--dropout", 0.1,
                        "--attention-dropout", attention_dropout)
        log = steps_of(made)
        before = [0] + [x["tokens"] for x in log]
        rows = [(b["tokens"] - t, b["elapsed_s"] - a["elapsed_s"]) for t, a, b in zip(before[1:], log, log[1:])]
        tokens, seconds = map(statistics.median, zip(*rows[len(rows) // 3:]))  # the first ones load and choose algorithms
        return {"ok": True, "launches": made.get("launches"), **figures(attempt, case, seconds, tokens, made.get("device_bytes"))}
    return in_folder(work, attempt, size, n, 6 * batch * n, vocabulary, whole=True)


def time_torch(attempt, case):
    """The same step in torch. Its failure is no fault of ours."""
    size, mask, batch, n, attention_dropout, steps, vocabulary = case
    described = {"size": size, "batch": batch, "n": n, "mask": mask, "attention_dropout": attention_dropout, "steps": steps,
                 "vocabulary": vocabulary, "device": attempt.o.device}
    code, out, said = attempt.command(sys.executable, TORCH, json.dumps(described), environment={"HF_HUB_OFFLINE": "1"})
    if code:
        return {"ok": True, "said": said or f"exit status {code}"}
    made = json.loads(out.splitlines()[-1])
    return {"ok": True, "attention": made["attention"], **figures(attempt, case, made["step_s"], batch * n, made["memory_bytes"])}


# ---- the stage ----

def name_of(case):
    size, mask, batch, n, *_ = case
    return f"{size} {batch} x {n} {mask}"


def items(o):
    verify, ours, torch = (expected.of(f"train {what}", o.device) for what in ("verify", "time", "torch"))
    for dtype in GRADIENT:
        yield Item(f"gradients {dtype}", verify, lambda attempt, dtype=dtype: compare(attempt, compare_gradients, dtype))
    for optimizer in PATHS:
        yield Item(f"{STEPS} steps {optimizer}", verify, lambda attempt, optimizer=optimizer: compare(attempt, compare_steps, optimizer))
    for case in TIMED if o.device == "cuda" else TIMED_EMULATED:
        yield Item(f"ours {name_of(case)}", ours, lambda attempt, case=case: time_ours(attempt, case), alone=True)
        if o.device == "cuda":
            yield Item(f"torch {name_of(case)}", torch, lambda attempt, case=case: time_torch(attempt, case), alone=True)


def stage(o):
    return Stage("train", list(items(o)), o.jobs, missing=missing)


def row_of(name, ours, torch):
    def cells(r):
        if not r.get("step_s"):
            return ["", "", "", ""]
        share = percent(r["share"]) if r.get("share") else ""
        memory = f"{r['memory_bytes'] / 2**30:.1f}" if r.get("memory_bytes") else ""
        return [f"{1e3 * r['step_s']:.1f}", f"{r['tokens_per_s']:,.0f}", share, memory]
    ratio = f"{ours['tokens_per_s'] / torch['tokens_per_s']:.2f} x" if ours.get("step_s") and torch.get("step_s") else ""
    return [name, *cells(ours), str(ours.get("launches") or ""), *cells(torch), ratio]


def lines(results):
    """The stage in Markdown."""
    compared = {k: r for k, r in results.items() if k.startswith(("gradients ", f"{STEPS} steps "))}
    bad = [f"- **{k}**: {r.get('said')}" for k, r in results.items() if not r["ok"]]
    made = ["## train", "", f"{len(compared)} cases compared, {len(bad)} cases wrong.", *bad, ""]
    made += [f"- {k}: {r['error']:.2g}, at most {r['most']:.2g}, against {r['against']}" for k, r in compared.items() if r["ok"]] + [""]
    names = [k.removeprefix("ours ") for k in results if k.startswith("ours ")]
    rows = [row_of(k, results[f"ours {k}"], results.get(f"torch {k}", {})) for k in names]
    head = ["ms", "tokens/s", "of peak", "GiB"]
    made += table(["model, batch x n, mask", *head, "launches", *(f"torch {x}" for x in head), "tokens/s, ours / torch"], rows) if rows else []
    return made + [f"- torch, {k}: no figures: {results[f'torch {k}']['said']}" for k in names if results.get(f"torch {k}", {}).get("said")]
