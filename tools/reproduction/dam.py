# SPDX-License-Identifier: Apache-2.0
"""Differentiable attention masks end to end (SparseBERT, Shi et al. 2021; BlockBERT, Qiu et al. 2020), in small: a BERT of two layers
is pre-trained on English text; masks are learned from there (P, DAM_s, DAM_u), compiled, and compared with the papers' designed
masks, with random ones and with P pruned, each with and without the diagonal, by the held-out loss of the masked words."""
import os
import shutil
import signal
import sys

import learned
import longer
import plan
import report
import rows
import settings as settings_of
import stages as stages_of
import theorem
from masks import Masks
from programs import Fatal, OutOfTime, run as run_program
from training import Trainer

NO_LEARNING = "this maskbert learns no masks (pretrain has no --learn-mask)"
OTHER_SAMPLES = 1000  # added to the seed of a run that goes on from another, whose samples it would see again
START_MASK = "window(2)"
FRAMES = 8  # of the film
NO_SNAP = "this maskc has no snap"
NO_SETTLING = "this maskbert settles on no threshold of a given alpha (pretrain has no --threshold)"


class Dam:
    """Everything that stages need."""

    def __init__(self, programs, settings, root, clock, stages):
        self.programs, self.s, self.root, self.clock, self.stages = programs, settings, root, clock, stages
        self.folder = settings.folder
        self.trainer, self.masks = Trainer(programs, settings, clock), Masks(programs, settings)
        self.learns = programs.takes("maskbert", "pretrain", "--learn-mask")
        self.settles = programs.takes("maskbert", "pretrain", "--threshold") and programs.takes("maskbert", "pretrain", "--alpha")
        self.snaps = programs.takes("maskc", "snap", "--budget")

    # ---- data
    def corpus(self):
        if self.s.text:
            return {"text": os.path.basename(self.s.text), "bytes": os.path.getsize(self.s.text)}
        target = self.folder / "text.txt"
        small = ["--megabytes", 6] if self.s.minutes < 20 else []
        run_program([sys.executable, self.root / "tools/fetch-text", target, "--cache", self.folder / "cache", *small],
                    seconds=self.clock.left())
        return {"text": "tools/fetch-text", "bytes": target.stat().st_size}

    @property
    def text(self):
        return self.s.text or self.folder / "text.txt"

    def vocabulary(self):
        with open(self.text, "rb") as text:
            self.programs.run("maskbert", "vocab", "--size", self.s.vocabulary, "-o", self.folder / "vocab.txt", stdin=text)
        return {"tokens": len((self.folder / "vocab.txt").read_text(encoding="utf-8").splitlines())}

    def samples(self):
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        said = self.programs.run("maskbert", "prep", self.text, "--vocab", self.folder / "vocab.txt", "--length", self.s.length,
                                 "--pairing", "full", "--held-out", f"{self.s.held_out:g}", "-o", self.folder / "data", "--stats")
        self.programs.run("maskbert", "init", "--size", self.s.size, "--vocab", self.folder / "vocab.txt", "--positions", self.s.length,
                          "--seed", self.s.seed, "-o", self.folder / "new")
        return read_stats(said)

    # ---- time
    def speed(self):
        """A few steps of each kind, and a row with one step."""
        found = {"step": self.probe("probe"), "learning": self.probe("probe-dam-s", "--learn-mask", "dam-s") if self.learns else 0.0}
        began = self.clock.now()
        row = rows.Row("probe-row", "dense", "star")
        self.row(row, self.folder / "new", 1)
        return {**found, "row": max(0.1, self.clock.now() - began - found["step"])}

    def probe(self, name, *more):
        folder = self.folder / "runs" / name
        shutil.rmtree(folder, ignore_errors=True)
        self.trainer.pretrain(self.folder / "new", folder, "dense", 8, self.s.seed, *more)
        seconds = self.trainer.summary(folder)["step_s"]
        shutil.rmtree(folder)
        return seconds

    def plan(self, speed):
        short = self.s.minutes < 5
        runs = (rows.P_SEEDS, len(rows.LEARNED)) if self.learns else (0, 0)
        made = plan.split(self.clock.left(), plan.Speed(*(speed[n] for n in ("step", "learning", "row"))), *runs, self.s.rows or len(rows.all_rows()), short)
        return {**vars(made), "minutes": self.s.minutes, "p_runs": runs[0], "dam_runs": runs[1]}

    # ---- runs
    def start(self, steps):
        """The first steps of the dense run: with a window, which makes neighbours matter from the first step on."""
        folder = self.folder / "runs/start"
        self.trainer.pretrain(self.folder / "new", folder, "start", steps, self.s.seed, "--mask", START_MASK)
        return {**self.trainer.summary(folder), **self.trainer.judge(folder), "seed": self.s.seed, "mask": START_MASK}

    def dense(self, steps):
        folder = self.folder / "runs/dense"
        self.trainer.pretrain(self.folder / "runs/start", folder, "dense", steps, self.s.seed + OTHER_SAMPLES, "--mask", "dense", "--eval-every", max(1, steps // 6))
        return {**self.trainer.summary(folder), **self.trainer.judge(folder), "seed": self.s.seed}

    def learn(self, name, steps):
        kind, options, seed = learned.options(name, self.s.seed)
        folder = self.folder / "runs" / name
        film = ["--save-every", -(-steps // FRAMES), "--keep", FRAMES] if name == rows.FILM else []
        self.trainer.pretrain(self.folder / "runs/dense", folder, kind, steps, seed + 2 * OTHER_SAMPLES, *options, "--eval-every", steps, *film)
        found = {**self.trainer.summary(folder), **self.trainer.judge(folder), "own_mlm": self.trainer.own_loss(folder), "seed": seed, "options": options}
        return {**found, **learned.measure(folder, self.s)}

    def settled(self, row, steps):
        """The mask of P that the command itself settles on, by snap or by threshold, and the weights of P's run with it."""
        _, kind, share = row.source.split(":")
        learnt, run = self.folder / "runs" / row.needs, self.folder / "runs" / f"row-{row.key}"
        options = [*learned.options(row.needs, 0)[1], "--alpha", learnt, "--settle", steps, f"--{kind}", share]
        self.trainer.pretrain(learnt, run, "row", steps, self.s.seed + row.seed + 3 * OTHER_SAMPLES, *options)
        event = self.trainer.read_event(run, "mask")
        mask = self.masks.keep(row, next(run.glob("mask.*")))
        found = {"label": row.label, "group": row.group, "mask": f"{row.source} {self.masks.digest(row)}", "seed": self.s.seed + row.seed,
                 "settled": {name: event[name] for name in ("density", "predicted_s", "share", "retained")}}
        found |= {**self.trainer.summary(run), **self.trainer.judge(run), **self.costs(mask)}
        shutil.rmtree(run)
        return found

    def row(self, row, start, steps):
        if row.source.startswith("settle:"):
            return self.settled(row, steps)
        mask, run = self.masks.file(row), self.folder / "runs" / f"row-{row.key}"
        names = {"label": row.label, "group": row.group, "mask": self.masks.digest(row), "seed": self.s.seed + row.seed}
        if twin := self.twin(names):
            return {**twin, **names}
        self.trainer.pretrain(start, run, "row", steps, self.s.seed + row.seed + 3 * OTHER_SAMPLES, "--mask", mask)
        found = {**names, **self.trainer.summary(run), **self.trainer.judge(run)}
        found |= self.costs(mask)
        shutil.rmtree(run)
        return found

    def twin(self, names):
        """The result of a row with the same mask and seed, which would be the same to the bit."""
        for path in sorted(self.stages.folder.glob("row-*.json")):
            found = self.stages.done(path.stem)
            if (found["mask"], found["seed"]) == (names["mask"], names["seed"]):
                return {**found, "same_as": found["label"]}
        return None

    def costs(self, mask):
        """Sparsity, the time of attention beside dense's, interleaved, and the memory of a training step."""
        shown = self.programs.json("maskc", "show", mask)
        active = sum(m["active"] * len(m["at"]) for m in shown["masks"])
        empty = sum(m["empty_rows"] * len(m["at"]) for m in shown["masks"])
        timed = self.programs.json("maskc", "bench", mask, "--head-dim", self.s.head_dim, "--batch", self.s.batch, "--dtype", self.s.dtype,
                                   "--seconds", self.bench_seconds(0.2), *self.trainer.threads())["results"]
        memory = self.programs.json("maskbert", "memory", self.folder / "new", "--batch", self.s.batch, "-n", self.s.length, "--dtype",
                                    self.s.dtype, "--mask", mask)["predicted"]["total"]
        times = {r["pass"]: {"median_s": r["median_s"], "dense_s": r["dense_s"], "speedup": r["speedup"]} for r in timed}
        return {"active": active, "sparsity": 100 * (1 - active / (self.s.heads * self.s.length**2)), "empty_rows": empty,
                "lowering": timed[0]["lowering"], "attention": times, "memory": memory}

    def bench_seconds(self, usual):
        """For each measurement; a fifth in a call of less than five minutes."""
        return f"{usual if self.s.minutes >= 5 else usual / 5:g}"

    def why_not(self, row):
        """Reason why a row cannot be made; None where there is none."""
        if row.source.startswith("snap:") and not self.snaps:
            return NO_SNAP
        if row.source.startswith("settle:") and not self.settles:
            return NO_SETTLING
        if row.needs and not self.learns:
            return NO_LEARNING
        if row.needs and not self.stages.path(row.needs).exists():
            return f"'{row.needs}' was not learned"
        return None


def read_stats(said):
    """Tokens and unigram entropy, from maskbert prep --stats."""
    found = {}
    for line in said.splitlines():
        words = line.split()
        if words[:1] in (["train"], ["held-out"]) and len(words) >= 5:
            found[words[0]] = {"documents": int(words[1]), "tokens": int(words[3]), "samples": int(words[4])}
        if line.startswith("unigram entropy"):
            found["unigram"] = float(words[-2])
    return found


def work(d, say):
    """All stages, in their order."""
    for name in ("corpus", "vocabulary", "samples"):
        if d.stages.do(name, getattr(d, name)) is None:
            raise OutOfTime
    d.stages.do("theorem", lambda: {"lines": (lines := []), "holds": theorem.check(d.programs, print_line=lines.append)})
    speed = d.stages.do("speed", d.speed)
    made = d.stages.do("plan", lambda: d.plan(speed)) if speed else None
    if not made:
        raise OutOfTime
    p = plan.Plan(*(made[n] for n in ("dense", "p", "dam", "row", "rows")))
    for line in plan.describe(p, plan.Speed(*(speed[n] for n in ("step", "learning", "row"))), made["p_runs"], made["dam_runs"], len(rows.all_rows())):
        say(line)
    first = plan.start_steps(p.dense)
    if d.stages.do("start", lambda: d.start(first)) is None or d.stages.do("dense", lambda: d.dense(max(1, p.dense - first))) is None:
        raise OutOfTime
    learn(d, p, speed)
    if d.stages.path(longer.MASK).exists():
        d.stages.do(longer.stage("long", d.s.lengths), lambda: longer.attention(d), 20, True)
        found = d.stages.do(longer.stage("longer", d.s.lengths), lambda: longer.training(d), plan.LONGER * speed["step"], True)
        for line in longer.say(found) if found else []:
            say(line)
    settle(d, p.row, speed)


def learn(d, p, speed):
    """Rows keep half of their time, however late it is."""
    rows_s = 0.5 * p.rows * (speed["row"] + p.row * speed["step"])
    for name in learned.NAMES:
        steps = p.p if name.startswith("p-") else p.dam
        if d.learns:
            d.stages.do(name, lambda name=name, steps=steps: d.learn(name, steps), speed["row"] + steps * speed["learning"] + rows_s, True)
        else:
            d.stages.leave_out(name, NO_LEARNING)


def settle(d, steps, speed):
    needs = 1.2 * (speed["row"] + steps * speed["step"]) + plan.RESERVE * d.clock.seconds
    for k, row in enumerate(rows.all_rows()):
        why = d.why_not(row) if k < (d.s.rows or k + 1) else "--rows asked for fewer"
        if why and not d.stages.path(f"row-{row.key}").exists():
            d.stages.leave_out(f"row-{row.key}", why)
        else:
            d.stages.do(f"row-{row.key}", lambda row=row: d.row(row, d.folder / "runs/dense", steps), needs, True)


def interrupted(*_):
    raise KeyboardInterrupt


def run(programs, settings, root):
    signal.signal(signal.SIGTERM, interrupted)
    settings.folder.mkdir(parents=True, exist_ok=True)
    clock = stages_of.Clock(settings.minutes)
    stages = stages_of.Stages(settings.folder, clock, threads=settings.threads)
    settings_of.keep(settings)
    stages_of.remove_asides(settings.folder)
    d = Dam(programs, settings, root, clock, stages)
    try:
        work(d, stages.say)
    except OutOfTime:
        stages.say("the time was up before there is anything to compare; the same command goes on")
    except KeyboardInterrupt:
        raise Fatal(4, "interrupted; the same command goes on") from None
    print(report.write(d))
    return 0
