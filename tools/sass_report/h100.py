# SPDX-License-Identifier: Apache-2.0
"""Milliseconds of counted launches on an H100: of each unit by itself, and of all together. The counts are those of
MASKC_SASS_COUNTS (tests/sass/cost/cost.h); nothing here knows a kernel or a mask."""
import heapq
import json

import classes
import model
import report
from disassembly import Fatal

# Facts of the H100 80 GB HBM3 (SXM): source and unit. Profile: Nsight Compute 2025.3 on revision b84ec2a, not at locked clocks.
PROCESSORS = 132        # NVIDIA H100 data sheet
CLOCK = 1.83e9          # Hz, under load: profile
TENSOR = 6              # cycles of a partition for HMMA.16816: a loop of mma.sync reaches 655 TFLOP/s at that clock
PARTITIONS = 4          # of a processor, each issues an instruction a cycle: CUDA programming guide
DRAM = 2.98e12          # bytes a second that a copy reaches: measured
L2_LINK = 8.83e12       # bytes a second, both ways: the profile's shares of the peak for three kernels over sectors counted here
LAUNCH = 3e-6           # seconds from a launch to the next in a graph: maskc calibrate
SECTOR = 32             # bytes
# One bank conflict-free wavefront a cycle: the shared-memory pipe (Luo et al., arXiv 2402.13499). Latencies: tests/sass/cost/latency.h.

# Fitted, the only one: the units' times t make (sum t^OVERLAP)^(1/OVERLAP). 1: one after another; infinite: the largest alone. Least
# squares of the logarithms of predicted over measured, rows of h100_test.py's KEPT: 4.7 % (4.9 % at 2.5, 5.2 % at 2.7).
OVERLAP = 2.6

UNITS = ("tensor", "issue", "shared", "l2", "dram", "latency")
TITLES = {"tensor": "tensor", "issue": "issue", "shared": "shared", "l2": "L2 link", "dram": "DRAM", "latency": "latency"}
NEEDED = {"counts", "sectors", "wavefronts", "fetched", "stored", "alone", "works"}


def counted(record, code, blocks):
    """Sums over a launch's blocks, as inputs of the model. `blocks`: the number that a processor holds."""
    products = sum(n * classes.depth(i) for i, n in zip(code, record["counts"])) / 16
    return {"kernel": record["entry"], "warps": record["threads"] // classes.WARP, "resident": blocks, "products": products, "slots": sum(record["counts"]),
            "wavefronts": sum(record["wavefronts"]), "sectors": sum(record["sectors"]),
            "moved": record["fetched"] + record["stored"], "alone": record["alone"], "waited": record["waited"],
            "trips": record["trips"], "works": record["works"], "waves": record.get("waves", 1)}


def shares(count, blocks, waves):
    """The works of each block, in the order in which blocks start: a wave has half of the works that the waves before leave
    (templates/cuda/tiled/work_item.h, runtime/device/waves.c)."""
    if count <= blocks * waves:
        return [range(k, k + 1) for k in range(count)]
    ends = [count - (count >> wave) for wave in range(waves)] + [count]
    return [range(begin + b, end, blocks) for begin, end in zip(ends, ends[1:]) for b in range(min(blocks, end - begin))]


def listed(works, repeats):
    """The counted list of works for `repeats` times its heads: in the order of gen/plan/work.c, the dearest first to a factor of four, and
    within that head by head."""
    kinds = [next(k for k in range(64) if work * 4 ** (k + 1) >= max(works) or not work) for work in works]
    order = sorted((kind, repeat, k) for k, kind in enumerate(kinds) for repeat in range(repeats))
    return [works[k] for _, _, k in order]


