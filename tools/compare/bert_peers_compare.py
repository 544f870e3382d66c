# SPDX-License-Identifier: Apache-2.0
"""One case of tools/bert-peers: builds every contender, holds it to float64, times those that are right in
turn, and says what that means.
"""
import dataclasses
import time

import numpy
import torch
import torch._inductor.config

import bert_peers_torch as ways
import peers_report as report
from bert_peers_ours import Ours
from peers_clock import interleave

LOOSE = 8  # a peer up to so many times the tolerance is less exact, above it is wrong
F32_TOLERANCE = 1e-5  # of the largest value
BF16_TOLERANCE = 1.5  # times the rms error of torch's bf16 without any tricks


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    mask: str | None
    batch: int
    length: int
    mixed: bool = False

    def name(self):
        return f"{self.model} {self.batch} x {self.length}{' mixed' if self.mixed else ''} {self.mask or 'dense'}"


def numbers_of(case, words):
    """Mixed lengths lie between an eighth of the longest and the longest, one of which is there."""
    g = torch.Generator().manual_seed(1)
    counts = [case.length] * case.batch
    if case.mixed:
        least = (case.length + 7) // 8
        counts[1:] = torch.randint(least, case.length + 1, (case.batch - 1,), generator=g).tolist()
    return [torch.randint(0, words, (c,), generator=g) for c in counts]


def contenders_of(case, o):
    """{name: (kind, dtype, attention, form, compiled)}; those named "ours.." are our own."""
    bf16, f32 = torch.bfloat16, torch.float32
    found = {"ours": ("ours", "bf16")}
    found |= {"ours dense": ("ours", "bf16")} if case.mask else {"ours f32": ("ours", "f32")}
    found["sdpa"] = ("torch", bf16, ways.sdpa, "pad", False)
    found["compiled"] = ("torch", bf16, ways.sdpa, "pad", True)
    if case.mixed:
        found["sdpa packed"] = ("torch", bf16, ways.sdpa, "loop", False)
        found["compiled packed"] = ("torch", bf16, ways.sdpa, "gather", True)
    if case.mask:
        found["eager"] = ("torch", bf16, ways.plain, "pad", False)
        for block in o.flex_blocks:
            found[f"flex-{block}"] = ("torch", bf16, ways.flex(block), "pad", True)
    else:  # with a mask f32 would take minutes and win nothing
        found["f32 sdpa"] = ("torch", f32, ways.sdpa, "pad", False)
        found["f32 compiled"] = ("torch", f32, ways.sdpa, "pad", True)
        found["f32 onnx"] = ("onnx",)
    return {k: v for k, v in found.items() if not o.contenders or k in o.contenders}


class Reference:
    """The float64 hidden states of the first and the last sequence."""

    def __init__(self, weights, config, batch):
        self.spans = []
        self.truth, rough = [], []
        at = numpy.cumsum([0, *batch.counts])
        for k in sorted({0, len(batch.counts) - 1}):
            one = ways.Batch([batch.numbers[k]], batch.table)
            self.spans.append(slice(at[k], at[k + 1]))
            for dtype, to in (torch.float64, self.truth), (torch.bfloat16, rough):
                e = ways.Encoder(weights, config, dtype, one, ways.plain, "pad")
                to.append(e(*e.inputs()).double().numpy())
        self.truth, rough = numpy.concatenate(self.truth), numpy.concatenate(rough)
        self.rms = numpy.sqrt(((rough - self.truth) ** 2).mean())

    def tolerances(self, states, half):
        """The error in tolerances; NaN is infinitely wrong."""
        gap = numpy.concatenate([states[s] for s in self.spans]).astype(numpy.float64) - self.truth
        found = (numpy.sqrt((gap ** 2).mean()) / self.rms / BF16_TOLERANCE if half else
                 abs(gap).max() / abs(self.truth).max() / F32_TOLERANCE)
        return float(found) if numpy.isfinite(found) else numpy.inf


class Comparison:
    def __init__(self, o, library, folders, tables):
        self.o, self.library, self.folders, self.tables = o, library, folders, tables
        self.results = []
        torch._inductor.config.freezing = True  # weights packed and folded once, as ours are

    def build(self, case, name, how, weights, config, batch):
        """(call, states): call is timed, states gives packed rows as numpy."""
        if how[0] == "ours":
            mask = None if name == "ours dense" else case.mask
            one = Ours(self.library, self.folders[case.model], mask, how[1], self.o.threads, batch,
                       config["hidden_size"])
            return one, lambda: (one(), one.states())[1]
        if how[0] == "onnx":
            try:
                import bert_peers_onnx as onnx
            except ImportError as e:
                raise RuntimeError(f"not installed ({e})") from None
            run = onnx.runner(weights, config, batch, self.o.threads)
            return run, run
        _, dtype, attend, form, compiled = how
        encoder = ways.Encoder(weights, config, dtype, batch, attend, form)
        inputs = encoder.inputs()
        torch._dynamo.reset()
        call = torch.compile(encoder) if compiled else encoder
        return lambda: call(*inputs), lambda: call(*inputs).float().numpy()

    def attempt(self, case, name, how, reference, weights, config, batch):
        result = {"contender": name, "verdict": "failed"}
        try:
            begin = time.perf_counter()
            call, states = self.build(case, name, how, weights, config, batch)
            found = states()
            result["first_s"] = time.perf_counter() - begin
        except Exception as e:  # whatever the libraries raise: a contender that failed
            return result | {"reason": (str(e).strip() or type(e).__name__).splitlines()[0][:300]}, None
        if name == "ours dense" and case.mask:  # checked in the dense cases
            return result | {"verdict": "unjudged"}, call
        half = how[0] != "onnx" and how[1] in ("bf16", torch.bfloat16)
        error = reference.tolerances(found, half)
        kind = "ok" if error <= 1 else "loose" if error <= LOOSE and how[0] != "ours" else "wrong"
        return result | {"error_in_tolerances": error, "verdict": kind}, None if kind == "wrong" else call

    @torch.no_grad()
    def run(self, case, clock):
        folder = self.folders[case.model]
        weights, config = ways.read_weights(folder), ways.read_config(folder)
        batch = ways.Batch(numbers_of(case, config["vocab_size"]), self.tables.get((case.model, case.mask)))
        report.progress(f"{case.name()}: float64")
        reference = Reference(weights, config, batch)
        tried, timed = [], {}
        for name, how in contenders_of(case, self.o).items():
            report.progress(f"{case.name()}: checking {name}")
            result, call = self.attempt(case, name, how, reference, weights, config, batch)
            tried.append(result)
            if call:
                timed[name] = [call]
        report.progress(f"{case.name()}: timing {len(timed)} contenders")
        ours = [c[0] for c in timed.values() if isinstance(c[0], Ours)]
        for one in ours:
            one.seconds[:] = 0
        times = interleave(clock, timed, self.o.repeat, self.o.limit)
        common = dataclasses.asdict(case) | {"tokens": batch.tokens}
        shares = {name: c[0].shares() for name, c in timed.items() if isinstance(c[0], Ours)}
        for one in ours:
            one.close()
        cell = [common | r | times.get(r["contender"], {}) | {"shares": shares.get(r["contender"])} for r in tried]
        self.results += cell
        return cell


def ceiling_of(cell):
    """Speedup of our dense model if attention cost nothing; None where ours did not run."""
    by_name = {r["contender"]: r for r in cell}
    r = by_name.get("ours dense") or by_name.get("ours")
    return 1 / (1 - r["shares"]["attention"]) if r and r["shares"] else None
