#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""learn_settle_test.py MASKBERT MASKC: what a run of maskbert pretrain --learn-mask says of its mask's time and way, and the mask that
it settles on, by snap or by threshold, from an alpha that it learned or was given; what is refused of these.
"""
import argparse
import json
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
from learn_masks import LearnToy, forge_state, mask_of, read_mask, read_tensors, same, write_alpha  # noqa: E402
from pretrain_toy import run_tests  # noqa: E402

N, HEADS = 40, 2


def predicted(toy, mask):
    """Seconds of one layer's attention, forward and backward, as maskc plan says."""
    told = json.loads(toy.maskc("plan", mask, "-n", N, "--heads", HEADS, "--head-dim", 16, "--batch", 8, "--threads", 1, "--json"))
    return sum(told[side]["predicted_s"] for side in ("forward", "backward"))


def window(width):
    """An alpha of dam-s that is on up to that distance."""
    return [1.0 if d <= width else -1.0 for d in range(N - 2)] * HEADS


def prices(toy):
    """price_s is what maskc predicts of the mask that the line speaks of, for all layers, forward and backward."""
    toy.ok("init", "--size", "2x32x2", "--vocab", "vocab.txt", "--positions", N, "-o", "two")
    told = {}
    for width in (2, N):
        write_alpha(toy.work / "given.safetensors", "dam-s", [HEADS, N - 2], window(width))
        for model, layers in (("model", 1), ("two", 2)):
            toy.ok("pretrain", model, "--data", "data", "-o", "run", "--batch", 8, "--steps", 12, "--learn-mask", "dam-s", "--lambda", 0, "--threads", 1,
                   "--alpha", "given.safetensors")
            steps = [x for x in toy.log("run") if "lr" in x]
            assert [x["step"] for x in steps if "price_s" in x] == [1, 11], steps
            toy.maskc("make", "given.safetensors", "--dam", "-o", "own.npy")
            own = predicted(toy, "own.npy")
            assert 0.999 < steps[0]["price_s"] / layers / own < 1.2, (width, steps[0], own)  # this plan is made in less time, and may be dearer
            told[width, layers] = steps[0]["price_s"]
            toy.remove("run")
    assert told[2, 1] != told[N, 1], told  # which is larger depends on the machine's rates
    toy.remove("two")
    for name in ("own.npy", "given.safetensors"):
        os.remove(toy.work / name)


def draws(toy):
    """Refusals of films and of the curve of price_s; tests/figures draws them."""
    toy.train("run", "--steps", 12, "--learn-mask", "dam-u", "--lambda", 0, "--save-every", 3, "--keep", 9)
    toy.refused("--film: -o FIGURE", "importance", "run", "--film")
    toy.refused("run.json", "importance", "model", "--film", "-o", "x.png")
    toy.train("plain", "--steps", 1)
    toy.refused("pretrain --learn-mask", "importance", "plain", "--film", "-o", "x.png")
    toy.remove("plain")
    (toy.work / "run/log.jsonl").write_text("".join(x for x in (toy.work / "run/log.jsonl").open() if "price_s" not in x))
    toy.refused('named "price_s"', "plot", "run", "-o", "x.png", "--y", "price_s")
    for path in toy.states("run"):
        path.unlink()
    toy.refused("no whole state", "importance", "run", "--film", "-o", "x.png")
    toy.remove("run")


def settles(toy):
    """From the step on alpha stands still, the mask is compiled, and it is the run's."""
    base = ["--steps", 12, "--learn-mask", "dam-s", "--lambda", 0, "--save-every", 2, "--keep", 9, "--eval-every", 12, "--settle", 6]
    for name, more in (("above", []), ("snap", ["--snap", 0.6]), ("largest", ["--threshold", 0.7])):
        said = toy.train(name, *base, *more).stderr
        own = name + "/" + json.loads((toy.work / name / "config.json").read_text())["maskc"]["mask"]
        assert said.splitlines()[-1].endswith(f", maskc plan {own}"), said
        toy.maskc("plan", own)
        log = toy.log(name)
        events = [x for x in log if x.get("event") == "mask"]
        assert len(events) == 1 and events[0]["step"] == 6 and 0 < events[0]["density"] < 1, events
        assert not more or 0 < events[0]["share"] <= more[1] and 0 < events[0]["retained"] <= 1, events
        assert 0 < events[0]["predicted_s"] and ("share" in events[0]) == bool(more), events
        assert ["l1" in x for x in log if "lr" in x] == [True] * 6 + [False] * 6
        alphas = [read_tensors(p)[0]["alpha"] for p in toy.states(name)]
        assert alphas[1] != alphas[2] == alphas[3] == alphas[5]
        judged = json.loads(toy.ok("eval", name, "--data", "data", "--json").stdout)
        assert abs(judged["loss"] - [x for x in log if "eval" in x][-1]["loss"]) < 1e-12
        toy.train("less", *base, *more, "--threads", 1)
        if not more:
            same(toy, name, "less")
        for path in toy.states("less")[:]:
            if "08" in path.name or "10" in path.name or "12" in path.name:
                path.unlink()
        toy.train("less", *base, *more, "--threads", 3, "--resume")
        if not more:
            same(toy, name, "less")
        toy.remove("less")
    toy.remove("above", "snap", "largest")


