#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands_test.py MASKC MASKBERT: do the commands that draw send maskc.figures their numbers, whole or not at all? Without matplotlib they end
with 3 and one line that names the package, and change no file. What draws is skipped where this Python has no matplotlib."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "train"))
from pretrain_toy import Toy  # noqa: E402

LINE = "the cat sees a red apple .\n"
MISSING = "figures need matplotlib, which this python3 lacks: apt install python3-matplotlib, or python3 -m pip install matplotlib"
SVG = "{http://www.w3.org/2000/svg}"
BENCH = ["bench", "star", "-n", "64", "--heads", "1", "--dtype", "f32", "--head-dim", "16", "--seconds", "0.02", "--threads", "1", "--clock", "cpu"]


class Commands(Toy):
    """The toy with a run that learned a mask, and the command maskc."""

    def __init__(self, maskc, maskbert, work):
        super().__init__(maskbert, work)
        self.programs = {"maskc": maskc, "maskbert": maskbert}
        self.train("run", "--steps", 12, "--learn-mask", "dam-s", "--lambda", 0, "--save-every", 4, "--keep", 9, "--eval-every", 6)
        (self.work / "line.txt").write_text(LINE * 8)

    def figures(self):
        """name: (program, command without the figure's file, option of that file, standard input)"""
        return {"plot": ("maskbert", ["plot", "run", "--y", "mlm", "--x", "tokens"], "-o", None),
                "importance": ("maskbert", ["importance", "run"], "-o", None), "film": ("maskbert", ["importance", "run", "--film"], "-o", None),
                "attention": ("maskbert", ["attention", "run", "--json"], "-o", LINE),
                "prune": ("maskbert", ["prune", "run", "--input", "line.txt", "--keep", "10,50", "--json", "-o", "pruned"], "--plot", None),
                "times": ("maskc", [*BENCH, "--json"], "--plot", None)}

    def draw(self, name, path, *more, **environment):
        program, command, option, given = self.figures()[name]
        self.maskbert = self.programs[program]
        return self.run(*command, option, path, *more, stdin=given, env={**os.environ, "MASKC_PYTHON": sys.executable, **environment})

    def texts(self, path):
        root = ElementTree.parse(self.work / path).getroot()
        return [(t.text or "").replace("\N{MINUS SIGN}", "-") for t in root.iter(SVG + "text")]


def without_matplotlib(toy):
    """Each command: 3, one line, no file; an older file stays. prune, attention and bench end before they measure."""
    (toy.work / "fake").mkdir()
    (toy.work / "fake/matplotlib.py").write_text("raise ImportError(\"No module named 'matplotlib'\", name='matplotlib')\n")
    (toy.work / "old.svg").write_text("old")
    for name in toy.figures():
        for environment in ({"PYTHONPATH": str(toy.work / "fake")}, {"MASKC_PYTHON": "/nowhere/python3"})[:2 if name in ("plot", "times") else 1]:
            made = toy.draw(name, "old.svg", **environment)
            says = MISSING if "PYTHONPATH" in environment else "/nowhere/python3 with matplotlib, and it cannot be started: apt install python3-matplotlib"
            assert made.returncode == 3 and made.stderr.count("\n") == 1 and says in made.stderr and not made.stdout, (name, made)
        assert (toy.work / "old.svg").read_text() == "old" and not (toy.work / "pruned").exists(), name


def refusals(toy):
    """Before any work, and before python3 is asked for."""
    for name in toy.figures():
        made = toy.draw(name, "a.jpg", MASKC_PYTHON="/nowhere/python3")
        assert made.returncode == 2 and "a.jpg: a figure is .pdf, .svg or .png\n" in made.stderr, (name, made)
        made = toy.draw(name, "a.svg", "--columns", 3, MASKC_PYTHON="/nowhere/python3")
        assert made.returncode == 2 and "--columns 3: 1 or 2 is expected\n" in made.stderr, (name, made)
        assert not (toy.work / "a.jpg").exists() and not (toy.work / "a.svg").exists()


