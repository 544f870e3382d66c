# SPDX-License-Identifier: Apache-2.0
"""Text of REPRODUCTION.md: each claim of the papers with its measurement, and the method."""
import re

import learned
import longer
import pictures
import rows
import table
from claims import AGREES, DIFFERS, OPEN, TIMES

HEAD = "# Reproduction: what the papers claim, measured here\n"

OPENING = """
The papers train BERT-base for days and judge by tasks (GLUE, SQuAD). Here a BERT of {size} (layers x hidden size x heads, n = {n}) trains for minutes and is judged
by the loss of masked words in held-out text. A verdict applies only to this model at this size. {differing}
[Comparisons on tasks](reproduction/tasks.md) are on a separate page. SparseBERT is Shi et al. 2021, "SparseBERT: Rethinking the Importance Analysis in
Self-attention"; BlockBERT is Qiu et al. 2020. P is the learned importance of an entry, sigmoid of alpha; DAM is SparseBERT's differentiable attention mask, of entries (DAM_u) or of distances (DAM_s: `dam-s-1e-3` has the paper's lambda 1e-3).
"""

MADE = """
## How this page was made

`tools/reproduce dam` wrote this page from its results. Only the note was written by hand (`--note`). The same command on another machine, or with more time, writes a different page:

```
tools/reproduce dam --minutes 60 -o DIR --page model/REPRODUCTION.md
```
"""

METHOD = """
## How it was measured

- **Text.** {text}, {megabytes:.1f} MB; vocabulary of {vocabulary} pieces; {train:,} training tokens, {held:,} held out; unigram entropy {unigram:.3f} nats.
- **Plateau.** Without any key the loss is {reference:.3f} nats ({whence}; it is below the unigram entropy because a tenth of the
  masked words is left in place). A loss within {plateau} nats of it, or above it, says nothing about masks: the row is marked, and no verdict counts it.
  A run that learned a mask is marked if its own final loss is on the plateau (for P, the loss under P). The sparsity and distances that it learned still count if the dense model is off the plateau. A loss on the plateau never counts.
- **Start.** {start}
- **Dense.** {dense}
- **Learning.** {learning}
- **Rows.** For each row but "P settled", which continues P's own run ([The table](#the-table)), the dense model's attention is switched to the row's mask. The model then trains for {row_steps} steps ({row_tokens:,} tokens, rate 5e-4) and is
  evaluated.{shift} The papers pre-train each mask from the start; here all start from the same model, which needs only minutes.
- **Objective.** Masked words only (15 %), full sentences, AdamW, no dropout, {dtype}, batches of {batch} sequences, seeds from {seed} on. A run that continues another one
  sees the samples in another order.
- **Verdicts.** A claim agrees if no pair of rows speaks against it and at least one speaks for it; one against it makes it "does not agree". A difference is the first
  mask's loss minus the second's. For a claim of no harm, pairs within chance speak for it. With no pair that counts it cannot be said. A difference of P counts if its mean over the seeds is more than 2 standard errors away from 0 (+-: standard deviation).
- **Chance.** {noise}
- **Times** are medians on {threads} of a machine that other programs may have used. "x dense" is how many times as fast as our own dense kernel (dense's time / the mask's), timed alternately in one
  process. It is more reliable than the times, but a single value can still be off. A step's time is the median of the row's run.
- **Duration.** All stages took {took:.1f} minutes.{note}
"""


def compose(s, g, verdicts, left_out, made):
    parts = [HEAD, opening(verdicts, s.size, s.length), unfinished(g), claims_table(verdicts)]
    if g["samples"] and g["plan"]:
        parts.append(METHOD.format(**facts(s, g)))
    if g["runs"]:
        parts.append(learned_section(g))
    parts += [figures(made), cost_section(g), table_section(g), left_section(left_out), MADE]
    return "\n".join(p.strip("\n") + "\n" for p in parts if p)