def gives(toy):
    """--alpha begins with another run's: all steps may settle, on the snap or on the largest P of each head within the same time."""
    toy.train("first", "--steps", 20, "--learn-mask", "p", "--mask-lr", 0.1)
    alpha = read_tensors(toy.work / "first/alpha.safetensors")[0]["alpha"]
    found = {}
    for what in ("snap", "threshold"):
        command = ["pretrain", "first", "--data", "data", "-o", "next", "--batch", 8, "--steps", 4, "--learn-mask", "p", "--alpha", "first", "--settle", 4,
                   f"--{what}", 0.7, "--threads", 1]
        toy.ok(*command, "--save-every", 2)
        assert read_tensors(toy.work / "next/alpha.safetensors")[0]["alpha"] == alpha
        event = next(x for x in toy.log("next") if x.get("event") == "mask")
        assert event["step"] == 0 and 0.4 < event["share"] <= 0.7, event
        dense = event["predicted_s"] / event["share"] / predicted(toy, "dense")
        assert 0.999 < dense < 1.2, (dense, event)
        own = json.loads((toy.work / "next/config.json").read_text())["maskc"]["mask"]
        toy.maskc("make", f"next/{own}", "--heads", HEADS, "-o", "own.npy")
        found[what] = read_mask(toy.work / "own.npy"), event
        again = toy.work / "again"
        again.mkdir()
        (toy.work / "next").rename(again / "run")
        toy.ok(*command)
        toy.states("again/run")[-1].unlink()
        toy.ok(*[x if x != "next" else "again/run" for x in command], "--resume")
        same(toy, "next", "again/run")
        toy.remove("next", "again")
    kept = [found["threshold"][0][h * N * N:(h + 1) * N * N] for h in range(HEADS)]
    for h, mask in enumerate(kept):
        own = alpha[1][h * N * N:(h + 1) * N * N]
        assert min(a for a, on in zip(own, mask) if on) >= max(a for a, on in zip(own, mask) if not on), "not the largest"
    assert sum(kept[0]) == sum(kept[1])
    assert found["snap"][1]["retained"] >= found["threshold"][1]["retained"], found
    os.remove(toy.work / "own.npy")
    toy.remove("first")


def refusals(toy):
    """Each wrong option or alpha is refused in one line, and no file is left."""
    def with_alpha(says, kind, shape, values, *more):
        write_alpha(toy.work / "given.safetensors", kind, shape, values)
        toy.refused(says, *toy.command("new", "--steps", 2, "--learn-mask", "dam-s", "--alpha", "given.safetensors", *more))

    good = window(3)
    with_alpha("[2,37] of dam-s; F32 [2,38] of dam-s", "dam-s", [HEADS, 37], good[:2 * 37])
    with_alpha("[76] of dam-s; F32 [2,38]", "dam-s", [2 * 38], good)
    with_alpha("[2,38] of dam-u; F32 [2,38] of dam-s", "dam-u", [HEADS, 38], good)
    with_alpha("is NaN at number 5", "dam-s", [HEADS, 38], good[:5] + [float("nan")] + good[6:])
    with_alpha("is infinite at number 75", "dam-s", [HEADS, 38], good[:75] + [float("inf")])
    with_alpha("F32 [2,40,2] of dam-code", "dam-s", [HEADS, 38], good, "--dam-code")
    with_alpha("F32 [1,2,38]", "dam-s", [HEADS, 38], good, "--per-layer")
    for kind, shape in (("dam-u", [1, 64, 3]), ("p", [3, 64])):  # fewer columns than rows, none at all
        write_alpha(toy.work / "given.safetensors", kind, shape, [-1.0] * 192)
        made = subprocess.run([toy.program, "show", "given.safetensors", "--dam"], cwd=toy.work, capture_output=True, text=True, check=False)
        assert made.returncode == 2 and "parameters [H,n,2], [H,n,n] or [H,n-2] are expected" in made.stderr, (kind, made)
    os.remove(toy.work / "given.safetensors")
    for says, *options in (("--alpha", "--learn-mask", "p", "--alpha", "none"), ("--alpha: goes with", "--alpha", "model"),
                           ("--threshold: goes with", "--threshold", 0.5), ("one of them", "--learn-mask", "p", "--snap", 0.5, "--threshold", 0.5, "--settle", 1),
                           ("--threshold 2:", "--learn-mask", "p", "--threshold", 2, "--settle", 1), ("--threshold: --settle", "--learn-mask", "p", "--threshold", 0.5)):
        toy.refused(says, *toy.command("new", "--steps", 2, *options))
    toy.train("run", "--steps", 2, "--learn-mask", "p")
    toy.refused("--settle 3: at most", *toy.command("new", "--steps", 2, "--learn-mask", "p", "--alpha", "run", "--settle", 3))
    for option, alpha in (("--threshold", ["--alpha", "run"]), ("--snap", [])):
        toy.refused(f"{option}: no mask is within that time: an empty one takes 0.",
                    *toy.command("new", "--steps", 2, "--learn-mask", "p", *alpha, "--settle", 1, option, 1e-6), code=1)
    toy.remove("run")


