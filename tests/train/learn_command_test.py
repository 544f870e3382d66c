#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""learn_command_test.py MASKBERT MASKC [--few]: masks that maskbert pretrain learns, on a toy.

What a run's folder holds, and that its mask, read by maskc --dam and compiled, gives the loss of the learned bias; the same
bits and the same noise for any number of threads, in parts and after kills; what is refused.
"""
import argparse
import json
import math
import os
import random
import struct
import sys
import time

sys.dont_write_bytecode = True
from learn_masks import LearnToy, logit_of, mask_of, read_mask, read_tensors, same  # noqa: E402
from pretrain_toy import run_tests  # noqa: E402

KINDS = [("p",), ("p", "--per-layer"), ("dam-u",), ("dam-u", "--per-layer"), ("dam-s",), ("dam-s", "--per-layer"), ("dam-s", "--dam-code"),
         ("dam-s", "--dam-code", "--per-layer")]


# ---- what it leaves ----

def importance(toy, kind, alpha, n):
    """Checks maskbert importance of each head against the definitions."""
    says, total = json.loads(toy.ok("importance", "run", "--json").stdout), {}
    assert len(says["heads"]) == 2 and says["heads"][1]["at"] == [0, 1], says
    for h, head in enumerate(says["heads"]):
        own = alpha[h * len(alpha) // 2:(h + 1) * len(alpha) // 2]
        sums = {"p_diagonal": [], "p_neighbour": [], "p_special": [], "density": []}
        for i in range(n):
            for j in range(n):
                x = logit_of(own, kind, n, i, j)
                p = 1 if x is None else 1 / (1 + math.exp(-x))
                sums["density"].append(p > 0.5)
                for name, there in (("p_diagonal", i == j), ("p_neighbour", abs(i - j) == 1), ("p_special", 0 in (i, j) or n - 1 in (i, j))):
                    if there:
                        sums[name].append(p)
        for name, x in sums.items():
            mean = sum(x) / len(x)
            assert abs(mean - head[name]) < 1e-6, (kind, h, name, mean, head)
            total[name] = total.get(name, 0) + mean / 2
    assert all(abs(total[name] - says["mean"][name]) < 1e-6 for name in total), says


def importance_refuses(toy):
    toy.train("run", "--steps", 1, "--learn-mask", "dam-s")
    assert [line.split()[0] for line in toy.ok("importance", "run").stdout.splitlines()] == ["P", "head", "head", "mean"]
    path = toy.work / "run/alpha.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + struct.pack("<f", math.nan))
    toy.refused("NaN at [1,37]", "importance", "run", "-o", "x.png")
    toy.refused("alpha.safetensors", "importance", "model")
    toy.remove("run")


def leaves(toy, kind):
    """Alpha of the right shape, and its mask, which maskc --dam makes of it, too."""
    options = ["--steps", 8, "--learn-mask", *kind, "--lambda", 0, "--mask-lr", 0.1]
    made = toy.train("run", *options)
    count = int(made.stderr.split("numbers")[0].split()[-1])
    tensors, metadata = read_tensors(toy.work / "run/alpha.safetensors")
    (shape, alpha), n = tensors["alpha"], 40
    head = [n, n] if kind[0] != "dam-s" else [n, 2] if "--dam-code" in kind else [n - 2]
    assert shape == ([1] if "--per-layer" in kind else []) + [2] + head and len(alpha) == count, (shape, count)
    assert metadata["dam"] == ("dam-code" if "--dam-code" in kind else kind[0])
    expected = mask_of(shape, alpha, kind, n)
    assert 0 < sum(expected) < len(expected)
    toy.maskc("make", "run/alpha.safetensors", "--dam", "-o", "dam.npy")
    toy.maskc("make", "run/" + json.loads((toy.work / "run/config.json").read_text())["maskc"]["mask"], "-o", "own.npy")
    assert read_mask(toy.work / "dam.npy") == expected, kind
    assert read_mask(toy.work / "own.npy") in (expected, expected[:n * n]), kind
    planned = json.loads(toy.maskc("plan", "run/alpha.safetensors", "--dam", "--json"))
    assert (planned["head_dim"], planned["dtype"]) == (16, "f32"), planned
    assert planned["model"] == "head dim 16, 2 heads, f32 (from run/config.json, run/run.json)", planned["model"]
    importance(toy, kind, alpha, n)
    log = [x for x in toy.log("run") if "lr" in x][-1]
    assert all(0 <= log[x] <= 1 for x in ("density", "entropy", "p_diagonal", "p_neighbour", "p_special")) and log["l1"] > 0, log
    toy.remove("run")
    for name in ("dam.npy", "own.npy"):
        os.remove(toy.work / name)


def all_kinds(toy):
    for kind in KINDS:
        leaves(toy, kind)


def evaluates(toy):
    """The learned bias, off keys at -inf, and the compiled mask, of a model to which attention matters."""
    toy.ok("init", "--size", "2x32x2", "--vocab", "vocab.txt", "--positions", 40, "--std", 0.3, "-o", "strong")
    for kind in (("dam-u",), ("dam-s",), ("dam-s", "--dam-code", "--leak"), ("dam-u", "--soft-sample")):
        toy.ok("pretrain", "strong", "--data", "data", "-o", "run", "--steps", 30, "--batch", 8, "--eval-every", 30, "--learn-mask", *kind,
               "--lambda", 0, "--mask-lr", 0.05)
        bias = [x for x in toy.log("run") if "eval" in x][-1]
        toy.maskc("make", "run/alpha.safetensors", "--dam", "-o", "dam.npy")
        density = sum(read_mask(toy.work / "dam.npy")) / (2 * 40 * 40)
        assert 0.02 < density < 0.98, density
        for more in ([], ["--mask", "dam.npy"]):
            compiled = json.loads(toy.ok("eval", "run", "--data", "data", "--json", *more).stdout)
            for name in ("loss", "mlm", "nsp"):
                assert abs(compiled[name] - bias[name]) <= 1e-5 * bias[name], (kind, more, name, compiled, bias)
        dense = json.loads(toy.ok("eval", "run", "--data", "data", "--json", "--mask", "dense").stdout)
        assert abs(dense["loss"] - bias["loss"]) > 1e-3 * bias["loss"], "the mask makes no difference"
        toy.remove("run")
        os.remove(toy.work / "dam.npy")
    toy.remove("strong")


def penalties(toy):
    """A mask with a penalty is sparser than one without; the first lines state it."""
    density = []
    for penalty in (0, 0.1):
        said = toy.train("run", "--steps", 60, "--learn-mask", "dam-s", "--lambda", penalty).stderr
        assert f"; penalty: lambda {penalty} times the sum of M, at most " in said, said
        density.append([x for x in toy.log("run") if "lr" in x][-1]["density"])
        toy.remove("run")
    assert density[1] < 0.12 and density[0] > 0.3, density


def levels(toy):
    """--bi-level: with an alpha that stands still weights learn as from the first half alone."""
    toy.train("both", "--steps", 1, "--learn-mask", "dam-u", "--bi-level", "--dropout", 0, "--save-gradients", "both.safetensors")
    toy.train("whole", "--steps", 1, "--learn-mask", "dam-u", "--dropout", 0, "--save-gradients", "whole.safetensors")
    toy.train("half", "--steps", 1, "--learn-mask", "dam-u", "--dropout", 0, "--batch", 4, "--save-gradients", "half.safetensors")
    both, whole, half = (read_tensors(toy.work / (n + ".safetensors"))[0] for n in ("both", "whole", "half"))
    name = "bert.encoder.layer.0.output.dense.weight"
    assert both[name] == half[name] and both[name] != whole[name]
    assert both["alpha"] != half["alpha"] and both["alpha"] != whole["alpha"]
    toy.remove("both", "whole", "half")
    for n in ("both", "whole", "half"):
        os.remove(toy.work / (n + ".safetensors"))


def drops(toy):
    """--drop in training is in the run's mask; in evaluation it takes the same entries out of another."""
    toy.ok("init", "--size", "2x32x2", "--vocab", "vocab.txt", "--positions", 40, "--std", 0.3, "-o", "strong")
    told = {}
    for what in ("diagonal", "random:60"):
        toy.ok("pretrain", "strong", "--data", "data", "-o", "run", "--steps", 2, "--batch", 8, "--mask", "window(4)", "--drop", what, "--seed", 3)
        judge = ("eval", "run", "--data", "data", "--json")
        stored = json.loads(toy.ok(*judge).stdout)
        again = json.loads(toy.ok(*judge, "--mask", "window(4)", "--drop", what, "--seed", 3).stdout)
        whole = json.loads(toy.ok(*judge, "--mask", "window(4)").stdout)
        assert stored == again != whole, (stored, again, whole)
        told[what] = json.loads(toy.ok(*judge, "--mask", "window(4)", "--drop", what, "--seed", 4).stdout) == again
        toy.remove("run")
    assert told == {"diagonal": True, "random:60": False}, told
    toy.refused("--drop half", "eval", "model", "--data", "data", "--drop", "half")
    toy.remove("strong")


