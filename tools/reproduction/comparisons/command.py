# SPDX-License-Identifier: Apache-2.0
"""Common flow of the comparisons: the plan, the cells, the table, the verdicts, the figures."""
import dataclasses
import fcntl
import signal
import sys

import stages
from programs import Fatal, write_json, write_whole

from . import blockbert, budget, cells, drawing, folders, glue_like, models, options, ordering, pruning, publish, sparsegen, table

COMPARISONS = {"glue-like": glue_like, "sparsegen": sparsegen, "pruning": pruning, "blockbert": blockbert}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(programs, s):
    comparison = COMPARISONS[s.command]
    clock = stages.Clock(s.minutes)
    c = cells.Cells(programs, s, clock, say)
    if s.plan:
        return plan(c, comparison)
    signal.signal(signal.SIGTERM, interrupted)
    s.folder.mkdir(parents=True, exist_ok=True)
    with lock(s.folder):
        options.keep(s)
        stages.remove_asides(s.folder / "cells")
        try:
            begin(c, comparison)
            rows = comparison.rows(c)
            budget.run(c, rows)
        except KeyboardInterrupt:
            raise Fatal(4, "interrupted; the same command goes on") from None
        print(finish(c, comparison, rows))
    return 0


def interrupted(*_):
    raise KeyboardInterrupt


def lock(folder):
    f = open(folder / "lock", "w", encoding="utf-8")
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        f.close()
        raise Fatal(2, f"{folder}: another call is at work there") from None
    return f


# ---- before the cells
def begin(c, comparison):
    c.prepare()
    if hasattr(comparison, "support"):
        c.after = comparison.support(c)
    if hasattr(comparison, "prepare"):
        comparison.prepare(c)
    c.add_tasks(comparison.tasks(c) if hasattr(comparison, "tasks") else c.s.tasks)
    choose(c, comparison)
    for line in budget.describe(c, comparison.rows(c), c.clock.left()):
        c.say(line)


def choose(c, comparison):
    """Training examples of a cell, noted in DIR: all its cells have as many."""
    if not c.tasks:
        c.examples = c.examples or budget.DEFAULT
        return
    asked, rows = c.s.examples, len(comparison.rows(c))
    kept = c.once("examples", lambda: {"examples": asked or examples(c, comparison, rows)})["examples"]
    if asked and asked != kept:
        raise Fatal(2, f"{c.s.folder}: was begun with {kept} examples a cell, not {asked}; another folder is expected")
    c.examples = kept


def examples(c, comparison, rows):
    """As many as the time allows, by the speed of one short run."""
    probe = cells.Cell(dataclasses.replace(comparison.rows(c)[0], name="probe"), c.tasks[0], 0)
    c.examples = 4 * c.s.batch
    began, before = c.clock.now(), c.after
    c.after = None
    c.make(probe)
    c.path(probe.key).rename(c.s.folder / "stages" / "probe.json")
    c.after = before
    seconds = max(0.05, c.clock.now() - began)
    return scaled(c, rows, c.work(c.tasks[0]) / seconds)


def scaled(c, rows, rate):
    found = budget.DEFAULT
    left = c.clock.left()
    while found > budget.LEAST and rows * c.work(c.tasks[0], found) / rate > left:
        found //= 2
    return max(found, c.s.batch)


# ---- the plan alone
def plan(c, comparison):
    """Runs no program but maskc show, and writes nothing."""
    s = c.s
    c.tasks = planned_tasks(c, comparison)
    c.dev = {t.name: min(s.dev, n) if (n := dev_count(t)) is not None else None for t in c.tasks}
    left = s.minutes * 60 * (1 - used(c, comparison))
    c.models.heads = lambda: c.models.config()["num_attention_heads"] if s.model or (c.models.folder / "pretrained").exists() else 4
    rows = comparison.rows(c)
    c.examples = s.examples or (budget.choose_examples(c, len(rows), left) if c.tasks else budget.DEFAULT)
    print("\n".join(budget.describe(c, rows, left)))
    return 0


def planned_tasks(c, comparison):
    if not hasattr(comparison, "tasks"):
        return list(c.s.tasks)
    task = comparison.task_of(c)
    return [dataclasses.replace(task, name=f"long-{n}", length=n) for n in c.s.lengths] if task else []


def dev_count(task):
    return folders.count(task, "dev")


def used(c, comparison):
    """Share of the time that goes to other runs than cells."""
    pretrained = 0 if c.s.model or (c.models.folder / "pretrained").exists() else models.SHARE
    return min(0.9, pretrained + getattr(comparison, "SHARE", 0))


# ---- after the cells
def finish(c, comparison, rows):
    gathered = table.gather(c, rows)
    verdicts = comparison.judge(c, gathered)
    figures = drawing.Figures(c.s.folder / "figures", c.say)
    comparison.draw(c, gathered, figures)
    left_out = [f"{v.label}, {t.name}" for v in rows for t in c.tasks if not gathered[v.label][t.name]["seeds"] + gathered[v.label][t.name]["failed"]]
    text = compose(c, comparison, rows, gathered, verdicts, left_out)
    write_whole(c.s.folder / "table.md", text + figures.markdown())
    write_json(c.s.folder / "table.json", {"command": c.s.command, "settings": shown_settings(c.s), "examples": c.examples, "rows": {v.label: {"group": v.group, "tasks": gathered[v.label]} for v in rows},
                                           "baselines": c.s.baselines, "verdicts": verdicts, "left_out": left_out, "note": comparison.note(c, gathered), "remark": c.s.note,
                                           "model": c.model_text(), "numbers": comparison.numbers(c) if hasattr(comparison, "numbers") else None})
    if c.s.page:
        publish.write(c.s.page, c.s.command, [x.TITLE for x in COMPARISONS.values()], text + figures.markdown(), c.s.folder, figures.made)
    return text.rstrip("\n")


def shown_settings(s):
    """Without paths of this machine."""
    return {**s.kept(), "tasks": [f"{t.name}={t.kind}" for t in s.tasks], "text": s.text.name if s.text else ""}


def compose(c, comparison, rows, gathered, verdicts, left_out):
    s = c.s
    how = (f"`tools/reproduce {s.command}`: each cell is the mean over seeds (+- their standard deviation, if there are several) and, in parentheses, seeds x training examples of a run of `maskbert finetune` from the same model: "
           f"masks of n = {', '.join(str(n) for n in dict.fromkeys(t.length for t in c.tasks)) or s.length}, rate {s.lr:g}, batches of {s.batch}, {s.dtype}.")
    rule = " ".join(ordering.__doc__.split("\n\n", 1)[1].split()).replace("TIMES", str(ordering.TIMES))
    dull = [t.name for t in c.tasks if t.name not in table.judged(c, gathered)]
    rule += f" Not counted: {', '.join(dull)}." if dull else ""
    parts = [f"## {comparison.TITLE}\n", how + (f" {s.note}" if s.note else "") + "\n",
             table.as_markdown(c, rows, gathered) if c.tasks else "", comparison.note(c, gathered), "### What agrees with the papers' ordering and what does not\n", rule + "\n",
             table.markdown(ordering.lines(verdicts)), "### Left out\n", left_text(left_out)]
    return "\n".join(p for p in parts if p)


def left_text(left_out):
    if not left_out:
        return "Nothing.\n"
    return f"{len(left_out)} cells were not run, for lack of time; the same command goes on. The first: {left_out[0]}.\n"
