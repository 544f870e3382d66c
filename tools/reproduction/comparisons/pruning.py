# SPDX-License-Identifier: Apache-2.0
"""Pruning (SparseBERT, Shi et al. 2021, Figures 3 and 7): P learned in pre-training and pruned by 10 to 90 %, random masks of as many entries; one
stage (DAM_s) against two (P, then a threshold) at equal sparsity."""
import dataclasses
import json
import math
import shutil

import arrays
import learned as learning

from . import drawing, ordering, table, variants

PERCENTS = tuple(range(10, 100, 10))
RUNS = ("p-0", "dam-s-1e-4", "dam-s-1e-1")
SHARE = 0.25  # of --minutes: P and the DAM masks
RATE = "5e-4"
TITLE = "Pruned by P and at random; one stage and two"


def learn(c, name):
    """A run that learns a mask, as in tools/reproduce dam; the facts of it."""
    n, run = c.s.length, c.s.folder / "learned" / name
    def action():
        shutil.rmtree(run, ignore_errors=True)
        run.parent.mkdir(exist_ok=True)
        _, options, seed = learning.options(name, 0)
        c.programs.run("maskbert", "pretrain", c.models.at(n), "--data", c.models.data(n), "-o", run, "--minutes", f"{c.s.minutes * SHARE / len(RUNS):g}", "--objective", "mlm",
                       "--batch", 32, "--lr", RATE, "--warmup", 0.05, "--dtype", c.s.dtype, "--dropout", 0, "--seed", seed, *options, *c.models.threads())
        log = [x for x in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "mlm" in x and "eval" not in x]
        shutil.rmtree(run / "state", ignore_errors=True)
        return {"steps": log[-1]["step"], "mlm": log[-1]["mlm"]}
    return c.once(f"learn-{name}", action)


def importance(c):
    """P as float32 [H,n,n]: sigmoid(alpha)."""
    path = c.s.folder / "masks/P.npy"
    if not path.exists():
        shape, alpha = arrays.read_safetensors(c.s.folder / "learned/p-0/alpha.safetensors", "alpha")
        arrays.write_npy(path, "<f4", shape, [1 / (1 + math.exp(-a)) for a in alpha])
    return path


def dam_mask(c, name):
    return sorted((c.s.folder / "learned" / name).glob("mask.*"))[0]


def prepare(c):
    for name in RUNS:
        learn(c, name)
    importance(c)


def label_of(name):
    return f"DAM_s, lambda {name[6:]}"


def rows(c):
    """Before P is learned, as for --plan, the rows of equal sparsity have no files yet; their names are the same."""
    P = c.s.folder / "masks/P.npy"
    found = [variants.Variant("dense", "dense")]
    for percent in PERCENTS:
        found += [variants.Variant(f"P pruned {percent} %", "P", f"keep:{100 - percent}:{P}"), variants.Variant(f"random {percent} %", "random", f"random:{percent}")]
    for name in RUNS[1:]:
        found += [variants.Variant(label_of(name), "one stage", f"file:{c.s.folder / 'learned' / name / 'mask'}"),
                  variants.Variant(f"P pruned as {label_of(name)}", "two stages", "")]
    return [resolve(c, v, P) for v in found]


def resolve(c, v, P):
    """The files of masks that a run has made."""
    name = next((n for n in RUNS[1:] if v.name.endswith(label_of(n))), None)
    if not name or not (c.s.folder / "stages" / f"learn-{name}.json").exists():
        return v
    mask = f"file:{dam_mask(c, name)}"
    if v.group == "one stage":
        return dataclasses.replace(v, mask=mask)
    n = c.s.length
    kept = sum(variants.counts(c.masks.file(mask, n), c.masks.heads)) / (c.masks.heads * n * n)
    return dataclasses.replace(v, mask=f"keep:{100 * kept:.4f}:{P}")


def judge(c, gathered):
    tasks = table.judged(c, gathered)
    def claim(paper, text, pairs, expects="above"):
        return ordering.judge(paper, text, gathered, tasks, pairs, expects)
    return [claim("SparseBERT 3.4, Figure 3", "Pruning by P is better than at random, at every sparsity", [(f"P pruned {p} %", f"random {p} %") for p in PERCENTS]),
            claim("SparseBERT 3.4, Figure 3", "Pruned by P to 50 % it is not worse than dense", [(f"P pruned {p} %", "dense") for p in PERCENTS if p <= 50], "not below"),
            claim("SparseBERT 4.3.2, Figure 7", "One stage (DAM) is better than two (P, then a threshold) at equal sparsity",
                  [(label_of(n), f"P pruned as {label_of(n)}") for n in RUNS[1:]])]


def note(c, gathered):
    facts = [f"{n} {c.once(f'learn-{n}', dict)['steps']} steps" for n in RUNS]
    return (f"P and the DAM masks are learned in pre-training from the same model ({', '.join(facts)} of 32 sequences, n = {c.s.length}); each row then replaces the mask in "
            "that model, not in the one that learned it. The papers' lambdas keep their ratio to c of their code. \"P pruned as DAM_s\": the most of P, as many entries in all.\n")


def draw(c, gathered, figures):
    def one(task, metric, baselines):
        def at(form):
            return [drawing.point(p, e) for p in PERCENTS if (e := gathered[form.format(p)][task.name])["mean"] is not None]
        rows_of, dense = [row[task.name] for row in gathered.values()], drawing.dense_level(gathered, task)
        axes = {"label": "sparsity (% of the entries that are off)"}, drawing.score(task, metric, dense)
        more = {"levels": [*dense, *baselines]}
        drawing.lines(figures, f"pruning-{task.name}", f"Task {task.name}: pruned by P and at random", axes,
                      [{"name": "pruned by P", "points": at("P pruned {} %")}, {"name": "pruned at random", "points": at("random {} %")}],
                      note=drawing.about(c, task, rows_of, drawing.P_IS, "By P: in each head the entries with the largest P are kept; at random: as many, drawn for each seed.", drawing.WHEN, drawing.shaded(dense, rows_of)),
                      **more)
        series = []
        for words, form in (("one stage: DAM by distance", "{}"), ("two stages: pruned by P", "P pruned as {}")):
            found = [(n, e) for n in RUNS[1:] if (e := gathered[form.format(label_of(n))][task.name])["mean"] is not None]
            series.append({"name": words, "joined": False, "points": [drawing.point(e["sparsity"], e) for _, e in found], "ring": form != "{}",
                           "names": [n[6:] if form == "{}" else "" for n, _ in found]})
        drawing.lines(figures, f"stages-{task.name}", f"Task {task.name}: masks by distance in one stage, by P in two", axes, series,
                      note=drawing.about(c, task, rows_of, drawing.DAM_IS,
                                         drawing.P_IS, "One stage: the mask as it was learned. Two stages: the same share of entries as DAM's, in each head those with the largest P.", drawing.WHEN, drawing.shaded(dense, rows_of)), **more)
    drawing.each_task(c, gathered, one)