def opening(verdicts, size, n):
    """One table and one paragraph: verdicts by paper, and the claims that do not agree."""
    papers = {}
    for c in verdicts:
        papers.setdefault(re.split("[ ,]", c["paper"])[0], []).append(c["verdict"])
    lines = ["| claims of | all | agree | do not agree | cannot be said |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {name} | {len(found)} | " + " | ".join(str(found.count(v)) for v in (AGREES, DIFFERS, OPEN)) + " |" for name, found in papers.items()]
    differing = [f"\"{c['claim']}\" ({c['paper']})" for c in verdicts if c["verdict"] == DIFFERS]
    text = "Claims with a pair or figure against them: " + "; ".join(differing) + "." if differing else "No claim disagrees."
    return "\n".join(lines) + "\n" + OPENING.format(size=size, n=n, differing=text)


def unfinished(g):
    if not g["dense"]:
        return "**The dense model is not done.** This page makes no claim about masks."
    if g["dense"]["plateau"]:
        return "**The dense model is on the plateau**: it trained too little for attention to matter, because its loss is near that of the row without any key. This page makes no claim about masks."
    return ""


def claims_table(verdicts):
    lines = ["## Claims", "", "| paper | claim | measured | verdict |", "| --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {c['paper']} | {c['claim']} | {c['measured']} | **{c['verdict']}** |" for c in verdicts])


def facts(s, g):
    first = next(iter(g["entries"]), {"tokens": 0})
    n = g["noise"]
    return {"text": g["corpus"]["text"], "megabytes": g["corpus"]["bytes"] / 1e6, "vocabulary": s.vocabulary, "unigram": g["unigram"],
            "train": g["samples"]["train"]["tokens"], "held": g["samples"]["held-out"]["tokens"], "dense": run_text(g["dense"]), "start": start_text(g["start"]),
            "learning": learning_text(g), "row_steps": g["plan"]["row"], "row_tokens": first["tokens"], "dtype": s.dtype, "batch": s.batch,
            "seed": s.seed, "plateau": table.PLATEAU, "reference": g["reference"],
            "whence": "row \"none\", trained like all others" if any(e["mask"] == "none" for e in g["entries"]) else "taken as 0.9 of the unigram entropy", "threads": threads_text(g["threads"] or [s.threads]), "shift": shift_text(g),
            "took": g["took_s"] / 60, "note": f"\n- **Note.** {s.note}" if s.note else "",
            "noise": "No two dense rows were run with two seeds, so no difference of losses is judged." if n is None else
            f"Rows are compared seed by seed (the same batches in the same order). For the second and the third row of the [table](#the-table), the difference from dense varies over seeds with a standard deviation of {n:.4f} nats "
            f"(pooled). A mean difference over k seeds counts if it exceeds {TIMES} x {n:.4f} / sqrt(k). Masks further from dense may spread more: a small difference "
            "between two of them is weak evidence."}


def threads_text(counts):
    """Names the threads of the calls that made the results; 0: all of the machine."""
    said = [f"{k} thread{'s' * (k > 1)}" if k else "all threads" for k in counts]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]} (DIR/results has those of each)"


def shift_text(g):
    """The dense model's loss before and after the steps of a row."""
    row = next((e for e in g["entries"] if e["mask"] == "dense"), None)
    if not row or not g["dense"]:
        return ""
    return f" These steps change the dense model's own loss from {g['dense']['mlm']:.3f} to {row['mlm']:.3f}, so compare each row with the dense row."


def run_text(run):
    if not run:
        return "not done."
    return (f"{run['steps']} steps, {run['tokens']:,} tokens, seed {run['seed']}: held-out loss {run['mlm']:.3f} nats, "
            f"{100 * run['accuracy']:.1f} % of the masked words right" + (" (on the plateau)." if run["plateau"] else "."))


def start_text(run):
    if not run:
        return "not done."
    return (f"The dense model begins from one trained with the mask {run['mask']} ({run['steps']} steps, {run['tokens']:,} tokens; held-out loss {run['mlm']:.3f} nats with that "
            "mask). With dense attention from random weights, a model of this size stays on the plateau for thousands of steps. So everything learned below starts from a model in "
            "which neighbours and the diagonal mattered from the first step.")


