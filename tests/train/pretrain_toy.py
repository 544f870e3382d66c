# SPDX-License-Identifier: Apache-2.0
"""A corpus of one kind of sentence, a model of one layer, and maskbert: what the tests of runs share."""
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import tempfile
import time

SUBJECTS = "the cat|a dog|my friend|the old man|this woman|a small bird|the teacher|our king".split("|")
VERBS = "sees likes eats finds takes brings hears wants".split()
OBJECTS = "a red apple|the green tree|some water|the big house|an open door|the blue sky".split("|")


class Toy:
    """A corpus, a model of one layer, and the command."""

    def __init__(self, maskbert, work):
        self.maskbert, self.work = maskbert, pathlib.Path(work)
        draw = random.Random(1)
        lines = []
        for _ in range(60):
            lines += [f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(OBJECTS)} ." for _ in range(draw.randint(3, 9))]
            lines.append("")
        text = "\n".join(lines) + "\n"
        (self.work / "text.txt").write_text(text)
        self.ok("vocab", "--size", 90, "-o", "vocab.txt", stdin=text)
        self.ok("init", "--size", "1x32x2", "--vocab", "vocab.txt", "--positions", 40, "-o", "model")
        self.ok("prep", "text.txt", "--vocab", "model", "--length", 32, "--held-out", 0.1, "-o", "data")

    def run(self, *command, stdin=None, **more):
        return subprocess.run([self.maskbert, *map(str, command)], cwd=self.work, input=stdin, capture_output=True, text=True,
                              check=False, **more)

    def kill_three_times(self, command, run, seconds):
        """A run that is killed after seconds(), gone on with and killed again, as long as it leaves a folder."""
        for turn in range(3):
            child = subprocess.Popen(command + ["--resume"] * (turn > 0), cwd=self.work, stderr=subprocess.DEVNULL)
            time.sleep(seconds())
            child.kill()
            child.wait()
            if not (self.work / run).exists():
                break

    def ok(self, *command, **more):
        made = self.run(*command, **more)
        assert made.returncode == 0, f"{command}: {made.returncode}: {made.stderr}"
        return made

    def command(self, run, *options):
        return ["pretrain", "model", "--data", "data", "-o", run, "--lr", 1e-3, "--batch", 8, *options]

    def train(self, run, *options, **more):
        return self.ok(*self.command(run, *options), **more)

    def refused(self, says, *command, code=2, **more):
        """One line that says it; nothing new in the folder."""
        before = sorted(os.listdir(self.work))
        made = self.run(*command, **more)
        lines = [x for x in made.stderr.splitlines() if "unigram entropy" not in x]
        assert made.returncode == code, f"{command}: {made.returncode}: {made.stderr}"
        assert len(lines) == 1 and says in lines[0], f"{command}: {made.stderr}"
        assert before == sorted(os.listdir(self.work)), f"{command} left something behind"

    def log(self, run):
        return [json.loads(x) for x in (self.work / run / "log.jsonl").read_text().splitlines()]

    def losses(self, run):
        """The last line of a step counts."""
        return {x["step"]: (x["loss"], x["grad_norm"]) for x in self.log(run) if "lr" in x}

    def weights(self, run):
        return (self.work / run / "model.safetensors").read_bytes()

    def states(self, run):
        return sorted((self.work / run / "state").iterdir())

    def moments(self, run):
        """Parameters and moments of the newest state: all but the times, and the name that the kernel has for its mask."""
        return tensors(self.states(run)[-1], "value", "first_moment", "second_moment")

    def remove(self, *runs):
        for run in runs:
            shutil.rmtree(self.work / run)


def same(toy, a, b):
    """Two runs end with the same bits."""
    assert toy.weights(a) == toy.weights(b), f"{a} and {b} have other weights"
    assert toy.moments(a) == toy.moments(b), f"{a} and {b} have other moments"
    assert toy.losses(a) == toy.losses(b), f"{a} and {b} have other losses"


def follows_the_clock(log, seconds, peak, warmup=0.01):
    """Each step's rate is the linear schedule's at some time between the end of the step before it and its own end. Before the
    last step there was time left."""
    def rate(time):
        share = time / seconds
        return peak * max(0, share / warmup if share <= warmup else (1 - share) / (1 - warmup))

    begin = 0
    for x in log:
        between = [rate(begin), rate(x["elapsed_s"])]
        highest = peak if begin <= warmup * seconds <= x["elapsed_s"] else max(between)
        assert min(between) - 2e-4 * peak <= x["lr"] <= highest + 2e-4 * peak, (x, between)
        assert begin < seconds, x
        begin = x["elapsed_s"]


def tensors(path, *names):
    """The bytes of each of these tensors of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return [data[8 + size + begin:8 + size + end] for begin, end in (header[n]["data_offsets"] for n in names)]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_tests(make_toy, maskbert, tests, left=(), probe=()):
    """Each of the tests, which leave only what they began with and what `left` names; exit code 77 where nothing can be trained."""
    with tempfile.TemporaryDirectory() as work:
        toy = make_toy(maskbert, work)
        made = toy.run(*toy.command("probe", "--steps", 1, *probe))
        if made.returncode == 3:
            print(f"{made.stderr}\n[  SKIPPED ] 1 test(s).")
            return 77
        toy.remove("probe")
        for name, test in tests.items():
            begin, used = time.time(), children_seconds()
            test(toy)
            print(f"{name}: {time.time() - begin:.1f} s, {children_seconds() - used:.1f} of processor time", flush=True)
            rest = set(os.listdir(work)) - {"text.txt", "vocab.txt", "model", "data", *left}
            assert not rest, rest
    print(f"[==========] {len(tests)} test(s) run.\n[  PASSED  ] {len(tests)} test(s).")
    return 0
