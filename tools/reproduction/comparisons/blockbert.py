# SPDX-License-Identifier: Apache-2.0
"""Blocks of attention (BlockBERT, Qiu et al. 2020, Tables 2, 3, 6, 7): memory of a training step, its time, the time of a pass, perplexity, and a
question-answering score on long texts, at n = 512 and 1024."""
import json
import shutil
import statistics

from . import drawing, long_text, ordering, table, variants

SHARES = {512: (10, 2), 1024: (9, 3)}  # of blockbert-2
TOKENS = 4096  # of a step, as the paper has it on a GPU
STEPS = 4  # of a timed run
SHARE = 0.4  # of --minutes: training for the perplexity
RATE = "3e-4"
PAPER_PERPLEXITY = 3.6  # percent above dense's at most
TITLE = "Blocks at longer lengths"


def at_length(c, n):
    heads = c.models.heads()
    found = [variants.Variant("dense", "dense"), variants.blocks(2, SHARES.get(n, (10, 2)), heads), variants.blocks(3, (8, 2, 2), heads),
             variants.Variant("fairseq-fixed (SparseBERT)", "fixed", "fairseq-fixed")]
    return [v for v in found if v]


def rows(c):
    """One row a mask; the shares of blockbert-2 are those of the first length."""
    return at_length(c, c.s.lengths[0])


def task_of(c):
    return next((t for t in c.s.tasks if t.kind in ("squad1", "squad2") and t.file("train") and t.file("dev")), None)


def tasks(c):
    """Questions on long texts at each length, in the place of the tasks."""
    task = task_of(c)
    if not task:
        c.say("no question answering: --tasks has no squad1 or squad2 with train.json and dev.json")
        return []
    return [long_text.make(c.programs, c.models.at(n), task, n, c.s.folder / "long" / str(n)) for n in c.s.lengths]


def prepare(c):
    for n in c.s.lengths:
        for v in rows(c):
            measured(c, v, n)
        timed(c, n)
        for v in rows(c):
            perplexity(c, v, n)


def mask(c, v, n):
    return "dense" if v.mask == "dense" else c.masks.file(v.mask, n)


def bench_seconds(c):
    return 1 if c.s.minutes >= 5 else 0.1


def rounds(c):
    """Timed runs of each mask, one mask after the other."""
    return 4 if c.s.minutes >= 5 else 1


def batch(n):
    return max(1, TOKENS // n)


def measured(c, v, n):
    """Bytes of a training step, and seconds of a pass of the whole model, beside dense's in the same process."""
    def action():
        options = ["--mask", mask(c, v, n), "-n", n, "--batch", batch(n), "--dtype", c.s.dtype, *c.models.threads()]
        memory = c.programs.json("maskbert", "memory", c.models.at(n), "--measure", "--objective", "mlm", *options)
        bench = c.programs.json("maskbert", "bench", c.models.at(n), "--seconds", bench_seconds(c), *options)["results"]
        return {"memory": memory["measured"], "predicted": memory["predicted"]["total"], "pass_s": bench[0]["median_s"], "dense_s": bench[-1]["median_s"]}
    return c.once(f"measure-{v.key}-n{n}", action)


def timed(c, n):
    """Medians of the steps of runs, masks interleaved."""
    def action():
        times = {v.name: [] for v in rows(c)}
        for _ in range(rounds(c)):
            for v in rows(c):
                times[v.name] += step_times(c, v, n)
        return {"steps": {name: statistics.median(t) for name, t in times.items()}, "each": times}
    return c.once(f"steps-n{n}", action)


def spread(found, name):
    """Returns the standard deviation of a mask's step times; None if they were not kept."""
    each = found.get("each", {}).get(name, [])
    return statistics.stdev(each) if len(each) > 1 else None


def pretrain(c, v, n, run, *how):
    shutil.rmtree(run, ignore_errors=True)
    c.programs.run("maskbert", "pretrain", c.models.at(n), "--data", c.models.data(n), "-o", run, "--batch", batch(n), "--dtype", c.s.dtype, "--objective", "mlm", "--lr", RATE,
                   "--warmup", 0.05, "--save-every", 0, "--mask", mask(c, v, n), *how, *c.models.threads())
    return [x for x in map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines()) if "mlm" in x and "eval" not in x]


