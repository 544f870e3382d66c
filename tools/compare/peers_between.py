# SPDX-License-Identifier: Apache-2.0
"""`tools/peers --between`: how much longer attention takes between torch's matrix products than alone. As in a model's layer, one
product makes Q, K and V, attention reads them, and another product reads its output; the clock runs during attention alone.
Alone it is called twice, and the second call counts; cold is a call alone after 64 MB were written, so that caches hold nothing of it.
Beside it, between the same products: torch's own attention, and addcmul of Q, K, V, which computes next to nothing and so shows
what cold caches and a pool of threads that did other work cost anybody.
"""
import math
import time

import torch

import peers_contenders
import peers_report as report

DTYPES = {name: dtype for dtype, name in peers_contenders.DTYPE_NAMES.items()}
WARM_TURNS = 2
FEWEST = 5  # turns, however slow
WAYS = ("maskc", "sdpa", "addcmul")
KINDS = ("between", "alone", "cold")
TABLE = report.terminal.Rows([20, 6, 5, 7, 9, 9, 9, 8], [0, 2, 3])
FLUSHED = 64 << 20  # bytes


class Layer:
    """The products around attention."""

    def __init__(self, case):
        self.case, width = case, case.heads * case.head_dim
        self.x = torch.randn(case.batch, case.n, width, generator=case.generator).to(case.dtype)
        self.into, self.out = (torch.randn(width, k * width, generator=case.generator).div_(math.sqrt(width)).to(case.dtype) for k in (3, 1))

    def before(self):
        """q, k, v: [B, H, N, D]."""
        c = self.case
        return (self.x @ self.into).view(c.batch, c.n, 3, c.heads, c.head_dim).permute(2, 0, 3, 1, 4).unbind(0)

    def after(self, o):
        return o.transpose(1, 2).flatten(2) @ self.out


def attends(case):
    """{name: attend(q, k, v)}."""
    build = peers_contenders.build_sdpa_masked if not case.table.all() else peers_contenders.build_sdpa
    return dict(zip(WAYS, (peers_contenders.build_own()(case, False), build(case, False), torch.addcmul)))


def between(layer, attend, now):
    """Seconds of one call."""
    q, k, v = layer.before()
    begin = now()
    o = attend(q, k, v)
    seconds = now() - begin
    layer.after(o)
    return seconds


def alone(tensors, attend, now):
    """Seconds of one call, after one that brought everything into the caches."""
    attend(*tensors)
    begin = now()
    attend(*tensors)
    return now() - begin


def cold(tensors, attend, now, other):
    """Seconds of one call, after all of `other` was written."""
    other.add_(1)
    begin = now()
    attend(*tensors)
    return now() - begin


def measure(case, options, now):
    """{name: {kind: samples}}, interleaved."""
    layer, ways, other = Layer(case), attends(case), torch.zeros(FLUSHED, dtype=torch.uint8)
    tensors, samples, begin = layer.before(), {name: {kind: [] for kind in KINDS} for name in ways}, time.perf_counter()
    for turn in range(options.repeat + WARM_TURNS):
        if turn >= FEWEST + WARM_TURNS and time.perf_counter() - begin > options.limit:
            break
        for name, attend in ways.items():
            taken = between(layer, attend, now), alone(tensors, attend, now), cold(tensors, attend, now, other)
            for kind, seconds in zip(KINDS, taken if turn >= WARM_TURNS else ()):
                samples[name][kind].append(seconds)
    return samples


def rows_of(options, label, text, table, n, dtype, now):
    """A result for each contender."""
    case = peers_contenders.Case(table, text, options, n, DTYPES[dtype])
    rows, statistic = [], f"{options.statistic}_s"
    with torch.no_grad():
        for name, samples in measure(case, options, now).items():
            row = {kind: report.summary(taken) for kind, taken in samples.items()}
            rows.append({"mask": label, "length": n, "dtype": dtype, "contender": name, **row,
                         "ratio": row["between"][statistic] / row["alone"][statistic]})
    return rows


def print_rows(rows, statistic):
    for r in rows:
        times = [f"{1e3 * r[kind][statistic]:.3f}" for kind in KINDS]
        print(TABLE.line([r["mask"], str(r["length"]), r["dtype"], r["contender"], *times, f"{r['ratio']:.2f} x"]), flush=True)


def show(options, header, read):
    """0. read(label, n): (text, table)."""
    now, results = time.process_time if options.clock == "cpu" else time.perf_counter, []
    statistic = f"{options.statistic}_s"
    print(report.terminal.fold(
        f"{header['device']}, {header['threads']} threads on {len(header['cpus'])} CPUs; torch {header['torch']}; batch {options.batch}, {options.heads} "
        f"heads, D={options.head_dim}\nattention between two matrix products and alone, ms; {options.statistic} of up to {options.repeat} turns; "
        f"{options.clock} clock"))
    print(TABLE.line(["mask", "n", "dtype", "way", *KINDS, "ratio"]))
    for n in options.length:
        for label in options.masks:
            for dtype in options.dtype:
                report.progress(f"{label}, n={n}, {dtype}")
                rows = rows_of(options, label, *read(label, n), n, dtype, now)
                report.progress("")
                print_rows(rows, statistic)
                results += rows
                if options.json:
                    report.write_json(options.json, header, results)
    return 0
