#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of every parameter against BertForPreTraining in float64: usage gradient_oracle.py GRADIENTS_DUMP MASKC [--all | NAME [DEVICE]].
f32: |d| <= 1e-5 max(|g|, 1e-3 of the largest |g| in its layer), norms by tensor. bf16: the error of all tensors together
at most 1.5 times that of the same model in torch's autocast, and twice that of each layer's.
Dropout is judged with our drawn bits, which philox() draws again.
Exit code 77 (skipped) where there is no torch."""
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
from bert import Bert, make_folder, read_safetensors  # noqa: E402

failures = 0
device = sys.argv[4] if len(sys.argv) > 4 else None
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def report(name, error, tolerance):
    global failures
    ok = error <= tolerance
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {error:.2e}, at most {tolerance:.2e}", flush=True)


# ---- dropout's bits ----

def philox(seed, *counter):
    """Philox4x32-10 of broadcast counters: four words."""
    x, y, z, w = numpy.broadcast_arrays(*(numpy.asarray(c, numpy.uint64) for c in counter))
    k0, k1 = seed & M32, seed >> 32
    for _ in range(10):
        odd, even = z * numpy.uint64(0xCD9E8D57), x * numpy.uint64(0xD2511F53)
        low, high = numpy.uint64(M32), numpy.uint64(32)
        x, y, z, w = ((odd >> high) ^ y ^ numpy.uint64(k0), odd & low, (even >> high) ^ w ^ numpy.uint64(k1), even & low)
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return numpy.stack([x, y, z, w])


def layer_seed(seed, layer):
    x = (seed + (layer + 1) * 0x9E3779B97F4A7C15) & M64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M64
    return x ^ x >> 31


def scaled(draw, p):
    below = round(65536 * p)
    return torch.tensor(numpy.where(draw < below, 0, 65536 / (65536 - below)))


class Drop:
    """The dropouts of one sequence."""

    def __init__(self, seed, sample, hidden, attention):
        self.seed, self.sample, self.p, self.attention_p = seed, sample, hidden, attention

    def hidden(self, x, site):
        if not self.p:
            return x
        n, size = x.shape
        c, i = numpy.arange(size)[None], numpy.arange(n)[:, None]
        words = philox(self.seed, c // 8, i, self.sample, site)
        word = numpy.take_along_axis(words, (c % 4)[None].repeat(n, 1), 0)[0]
        return x * scaled((word >> (c % 8 // 4 * 16).astype(numpy.uint64)) & numpy.uint64(0xffff), self.p).to(x.dtype)

    def attention(self, prob, layer):
        if not self.attention_p:
            return prob
        heads, n, _ = prob.shape
        h, i, j = numpy.ogrid[:heads, :n, :n]
        words = philox(layer_seed(self.seed, layer), i // 16 * 8 + i % 8, j // 16 * 4 + j % 8 // 2, self.sample, h)
        word = numpy.where(j % 2, numpy.where(j & 8, words[3], words[2]), numpy.where(j & 8, words[1], words[0]))
        draw = (word >> (i // 8 % 2 * 16).astype(numpy.uint64)) & numpy.uint64(0xffff)
        return prob * scaled(draw, self.attention_p).to(prob.dtype)


# ---- the model ----

class Model(Bert):
    """With gradients. Two losses, as a step adds them up."""

    def __init__(self, folder, dtype=torch.float64):
        super().__init__(folder, dtype)
        for x in self.t.values():
            x.requires_grad_(True)

    def norm(self, name, x):
        return super().norm(name, x.to(self.dtype)).to(x.dtype)  # autocast's; older ones refuse two types

    def loss(self, batch, case):
        mlm, pairs = [], []
        for k, (ids, first, label, masked) in enumerate(batch):
            drop = Drop(case.seed, case.samples[k] if case.samples else k, case.hidden, case.attention)
            x = self.hidden(ids, [int(i >= first) for i in range(len(ids))], case.bits, case.sparsegen, drop=drop)
            if masked:
                at, labels = zip(*masked)
                mlm.append(F.cross_entropy(self.words(x[list(at)]), torch.tensor(labels), reduction="sum"))
            if label >= 0:
                z = self.linear("cls.seq_relationship", self.pooled(x))
                pairs.append(F.cross_entropy(z[None], torch.tensor([label]), reduction="sum"))
        return sum(mlm) / max(sum(len(m) for *_, m in batch), 1), sum(pairs) / len(batch)

    def gradients(self, batch, case):
        for x in self.t.values():
            x.grad = None
        mlm, pairs = self.loss(batch, case)
        (mlm + pairs).backward()
        return float(mlm.detach()), float(torch.as_tensor(pairs).detach()), {n: x.grad.double().numpy() for n, x in self.t.items() if x.grad is not None}


# ---- ours ----

def run(*args):
    r = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(f"{' '.join(map(str, args))}: exit code {r.returncode}: {r.stderr}")
    return r.stdout


def make_batch(rng, vocabulary, lengths, pairs):
    batch = []
    for n in lengths:
        ids = [int(x) for x in rng.integers(5, vocabulary, n)]
        if n > 8:
            ids[4] = 0  # [PAD], as masking may draw it: no gradient to its row
        at = sorted(int(x) for x in rng.choice(n, max(1, n // 6), replace=False))
        masked = [(i, int(rng.integers(0, vocabulary))) for i in at]
        batch.append((ids, (n + 1) // 2 if pairs else n, int(rng.integers(0, 2)) if pairs else -1, masked))
    return batch


def write_batch(path, batch):
    with open(path, "w") as f:
        for k, (ids, first, label, masked) in enumerate(batch):
            print(k, label, first, len(ids), *ids, len(masked), *(x for m in masked for x in m), file=f)


class Case:
    """name, config, deviation; mask None: dense."""

    def __init__(self, name, layers, hidden, heads, mask=None, sparsegen=None, std=0.05, positions=64, lengths=None,
                 pairs=True, hidden_dropout=0, attention_dropout=0, bf16=True, **more):
        self.name, self.mask, self.sparsegen, self.std, self.pairs = name, mask, sparsegen, std, pairs
        self.hidden, self.attention, self.seed, self.bits, self.bf16 = hidden_dropout, attention_dropout, 77, None, bf16
        self.samples = None  # of the sequences; their numbers
        self.lengths = lengths or [1, 2, 64, 17, 40, 33, 64, 5]
        self.config = {"architectures": ["BertForPreTraining"], "vocab_size": 600, "hidden_size": hidden,
                       "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 4 * hidden,
                       "max_position_embeddings": positions, **more}


def set_mask(case, maskc, folder):
    """The options of ours, and the bits of the oracle."""
    n, heads = case.config["max_position_embeddings"], case.config["num_attention_heads"]
    options = []
    if case.mask == "heads":
        rng = numpy.random.default_rng(5)
        shape = (case.config["num_hidden_layers"], heads, n, n)
        case.bits = rng.random(shape) < numpy.linspace(0.1, 0.9, heads)[:, None, None]
        case.bits[:, 0, 3] = False  # a query that sees nothing
        numpy.save(folder + "/heads.npy", case.bits)
        options = [f"mask={folder}/heads.npy"]
    elif case.mask:
        run(maskc, "make", case.mask, "-n", n, "-o", folder + "/m.npy")
        m = numpy.load(folder + "/m.npy")
        case.bits = m.reshape((1,) * (4 - m.ndim) + m.shape).astype(bool)
        options = [f"mask={case.mask}"]
    if case.sparsegen is not None:
        options += [f"transform=sparsegen={case.sparsegen}"]
    options += [f"device={device}"] if device else []
    return options + [f"hidden={case.hidden}", f"attention={case.attention}", f"seed={case.seed}"]


def ours(dump, folder, *options):
    out = folder + "/out.safetensors"
    loss = json.loads(run(dump, folder, folder + "/batch.txt", out, *options))
    return loss, {n.removeprefix("bert."): x.astype(numpy.float64) for n, x in read_safetensors(out).items()}


def layer_of(name):
    return ".".join(name.split(".")[:3]) if name.startswith("encoder.") else name.split(".")[0]


def norm(x):
    return float(numpy.linalg.norm(x))


def worst(mine, truth):
    """The largest |d| as a part of what is allowed, and its name."""
    most = {}
    for name, g in truth.items():
        most[layer_of(name)] = max(most.get(layer_of(name), 0), norm(g))
    ratio = {n: norm(mine[n] - g) / (1e-5 * max(norm(g), 1e-3 * most[layer_of(n)]) or 1) for n, g in truth.items()}
    name = max(ratio, key=lambda n: ratio[n] if ratio[n] == ratio[n] else math.inf)
    return ratio[name], name


def relative(mine, truth, names):
    return math.sqrt(sum(norm(mine[n] - truth[n]) ** 2 for n in names) / sum(norm(truth[n]) ** 2 for n in names))


def check_bf16(dump, folder, case, options, batch, truth):
    _, mine = ours(dump, folder, "dtype=bf16", *options)
    model = Model(folder, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        _, _, theirs = model.gradients(batch, case)
    report(case.name + " bf16, error beside autocast's",
           relative(mine, truth, truth) / relative(theirs, truth, truth), 1.5)
    layers = sorted({layer_of(n) for n in truth})
    report(case.name + " bf16, the worst layer's", max(
        relative(mine, truth, names) / relative(theirs, truth, names)
        for names in ([n for n in truth if layer_of(n) == layer] for layer in layers)), 2)


def check(dump, maskc, work, case):
    folder = work + "/" + case.name.replace(" ", "-").replace(",", "")
    make_folder(folder, case.config, case.std, 7)
    options = set_mask(case, maskc, folder)
    batch = make_batch(numpy.random.default_rng(3), case.config["vocab_size"], case.lengths, case.pairs)
    write_batch(folder + "/batch.txt", batch)
    mlm, pairs, truth = Model(folder).gradients(batch, case)
    loss, mine = ours(dump, folder, *options)
    masked = sum(len(m) for *_, m in batch)
    report(case.name + " loss", abs(loss["mlm"] / masked - mlm) / mlm +
           (abs(loss["next"] / len(batch) - pairs) / pairs if case.pairs else 0), 1e-6)
    missing = set(truth) ^ set(mine)
    assert not missing, missing
    ratio, name = worst(mine, truth)
    report(f"{case.name}: {name}, part of what is allowed", ratio, 1)
    if case.bf16:
        check_bf16(dump, folder, case, options, batch, truth)


LONG = dict(positions=512, lengths=[512, 1, 2, 300])
CASES = [
    Case("one layer", 1, 64, 4),
    Case("words alone", 2, 64, 4, pairs=False),
    Case("heads of 8", 2, 32, 4, mask="longformer(5,2)", bf16=False),
    Case("heads of 26", 2, 130, 5, mask="window(9)", bf16=False),
    Case("longformer, 512 tokens", 2, 64, 4, mask="longformer(16,2)", bf16=False, **LONG),
    Case("blockbert", 1, 192, 12, mask="blockbert-2", bf16=False),
    Case("a mask for each head and layer", 2, 64, 4, mask="heads", bf16=False),
    Case("sparsegen, sparse", 2, 64, 4, mask="longformer(5,2)", sparsegen=-1),
    Case("a decoder of its own", 1, 64, 4, tie_word_embeddings=False, bf16=False),
    Case("attention dropout", 2, 64, 4, hidden_dropout=0.1, attention_dropout=0.1),
]
MORE = [
    Case("bert-mini", 4, 256, 4, std=0.02, positions=128, lengths=[128] * 8),
    Case("12 layers", 12, 64, 4),
    Case("12 layers, std 0.1, sparse", 12, 64, 4, std=0.1, mask="longformer(5,2)"),
    Case("std 0.02", 2, 128, 2, std=0.02),
    Case("std 0.1", 2, 128, 2, std=0.1),
    Case("heads of 64, 512 tokens", 2, 128, 2, **LONG),
    Case("longformer, 512 tokens, again", 2, 64, 4, mask="longformer(16,2)", **LONG),
    Case("heads of 26 again", 2, 130, 5),
    Case("sparsegen", 2, 64, 4, sparsegen=-4),
    Case("gelu_new", 1, 64, 4, hidden_act="gelu_new"),
    Case("relu", 1, 48, 3, hidden_act="relu", layer_norm_eps=1e-5),
    Case("silu", 1, 64, 4, hidden_act="silu"),
    Case("more masked words than a chunk", 1, 32, 2, positions=512, lengths=[512] * 13, bf16=False),
    Case("dropout", 2, 64, 4, hidden_dropout=0.1, mask="longformer(5,2)"),
    Case("attention dropout, sparsegen", 2, 64, 4, attention_dropout=0.2, sparsegen=-2),
]

if __name__ == "__main__":
    torch.set_num_threads(1)  # small models wait for threads longer than they compute
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES + (MORE if wanted else []):
            if wanted in ("", "--all", case.name):
                check(sys.argv[1], sys.argv[2], folder, case)
    sys.exit(failures > 0)
