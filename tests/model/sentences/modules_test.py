#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""modules_test.py MASKBERT: do the modules of a sentence-transformers folder make of hidden states (embed --pooling none) what their
definitions say? Every pooling mode, several at once, Dense with each activation and residual, Normalize before and behind it, truncate_dim,
and prompts whose tokens pooling leaves out, all tokens of a line included.
Needs no package; modules_judge.py asks sentence-transformers itself. Closes with cmocka's lines."""
import json
import math
import pathlib
import random
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from serve_test import make_model, run, texts_of  # noqa: E402

WIDTH = 64  # of make_model
LINES = [*texts_of(3, 12), "", "the", "r"]
NOTHING = [0.0] * WIDTH


def weighted(rest, first):
    weights = range(first, first + len(rest))
    return [sum(w * a for w, a in zip(weights, c)) / sum(weights) for c in zip(*rest)] or NOTHING


# Functions of all rows of a line, and of the rest behind the prompt's.
POOLED = {
    "cls": lambda x, rest: (rest or x)[0],
    "max": lambda x, rest: [max(c) for c in zip(*rest)] or [-math.inf] * WIDTH,
    "mean": lambda x, rest: [sum(c) / len(rest) for c in zip(*rest)] or NOTHING,
    "mean_sqrt_len_tokens": lambda x, rest: [sum(c) / len(rest) ** 0.5 for c in zip(*rest)] or NOTHING,
    "weightedmean": lambda x, rest: weighted(rest, len(x) - len(rest) + 1),
    "lasttoken": lambda x, rest: rest[-1] if rest else NOTHING,
}
ACTIVE = {
    "linear.Identity": lambda a: a,
    "activation.Tanh": math.tanh,
    "activation.ReLU": lambda a: max(a, 0),
    "activation.GELU": lambda a: a * 0.5 * (1 + math.erf(a / math.sqrt(2))),
    "activation.Sigmoid": lambda a: 1 / (1 + math.exp(-a)),
}


def unit(x):
    length = max(math.sqrt(sum(a * a for a in x)), 1e-12)
    return [a / length for a in x]


def tensors(values):
    """A safetensors file of {name: rows of numbers, or numbers}."""
    header, data = {}, b""
    for name, rows in values.items():
        flat = [a for row in rows for a in row] if isinstance(rows[0], list) else rows
        shape = [len(rows), len(rows[0])] if isinstance(rows[0], list) else [len(rows)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(flat)]}
        data += struct.pack(f"<{len(flat)}f", *flat)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


class Dense:
    def __init__(self, draw, width, out, activation, bias=True, residual=False):
        self.width, self.out, self.activation, self.residual = width, out, activation, residual
        self.weight, self.other = ([[draw.gauss(0, 0.2) for _ in range(width)] for _ in range(out)] for _ in range(2))
        self.bias = [draw.gauss(0, 1) for _ in range(out)] if bias else None

    def write(self, folder):
        (folder / "config.json").write_text(json.dumps({"in_features": self.width, "out_features": self.out, "bias": self.bias is not None,
                                                        "activation_function": "torch.nn.modules." + self.activation, "use_residual": self.residual}))
        values = {"linear.weight": self.weight} | ({"linear.bias": self.bias} if self.bias else {})
        values |= {"residual.weight": self.other} if self.residual and self.width != self.out else {}
        (folder / "model.safetensors").write_bytes(tensors(values))

    def run(self, x):
        def product(rows):
            return [sum(a * b for a, b in zip(row, x)) for row in rows]
        y = [ACTIVE[self.activation](a + b) for a, b in zip(product(self.weight), self.bias or [0] * self.out)]
        more = (x if self.width == self.out else product(self.other)) if self.residual else [0] * self.out
        return [a + b for a, b in zip(y, more)]