def learning_text(g):
    if not g["runs"]:
        return "no mask was learned; see the end of this page."
    seeds = sum(name.startswith("p-") for name in g["runs"])
    p, dam = (next((r for name, r in g["runs"].items() if name.startswith(kind)), None) for kind in ("p-", "dam"))
    parts = [f"P with {seeds} seeds, {p['steps']} steps ({p['tokens']:,} tokens) each"] if p else []
    parts += [f"DAM {dam['steps']} steps ({dam['tokens']:,} tokens) each, with one seed"] if dam else []
    return ", ".join(parts) + ". Each continues from the dense model at rate 1e-3 (alpha at ten times that), by `maskbert pretrain --learn-mask` with its other defaults. " + LAMBDA


LAMBDA = (f"The names give the paper's lambdas. c is the amount that a change of 1 in the mask adds to a score: {learned.PAPER_SCALE} in the paper's code, {learned.SCALE} here. "
          f"The gradient of alpha is c dX + lambda, so only lambda / c matters, and each run passes lambda / {learned.PAPER_SCALE // learned.SCALE}.")


def learned_section(g):
    out = ["## What was learned", ""]
    p = {name: r for name, r in g["runs"].items() if name.startswith("p-")}
    if p:
        out += ["Mean of P = sigmoid(alpha) over heads, by kind of entry; special is the border, the first and the last row and column.", "",
                "| seed | own held-out loss | diagonal | distance 1 | distance 2 | special | rest | all but the diagonal |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        out += [f"| {r['seed']}{' (plateau)' if r['plateau'] else ''} | {r['own_mlm']:.4f} | " + " | ".join(f"{r['P'][k]['mean']:.5f}" for k in ("diagonal", "distance 1", "distance 2", "special", "rest")) +
                f" | {learned.off_diagonal_mean(r['P']):.5f} |" for r in p.values()]
        out.append("")
    return "\n".join(out + dam_lines(g))


def dam_lines(g):
    """Which distances each head keeps: near each other, or scattered?"""
    out, dam = [], {name: r for name, r in g["runs"].items() if name.startswith("dam")}
    if dam:
        out += ["A head keeps a distance if more than half of its entries, without the border, are on (distance 0 is the diagonal). For each head: how many it keeps, and how many groups they form. "
                "A group is a run of consecutive distances.", "", "| run | own held-out loss | kept / groups, heads 0 to 11 |", "| --- | --- | --- |"]
    for name, r in dam.items():
        heads = " ".join(f"{len(d)}/{learned.groups(d)}" for d in r["kept_distances"])
        out.append(f"| {name}{' (plateau)' if r['plateau'] else ''} | {r['own_mlm']:.4f} | {heads} |")
    if g.get("in_gallery") is not None:
        out += ["", f"`{longer.GALLERY}` of the gallery is " + (f"the mask of {longer.MASK}, entry by entry." if g["in_gallery"] else f"of another run, not that of {longer.MASK}.")]
    off = {name: r for name, r in dam.items() if not r["plateau"]}
    heads = [d for name, r in off.items() if name.startswith("dam-s") for d in r["kept_distances"]]
    kept = [d for d in heads if d]
    if not off:
        out += ["", "All of these runs are on the plateau, so they do not show which distances are learned."] if dam else []
    elif kept:
        out += ["", grouped(heads, kept)]
    elif any(name.startswith("dam-s") for name in off):
        out += ["", "No DAM_s head keeps a distance: only the border is left, so these runs do not show whether learned distances are near each other. "
                "AdamW divides the gradient of each alpha by its size, so wherever the price outweighs the task, alpha falls at the same pace for any lambda."]
    return out


def grouped(heads, kept):
    """Are a head's distances one band, or do they stand apart?"""
    count, groups = sum(map(len, kept)), sum(map(learned.groups, kept))
    near = sum(d <= 4 for distances in kept for d in distances)
    return (f"{len(kept)} of the {len(heads)} heads of the DAM_s runs off the plateau keep a distance. Such a head keeps {count / len(kept):.1f} distances in the mean, "
            f"in {groups / len(kept):.1f} groups, so a group has {count / groups:.2f} distances. " +
            ("We call them scattered: most groups have one distance or two. " if count / groups < 2 else
             "We call them banded: a group has two distances or more in the mean. ") +
            f"{100 * near / count:.0f} % of the kept distances are at most 4.")