def goes_on(toy):
    """A run that cannot settle saves what it learned. It goes on with another share, which is its own from there on, and with its
    --alpha while it has no state."""
    write_alpha(toy.work / "low.safetensors", "p", [HEADS, N, N], [-200.0] * (HEADS * N * N))
    base = ["--steps", 4, "--learn-mask", "p", "--mask-lr", 0, "--settle", 2]
    made = toy.run(*toy.command("run", *base, "--alpha", "low.safetensors", "--snap", 0.5))
    said = made.stderr.splitlines()[-2:]
    assert made.returncode == 2 and said[1] == "maskbert: --snap: no value is above zero, nothing to keep", made
    assert "saved in run; --resume goes on" in said[0], made
    assert len(toy.states("run")) == 1 and set(read_tensors(toy.states("run")[0])[0]["alpha"][1]) == {-200.0}
    again = toy.command("run", *base, "--resume")
    toy.refused("an empty one takes 0.", *again, "--snap", 1e-6, code=1)
    assert json.loads((toy.work / "run/run.json").read_text())["snap"] == 0.5
    toy.ok(*again)
    assert json.loads((toy.work / "run/run.json").read_text())["snap"] == 0
    toy.refused("--snap: the run has 0.0, this command 0.5", *again, "--snap", 0.5)
    toy.remove("run")
    made = toy.run(*toy.command("run", *base[:-1], 4, "--alpha", "low.safetensors", "--snap", 0.5))
    assert made.returncode == 2 and not (toy.work / "run/state").exists(), made
    again = toy.command("run", *base[:-1], 4, "--resume")
    write_alpha(toy.work / "high.safetensors", "p", [HEADS, N, N], [1.0] * (HEADS * N * N))
    toy.refused('--alpha: the run has "low.safetensors", this command "high.safetensors"', *again, "--alpha", "high.safetensors", "--threshold", 0.7)
    toy.ok(*again, "--alpha", "low.safetensors")
    toy.remove("run")
    toy.train("run", *base, "--snap", 0.6, "--save-every", 1, "--keep", 9)
    for path in toy.states("run")[2:]:
        path.unlink()
    toy.ok(*toy.command("run", *base, "--threshold", 0.7, "--resume"))
    kept = json.loads((toy.work / "run/run.json").read_text())
    assert kept["snap"] == 0.7 and kept["threshold"], kept
    event = [x for x in toy.log("run") if x.get("event") == "mask"][-1]
    assert 0 < event["share"] <= 0.7, event
    toy.remove("run")
    for name in ("low", "high"):
        os.remove(toy.work / f"{name}.safetensors")


def states(toy):
    """A state whose alpha is of another shape, or not finite, is refused in one line, and the run stays as it was."""
    base = ["--steps", 4, "--learn-mask", "dam-s", "--save-every", 2]
    again = toy.command("run", *base, "--resume")
    toy.train("run", *base)
    newest = toy.states("run")[-1]
    newest.unlink()
    whole = toy.states("run")[-1].read_bytes()

    def refused(says, change):
        path = toy.states("run")[-1]
        path.write_bytes(whole)
        if forge_state(path, change):
            toy.refused(says, *again)

    def options(header, _):
        header["__metadata__"]["options"] = json.loads(whole[8:8 + int.from_bytes(whole[:8], "little")])["__metadata__"]["options"]

    def put(number):
        def change(header, data):
            at = header["alpha"]["data_offsets"][0] + 4 * 7
            data[at:at + 4] = struct.pack("<f", number)
        return change
    refused("alpha: a number is not finite", put(float("nan")))
    refused("alpha: a number is not finite", put(float("-inf")))
    refused("the state has no alpha of", lambda header, _: header.update({"beta": header.pop("alpha")}))
    toy.train("other", "--steps", 2, "--learn-mask", "dam-u")
    whole_other = toy.states("other")[-1].read_bytes()
    toy.states("run")[-1].write_bytes(whole_other)
    toy.refused("of another run.json", *again)
    if forge_state(toy.states("run")[-1], options):
        toy.refused("the state has no alpha of", *again)
    toy.states("run")[-1].write_bytes(whole)
    assert not forge_state(toy.states("run")[-1], lambda *_: None) or toy.ok(*again)  # what is forged without a change is taken
    toy.remove("run", "other")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maskbert", type=os.path.abspath)
    parser.add_argument("maskc", type=os.path.abspath)
    parser.add_argument("only", nargs="?", help="the name of one test")
    parser.add_argument("--few", action="store_true")
    o = parser.parse_args()
    tests = {"prices": prices, "draws": draws, "settles": settles, "gives": gives, "refusals": refusals, "goes_on": goes_on, "states": states}
    names = [o.only] if o.only else ["gives", "draws", "goes_on"] if o.few else list(tests)
    return run_tests(lambda *to: LearnToy(o.maskc, *to), o.maskbert, {name: tests[name] for name in names}, probe=("--learn-mask", "p"))


if __name__ == "__main__":
    sys.exit(main())