# ---- the same bits ----

BITS = ["--steps", 12, "--save-every", 3, "--lambda", 1e-3]


def threads(toy):
    for kind in (("p",), ("dam-u", "--dtype", "bf16"), ("dam-s", "--per-layer")):
        for k in (1, 2, 3):
            toy.train(f"t{k}", *BITS, "--learn-mask", *kind, "--threads", k)
        same(toy, "t1", "t2")
        same(toy, "t1", "t3")
        toy.train("layer", *BITS, "--learn-mask", *kind, "--recompute", "layer")
        same(toy, "t1", "layer")
        toy.remove("t1", "t2", "t3", "layer")


def noise(toy):
    """A function of seed and step: not of threads, batch, its parts, data, or where the run was cut."""
    base = ["--learn-mask", "dam-u", "--save-every", 2]
    toy.train("a", *base, "--steps", 5, "--save-gradients", "a.safetensors")
    toy.train("b", *base, "--steps", 5, "--save-gradients", "b.safetensors", "--threads", 3, "--accumulate", 4, "--batch", 12)
    toy.train("c", *base, "--steps", 5)
    for path in toy.states("c")[1:]:
        path.unlink()
    toy.train("c", *base, "--steps", 5, "--resume", "--save-gradients", "c.safetensors")
    toy.train("d", *base, "--steps", 4, "--save-gradients", "d.safetensors")
    toy.train("e", *base, "--steps", 5, "--seed", 1, "--save-gradients", "e.safetensors")
    drawn = {n: read_tensors(toy.work / f"{n}.safetensors")[0]["batch.noise"] for n in "abcde"}
    assert drawn["a"] == drawn["b"] == drawn["c"] and drawn["a"] != drawn["d"] and drawn["a"] != drawn["e"]
    same(toy, "a", "c")
    toy.remove(*"abcde")
    for n in "abcde":
        os.remove(toy.work / f"{n}.safetensors")


