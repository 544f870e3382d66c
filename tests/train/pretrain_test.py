#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pretrain_test.py MASKBERT [--long] [--few]: maskbert pretrain on a toy that learns in seconds.

Same bits for any number of threads, after kills and in parts; saves that a limit cuts; what is refused, and that nothing
is lost by it. --long kills 20 times and cuts at every hundredth byte; --few leaves out what sanitizers make slow."""
import argparse
import fcntl
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from pretrain_stops import kills, lengths, lost_reader, signal_storm, signals  # noqa: E402
from pretrain_toy import Toy, run_tests, same, tensors  # noqa: E402
from whole_words import whole_words  # noqa: E402

# ---- what it does ----

def plots(toy):
    """Refusals of logs; tests/figures draws them."""
    toy.refused('no line has numbers named "price"', "plot", "run", "-o", "x.svg", "--y", "price")
    toy.refused("text.txt:1: a JSON object", "plot", "text.txt", "-o", "x.svg")
    toy.refused("--x", "plot", "run", "-o", "x.svg", "--x", "day")


def learns(toy):
    toy.train("run", "--steps", 90, "--eval-every", 30, "--save-every", 40, "--keep", 2, "--lr", 3e-3)
    log = toy.log("run")
    steps = [x for x in log if "lr" in x]
    assert [x["step"] for x in steps] == list(range(1, 91))
    for name in "tokens loss mlm nsp lr grad_norm tokens_per_s mfu elapsed_s".split():
        assert name in steps[0], name
    assert sum(x["mlm"] for x in steps[-20:]) / 20 < steps[0]["mlm"] - 0.4, (steps[0], steps[-1])
    assert abs(steps[3]["loss"] - steps[3]["mlm"] - steps[3]["nsp"]) < 1e-12
    evaluations = [x for x in log if "eval" in x]
    assert [x["step"] for x in evaluations] == [30, 60, 90]
    assert evaluations[2]["loss"] < evaluations[0]["loss"] and abs(math.log(evaluations[2]["perplexity"]) - evaluations[2]["mlm"]) < 1e-9
    assert [x["step"] for x in log if x.get("event") == "save"] == [40, 80, 90]
    assert [p.name for p in toy.states("run")] == ["step-000000000080.safetensors", "step-000000000090.safetensors"]
    options = json.loads((toy.work / "run/run.json").read_text())
    assert options["batch"] == 8 and options["dropout"] == 0.1 and options["objective"] == "mlm+nsp"
    assert "has: pooler, masked language model, next sentence" in toy.ok("info", "run").stdout
    judged = json.loads(toy.ok("eval", "run", "--data", "data", "--json").stdout)
    assert all(abs(judged[n] - evaluations[2][n]) < 1e-12 for n in ("loss", "mlm", "nsp", "perplexity", "accuracy")), judged
    plots(toy)
    toy.refused("No such file", "eval", "run", "--data", "nowhere")
    assert toy.ok("fill-mask", "run", stdin="the [MASK] sees a red apple .\n").stdout
    toy.remove("run")


def overfits(toy):
    toy.train("run", "--steps", 120, "--overfit-one-batch", "--lr", 1e-2, "--weight-decay", 0, "--warmup", 0, "--objective", "mlm")
    log = [x for x in toy.log("run") if "lr" in x]
    assert log[-1]["loss"] < 0.05, log[-1]
    assert len({x["tokens"] - y["tokens"] for x, y in zip(log[1:], log)}) == 1
    toy.remove("run")


def goes_on_from_runs(toy):
    """Phase 2: from a run, with another length, batch, mask, objective."""
    toy.ok("prep", "text.txt", "--vocab", "model", "--length", 64, "--pairing", "full", "-o", "longer")
    toy.train("run", "--steps", 2)
    second = ["pretrain", "run", "--data", "longer", "-o", "second", "--steps", 2, "--batch", 4]
    toy.refused("--positions 64 extends them", *second)
    toy.ok(*second, "--positions", 64, "--mask", "window(9)", "--drop", "diagonal", "--transform", "sparsegen=-2")
    config = json.loads((toy.work / "second/config.json").read_text())
    assert config["max_position_embeddings"] == 64 and config["maskc"]["transform"] == "sparsegen=-2"
    assert json.loads((toy.work / "second/run.json").read_text())["objective"] == "mlm"
    toy.ok("pretrain", "run", "--data", "data", "-o", "third", "--steps", 1, "--drop", "random:50", "--repeats", 2)
    masks = [next((toy.work / f"third-{k}").glob("mask.*")).read_bytes() for k in (1, 2)]
    assert masks[0] != masks[1]
    toy.refused("--repeats", "pretrain", "run", "--data", "data", "-o", "third", "--steps", 1, "--repeats", 2)
    toy.remove("run", "second", "third-1", "third-2", "longer")


# ---- the same bits ----

BITS = ["--steps", 12, "--save-every", 3, "--mask", "longformer(3,1)"]


def threads(toy):
    for dtype in ("f32", "bf16"):
        for k in (1, 2, 3):
            toy.train(f"t{k}", *BITS, "--dtype", dtype, "--threads", k)
        same(toy, "t1", "t2")
        same(toy, "t1", "t3")
        toy.train("layer", *BITS, "--dtype", dtype, "--recompute", "layer")
        same(toy, "t1", "layer")
        toy.remove("t1", "t2", "t3", "layer")


def parts(toy):
    """8 sequences as 1 x 8 and as 4 x 2: equal but for the order of sums."""
    steps = ["--steps", 6, "--lr", 1e-4]
    toy.train("whole", *steps)
    toy.train("parts", *steps, "--accumulate", 4)
    for (a, _), (b, _) in zip(toy.losses("whole").values(), toy.losses("parts").values()):
        assert abs(a - b) <= 1e-6 * a, (a, b)
    toy.remove("whole", "parts")


def epochs(toy):
    """Batches that span several epochs."""
    toy.ok("prep", "text.txt", "--vocab", "model", "--length", 32, "--pairing", "full", "-o", "few")
    command = ["pretrain", "model", "--data", "few", "--batch", 300, "--steps", 2]  # of 205 samples
    toy.ok(*command, "-o", "whole", "--save-gradients", "batch")
    assert len(set(memoryview(tensors(toy.work / "batch", "batch.samples")[0]).cast("q"))) == 300, "a sample has one number in two epochs"
    (toy.work / "batch").unlink()
    toy.ok(*command, "-o", "parts", "--accumulate", 7)
    assert all(abs(a[0] - b[0]) <= 1e-6 * a[0] for a, b in zip(toy.losses("whole").values(), toy.losses("parts").values()))
    toy.remove("few", "whole", "parts")


# ---- what goes wrong ----

def closed_streams(toy):
    """No file of a run gets the number of a closed standard stream: its log has no messages."""
    made = toy.run(*toy.command("closed", "--steps", 2, "--threads", 1), preexec_fn=lambda: os.closerange(1, 3))
    assert made.returncode in (0, 3) and len(toy.log("closed")) >= 2, made
    toy.remove("closed")


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def cuts(toy, every):
    """A save that a limit cuts: said, exit code 3, and the state before it goes on."""
    steps = ["--steps", 3, "--save-every", 1, "--keep", 9, "--threads", 1]
    toy.train("whole", *steps)
    sizes = [toy.states("whole")[0].stat().st_size, len(toy.weights("whole"))]
    toy.train("begun", *steps)
    for path in toy.states("begun")[1:]:
        path.unlink()
    log = toy.work / "begun/log.jsonl"
    first = log.read_text().splitlines(True)[:2]
    log.write_text("".join(first))
    # Below 4096 clang's OpenMP, which makes a file of its own, does not even start.
    places = range(4096, sizes[0], 100) if every else [4096, 5000, *(sizes[0] * k // 8 for k in range(1, 8)), sizes[0] - 1, sizes[1] - 1]
    for limit in (4096, sizes[1] - 1):
        toy.refused("File too large", *toy.command("new", *steps), code=3, preexec_fn=lambda limit=limit: limit_files(limit))
    for limit in places:
        shutil.copytree(toy.work / "begun", toy.work / "cut")
        before = toy.states("cut")[0].read_bytes()
        made = toy.run(*toy.command("cut", *steps, "--resume"),
                       preexec_fn=lambda limit=limit: limit_files(limit))
        assert made.returncode == 3 and "File too large" in made.stderr, (limit, made.returncode, made.stderr)
        assert toy.states("cut")[0].read_bytes() == before and not list((toy.work / "cut").rglob("*.part")), limit
        toy.train("cut", *steps, "--resume")
        same(toy, "whole", "cut")
        toy.remove("cut")
    toy.remove("whole", "begun")


def damaged(toy):
    steps = ["--steps", 4, "--save-every", 1, "--keep", 2]
    toy.train("whole", *steps)
    weights = toy.weights("whole")
    for at in (3, 400, 5000, -1):
        toy.remove("whole")
        toy.train("whole", *steps)
        newest = toy.states("whole")[-1]
        data = bytearray(newest.read_bytes())
        data[at] ^= 4
        newest.write_bytes(data)
        made = toy.train("whole", *steps, "--resume")
        assert "damaged" in made.stderr and toy.weights("whole") == weights, made.stderr
    for path in toy.states("whole"):
        path.write_bytes(path.read_bytes()[:2000])
    toy.refused("step-000000000003", *toy.command("whole", *steps, "--resume"))
    toy.remove("whole")


def not_finite(toy):
    made = toy.run(*toy.command("run", "--steps", 9, "--save-every", 1, "--lr", 1e38, "--clip", 0, "--warmup", 0))
    assert made.returncode == 1 and "not finite" in made.stderr, (made.returncode, made.stderr)
    assert any(x.get("event") == "nan" for x in toy.log("run"))
    toy.ok("info", "run")
    toy.remove("run")


def two_at_once(toy):
    first = subprocess.Popen([toy.maskbert, *map(str, toy.command("run", "--minutes", 1))], cwd=toy.work, stderr=subprocess.DEVNULL)
    while not (toy.work / "run").exists():
        time.sleep(0.01)
    toy.refused("another run writes there", *toy.command("run", "--minutes", 1, "--resume"))
    toy.refused("is there already", *toy.command("run", "--minutes", 1))
    first.terminate()
    assert first.wait() == 4
    os.rename(toy.work / "run", toy.work / "run.maskbert-part")  # as one that begins
    for name, options in (("run.maskbert-part", []), ("run", ["--resume"])):
        with open(toy.work / name / "log.jsonl", "r+", encoding="utf-8") as log:  # by a process of another machine
            fcntl.flock(log, fcntl.LOCK_EX)
            toy.refused("another run writes there", *toy.command("run", "--minutes", 1, *options))
        (toy.work / name).rename(toy.work / "run")
    toy.remove("run")


def refusals(toy):
    steps = ["--steps", 2]
    plain = toy.command("new", *steps)
    toy.train("run", *steps, "--seed", 3)
    toy.refused("is there already", *toy.command("run", *steps))
    for name, value in (("--lr", 2e-3), ("--seed", 4), ("--steps", 3), ("--batch", 4), ("--mask", "window(3)"), ("--dropout", 0.2),
                        ("--warmup", 5), ("--betas", "0.9,0.98"), ("--dtype", "bf16"), ("--optimizer", "lamb")):
        toy.refused(name, *toy.command("run", *steps, "--seed", 3, "--resume", name, value))
    toy.refused("`pretrain RUN -o NEW`", *toy.command("run", *steps, "--seed", 3, "--resume", "--lr", 2e-3))
    for variables in ({"OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_SIZE": "4", "PMI_RANK": "0"}):
        made = toy.run(*plain, env={**os.environ, **variables})
        assert made.returncode in (2, 3) and "--ranks 1" in made.stderr and len(made.stderr.splitlines()) == 1, made
    for variables in ({"OMPI_COMM_WORLD_SIZE": "2"}, {"WORLD_SIZE": "2", "RANK": "1"}, {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}):
        toy.refused("is there already", *toy.command("run", *steps, "--ranks", 1), env={**os.environ, **variables})
    for variables in ({"SLURM_PROCID": "0"}, {"SLURM_STEP_NUM_TASKS": "2"}, {"WORLD_SIZE": "1", "RANK": "0"}, {"PMI_SIZE": "1"}):
        toy.refused("is there already", *toy.command("run", *steps), env={**os.environ, **variables})
    toy.refused("--ranks 2", *plain, "--ranks", 2)
    toy.ok("init", "--size", "1x16x1", "--vocab", "vocab.txt", "--positions", 40, "-o", "smaller")
    toy.refused("another shape", "pretrain", "smaller", *toy.command("run", *steps, "--seed", 3, "--resume")[2:])
    weights = toy.weights("run")
    state = toy.states("run")[0]
    good = state.read_bytes()
    assert b"oneDNN" in good and toy.weights("run") == weights
    toy.refused("one of --steps", *toy.command("new"))
    toy.refused("--data", "pretrain", "model", "-o", "new", *steps)
    toy.refused("-o RUN", "pretrain", "model", "--data", "data", *steps)
    toy.refused("-o RUN: a name", "pretrain", "model", "--data", "data", "-o", "", *steps)
    toy.refused("nowhere", "pretrain", "nowhere", "--data", "data", "-o", "new", *steps)
    toy.refused("nowhere", "pretrain", "model", "--data", "nowhere", "-o", "new", *steps)
    toy.refused("device", *plain, "--device", "nowhere")
    for name, value in (("--lr", -1), ("--dropout", 1), ("--clip", -1), ("--betas", "0.9"), ("--schedule", "line"), ("--optimizer", "sgd"),
                        ("--accumulate", 9), ("--dtype", "f16"), ("--recompute", "all"), ("--mlm-probability", 0), ("--objective", "nsp"),
                        ("--drop", "half"), ("--drop", "random:9999"), ("--positions", 8), ("--mask", "window("), ("--transform", "soft"),
                        ("--steps", 0), ("--tokens", 5), ("--warmup", -1), ("--eps", "nan")):
        made = toy.run(*plain, name, value)
        assert made.returncode == 2 and made.stderr.startswith("maskbert") and not (toy.work / "new").exists(), (name, made)
    (toy.work / "words.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *"abcdefghijklmnopqrstuvwxyz"]) + "\n")
    toy.ok("init", "--size", "1x32x2", "--vocab", "words.txt", "--positions", 40, "-o", "other")
    toy.refused("vocabulary", "pretrain", "other", "--data", "data", "-o", "new", *steps)
    shutil.copytree(toy.work / "data", toy.work / "broken")
    path = toy.work / "broken/train.samples"
    path.write_bytes(path.read_bytes()[:-40])
    toy.refused("broken", "pretrain", "model", "--data", "broken", "-o", "new", *steps)
    toy.remove("run", "other", "broken", "smaller")


def other_machines(toy):
    """A state that another library computed."""
    steps = ["--steps", 4, "--save-every", 2, "--keep", 9]
    toy.train("run", *steps)
    toy.states("run")[1].unlink()
    made = toy.run(*toy.command("run", *steps, "--resume"), env={**os.environ, "DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"})
    assert made.returncode in (0, 2), made
    if made.returncode:
        assert "--not-bitwise" in made.stderr and len(toy.states("run")) == 1
        toy.train("run", *steps, "--resume", "--not-bitwise", env={**os.environ, "DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"})
    toy.remove("run")


def plans_nothing(toy):
    """The state holds the compiled kernels: a resumed run needs no compiler and no cache."""
    steps = ["--steps", 4, "--save-every", 2, "--keep", 9, "--mask", "longformer(2,1)"]
    toy.train("run", *steps)
    weights = toy.weights("run")
    toy.states("run")[1].unlink()
    env = {**os.environ, "PATH": "/nonexistent", "XDG_CACHE_HOME": str(toy.work / "empty"), "HOME": str(toy.work)}
    env.pop("MASKC_CC", None)
    toy.train("run", *steps, "--resume", env=env)
    assert toy.weights("run") == weights
    toy.remove("run")


def reports(toy):
    """Output to a pipe: few lines of progress, a line for each evaluation, a summary; eval prints only the words' loss."""
    said = toy.train("run", "--minutes", 0.05, "--eval-every", 100000).stderr.splitlines()
    assert all(x.startswith("maskbert: ") for x in said), said
    live = [re.fullmatch(r"maskbert: step (\d+), loss [\d.]+ \(MLM [\d.]+\), rate [\d.e-]+, \d+ tokens/s(, MFU [\d.]+ %)?, 0:0\d left", x)
            for x in said if " left" in x]
    steps = [int(x[1]) for x in live if x]
    assert None not in live and 2 <= len(live) <= 4 and steps[0] == 1 and steps == sorted(steps), said
    last = [x for x in toy.log("run") if "eval" in x][-1]
    words = f"MLM loss {last['mlm']:.4f}, perplexity {last['perplexity']:.3f}"
    assert f"maskbert: step {last['step']}: held-out {words}" in said[-4], said
    assert re.match(rf"maskbert: {last['step']} steps, {last['tokens']} tokens, [\d.]+ s, \d+ tokens/s; training loss ", said[-3]), said
    assert f"maskbert: held-out {words}" in said[-2] and f"NSP loss {last['nsp']:.4f}" in said[-2], said
    assert said[-1] == "maskbert: run holds the model; next: maskbert eval run --data data", said
    assert toy.ok("eval", "run", "--data", "data").stdout.startswith(words + ", accuracy ")
    done = toy.train("run", "--minutes", 0.05, "--eval-every", 100000, "--resume").stderr
    assert "; no step was left to do" in done, done
    toy.remove("run")
    assert re.search(r"^maskbert: 1 step, \d+ tokens, ", toy.train("run", "--steps", 1).stderr, re.M)
    toy.remove("run")