def write_modules(folder, modes, behind, settings, includes=True):
    kinds = ["Transformer", "Pooling", *("Normalize" if m is None else "Dense" for m in behind)]
    modules = [{"idx": k, "name": str(k), "path": f"{k}_{kind}" if k else "", "type": f"sentence_transformers.models.{kind}"} for k, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    for m in modules[1:]:
        (folder / m["path"]).mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": modes, "include_prompt": includes}))
    for m, dense in zip(modules[2:], behind):
        if dense:
            dense.write(folder / m["path"])
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))


def cases(draw):
    for mode in POOLED:
        yield [mode], [], {}
    yield list(POOLED), [None], {}
    for k, activation in enumerate(ACTIVE):
        yield ["mean"], [Dense(draw, WIDTH, 5 + 7 * k, activation, bias=bool(k % 2))], {}
    yield ["mean", "cls"], [None, Dense(draw, 2 * WIDTH, 17, "activation.Tanh", residual=True), Dense(draw, 17, 17, "activation.GELU", residual=True), None], {"truncate_dim": 9}


def vectors(maskbert, model, out, *options):
    run(maskbert, "embed", model, "-o", out, *options, stdin="".join(f"{line}\n" for line in LINES))
    return [json.loads(line) for line in out.read_text().splitlines()]


def near(x, truth):
    """Numbers that are not finite are null in JSON."""
    finite = [a for a in truth if math.isfinite(a)]
    return len(x) == len(truth) and all(b is None if math.isinf(a) else abs(a - b) < 1e-5 * max(1, *map(abs, finite), 1) for a, b in zip(truth, x))


def prompts(maskbert, model, out):
    """include_prompt false: lines behind each prompt without its tokens, those before it among them, but with the special one at its end."""
    fails, empty = [], 0
    for prompt in ("the ", "rive", "the the the rive"):
        write_modules(model, list(POOLED), [], {"prompts": {"p": prompt}, "default_prompt_name": "p"}, includes=False)
        count = len(run(maskbert, "tokenize", model, stdin=prompt + "\n").split()) - 1
        states = vectors(maskbert, model, out, "--pooling", "none", "--prompt", prompt)
        for line, rows, x in zip(LINES, states, vectors(maskbert, model, out), strict=True):
            truth = [a for mode in POOLED for a in POOLED[mode](rows, rows[count:])]
            empty += not rows[count:]
            if not near(x, truth):
                fails.append(f"prompt '{prompt}', line '{line}': {x[:4]}, {truth[:4]} expected")
    whole, states = vectors(maskbert, model, out, "--prompt", ""), vectors(maskbert, model, out, "--pooling", "none", "--prompt", "")
    if not all(near(x, [a for mode in POOLED for a in POOLED[mode](rows, rows)]) for rows, x in zip(states, whole, strict=True)):
        fails.append(f"without a prompt: {whole[0][:4]}")
    return fails + ([] if empty else ["no line has all its tokens left out"])


def main():
    maskbert, fails, count = sys.argv[1], [], 0
    with tempfile.TemporaryDirectory(prefix="sentences-") as folder:
        model = make_model(maskbert, pathlib.Path(folder))
        out = pathlib.Path(folder) / "x.jsonl"
        states = vectors(maskbert, model, out, "--pooling", "none")
        for modes, behind, settings in cases(random.Random(2)):
            write_modules(model, modes, behind, settings)
            ours = vectors(maskbert, model, out)
            count += 1
            for rows, x in zip(states, ours, strict=True):
                truth = [a for mode in modes for a in POOLED[mode](rows, rows)]
                for m in behind:
                    truth = m.run(truth) if m else unit(truth)
                truth = truth[:settings.get("truncate_dim")]
                if not near(x, truth):
                    fails.append(f"{modes}, {[m and m.activation for m in behind]}: {x[:4]}, {truth[:4]} expected")
        fails += prompts(maskbert, model, out)
        count += 1
    print("\n".join(fails[:9]))
    print(f"[  PASSED  ] {count - min(count, len(fails))} test(s).\n[  FAILED  ] {len(fails)} test(s).")
    return int(bool(fails) or count != 14)


if __name__ == "__main__":
    sys.exit(main())
