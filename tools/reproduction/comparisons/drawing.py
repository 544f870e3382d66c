# SPDX-License-Identifier: Apache-2.0
"""Figures by python3 -m maskc.figures, where it and matplotlib are there."""
import json
import os
import pathlib
import re
import subprocess
import sys

from . import folders, ordering, table

MODULE = pathlib.Path(__file__).resolve().parents[3] / "runtime/python/maskc/figures"


class Figures:
    def __init__(self, folder, say):
        self.folder, self.say, self.made, self.missing = folder, say, {}, None

    def command(self, *arguments):
        python = os.environ.get("MASKC_PYTHON", sys.executable)
        return [python, MODULE, *arguments] if MODULE.is_dir() else [python, "-m", "maskc.figures", *arguments]

    def draw(self, name, title, kind, content):
        """A figure as NAME.svg; one line says why there is none."""
        if self.missing:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.svg"
        done = subprocess.run([str(x) for x in self.command(kind, "-o", path, "--columns", "1")], input=json.dumps(content).encode(), capture_output=True, check=False)
        if done.returncode == 0:
            self.made[path.name] = title
            return
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        if done.returncode == 2:
            self.say(f"the figure {path.name} is left out: {why}")
        else:  # matplotlib or the module is missing: once is enough
            self.missing = why
            self.say(f"figures are left out: {why}")

    def markdown(self):
        return "".join(f"\n![{title}](figures/{name})\n\n{title}\n" for name, title in self.made.items())


# ---- words ----

TASKS = {"section": "which section of the archive a package is in, by its description", "synopsis": "whether a synopsis belongs to a description (half do, the others are of the same section)",
         "endings": "which of four endings follows", "subject": "where in a text the subject of its synopsis is, or nowhere"}
LONG = "where in a text an answer is, in texts that are joined with others to fill n"
BASELINES = {"majority": "majority", "bag-of-words": "bag of words"}
MASKS = (("longformer", "longformer: distances up to 5, 2 global tokens"), ("fixed", "fixed: blocks of 4, and the last column of each"),
         ("strided", "strided: distances up to 4, and multiples of 4"), ("bigbird", "bigbird: distance 1, 2 global tokens, 2 random keys a query"),
         ("star", "star: neighbours and the first token"), ("logsparse", "logsparse: distances 0, 1, 2, 4, .., 64"),
         ("blockbert", "k blocks, heads a:b:..: tokens in k blocks; a heads see their own block, b the next one, .."), ("fairseq", "fairseq-fixed: blocks of 128, and the last 32 columns of each"),
         ("learned", "learned: in pre-training, by the run of that name (dam-s: distances on or off, then lambda)"))
DAM_IS = "DAM: masks learned in pre-training; each distance |i \N{MINUS SIGN} j| of a head is on or off; 1e-4, 1e-1: lambda, the price of an entry that is on."
P_IS = "P: probability, learned in pre-training, that an entry (query, key, head) is on."
WHEN = "The model was pre-trained with dense attention; a mask acts from fine-tuning on."
WORDS_TASKS = ("section", "synopsis", "endings")
BASELINES_ARE = ("Majority: always the most frequent answer. Bag of words: logistic regression on words, of two texts on words that both have and on pairs of "
                 "words; trained on all examples.")


def score(task, metric, dense=()):
    """The axis of a metric. It begins at 0 where chance around dense goes below that."""
    label = {"f1": "F1", "exact_match": "exact match"}.get(metric, metric) + f" on task {task.name} (%)"
    return {"label": label, **({"least": 0} if any(x["value"] < x.get("band", 0) for x in dense) else {})}


def mask_name(label):
    """blockbert-2 10:2 (here 3:1) is 2 blocks, heads 3:1."""
    found = re.fullmatch(r"blockbert-(\d) ([\d:]+)(?: \(here ([\d:]+)\))?", label)
    return f"{found[1]} blocks, heads {found[3] or found[2]}" if found else label.replace(" (SparseBERT)", "")


def masks_are(labels):
    return "; ".join(words for name, words in MASKS if any(label.startswith(name) for label in labels)) + "."


def about(c, task, entries, *words):
    """The note of a figure: names, the model, the examples, the seeds."""
    found = [e for e in entries if e["mean"] is not None]
    seeds = sorted({e["seeds"] for e in found})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    model = f"Model: {c.model_text()}, n = {task.length}, " if c.model_text() else f"n = {task.length}, "
    made = f"fine-tuned on {found[0]['examples']} examples, tested on {found[0]['dev']} others; {count} seed{'s' * (seeds != [1])} a point."
    known = LONG if task.name.startswith("long-") else TASKS.get(task.name)
    task_is = f"Task {task.name}" + (f": {known}." if known else ".")
    return "\n".join(filter(None, [task_is, " ".join(filter(None, words)), model + made, BASELINES_ARE if task.name in WORDS_TASKS else ""]))


# ---- numbers ----

def point(x, e):
    """[x, mean, deviation], in percent."""
    return [x, e["mean"]] + ([e["deviation"]] if e["deviation"] is not None else [])


def level(name, value, band=None):
    return {"name": f"{name}: {value:.1f}", "value": value, **({"band": band} if band else {})}


def dense_level(gathered, task, label="dense", name="dense"):
    """With what chance may put between it and another row of as many seeds and examples."""
    e = gathered[label][task.name]
    if e["mean"] is None:
        return []
    found = ordering.difference(gathered, label, label, task.name)
    return [level(name, e["mean"], found and found[1])]


def shaded(levels, entries):
    """What the band of a level says: its height, and which differences it judges."""
    bands = [x for x in levels if "band" in x]
    if not bands:
        return ""
    around = " and ".join(f"{x['band']:.1f} points around {x['name'].rpartition(':')[0]}" for x in bands)
    seeds = " and seeds" if any(e["seeds"] > 1 for e in entries) else ", not over seeds"
    return (f"Shaded: {around}, {ordering.TIMES} standard errors of a difference of two scores, over examples{seeds}. "
            "Marks inside cannot be told from the line, nor marks that close from each other.")


def lines(figures, name, title, axes, series, **more):
    """axes: of x and y; series: dictionaries of the kind; those without points are left out."""
    series = [x for x in series if x["points"]]
    if series:
        figures.draw(name, title, "lines", {"title": title, "x": axes[0], "y": axes[1], "series": series, **more})


def dots(figures, name, title, axis, rows, series, **more):
    """rows: dictionaries of the kind; series: (name, [entry or None of each row], more fields)."""
    kept = [r for r in range(len(rows)) if any(es[r] and es[r]["mean"] is not None for _, es, _ in series)]
    found = []
    for label, entries, fields in series:
        entries = [entries[r] if entries[r] and entries[r]["mean"] is not None else None for r in kept]
        if any(entries):
            found.append({"name": label, "values": [e and e["mean"] for e in entries], "deviations": [e and e["deviation"] for e in entries], **fields})
    if found:
        figures.draw(name, title, "dots", {"title": title, "x": axis, "rows": [rows[r] for r in kept], "series": found, **more})


def each_task(c, gathered, draw):
    """draw(task, metric, levels) for each task that has a score; levels are the baselines."""
    for task in c.tasks:
        metric = next((row[task.name]["metric"] for row in gathered.values() if row[task.name]["metric"]), None)
        if metric:
            found = [(BASELINES[m], b[0]) for m in table.BASELINES if (b := table.baseline(c, metric, task, m))]
            if BASELINES["majority"] not in dict(found) and (most := folders.majority(task)) is not None:
                found.insert(0, (BASELINES["majority"], most))
            draw(task, metric, [level(name, value) for name, value in found])
