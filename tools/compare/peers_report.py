# SPDX-License-Identifier: Apache-2.0
"""Output of the peers comparison: percentiles, the table row by row, JSON, a picture.
Nothing here needs torch.
"""
import json
import math
import os
import sys

from common import terminal

DENSE = ("sdpa", "sdpa-flash", "sdpa-cudnn")
COLUMNS = ("mask", "sparsity", "n", "dtype", "pass", "ours", "dense", "sdpa+mask", "flex", "(block)",
           "eager", "vs own", "vs dense", "vs best", "verified")
SHORT = ("mask", "sparsity", "n", "dtype", "pass", "ours", "dense", "vs own", "vs dense", "vs best", "verified")  # without --wide
WIDTHS = {"sparsity": 8, "n": 6, "dtype": 5, "pass": 7, "ours": 8, "dense": 8, "sdpa+mask": 9,
          "flex": 9, "(block)": 7, "eager": 9, "vs own": 8, "vs dense": 8, "vs best": 8, "verified": 8}
LEFT = ("mask", "dtype", "pass", "verified")


def percentile(samples, share):
    """Linear between the two nearest samples."""
    s = sorted(samples)
    at = share * (len(s) - 1)
    low = math.floor(at)
    return s[low] + (at - low) * (s[min(low + 1, len(s) - 1)] - s[low])


def summary(samples):
    return {"median_s": percentile(samples, 0.5), "p10_s": percentile(samples, 0.1),
            "p90_s": percentile(samples, 0.9), "samples": len(samples)}


def progress(text):
    """One line on a terminal, overwritten by the next; nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def milliseconds(result, statistic):
    if not result:
        return "-"
    return f"{1e3 * result[statistic]:.3f}" + ("*" if result.get("graph") is False else "")


def verdict(cell):
    wrong = [f"{r['contender']} WRONG ({r['error_in_tolerances']:.3g} x tolerance)"
             for r in cell if r["verdict"] == "wrong"]
    failed = [f"{r['contender']} FAILED" for r in cell if r["verdict"] == "failed"]
    loose = [f"{r['contender']} loose ({r['error_in_tolerances']:.2g} x)"
             for r in cell if r["verdict"] == "loose"]
    return "; ".join(wrong + failed + loose) or "all"


def row_of(cell, statistic="median_s"):
    """cell: the results of all contenders for one mask, n, dtype, pass."""
    def fastest(names):
        found = [r for r in cell if r["contender"] in names and r.get(statistic)]
        return min(found, key=lambda r: r[statistic], default=None)

    def ratio(slow, fast):
        return f"{slow[statistic] / fast[statistic]:.2f} x" if slow and fast else "-"

    masked = {r["contender"] for r in cell if r["masked"]}
    ours, dense, flex = (fastest(names) for names in
                         (["ours"], DENSE, [c for c in masked if c.startswith("flex-")]))
    shown = {"ours": ours, "dense": dense, "sdpa+mask": fastest(["sdpa+mask"]), "flex": flex,
             "eager": fastest(["eager"])}
    first = cell[0]
    return {name: milliseconds(r, statistic) for name, r in shown.items()} | {
        "mask": first["mask"], "sparsity": f"{first['sparsity']:.1f} %", "n": str(first["length"]),
        "dtype": first["dtype"], "pass": first["pass"],
        "vs own": ratio(fastest(["ours-dense"]), ours),
        "(block)": f"({flex['contender'][5:]})" if flex else "", "vs dense": ratio(dense, ours),
        "vs best": ratio(fastest(masked - {"ours"}), ours), "verified": verdict(cell)}


class Table:
    """Printed row by row, as a run may take long."""

    def __init__(self, labels, wide=False):
        self.columns = COLUMNS if wide else SHORT
        widths = WIDTHS | {"mask": min(16, max(map(len, [*labels, "mask"])))}
        self.rows = terminal.Rows([widths[c] for c in self.columns], [k for k, c in enumerate(self.columns) if c in LEFT])
        self.line(dict(zip(COLUMNS, COLUMNS)))

    def line(self, row):
        progress("")
        print(self.rows.line([row[c] for c in self.columns]), flush=True)


def print_reasons(results):
    """Why a contender is missing: each reason once."""
    reasons = {}
    for r in results:
        if r.get("reason"):
            reasons.setdefault((r["contender"], r["pass"], r["reason"]), set()).add(r["mask"])
    for (contender, direction, reason), masks in reasons.items():
        print(terminal.fold(f"{contender}, {direction} ({len(masks)} masks): {reason}"))


def print_builds(results):
    builds = [r["build_s"] for r in results if r["contender"].startswith("flex-") and "first_s" in r]
    first = [r["first_s"] for r in results if r["contender"].startswith("flex-") and "first_s" in r]
    ours = [r["build_s"] for r in results if r["contender"] == "ours" and "first_s" in r]
    if first:
        print(terminal.fold(f"not in the times: flex block masks up to {max(builds):.2f} s each, its longest first "
                            f"call (compilation) {max(first):.1f} s"))
    if ours:
        load = max(r["load_s"] for r in results if r["contender"] == "ours" and "first_s" in r)
        print(terminal.fold(f"not in the times: ours from mask to loaded kernel up to {max(ours):.2f} s, its longest "
                            f"where the code cache was cold; to load a kernel file up to {1e3 * load:.1f} ms"))


def finite(value):
    """JSON has no infinity: null, as in the other JSON of maskc."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return value


def write_json(path, header, results):
    partial = f"{path}.{os.getpid()}.partial"
    with open(partial, "w", encoding="utf-8") as f:
        json.dump(finite(header | {"results": results}), f, indent=1, sort_keys=True,
                  allow_nan=False)
        f.write("\n")
    os.replace(partial, path)


def draw(path, header, results):
    """A panel for each n, dtype and pass; a group of bars for each mask."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "maskc"
    panels = list(dict.fromkeys((r["length"], r["dtype"], r["pass"]) for r in results))
    names = list(dict.fromkeys(r["contender"] for r in results if r.get("median_s")))
    figure, axes = pyplot.subplots(len(panels), 1, squeeze=False,
                                   figsize=(12, 3.2 * len(panels)), layout="constrained")
    for ax, panel in zip(axes[:, 0], panels):
        here = [r for r in results if (r["length"], r["dtype"], r["pass"]) == panel]
        masks = list(dict.fromkeys(r["mask"] for r in here))
        for k, name in enumerate(names):
            at = {r["mask"]: 1e3 * r["median_s"] for r in here
                  if r["contender"] == name and r.get("median_s")}
            ax.bar([m + (k + 1) / (len(names) + 1) - 0.5 for m, mask in enumerate(masks)
                    if mask in at], list(at.values()), 1 / (len(names) + 1), label=name)
        ax.set_ylabel("ms")
        ax.set_xlim(-0.5, len(masks) - 0.5)
        ax.set_title(f"n={panel[0]}, {panel[1]}, {panel[2]}")
        ax.set_xticks(range(len(masks)), masks, fontsize=8)
    axes[0, 0].legend(fontsize=8)
    figure.suptitle(f"{header['device']}, {header['threads']} threads")
    metadata = {"Date": None} if str(path).endswith(".svg") else {}
    figure.savefig(path, metadata=metadata)