def words_alone(toy):
    """The head for next sentences, which --objective mlm does not train, is in no loss."""
    said = toy.train("run", "--steps", 20, "--eval-every", 10, "--objective", "mlm").stderr.splitlines()
    assert len([x for x in said if re.match(r"maskbert: step [12]0: held-out MLM loss [^;]* of the masked tokens$", x)]) == 2, said
    assert not any("NSP" in x or "sum" in x or "(MLM" in x for x in said), said
    judged = json.loads(toy.ok("eval", "run", "--data", "data", "--json").stdout)
    last = [x for x in toy.log("run") if "eval" in x][-1]
    assert judged["nsp"] is None and judged["loss"] == judged["mlm"] and abs(judged["mlm"] - last["mlm"]) < 1e-12, (judged, last)
    assert math.isclose(judged["perplexity"], math.exp(judged["mlm"]), rel_tol=1e-12)
    printed = toy.ok("eval", "run", "--data", "data").stdout
    assert printed.startswith(f"MLM loss {last['mlm']:.4f}, ") and "NSP" not in printed, printed
    toy.remove("run")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maskbert", type=os.path.abspath)
    parser.add_argument("only", nargs="?", help="the name of one test")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--few", action="store_true")
    o = parser.parse_args()
    tests = {"learns": learns, "reports": reports, "words_alone": words_alone, "whole_words": whole_words, "overfits": overfits, "lengths": lengths, "goes_on_from_runs": goes_on_from_runs, "threads": threads,
             "parts": parts, "epochs": epochs, "kills": lambda t: kills(t, BITS, 20 if o.long else 3), "signals": signals, "lost_reader": lost_reader,
             "signal_storm": signal_storm, "closed_streams": closed_streams, "cuts": lambda t: cuts(t, o.long), "damaged": damaged, "not_finite": not_finite, "two_at_once": two_at_once,
             "refusals": refusals, "other_machines": other_machines, "plans_nothing": plans_nothing}
    names = [o.only] if o.only else ["damaged", "not_finite"] if o.few else list(tests)
    return run_tests(Toy, o.maskbert, {name: tests[name] for name in names}, {"words.txt", "empty"})


if __name__ == "__main__":
    sys.exit(main())
