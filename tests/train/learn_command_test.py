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
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from pretrain_toy import Toy  # noqa: E402

KINDS = [("p",), ("p", "--per-layer"), ("dam-u",), ("dam-u", "--per-layer"), ("dam-s",), ("dam-s", "--per-layer"), ("dam-s", "--dam-code"),
         ("dam-s", "--dam-code", "--per-layer")]


def read_tensors(path):
    """Name to (shape, numbers); the metadata."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    kinds = {"F32": "f", "F64": "d", "I64": "q", "U8": "B"}
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            count = math.prod(t["shape"])
            tensors[name] = t["shape"], struct.unpack(f"<{count}{kinds[t['dtype']]}", data[8 + size + begin:8 + size + end])
    return tensors, header.get("__metadata__")


def read_mask(path):
    """The bytes of a boolean .npy."""
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def alpha_state(toy, run):
    tensors, _ = read_tensors(toy.states(run)[-1])
    return [tensors[n][1] for n in ("alpha", "alpha_first_moment", "alpha_second_moment")]


def same(toy, a, b):
    assert toy.weights(a) == toy.weights(b), f"{a} and {b} have other weights"
    assert toy.moments(a) == toy.moments(b), f"{a} and {b} have other moments"
    assert toy.losses(a) == toy.losses(b), f"{a} and {b} have other losses"
    assert alpha_state(toy, a) == alpha_state(toy, b), f"{a} and {b} have another alpha"
    for name in ("alpha.safetensors", "config.json"):
        assert (toy.work / a / name).read_bytes() == (toy.work / b / name).read_bytes(), name


# ---- what it leaves ----

def mask_of(shape, alpha, kind, n):
    """Without noise: alpha above 0, by the definition of each kind; a byte an entry."""
    distances, code = kind[0] == "dam-s", "--dam-code" in kind
    rest = shape[1:] if "--per-layer" in kind else shape
    each = math.prod(rest[1:])
    ret = bytearray()
    for head in range(len(alpha) // each):
        a = alpha[head * each:(head + 1) * each]
        for i in range(n):
            for j in range(n):
                d = abs(i - j)
                if not distances:
                    on = a[i * n + j] > 0
                elif code:
                    on = a[2 * d] > a[2 * d + 1]
                else:
                    on = 0 in (i, j) or n - 1 in (i, j) or a[d] > 0
                ret.append(on)
    return bytes(ret)


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


def prices(toy):
    """A dear mask is sparser than a cheap one; --plot draws it."""
    density = []
    for price in (0, 0.1):
        toy.train("run", "--steps", 60, "--learn-mask", "dam-s", "--lambda", price)
        density.append([x for x in toy.log("run") if "lr" in x][-1]["density"])
        if price:
            made = toy.run("plot", "run", "-o", "density.svg", "--y", "density")
            assert made.returncode in (0, 3), made.stderr
            (toy.work / "density.svg").unlink(missing_ok=True)
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


# ---- the same bits ----

BITS = ["--steps", 12, "--save-every", 3, "--lambda", 1e-3]


def threads(toy):
    for kind in (("p",), ("dam-u", "--dtype", "bf16"), ("dam-s", "--per-layer")):
        if toy.run(*toy.command("probe", "--steps", 1, "--learn-mask", *kind)).returncode == 3:
            continue
        toy.remove("probe")
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
    toy.train("whole", *steps)
    begin = time.time()
    toy.train("timed", *steps)
    takes = time.time() - begin
    draw = random.Random(6)
    for k in range(times):
        command = [toy.maskbert, *map(str, toy.command("killed", *steps, "--threads", 1 + k % 3))]
        for turn in range(3):
            child = subprocess.Popen(command + ["--resume"] * (turn > 0), cwd=toy.work, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.05, 0.8) * takes)
            child.kill()
            child.wait()
            if not (toy.work / "killed").exists():
                break
        toy.train("killed", *steps, "--resume")
        same(toy, "whole", "killed")
        toy.remove("killed")
    toy.remove("whole", "timed")


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
            ("--mask-lr: 0", "--learn-mask", "p", "--mask-lr", -1),
            ("--mask-lr-ratio:", "--learn-mask", "p", "--mask-lr-ratio", -1),
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
    tests = {"all_kinds": all_kinds, "evaluates": evaluates, "prices": prices, "levels": levels, "threads": threads, "noise": noise,
             "kills": lambda t: [kills(t, kind, 20 if o.long else 1) for kind in (("dam-u",), ("dam-s", "--bi-level"))],
             "not_finite": not_finite, "refusals": refusals}
    names = [o.only] if o.only else ["all_kinds"] if o.few else list(tests)
    with tempfile.TemporaryDirectory() as work:
        toy = Toy(o.maskbert, work)

        def maskc(*command):
            made = subprocess.run([o.maskc, *map(str, command)], cwd=work, capture_output=True, text=True, check=False)
            assert made.returncode == 0, f"{command}: {made.stderr}"
        toy.maskc = maskc
        made = toy.run(*toy.command("probe", "--steps", 1, "--learn-mask", "p"))
        if made.returncode == 3:
            print(f"{made.stderr}\n[  SKIPPED ] 1 test(s).")
            return 77
        toy.remove("probe")
        for name in names:
            begin = time.time()
            tests[name](toy)
            print(f"{name}: {time.time() - begin:.1f} s", flush=True)
            rest = set(os.listdir(work)) - {"text.txt", "vocab.txt", "model", "data"}
            assert not rest, rest
    print(f"[==========] {len(names)} test(s) run.\n[  PASSED  ] {len(names)} test(s).")


if __name__ == "__main__":
    sys.exit(main())
