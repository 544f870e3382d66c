#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the first table that tools/peers printed into a page: python3 plot_table.py PAGE.md OUT.png [LENGTH]

For each mask of that length (2048 by default) the time of forward and backward together: ours, the best other way that
computes the mask, and PyTorch's dense attention, which computes none. Needs matplotlib.
"""
import re
import sys

ROW = re.compile(r"^(\S+) +([\d.]+) % +(\d+) +(\w+) +(forward|both) +([\d.]+) +([\d.]+) ")
WAYS = (("maskc", "#1f77b4"), ("best other way with this mask", "#ff7f0e"), ("dense PyTorch, no mask", "#c0c0c0"))


def tables(text):
    """[(first line of the run, {mask: (sparsity, ours, dense, times vs best)})] of forward and backward together."""
    found = []
    for line in text.splitlines():
        if "torch" in line and "threads" in line:
            found.append([line, {}])
        row = ROW.match(line)
        if row and found and row[5] == "both":
            best = [float(x) for x in re.findall(r"([\d.]+) x", line)][2]
            found[-1][1][row[1], int(row[3])] = (float(row[2]), float(row[6]), float(row[7]), best)
    return [(device, rows) for device, rows in found if rows]


def draw(device, rows, length, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    here = sorted(((k[0], v) for k, v in rows.items() if k[1] == length), key=lambda r: -r[1][3])
    figure, ax = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    for k, (name, color) in enumerate(WAYS):
        times = [(v[1], v[1] * v[3], v[2])[k] for _, v in here]
        ax.bar([m + (k - 1) / 4 for m in range(len(here))], times, 1 / 4, label=name, color=color)
    for m, (_, v) in enumerate(here):
        ax.annotate(f"{v[3]:.0f} x", (m - 1 / 4, v[1]), ha="center", va="bottom", fontsize=8)
    ax.set_yscale("log")
    ax.set_ylim(bottom=1)
    ax.set_ylabel("ms, forward and backward")
    ax.set_xticks(range(len(here)), [f"{mask}\n{v[0]} % off" for mask, v in here], fontsize=7)
    ax.set_title(f"n={length}, 12 heads of 64, bf16; {device.split(';')[0]}", fontsize=9)
    ax.legend(fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.34), frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    length = int(sys.argv[3]) if len(sys.argv) == 4 else 2048
    with open(sys.argv[1], encoding="utf-8") as f:
        found = [(d, r) for d, r in tables(f.read()) if any(k[1] == length for k in r)]
    if not found:
        print(f"{sys.argv[1]}: no table of tools/peers with n={length} in it", file=sys.stderr)
        return 2
    draw(*found[0], length, sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
