# SPDX-License-Identifier: Apache-2.0
"""The comparison itself: for each length, dtype, mask and pass, every contender is built, held to the
float64 reference, and, if it is right, timed in turn with the others.
"""
import functools
import time

import torch

import peers_plan
import peers_report as report
from peers_clock import interleave
from peers_contenders import DTYPE_NAMES, OURS, Case, Unavailable, contenders_for
from peers_reference import Reference

LOOSE = 8  # a peer up to so many times the tolerance is less exact, above it is wrong


class Comparison:
    """Holds what outlives one mask: options, the clock, the dense truth, the results."""

    def __init__(self, o, clock):
        self.o, self.clock = o, clock
        self.dense = {}
        self.results = []

    def dense_reference(self, case):
        """Inputs depend on sizes alone, so one dense truth serves all masks."""
        key = (case.n, case.dtype, case.heads)
        if key not in self.dense:
            self.dense = {key: Reference(case, None)}
        return self.dense[key]

    def attempt(self, case, reference, name, build, training):
        """Builds and checks one contender: (result, attend or None)."""
        result = {"contender": name, "verdict": "failed"}
        try:
            begin = time.perf_counter()
            attend = build(case, training)
            result["build_s"] = time.perf_counter() - begin
            result["load_s"] = getattr(attend, "load_s", None)
            begin = time.perf_counter()
            outputs = self.run(attend, case.q, case.k, case.v, case.grad, training)
            if case.device == "cuda":
                torch.cuda.synchronize()
            result["first_s"] = time.perf_counter() - begin
        except Unavailable as e:
            return result | {"verdict": "unavailable", "reason": str(e)}, None
        except Exception as e:  # whatever PyTorch's compilers raise: a contender that failed
            text = str(e).strip() or type(e).__name__
            return result | {"reason": text.splitlines()[0][:300]}, None
        errors = reference.errors(outputs)
        worst = max(e / reference.tolerance[k] for k, e in errors.items())
        loose = worst <= LOOSE and name not in OURS
        kind = "ok" if worst <= 1 else "loose" if loose else "wrong"
        result |= {"error": errors, "tolerance": {k: reference.tolerance[k] for k in errors},
                   "error_in_tolerances": worst, "verdict": kind}
        return result, None if kind == "wrong" else attend

    def run(self, attend, q, k, v, grad, training):
        if not training:
            with torch.no_grad():
                return (attend(q, k, v),)
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        out = attend(q, k, v)
        return (out, *torch.autograd.grad(out, (q, k, v), grad))

    def calls(self, case, attend, direction):
        """One timed call for each set of buffers."""
        def forward(q, k, v, grad):
            return lambda: attend(q, k, v)

        def both(q, k, v, grad):
            q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
            return lambda: torch.autograd.grad(attend(q, k, v), (q, k, v), grad)

        def backward(q, k, v, grad):
            q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
            out = functools.cache(lambda: attend(q, k, v))  # in the first, untimed call
            return lambda: torch.autograd.grad(out(), (q, k, v), grad, retain_graph=True)

        call = {"forward": forward, "both": both, "backward": backward}[direction]
        return [call(*s) for s in case.sets(self.clock.buffers(case.bytes))]

    def cell(self, case, reference, label, direction):
        """All contenders for one mask, n, dtype, pass."""
        training, tried, timed = direction != "forward", [], {}
        where = f"n={case.n} {DTYPE_NAMES[case.dtype]} {direction} {label}"
        for name, (build, masked) in contenders_for(case.device, self.o.flex_blocks).items():
            if self.o.contenders and name not in self.o.contenders:
                continue
            report.progress(f"{where}: checking {name}")
            truth = reference if masked else self.dense_reference(case)
            result, attend = self.attempt(case, truth, name, build, training)
            tried.append(result | {"masked": masked})
            if attend:
                timed[name] = self.calls(case, attend, direction)
        report.progress(f"{where}: timing {len(timed)} contenders")
        with torch.set_grad_enabled(training):
            times = interleave(self.clock, timed, self.o.repeat, self.o.limit)
        density = case.table.float().mean().item()
        floor = case.moved(direction) / self.clock.copy_rate if self.clock.copy_rate else None
        planned = {r["contender"]: self.planned(case, r["contender"], direction)
                   for r in tried if r["contender"] in OURS}
        common = {"mask": label, "floor_s": floor, "length": case.n, "heads": case.heads, "batch": case.batch,
                  "head_dim": case.head_dim, "pass": direction, "sparsity": 100 * (1 - density),
                  "dtype": DTYPE_NAMES[case.dtype]}
        return [common | r | planned.get(r["contender"], {}) | times.get(r["contender"], {}) for r in tried]

    def planned(self, case, name, direction):
        """Returns the plan's predictions for our kernel, and the least seconds that its executed products need at the measured rate."""
        described = case.described()
        if name == "ours-dense":
            described["heads"] = case.heads
        made = peers_plan.read(self.o.program, "dense" if name == "ours-dense" else case.text, described, direction)
        rate = (self.clock.mma or {}).get("flops_per_s")
        return made | {"area_floor_s": peers_plan.area_floor(described, direction, made.get("executed_fraction"), rate)}

    def run_all(self, table, read_mask, keep):
        """read_mask(label, n): the expression and the table. keep() is called after each row, because
        a later row may crash the process."""
        dtypes = {name: dtype for dtype, name in DTYPE_NAMES.items()}
        for n in self.o.length:
            for dtype in self.o.dtype:
                for label in self.o.masks:
                    report.progress(f"n={n} {dtype} {label}: float64 reference")
                    text, mask = read_mask(label, n)
                    case = Case(mask, text, self.o, n, dtypes[dtype])
                    reference = Reference(case, mask)
                    for direction in self.o.passes:
                        cell = self.cell(case, reference, label, direction)
                        self.results += cell
                        table.line(report.row_of(cell, f"{self.o.statistic}_s"))
                        keep()