def step_times(c, v, n):
    run = c.s.folder / "runs" / "step"
    at = [x["elapsed_s"] for x in pretrain(c, v, n, run, "--steps", STEPS)]
    shutil.rmtree(run)
    return [b - a for a, b in zip(at, at[1:])]


def perplexity(c, v, n):
    """Perplexity on held-out text, after as many steps of each mask, from the same model."""
    def action():
        run = c.s.folder / "runs" / "perplexity"
        pretrain(c, v, n, run, "--steps", steps_for_perplexity(c, n))
        found = c.programs.json("maskbert", "eval", run, "--data", c.models.data(n), "--dtype", c.s.dtype, *c.models.threads())
        shutil.rmtree(run)
        return {"perplexity": found["perplexity"], "steps": steps_for_perplexity(c, n)}
    return c.once(f"perplexity-{v.key}-n{n}", action)


def steps_for_perplexity(c, n):
    """As the time allows at dense's measured step; noted once."""
    share = c.s.minutes * 60 * SHARE / (len(c.s.lengths) * len(rows(c)))
    return c.once(f"perplexity-steps-n{n}", lambda: {"steps": max(STEPS, int(share / timed(c, n)["steps"]["dense"]))})["steps"]


# ---- what it says
def facts(c):
    """{(mask, n): numbers}, of what is there."""
    return {(v.name, n): {**measured(c, v, n), "step_s": timed(c, n)["steps"][v.name], "spread_s": spread(timed(c, n), v.name), "perplexity": perplexity(c, v, n)["perplexity"], "sparsity": c.masks.sparsity(v, n)}
            for n in c.s.lengths for v in rows(c)}


def note(c, gathered):
    found, lines = facts(c), [["n", "mask", "sparsity %", "memory MiB", "of dense", "attention MiB", "step ms", "of dense", "pass ms", "of dense", "perplexity", "above dense"]]
    for (name, n), f in found.items():
        d = found["dense", n]
        lines.append([str(n), name, f"{f['sparsity']:.1f}", f"{f['memory']['total'] / 2**20:.0f}", ratio(f["memory"]["total"], d["memory"]["total"]), f"{f['memory']['attention'] / 2**20:.1f}",
                      f"{1e3 * f['step_s']:.0f}", ratio(f["step_s"], d["step_s"]), f"{1e3 * f['pass_s']:.0f}", ratio(f["pass_s"], f["dense_s"]), f"{f['perplexity']:.2f}",
                      f"{100 * (f['perplexity'] / d['perplexity'] - 1):+.1f} %"])
    steps = ", ".join(f"n = {n}: {steps_for_perplexity(c, n)}" for n in c.s.lengths)
    return (f"\n{TOKENS} tokens a step and a pass. Memory: `maskbert memory --measure`; attention keeps no n x n scores under any mask, dense included. Step: median of {len(timed(c, c.s.lengths[0])['each']['dense'])} steps in runs of {STEPS} whose first is left out, masks one after the other. Pass: "
            f"`maskbert bench`, beside dense in the same process. Perplexity: of held-out masked words, after further steps under the mask from the same model ({steps}).\n\n"
            + table.markdown(lines) + memory_text(found) + "\nQuestion answering: questions with an answer, their texts joined with others to fill "
            f"{100 * long_text.FILLED:.0f} % of n.\n")


def memory_text(found):
    """In place of a figure whose bars would be equal."""
    if not alike(found):
        return ""
    least, most = (f([x["memory"]["total"] / 2**20 for x in found.values()]) for f in (min, max))
    return f"\nA training step needs as much memory under every mask, {least:.0f} to {most:.0f} MiB: no figure is drawn of it.\n"


def alike(found):
    """Is the memory of every mask within 2 percent of dense's at that length?"""
    return all(abs(f["memory"]["total"] / found["dense", n]["memory"]["total"] - 1) < 0.02 for (_, n), f in found.items())