FIGURES = (("P", "P of each entry, mean over the 12 heads, dark where large (Figure 2); `maskbert importance DIR/runs/p-0 -o P.png` draws each head"),
           ("P by distance", "P by distance"),
           ("pruning", "Masks pruned by P and at random (Figure 3)"), ("dam-u", "DAM by entry (DAM_u), lambda 1e-1, dark: on (Figure 5)"),
           ("dam-s", "DAM by distance (DAM_s), lambda 1e-1, dark: on; the first and last row and column are always on (Figure 6)"),
           ("film", "DAM by distance (DAM_s), lambda 1e-3, over the steps, dark: on; `maskbert importance DIR/runs/dam-s-1e-3 --film -o film.png`"), ("stages", "Masks learned in one stage and in two (Figure 7)"),
           ("sparsity", "Sparsity and loss of all masks with the diagonal"), ("loss", f"Training loss, dense and learning masks, means of {pictures.BINS} parts of each run; `maskbert plot DIR/runs/* -o loss.png --x tokens --y mlm` draws each step"))


def figures(made):
    shown = [f"### {title}\n\n![{title}](pictures/{made[name]})\n" for name, title in FIGURES if name in made]
    missing = [title for name, title in FIGURES if name not in made]
    how = "`python3 tools/reproduction/pictures.py PAGE.md` redraws the figures that come from the table and `numbers.json`." if made else ""
    return "\n".join(["## Figures", "", *([how, ""] if how else []), *shown] + (["Not drawn, because their data was not measured: " + "; ".join(missing) + "."] if missing else []))


def cost_section(g):
    speed = g["speed"]
    if not speed or not speed["learning"]:
        return ""
    return f"""
## What it costs

A step of dense training took {1e3 * speed['step']:.1f} ms, one that learns DAM_s {1e3 * speed['learning']:.1f} ms: {speed['learning'] / speed['step']:.2f} times as much
(medians of 8 steps, one run after the other).{long_text(g)}"""


def long_text(g):
    if not g["long"]:
        return ""
    cells = [f"n={t['length']} {t['pass']} {t['speedup']:.2f} x as fast" for t in g["long"]["times"]]
    return (f"\n\nAttention under the mask of {g['long'].get('mask', 'dam-s-1e-1')} (distances learned at the n of the runs, and a border; batch 1), compared with our own dense kernel, timed alternately: " +
            ", ".join(cells) + "." + steps_text(g))


def steps_text(g):
    if not g["longer"]:
        return ""
    return (f"\n\nWhole training steps under that mask and dense, {longer.ROUNDS} alternating runs of each, with equally many tokens in each step; medians:\n\n" +
            "\n".join(f"- {line}." for line in longer.say(g["longer"])))


def table_section(g):
    if not g["entries"]:
        return "## The table\n\nNo row is done."
    return ("## The table\n\n\"- diagonal(0)\": trained and evaluated under the same mask without its diagonal. Rows with the same mask and seed are run once. \"random as X\": as many entries in each head as X has. "
            "\"P pruned\": without the smallest P (first seed) of each head; \"random\": as many, drawn. \"P threshold S\": as many of the largest entries of P as fit within S times dense's predicted time. \"P snapped S\": the pieces that kernels process cheaply, chosen for the "
            "most P within the same time. \"P settled, ..\": snapped and threshold masks as above, but starting from the weights and alpha of P's own run, made by `maskbert pretrain DIR/runs/p-0 --learn-mask p --alpha DIR/runs/p-0 --settle STEPS --snap S` (or `--threshold S`).\n\n" + table.as_markdown(g["entries"]))


def left_section(left_out):
    if not left_out:
        return "## Left out\n\nNo run or row was left out."
    whys = {}
    for name, why in left_out.items():
        whys.setdefault(why, []).append(name)
    return "\n".join(["## Left out", ""] + [f"- {why}: {len(names)} of {len(rows.all_rows()) + len(learned.NAMES)} runs and rows: {', '.join(names)}"
                                            for why, names in whys.items()])
