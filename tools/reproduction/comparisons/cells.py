# SPDX-License-Identifier: Apache-2.0
"""Cells: runs of maskbert finetune, each with its result on the disk, and the blocks of cells that are made one after another."""
import dataclasses
import os
import re
import shutil
import statistics

from programs import Fatal, read_json, write_json

from . import folders, models, variants

STAGE = re.compile(r"[^A-Za-z0-9.=-]")
LATE = 1.2  # of --minutes: no cell begins after that
SCORED = 2  # times that dev is predicted in a run
FORWARD = 1 / 3  # of a training step's work
START = 2.0  # seconds of a run beside its tokens, for a guess
ASSUMED = 4e10  # multiply-adds and additions a second and thread, before anything is measured


@dataclasses.dataclass(frozen=True)
class Cell:
    variant: variants.Variant
    task: folders.Task
    seed: int

    @property
    def key(self):
        return f"{self.variant.key}.{self.task.name}.{self.seed}"


class Cells:
    """Everything that a comparison needs of its folder."""

    def __init__(self, programs, settings, clock, say):
        self.programs, self.s, self.clock, self.say = programs, settings, clock, say
        self.folder = settings.folder / "cells"
        self.models = models.Models(programs, settings, self.once)
        self.maps = True  # attention maps can be drawn
        self.after = None  # after(cell, run): more of a run for its result, before its folder goes
        self.tasks, self.dev, self.examples, self.masks = [], {}, settings.examples, None

    def prepare(self):
        """Samples of dev, the model, the folder of masks."""
        shutil.rmtree(self.s.folder / "runs", ignore_errors=True)  # of a killed call
        for part in ("cells", "runs"):
            (self.s.folder / part).mkdir(parents=True, exist_ok=True)
        self.masks = variants.Masks(self.programs, self.s.folder / "masks", self.models.heads())

    def add_tasks(self, tasks):
        for task in tasks:
            made, self.dev[task.name] = folders.sample(task, self.s.dev, self.s.folder / "tasks" / task.name)
            self.tasks.append(made)

    def model_text(self):
        """Its sizes, for notes of figures."""
        c = self.models.config()
        return f"{c['num_hidden_layers']}x{c['hidden_size']}x{c['num_attention_heads']} (layers x hidden size x heads)" if "num_hidden_layers" in c else ""

    # ---- results
    def path(self, key):
        return self.folder / f"{STAGE.sub('_', key)}.json"

    def done(self, cell):
        path = self.path(cell.key)
        return read_json(path) if path.exists() else None

    def once(self, name, action):
        """A stage that is no cell."""
        path = self.s.folder / "stages" / f"{STAGE.sub('_', name)}.json"
        if path.exists():
            return read_json(path)
        self.tell(name)
        began = self.clock.now()
        path.parent.mkdir(parents=True, exist_ok=True)
        result = {**action(), "took_s": round(self.clock.now() - began, 3)}
        write_json(path, result)
        return result

    def tell(self, name):
        self.say(f"[{max(0, self.clock.left()) / 60:5.1f} min left] {name}")

    # ---- a run
    def steps(self):
        return max(1, self.examples // self.s.batch)

    def make(self, cell):
        """The result of a cell, from before or made now."""
        result = self.done(cell)
        if result is not None:
            return result
        began, run = self.clock.now(), self.s.folder / "runs" / STAGE.sub("_", cell.key)
        try:
            summary = self.programs.json("maskbert", *self.command(cell, run))
            result = read_summary(cell, summary)
            result.update(self.after(cell, run) if self.after else {})
        except Fatal as e:
            if e.code != 1:
                raise
            result = {"value": None, "metric": None, "metrics": {}, "why": str(e)}  # a loss that is not finite
        result.update({"seed": cell.seed, "examples": self.steps() * self.s.batch, "took_s": round(self.clock.now() - began, 3), "tokens": self.work(cell.task)})
        result["sparsity"] = self.masks.sparsity(cell.variant, cell.task.length, cell.seed)
        write_json(self.path(cell.key), result)
        shutil.rmtree(run, ignore_errors=True)
        return result

    def command(self, cell, run):
        v, n = cell.variant, cell.task.length
        start = self.models.scratch(n) if v.start == "scratch" else self.models.at(n)
        mask = "dense" if v.mask == "dense" else self.masks.file(v.mask, n, cell.seed)
        stride = ["--stride", n // 4] if cell.task.kind in ("squad1", "squad2", "mrqa") else []
        return ["finetune", start, "--task", cell.task.kind, "--data", cell.task.folder, "-o", run, "--steps", self.steps(), "--batch", self.s.batch,
                "--lr", f"{self.s.lr:g}", "--max-length", n, *stride, "--dtype", self.s.dtype, "--seed", cell.seed, "--save-every", 0, "--mask", mask,
                *([] if v.diagonal else ["--drop", "diagonal"]), *(["--transform", v.transform] if v.transform else []), *self.models.threads()]

    # ---- time
    def work(self, task, examples=None):
        """Tokens of a cell, a predicted one as a third of a trained one."""
        if examples is None:
            examples = self.steps() * self.s.batch
        dev = self.dev.get(task.name) or self.s.dev
        return task.parts * folders.mean_tokens(task) * (examples + SCORED * FORWARD * dev)

    def rate(self, task):
        """Tokens a second: of this task's cells, else of all, else a guess."""
        paths = sorted(self.folder.glob("*.json")) or [self.s.folder / "stages/probe.json"]
        found = [read_json(path) for path in paths if path.exists()]
        own = [r for r in found if r.get("task") == task.name]
        found = [r for r in own or found if "value" in r and r["took_s"] > 0]
        if found:
            return statistics.median(r["tokens"] / r["took_s"] for r in found)
        return self.guess()

    def guess(self):
        c = self.models.config() if self.s.model or (self.models.folder / "pretrained/config.json").exists() else {"num_hidden_layers": 4, "hidden_size": 256}
        flops = 6 * 12 * c.get("num_hidden_layers", 6) * c.get("hidden_size", 768) ** 2
        return ASSUMED * (self.s.threads or os.cpu_count() or 1) / flops

    def seconds(self, task):
        return START + self.work(task) / self.rate(task)


def read_summary(cell, summary):
    """Extracts a table's figures from the summary that finetune prints."""
    metric = summary["metric"]
    return {"task": cell.task.name, "kind": cell.task.kind, "metric": metric["name"], "value": cell.task.percent(metric["name"], metric["mean"]) if metric["mean"] is not None else None,
            "metrics": {name: m["mean"] for name, m in summary["metrics"].items()}, "dev": summary["examples"]}
