#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the first table that tools/peers printed into a page: python3 plot_table.py PAGE.md OUT.png [LENGTH [DTYPE]]

For each mask of that length (2048 by default) and type (by default the first in that table) the time of forward and backward together: ours, the fastest PyTorch call that
computes the mask, and PyTorch's dense attention, which computes no mask. Needs matplotlib, as maskc.figures does, which draws.
"""
import json
import pathlib
import re
import subprocess
import sys

FIGURES = pathlib.Path(__file__).resolve().parents[3] / "runtime/python/maskc/figures"
ROW = re.compile(r"^(\S+) +([\d.]+) % +(\d+) +(\w+) +(forward|both) +(-|[\d.]+) +(-|[\d.]+) ")
RATIOS = re.compile(" (-|[\\d.]+ x) +(-|[\\d.]+ x) +(-|[\\d.]+ x) +(?=[a-z])")  # vs own, vs dense, vs best; then a word
WAYS = ("maskc", "PyTorch with the mask, its fastest way", "PyTorch dense, without a mask")
MASKS = (("star", "star: neighbours and the first token"), ("logsparse", "logsparse: distances 0, 1, 2, 4, .."),
         ("longformer", "longformer(w,g): distances up to w, g global tokens"), ("fixed", "fixed(l,c): blocks of l, and the last c columns of each"),
         ("strided", "strided(l): distances up to l, and multiples of l"), ("bigbird", "bigbird(w,g,r): distances up to w, g global tokens, r random keys a query"),
         ("dam", "dam-near, dam-scattered: few distances, as masks learn them, close by or wide apart, and the first and last token"))


def number(cell):
    return None if cell == "-" else float(cell.removesuffix(" x"))


def tables(text):
    """[(first line of the run, {(mask, length, dtype): (sparsity, ours, dense, times vs best)})] of forward and backward together. None: no figure."""
    found = []
    for line in text.splitlines():
        if "torch" in line and "threads" in line:
            found.append([line, {}])
        row = ROW.match(line)
        ratios = RATIOS.search(line)
        if row and found and row[5] == "both" and ratios:
            found[-1][1][row[1], int(row[3]), row[4]] = (float(row[2]), number(row[6]), number(row[7]), number(ratios[3]))
    return [(device, rows) for device, rows in found if rows]


class Missing(Exception):
    """The table has nothing to draw."""


def content(device, rows, length, dtype=None):
    """JSON of maskc.figures: a row a mask, the fastest first."""
    types = list(dict.fromkeys(k[2] for k in rows if k[1] == length))
    dtype = dtype or types[0]
    here = sorted(((k[0], v) for k, v in rows.items() if k[1:] == (length, dtype) and v[1]), key=lambda r: r[1][1])
    if not here:
        raise Missing(f"no time of ours with n={length}, {dtype}; types in it: {', '.join(types)}")
    times = [(ours, ours * best if best else None, dense) for _, (_, ours, dense, best) in here]
    known = "; ".join(words for name, words in MASKS if any(mask.startswith(name) for mask, _ in here))
    return {"title": f"Time of attention, forward and backward, n = {length}", "x": {"label": "time (ms)", "scale": "log"},
            "rows": [{"name": f"{mask}, sparsity {v[0]:.1f} %", "said": f"{v[3]:.0f} \N{MULTIPLICATION SIGN}" if v[3] else ""} for mask, v in here], "said": "faster",
            "series": [{"name": name, "values": [t[k] for t in times]} for k, name in enumerate(WAYS)],
            "note": f"faster: time of PyTorch with the mask / time of maskc. Sparsity: share of entries off. 12 heads of 64, {dtype}, batch 1, medians. {device}.\n{known}."}


def main():
    if len(sys.argv) not in (3, 4, 5):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    length = int(sys.argv[3]) if len(sys.argv) > 3 else 2048
    with open(sys.argv[1], encoding="utf-8") as f:
        found = [(d, r) for d, r in tables(f.read()) if any(k[1] == length for k in r)]
    if not found:
        print(f"{sys.argv[1]}: no table of tools/peers with n={length} in it", file=sys.stderr)
        return 2
    try:
        made = content(*found[0], length, *sys.argv[4:])
    except Missing as e:
        print(f"{sys.argv[1]}: {e}", file=sys.stderr)
        return 2
    return subprocess.run([sys.executable, FIGURES, "dots", "-o", sys.argv[2]], input=json.dumps(made), text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