def numbers(c):
    """Returns the part of facts() that figures show, for table.json."""
    return [{"mask": name, "n": n, **{k: f[k] for k in ("memory", "step_s", "spread_s", "sparsity")}} for (name, n), f in facts(c).items()]


def smaller_than_dense(each):
    """From ratios to dense, of which 2 percent are chance."""
    return all(x < 0.98 for x in each) if each else None


def ratio(a, b):
    return f"{a / b:.2f}"


def judge(c, gathered):
    found = facts(c)
    def smaller(what, pick):
        pairs = [(n, v.name) for n in c.s.lengths for v in rows(c) if v.group == "blocks"]
        each = [pick(found[name, n], found["dense", n]) for n, name in pairs]
        said = "; ".join(f"{name}, n = {n}: {x:.2f} of dense" for (n, name), x in zip(pairs, each))
        return ordering.number("BlockBERT Tables 2, 7", what, said, smaller_than_dense(each))
    worse = [100 * (found[v.name, n]["perplexity"] / found["dense", n]["perplexity"] - 1) for n in c.s.lengths for v in rows(c) if v.group == "blocks"]
    names = [v.name for v in rows(c) if v.group == "blocks"]
    every = table.judged(c, gathered)
    return [smaller("Training with blocks takes less memory", lambda f, d: f["memory"]["total"] / d["memory"]["total"]),
            smaller("A training step with blocks takes less time", lambda f, d: f["step_s"] / d["step_s"]),
            smaller("A pass with blocks takes less time", lambda f, d: f["pass_s"] / f["dense_s"]),
            ordering.number("BlockBERT Table 3", f"Perplexity with blocks is at most {PAPER_PERPLEXITY} % above dense's", ", ".join(f"{x:+.1f} %" for x in worse),
                            all(x <= PAPER_PERPLEXITY for x in worse) if worse else None),
            ordering.judge("BlockBERT Table 3", "Dense answers better than two blocks, two blocks better than three", gathered, every,
                           list(zip(["dense", *names], names)), "not below"),
            ordering.judge("BlockBERT Table 3", "Blocks answer better than fixed sparse attention", gathered, every, [(n, r.name) for n in names for r in rows(c) if r.group == "fixed"], "above")]


def draw(c, gathered, figures, kept=None):
    """kept: of table.json, what numbers() gave."""
    found = {(f["mask"], f["n"]): f for f in kept or numbers(c)}
    names, lengths = list(dict.fromkeys(name for name, _ in found)), list(dict.fromkeys(n for _, n in found))
    for what, label, pick in (("step", "time of a training step (ms)", lambda f: 1e3 * f["step_s"]), ("memory", "memory of a training step (MiB)", lambda f: f["memory"]["total"] / 2**20)):
        if what == "memory" and alike(found):
            continue
        spreads = {name: [1e3 * s if what == "step" and (s := found[name, n].get("spread_s")) else None for n in lengths] for name in names}
        figures.draw(f"blocks-{what}", f"Blocks: {label}", "bars", {
            "title": f"Masks of blocks: {label}", "y": {"label": label}, "groups": [f"n = {n}" for n in lengths],
            "methods": [{"name": drawing.mask_name(name), "values": [pick(found[name, n]) for n in lengths], "deviations": spreads[name]} for name in names],
            "note": "\n".join(filter(None, [f"{TOKENS} tokens a step; n: length of a sequence. Medians of steps. {drawing.masks_are(names)}", c.s.note]))})
    def one(task, metric, baselines):
        dense, rows_of = drawing.dense_level(gathered, task), [row[task.name] for row in gathered.values()]
        rows = [{"name": drawing.mask_name(x), "said": f"{row[task.name]['sparsity'] or 0:.1f}"} for x, row in gathered.items()]
        drawing.dots(figures, f"blocks-{task.name}", f"Questions on texts of {task.length} tokens", drawing.score(task, metric, dense), rows,
                     [("mask", rows_of, {})], levels=[*dense, *baselines], said="sparsity (%)",
                     note=drawing.about(c, task, rows_of, drawing.masks_are(gathered), drawing.shaded(dense, rows_of)))
    drawing.each_task(c, gathered, one)