def balance(works, times, blocks, waves=1):
    """The last block's end over the mean: a wave's block b takes works b, b + blocks, .. of the wave's part of the list, for times[0] times
    the sequences and times[1] times the heads. A block of a later wave starts when one ends."""
    works = listed(works, times[1])
    ends = [0] * blocks
    for share in shares(len(works) * times[0], blocks, waves):
        heapq.heapreplace(ends, ends[0] + sum(works[k // times[0]] for k in share))
    return max(ends) * blocks / sum(ends)


def units(c, times):
    """Seconds of each unit, as if nothing else took any."""
    scale = times[0] * times[1]
    cycles = scale / PROCESSORS / CLOCK
    return {"tensor": c["products"] * TENSOR / PARTITIONS * cycles, "issue": c["slots"] / PARTITIONS * cycles,
            "shared": c["wavefronts"] * cycles, "l2": c["sectors"] * SECTOR * scale / L2_LINK,
            "dram": c["moved"] * SECTOR * scale / DRAM, "latency": c["alone"] / c["resident"] * cycles}


def predict(c, batch, repeats=1):
    """Predicts a counted launch with `batch` times its sequences and `repeats` times its heads."""
    made = units(c, (batch, repeats))
    spread = balance(c["works"], (batch, repeats), c["resident"] * PROCESSORS, c.get("waves", 1)) if c["works"] else 1
    together = sum(t ** OVERLAP for t in made.values()) ** (1 / OVERLAP)
    return {"kernel": c["kernel"], "ms": 1e3 * (together * spread + LAUNCH), "binds": max(made, key=made.get), "balance": spread,
            "units": {name: 1e3 * made[name] for name in UNITS}} | {
            "work": work_figures(c)}


def work_figures(c):
    """Average figures of one work (a row block, for instance); `loads`: how often a warp waits for what L2 or DRAM has, `waited`: cycles that
    it waits so, in a block that is alone."""
    works = max(1, len(c["works"]))
    return {"works": len(c["works"])} | {key: c[key] / works for key in ("slots", "wavefronts", "sectors", "alone")} | {
        "loads": c["trips"] / works / c["warps"], "waited": c["waited"] / works / c["warps"]}


def records_of(path, text):
    try:
        made = [json.loads(line) for line in text.splitlines() if line.strip()]
        if all(NEEDED <= set(r) and isinstance(r["counts"], list) for r in made) and made:
            return made
    except ValueError:
        pass
    raise Fatal(2, f"{path}: expected a line of JSON for each launch, with sectors and works (not cuda_hopper's)")


def launches_of(path, text, found, code):
    """Inputs of the model for each launch in MASKC_SASS_COUNTS's file, in its order; only kernels in `found`."""
    by_name = {(x.target.rstrip("a"), x.name): x for x in found}
    made = []
    for r in records_of(path, text):
        x = by_name.get((r["target"].rstrip("a"), r["entry"]))
        if not x:
            continue
        kernel = code[x.target, x.name]
        if len(kernel.code) != len(r["counts"]):
            raise Fatal(2, f"counts of {x.name}: {len(r['counts'])} instructions, its code has {len(kernel.code)}")
        made.append(counted(r, kernel.code, model.resident_blocks(model.MACHINES["sm_90"], x)))
    if not made:
        raise Fatal(2, f"{path}: no launch of {', '.join(sorted({x.name for x in found}))}")
    return made


def print_works(predictions):
    rows = [[p["kernel"], *(f"{p['work'][key]:.0f}" for key in ("works", "slots", "wavefronts", "sectors")), f"{p['work']['loads']:.1f}",
             f"{p['work']['waited']:.0f}", f"{p['work']['alone']:.0f}"] for p in predictions]
    print()
    report.print_table(("by work", "counted", "slots", "wavefronts", "sectors", "loads", "waited", "alone"), rows, 1)
    print()


def print_table(predictions):
    rows = [[p["kernel"], *(f"{p['units'][u]:.3f}" for u in UNITS), f"{p['balance']:.2f}", f"{p['ms']:.3f}", TITLES[p["binds"]]]
            for p in predictions]
    report.print_table(("kernel", *TITLES.values(), "balance", "ms", "binds"), rows, 1)
    print_works(predictions)
    print(f"sum {sum(p['ms'] for p in predictions):.3f} ms")
