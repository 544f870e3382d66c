# SPDX-License-Identifier: Apache-2.0
"""One case of tools/bert-peers --train: builds every contender, holds its loss and gradients without dropout to
float64, and times whole steps of those that are right in turn, with dropout and without.
"""
import dataclasses
import time

import numpy
import torch

import bert_peers_torch
import bert_train_torch as ways
import peers_report as report
from bert_train_ours import Ours
from bert_train_table import DROPOUTS, Case  # noqa: F401

LOOSE = 8  # a peer up to so many times the tolerance is less exact, above it is wrong
GRADIENT_TOLERANCE = 1.5  # times the error of torch's autocast with plain attention, over all parameters
NORM_TOLERANCE = 1e-2  # of the gradient's norm
LOSS_TOLERANCE = 1e-3
FEWEST = 3  # samples, however slow


def contenders_of(case, o):
    """{name: (attention, compiled)}, ours without."""
    found = {"ours": None}
    for form, compiled in ("eager", False), ("compiled", True):
        found |= {f"{form} sdpa": (ways.sdpa, compiled), f"{form} plain": (ways.plain, compiled)}
    if case.mask:
        found["flex"] = (ways.flex, True)
    return {k: v for k, v in found.items() if not o.contenders or k in o.contenders}


def norm(gradients):
    return numpy.sqrt(sum(float((x.astype(numpy.float64) ** 2).sum()) for x in gradients.values()))


class Reference:
    def __init__(self, weights, config, batch):
        self.loss, self.truth = ways.reference(weights, config, batch, False)
        self.norm = norm(self.truth)
        _, rough = ways.reference(weights, config, batch, True)
        self.rough = self.distance(rough)

    def distance(self, gradients):
        return norm({name: gradients[name] - x for name, x in self.truth.items()})

    def tolerances(self, loss, gradients):
        """The largest error in tolerances; NaN is infinitely wrong."""
        errors = [abs(loss - self.loss) / self.loss / LOSS_TOLERANCE,
                  abs(norm(gradients) - self.norm) / self.norm / NORM_TOLERANCE,
                  self.distance(gradients) / self.rough / GRADIENT_TOLERANCE]
        return float(max(errors)) if numpy.isfinite(errors).all() else numpy.inf


class OurSteps:
    """Two of ours: attention is compiled with dropout or without."""

    def __init__(self, library, folder, case, threads, batch):
        self.each = {p: Ours(library, folder, case.mask, threads, p, batch) for p in DROPOUTS}

    def gradients(self, shapes):
        return [one.gradients(shapes) for one in self.each.values()]

    def step(self, dropout):
        self.each[dropout]()

    def close(self):
        for one in self.each.values():
            one.close()


class Comparison:
    def __init__(self, o, library, folders, tables):
        self.o, self.library, self.folders, self.tables = o, library, folders, tables
        self.results = []

    def build(self, case, name, how, weights, config, batch, shapes):
        """(contender, what its gradients are)"""
        if name == "ours":
            one = OurSteps(self.library, self.folders[case.model], case, self.o.threads, batch)
            return one, one.gradients(shapes)
        torch._dynamo.reset()
        one = ways.Trainer(weights, config, batch, *how)
        return one, [one.gradients()]

    def attempt(self, case, name, how, reference, weights, config, batch):
        result = {"contender": name, "verdict": "failed"}
        shapes = {n: x.shape for n, x in reference.truth.items()}
        try:
            one, found = self.build(case, name, how, weights, config, batch, shapes)
        except Exception as e:  # whatever the libraries raise: a contender that failed
            return result | {"reason": (str(e).strip() or type(e).__name__).splitlines()[0][:300]}, None
        error = max(reference.tolerances(*pair) for pair in found)
        kind = "ok" if error <= 1 else "loose" if error <= LOOSE and name != "ours" else "wrong"
        return result | {"error_in_tolerances": error, "verdict": kind}, None if kind == "wrong" else one

    def time(self, contenders, dropout):
        """{name: summary}: rounds of one step each, after one that is not counted."""
        samples = {name: [] for name in contenders}
        begin = time.perf_counter()
        for k in range(self.o.repeat + 1):
            if k > FEWEST and time.perf_counter() - begin > self.o.limit:
                break
            for name, one in contenders.items():
                wall, cpu = time.perf_counter(), time.process_time()
                one.step(dropout)
                if k:
                    samples[name].append((time.perf_counter() - wall, time.process_time() - cpu))
        return {name: report.summary([w for w, _ in s]) |
                {"cpu_" + k: x for k, x in report.summary([c for _, c in s]).items() if k != "samples"}
                for name, s in samples.items()}

    def run(self, case):
        """The results of each dropout."""
        folder = self.folders[case.model]
        weights, config = bert_peers_torch.read_weights(folder), bert_peers_torch.read_config(folder)
        table = self.tables.get((case.model, case.mask))
        batch = ways.Batch(case.batch, case.length, config["vocab_size"],
                           table if table is None else table[:case.length, :case.length].contiguous())
        report.progress(f"{case.name()}: float64")
        reference = Reference(weights, config, batch)
        tried, ready = [], {}
        for name, how in contenders_of(case, self.o).items():
            report.progress(f"{case.name()}: checking {name}")
            result, one = self.attempt(case, name, how, reference, weights, config, batch)
            tried.append(result)
            if one:
                ready[name] = one
        cells = [self.cell(case, dropout, tried, ready, batch.tokens) for dropout in DROPOUTS]
        if "ours" in ready:
            ready["ours"].close()
        return cells

    def cell(self, case, dropout, tried, ready, tokens):
        report.progress(f"{case.name()}: timing {len(ready)} contenders, dropout {dropout}")
        times = self.time(ready, dropout)
        common = dataclasses.asdict(case) | {"dropout": dropout, "tokens": tokens}
        cell = [common | r | times.get(r["contender"], {}) for r in tried]
        for r in cell:
            if r["contender"] == "ours" and "ours" in ready:
                r["shares"] = ready["ours"].each[dropout].shares()
        self.results += cell
        return cell
