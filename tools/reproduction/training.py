# SPDX-License-Identifier: Apache-2.0
"""Runs of maskbert pretrain, and what they are judged by."""
import json
import statistics

RATES = {"start": 2e-3, "dense": 1e-3, "p": 1e-3, "dam": 1e-3, "row": 5e-4}
TAIL = 5  # seconds that are kept for a run to save itself


class Trainer:
    def __init__(self, programs, settings, clock):
        self.programs, self.s, self.clock = programs, settings, clock
        self.data, self.start = settings.folder / "data", settings.folder / "new"

    def threads(self):
        return ["--threads", self.s.threads] if self.s.threads else []

    def pretrain(self, start, run, kind, steps, seed, *more):
        """Trains, or goes on where a killed call was."""
        run.parent.mkdir(parents=True, exist_ok=True)
        command = ["pretrain", start, "--data", self.data, "-o", run, "--steps", steps, "--batch", self.s.batch, "--dtype", self.s.dtype,
                   "--dropout", 0, "--objective", "mlm", "--lr", f"{RATES[kind]:g}", "--warmup", 0.05, "--betas", "0.9,0.98", "--save-every", 250, "--seed", seed,
                   *self.threads(), *more, "--resume"]
        self.programs.run("maskbert", *command, seconds=max(1, self.clock.left() - TAIL))

    def judge(self, run):
        """Held-out loss in nats, perplexity, accuracy of the masked words."""
        found = self.programs.json("maskbert", "eval", run, "--data", self.data, "--dtype", self.s.dtype, *self.threads())
        return {name: found[name] for name in ("mlm", "perplexity", "accuracy")}

    def own_loss(self, run):
        """Held-out loss as the run itself found it at its end: with P where P is learned, which no mask of 0 and 1 says."""
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        return [x["mlm"] for x in lines if "eval" in x][-1]

    def read_event(self, run, name):
        """The last of that name."""
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        return [x for x in lines if x.get("event") == name][-1]

    def read_log(self, run):
        """Reads the log of its steps; the last line of a step counts."""
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        steps = list({x["step"]: x for x in lines if "lr" in x}.values())
        return steps

    def summary(self, run):
        steps = self.read_log(run)
        return {"steps": steps[-1]["step"], "tokens": steps[-1]["tokens"], "step_s": step_seconds(steps),
                "train_mlm": statistics.mean(x["mlm"] for x in steps[-20:])}


def step_seconds(steps):
    """Median of the seconds between steps; what lies across a resume counts as one step."""
    times = [b["elapsed_s"] - a["elapsed_s"] for a, b in zip(steps, steps[1:]) if b["elapsed_s"] > a["elapsed_s"]]
    return statistics.median(times) if times else steps[-1]["elapsed_s"]
