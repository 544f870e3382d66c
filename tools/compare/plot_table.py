#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the first table that tools/peers printed into a page: python3 plot_table.py PAGE.md OUT.png [LENGTH]

For each mask of that length (2048 by default) the time of forward and backward together: ours, the fastest PyTorch call that
computes the mask, and PyTorch's dense attention, which computes no mask. Needs matplotlib, as maskc.figures does, which draws.
"""
import json
import pathlib
import re
import subprocess
import sys

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "runtime/python/maskc/figures"
ROW = re.compile(r"^(\S+) +([\d.]+) % +(\d+) +(\w+) +(forward|both) +([\d.]+) +([\d.]+) ")
WAYS = ("maskc", "PyTorch with the mask, its fastest way", "PyTorch dense, without a mask")
MASKS = (("star", "star: neighbours and the first token"), ("logsparse", "logsparse: distances 0, 1, 2, 4, .."),
         ("longformer", "longformer(w,g): distances up to w, g global tokens"), ("fixed", "fixed(l,c): blocks of l, and the last c columns of each"),
         ("strided", "strided(l): distances up to l, and multiples of l"), ("bigbird", "bigbird(w,g,r): distances up to w, g global tokens, r random keys a query"),
         ("dam", "dam-near, dam-scattered: few distances, as masks learn them, close by or wide apart, and the first and last token"))


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


def content(device, rows, length):
    """JSON of maskc.figures: a row a mask, the fastest first."""
    here = sorted(((k[0], v) for k, v in rows.items() if k[1] == length), key=lambda r: r[1][1])
    times = [(ours, ours * best, dense) for _, (_, ours, dense, best) in here]
    known = "; ".join(words for name, words in MASKS if any(mask.startswith(name) for mask, _ in here))
    return {"title": f"Time of attention, forward and backward, n = {length}", "x": {"label": "time (ms)", "scale": "log"},
            "rows": [{"name": f"{mask}, sparsity {v[0]:.1f} %", "said": f"{v[3]:.0f} \N{MULTIPLICATION SIGN}"} for mask, v in here], "said": "faster",
            "series": [{"name": name, "values": [t[k] for t in times]} for k, name in enumerate(WAYS)],
            "note": f"faster: time of PyTorch with the mask / time of maskc. Sparsity: share of entries off. 12 heads of 64, bf16, batch 1, medians. {device}.\n{known}."}


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
    return subprocess.run([sys.executable, FIGURES, "dots", "-o", sys.argv[2]], input=json.dumps(content(*found[0], length)), text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
