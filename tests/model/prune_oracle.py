#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert prune against its definitions, in NumPy and float64: usage prune_oracle.py MASKBERT.
Random tiny models, lines of many lengths. The importance that --save writes: of attention, whose rows sum to 1, and of
the output, |W_O (v_j - o_i)| computed as it stands, within 1e-4 of its largest value. What the table says of a mask: its density, its
part of the importance, the cosine of held-out lines and their neighbours.
Exit code 77 (skipped) where there is no NumPy."""
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bert_folder import SPECIAL, make_folder, read_safetensors  # noqa: E402

failures = 0
erf = numpy.vectorize(math.erf)


def report(name, error, tolerance):
    global failures
    ok = error <= tolerance
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {error:.2e}, at most {tolerance:.2e}", flush=True)


class Bert:
    """A plain encoder. A mask is bool [layers, heads, n, n]; a query without keys gets zeros."""

    def __init__(self, folder):
        with open(folder + "/config.json") as f:
            self.c = json.load(f)
        self.t = {name.removeprefix("bert."): x.astype(numpy.float64)
                  for name, x in read_safetensors(folder + "/model.safetensors").items()}

    def linear(self, name, x):
        return x @ self.t[name + ".weight"].T + self.t[name + ".bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.t[name + ".weight"] + self.t[name + ".bias"]

    def split(self, x):
        return x.reshape(len(x), self.c["num_attention_heads"], -1).transpose(1, 0, 2)

    def hidden(self, ids, types, mask=None, see=None):
        """[n, H]. see(layer, A, v, x): each layer's probabilities and values [heads, n, ..], and its input."""
        e, n = "embeddings.", len(ids)
        x = self.norm(e + "LayerNorm", self.t[e + "word_embeddings.weight"][ids]
                      + self.t[e + "position_embeddings.weight"][:n] + self.t[e + "token_type_embeddings.weight"][types])
        for k in range(self.c["num_hidden_layers"]):
            p = f"encoder.layer.{k}."
            q, key, v = (self.split(self.linear(p + "attention.self." + part, x)) for part in ("query", "key", "value"))
            active = numpy.ones(q.shape[:1] + (n, n), bool) if mask is None else mask[k][:, :n, :n]
            a = numpy.exp(q @ key.transpose(0, 2, 1) / math.sqrt(q.shape[-1])) * active
            a /= numpy.maximum(a.sum(-1, keepdims=True), 1e-300)
            if see:
                see(k, a, v, x)
            o = self.linear(p + "attention.output.dense", (a @ v).transpose(1, 0, 2).reshape(n, -1))
            x = self.norm(p + "attention.output.LayerNorm", o + x)
            y = self.linear(p + "intermediate.dense", x)
            y = self.linear(p + "output.dense", y * (1 + erf(y / math.sqrt(2))) / 2)
            x = self.norm(p + "output.LayerNorm", y + x)
        return x

    def moved(self, layer, a, v, x):
        """A_ij |W_O (v_j - o_i)| / |x_i| of each head: [heads, n, n]."""
        w = self.t[f"encoder.layer.{layer}.attention.output.dense.weight"]
        d, o, ret = v.shape[-1], a @ v, numpy.zeros_like(a)
        for h in range(len(a)):
            apart = (v[h][None] - o[h][:, None]) @ w[:, h * d:(h + 1) * d].T
            ret[h] = a[h] * numpy.linalg.norm(apart, axis=-1) / numpy.linalg.norm(x, axis=-1)[:, None]
        return ret


def make_lines(count, positions, words, rng):
    """Lines of words, some of them pairs, with their ids and types; one is as long as can be."""
    lines = []
    for k in range(count):
        length = positions - 3 if k == 1 else int(rng.integers(2, positions - 2))
        w = rng.integers(0, words, length)
        cut = length // 2 if k % 3 == 2 else 0
        ids = [2, *(w[:cut] + len(SPECIAL)), 3] if cut else [2]
        types = [0] * len(ids) + [int(cut > 0)] * (length - cut + 1)
        ids += [*(w[cut:] + len(SPECIAL)), 3]
        text = [f"w{x}" for x in w]
        lines.append((" ".join(text[:cut]) + "\t" * (cut > 0) + " ".join(text[cut:]), ids, types))
    return lines


