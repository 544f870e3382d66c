# SPDX-License-Identifier: Apache-2.0
"""maskbert finetune as a contender: where runs start, whole runs, and timed ones."""
import json
import resource
import shutil
import subprocess


class Failed(Exception):
    """A command of ours ended with an error."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Ours:
    """o: options of the tool; data: the folder of the task."""

    def __init__(self, o, work, data):
        self.o, self.work, self.data = o, work, data

    def run(self, program, *arguments):
        path = self.o.build / "tools" / program / program
        try:
            made = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
        except OSError as e:
            raise Failed(3, f"{path}: {e.strerror}; build maskc or give --build") from None
        if made.returncode:
            raise Failed(made.returncode, made.stderr.strip() or f"{program} failed")
        return made.stdout

    def finetune(self, model, run, seed, *options, data=None):
        o = self.o
        return self.run("maskbert", "finetune", model, "--task", o.task, "--data", data or self.data, "-o", run, "--seed", seed, "--batch", o.batch,
                        "--max-length", o.max_length, "--dropout", o.dropout, "--dtype", o.dtype, "--threads", o.threads, "--json", *options)

    def start(self, seed):
        """A model with its head as the seed draws it, its mask and positions: where every contender begins."""
        run, o = self.work / f"start-{seed}", self.o
        if not run.exists():
            more = (["--mask", o.mask] if o.mask else []) + (["--positions", o.positions] if o.positions else [])
            self.finetune(o.model, run, seed, "--steps", 1, "--lr", 0, *more, data=self.work / "short")
        return run

    def log(self, run):
        return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]

    def whole(self, seed):
        """{metric, steps, the steps with an evaluation, seconds} of a run."""
        run, o = self.work / f"ours-{seed}", self.o
        summary = json.loads(self.finetune(self.start(seed), run, seed, "--epochs", o.epochs, "--lr", o.lr))
        log = self.log(run)
        evaluations = [x for x in log if "eval" in x]
        steps = [x for x in log if "lr" in x]
        shutil.rmtree(run)
        return {"metric": summary["metric"]["name"], "best": summary["metric"]["mean"], "steps": steps[-1]["step"],
                "loss": steps[0]["loss"], "tokens": steps[0]["tokens"], "evaluations": [x["step"] for x in evaluations],
                "each": [x[summary["metric"]["name"]] for x in evaluations]}

    def turn(self, seed, steps):
        """({step: seconds}, seconds on the CPU) of a short run."""
        run, before = self.work / "turn", resource.getrusage(resource.RUSAGE_CHILDREN)
        self.finetune(self.start(seed), run, seed, "--steps", steps, "--lr", self.o.lr, data=self.work / "short")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        at = {x["step"]: x["elapsed_s"] for x in self.log(run) if "lr" in x}
        shutil.rmtree(run)
        return at, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def timed(self, seed):
        """Seconds of the steps after the first ones. On the CPU's clock: a run's less those of one that ends before them."""
        o = self.o
        at, cpu = self.turn(seed, o.untimed + o.steps)
        return cpu - self.turn(seed, o.untimed)[1] if o.clock == "cpu" else at[o.untimed + o.steps] - at[o.untimed]

    def table(self, n):
        """The mask as [n, n] of bool, as maskc writes it; None: dense."""
        import numpy
        if not self.o.mask:
            return None
        path = self.work / "mask.npy"
        self.run("maskc", "make", self.o.mask, "-n", n, "-o", path)
        return numpy.load(path).reshape(-1, n, n)[0] != 0