def kills(toy, kind, times):
    steps = ["--steps", 60, "--save-every", 3, "--learn-mask", *kind]
    begin = time.time()
    toy.train("whole", *steps)
    takes = time.time() - begin
    draw = random.Random(6)
    for k in range(times):
        command = [toy.maskbert, *map(str, toy.command("killed", *steps, "--threads", 1 + k % 3))]
        toy.kill_three_times(command, "killed", lambda: draw.uniform(0.05, 0.8) * takes)
        toy.train("killed", *steps, "--resume")
        same(toy, "whole", "killed")
        toy.remove("killed")
    toy.remove("whole")


# ---- what goes wrong ----

def not_finite(toy):
    made = toy.run(*toy.command("run", "--learn-mask", "dam-s", "--steps", 4, "--save-every", 1, "--mask-lr", 1e29, "--schedule", "constant"))
    assert made.returncode == 0, made.stderr  # so large an alpha is one
    toy.remove("run")
    made = toy.run(*toy.command("run", "--learn-mask", "p", "--lambda", 1e29, "--mask-scale", 1e6, "--steps", 4, "--lr", 1e20))
    assert made.returncode == 1 and "not finite" in made.stderr.splitlines()[-1], made
    toy.remove("run")


def refusals(toy):
    plain = toy.command("new", "--steps", 2)
    for says, *options in (
            ("--lambda -1", "--learn-mask", "dam-u", "--lambda", -1),
            ("--tau 0:", "--learn-mask", "dam-u", "--tau", 0),
            ("--tau 1..0:", "--learn-mask", "dam-s", "--tau", "1..0"),
            ("--tau x..1:", "--learn-mask", "dam-s", "--tau", "x..1"),
            ("--learn-mask dam:", "--learn-mask", "dam"),
            ("--mask:", "--learn-mask", "p", "--mask", "dense"),
            ("--drop:", "--learn-mask", "p", "--drop", "diagonal"),
            ("--transform:", "--learn-mask", "p", "--transform", "sparsegen=-2"),
            ("--tau: goes with", "--learn-mask", "p", "--tau", 1),
            ("--dam-code: goes with", "--learn-mask", "dam-u", "--dam-code"),
            ("--symmetric: goes with", "--learn-mask", "dam-s", "--symmetric"),
            ("--lambda: goes with", "--lambda", 1),
            ("--bi-level: a --batch", "--learn-mask", "p", "--bi-level", "--batch", 1),
            ("--mask-scale 0", "--learn-mask", "p", "--mask-scale", 0),
            ("--mask-lr -1: 0 or more, below 1e30", "--learn-mask", "p", "--mask-lr", -1),
            ("--mask-lr 1e+30: 0 or more, below 1e30", "--learn-mask", "p", "--mask-lr", 1e30),
            ("--mask-lr-ratio -1: 0 or more", "--learn-mask", "p", "--mask-lr-ratio", -1),
            ("--mask-lr-ratio 1e+40: 0 or more is expected, and a product with --lr below 1e30", "--learn-mask", "p", "--mask-lr-ratio", 1e40),
            ("--lambda 1e+30: 0 or more, below 1e30", "--learn-mask", "p", "--lambda", 1e30),
            ("--tau 1e-30: a number from 1e-6 to 1e6", "--learn-mask", "dam-u", "--tau", 1e-30),
            ("--snap 0:", "--learn-mask", "p", "--snap", 0, "--settle", 1),
            ("--snap: --settle", "--learn-mask", "p", "--snap", 0.5),
            ("--settle 2: fewer", "--learn-mask", "p", "--settle", 2),
            ("--settle: goes with", "--settle", 1),
            ("one of them", "--learn-mask", "p", "--mask-lr-ratio", 1, "--mask-lr", 1)):
        toy.refused(says, *plain, *options)
    steps = ["--steps", 2, "--learn-mask", "dam-s"]
    toy.train("run", *steps)
    for says, *options in (("--per-layer", "--per-layer"), ("--lambda", "--lambda", 3), ("--tau", "--tau", 2), ("--leak", "--leak"),
                           ("--mask-lr", "--mask-lr", 1), ("--dam-code", "--dam-code")):
        toy.refused(says, *toy.command("run", *steps, "--resume", *options))
    toy.refused("--learn-mask", *toy.command("run", "--steps", 2, "--learn-mask", "dam-u", "--resume"))
    toy.refused("--learn-mask", *toy.command("run", "--steps", 2, "--resume"))
    toy.remove("run")
    toy.train("run", "--steps", 2)
    toy.refused("--learn-mask", *toy.command("run", *steps, "--resume"))
    toy.remove("run")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maskbert", type=os.path.abspath)
    parser.add_argument("maskc", type=os.path.abspath)
    parser.add_argument("only", nargs="?", help="the name of one test")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--few", action="store_true")
    o = parser.parse_args()
    tests = {"all_kinds": all_kinds, "evaluates": evaluates, "penalties": penalties, "levels": levels, "drops": drops, "importance_refuses": importance_refuses, "threads": threads, "noise": noise,
             "kills": lambda t: [kills(t, kind, 20 if o.long else 1) for kind in (
                 ("dam-u", "--bi-level", "--settle", 25),
                 ("dam-s", "--lambda", 0, "--settle", 25, "--snap", 0.6, "--threads", 2))],
             "not_finite": not_finite, "refusals": refusals}
    names = [o.only] if o.only else ["all_kinds"] if o.few else list(tests)
    return run_tests(lambda *to: LearnToy(o.maskc, *to), o.maskbert, {name: tests[name] for name in names}, probe=("--learn-mask", "p"))


if __name__ == "__main__":
    sys.exit(main())