def importance(model, lines, n, kind, mask=None):
    """Means over the lines that have both positions; rows of attention then sum to 1."""
    c = model.c
    total = numpy.zeros((c["num_hidden_layers"], c["num_attention_heads"], n, n))
    count = numpy.zeros((n, n))
    for _, ids, types in lines:
        m = len(ids)
        count[:m, :m] += 1

        def see(layer, a, v, x):
            total[layer][:, :m, :m] += model.moved(layer, a, v, x) if kind == "output" else a
        model.hidden(ids, types, mask, see)
    total /= numpy.maximum(count, 1)
    if kind == "attention":
        total /= numpy.maximum(total.sum(-1, keepdims=True), 1e-300)
    return total


def vectors(model, lines, mask=None):
    x = numpy.array([model.hidden(ids, types, mask).mean(0) for _, ids, types in lines])
    return x / numpy.linalg.norm(x, axis=1, keepdims=True)


def neighbours(x):
    near = x @ x.T
    numpy.fill_diagonal(near, -numpy.inf)
    return near.argmax(1)


def check_row(name, row, model, out, p, held_out):
    mask = numpy.load(out + "/" + row["file"])
    mask = numpy.broadcast_to(mask.reshape((1,) * (4 - mask.ndim) + mask.shape), p.shape)
    before, after = vectors(model, held_out), vectors(model, held_out, mask)
    report(name + " density", abs(row["density"] - mask.mean()), 1e-5)
    report(name + " retained", abs(row["retained"] - p[mask].sum() / p.sum()), 1e-4)
    report(name + " cosine", abs(row["cosine"] - (before * after).sum(1).mean()), 1e-4)
    same = (neighbours(before) == neighbours(after)).mean()
    report(name + " neighbours", abs(row["neighbours"] - same), 1e-5)
    assert row["predicted_s"] > 0 and row["measured_s"] > 0


# name, layers, hidden, heads, positions, std, mask
CASES = [("wide", 2, 64, 4, 40, 0.3, None), ("heads of 6", 1, 18, 3, 24, 0.5, None), ("masked", 2, 32, 2, 32, 0.4, "window(4)")]


def check_case(maskbert, work, case):
    name, layers, hidden, heads, positions, std, given = case
    folder, rng = f"{work}/{name.replace(' ', '-')}", numpy.random.default_rng(len(name))
    make_folder(folder, {"architectures": ["BertModel"], "vocab_size": 60, "hidden_size": hidden, "num_hidden_layers": layers,
                         "num_attention_heads": heads, "intermediate_size": 2 * hidden,
                         "max_position_embeddings": positions}, std, 5)
    model, lines = Bert(folder), make_lines(21, positions, 55, rng)
    held_out = lines[3::4]
    measured = [x for k, x in enumerate(lines) if k % 4 != 3]
    i = numpy.arange(positions)
    mask = None if given is None else numpy.broadcast_to(abs(i[:, None] - i) <= 4, (layers, heads, positions, positions))
    for kind in "attention", "output":
        out, saved = f"{folder}/{kind}", f"{folder}/{kind}.npy"
        r = subprocess.run([maskbert, "prune", folder, "--importance", kind, "--save", saved, "--keep", "30,8", "--json", "-o", out,
                            *(["--mask", given] if given else [])],
                           input="".join(line + "\n" for line, _, _ in lines), capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
        ours, truth = numpy.load(saved), importance(model, measured, positions, kind, mask)
        assert ours.dtype == numpy.float32 and ours.shape == truth.shape
        report(f"{name}: {kind}", abs(ours - truth).max() / truth.max(), 1e-4)
        longest = max(len(ids) for _, ids, _ in measured)
        if kind == "attention":
            report(f"{name}: rows sum to 1", abs(ours[:, :, :longest].sum(-1) - 1).max(), 1e-5)
        told = json.loads(r.stdout)
        assert (told["measured"], told["held_out"]) == (len(measured), len(held_out))
        assert len(told["masks"]) == 2
        if given is None:  # else what is compared with is the model under that mask
            for row in told["masks"]:
                check_row(f"{name}: {kind}, keep {row['keep']:g}", row, model, out, truth, held_out)


def main():
    maskbert, = (os.path.abspath(x) for x in sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        for case in CASES:
            check_case(maskbert, work, case)
    print(f"{failures} failures")
    sys.exit(failures > 0)


main()