def curves(toy):
    (toy.work / "other").mkdir()
    shutil.copyfile(toy.work / "run/log.jsonl", toy.work / "other/log.jsonl")
    made = toy.draw("plot", "a.svg", "other/log.jsonl")
    assert made.returncode == 0 and not made.stdout and not made.stderr, made
    said = toy.texts("a.svg")
    for word in ("run", "other", "masked-word loss (nats)", "each step", "held-out text"):
        assert word in said, (word, said)
    run = json.loads((toy.work / "run/run.json").read_text())
    assert re.search(r"run: model \d+x\d+x\d+ .*, batches of " + str(run["batch"]), " ".join(said)), said
    label = next(t for t in said if t.startswith("training tokens"))
    unit = {"training tokens": 1, "training tokens (thousands)": 1000}[label]
    last = [x for x in toy.log("run") if "lr" in x][-1]["tokens"]
    ticks = [unit * float(t) for t in said[:said.index(label)] if re.fullmatch(r"[\d.]+", t)]
    assert last / 2 < max(ticks) <= 1.05 * last, (last, ticks)  # an axis ends a little beyond


def learned_masks(toy):
    """The border of dam-s is forced on; each state has its step."""
    made = toy.draw("importance", "a.svg", "--columns", 1)
    assert made.returncode == 0 and made.stdout.startswith("P "), made
    for word in ("head 0", "head 1", "by distance", "P, in all maps"):
        assert word in toy.texts("a.svg"), (word, toy.texts("a.svg"))
    assert "forced on and left out" in " ".join(toy.texts("a.svg"))
    assert 'width="237.6pt"' in (toy.work / "a.svg").read_text()
    assert toy.draw("film", "a.svg").returncode == 0
    for word in ("step 4", "step 8", "step 12", "head 0", "head 1"):
        assert word in toy.texts("a.svg"), (word, toy.texts("a.svg"))


def attention(toy):
    """Above each map the number of keys that --json says; JSON is what it is without a figure."""
    made = toy.draw("attention", "a.svg")
    plain = toy.run("attention", "run", "--json", stdin=LINE)
    assert made.returncode == 0 and made.stdout == plain.stdout, made
    told, said = json.loads(made.stdout), toy.texts("a.svg")
    for word in [f"{h['mean_support']:.1f} keys" for h in told["heads"]] + ["layer 0", "head 0", "head 1", "attention probability", *told["tokens"]]:
        assert word in said, (word, said)


def pruned(toy):
    made = toy.draw("prune", "a.svg", "--head", 1)
    assert made.returncode == 0, made
    said = toy.texts("a.svg")
    told = json.loads(made.stdout)
    sparsities = [f"sparsity {100 * (1 - row['density']):.1f} %" for row in told["masks"]]
    assert len(sparsities) == 2, told
    for word in ["Layer 0, head 1", "mean attention", "10 % of", "50 % of", "keep", *sparsities]:
        assert word in said, (word, said)


def times(toy):
    """Bars for one length, whose speedups are those of --json."""
    made = toy.draw("times", "a.svg")
    assert made.returncode == 0, made
    said = toy.texts("a.svg")
    for row in json.loads(made.stdout)["results"]:
        assert any(t.endswith(f"{row['speedup']:.2g} \N{MULTIPLICATION SIGN} as fast as dense") for t in said), (row, said)
        assert f"f32 {row['pass']}" in said, said
    assert any("64 tokens, cpu" in t and "1 thread, 1 head," in t for t in said), said


def main():
    maskc, maskbert = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as work:
        toy = Commands(maskc, maskbert, work)
        without_matplotlib(toy)
        refusals(toy)
        if "--few" in sys.argv:
            return 0
        try:
            import matplotlib  # noqa: F401
        except ImportError as e:
            print(f"skipped, but for what needs no figure: {sys.executable} has no matplotlib ({e}); apt install python3-matplotlib")
            return 77
        for test in (curves, learned_masks, attention, pruned, times):
            test(toy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
