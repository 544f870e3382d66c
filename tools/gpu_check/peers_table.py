# SPDX-License-Identifier: Apache-2.0
"""Rows of the stage peers in Markdown: a table for each length, dtype and pass."""
from gpu_check.timing_table import factor, fastest, label, milliseconds, ratio, seconds_of, spaced, table, verdict
from peers_report import DENSE


def best(rows, test):
    return fastest([r for r in rows if test(r["contender"])])


def row_of(rows):
    ours = best(rows, lambda c: c == "ours")
    own, dense, flex = (best(rows, lambda c: c == "ours-dense"), best(rows, lambda c: c in DENSE),
                        best(rows, lambda c: c.startswith("flex-")))
    others = best(rows, lambda c: c in ("sdpa+mask", "eager"))
    words = [verdict(r) for r in rows if r["contender"] == "ours"]
    return [label(rows[0]["mask"]), milliseconds(ours), milliseconds(own), milliseconds(dense), milliseconds(flex),
            milliseconds(others), factor(ratio(seconds_of(dense), seconds_of(ours))),
            factor(ratio(seconds_of(flex), seconds_of(ours))), words[0] if words else ""]


def lines(results):
    """The stage in Markdown."""
    made = ["## peers", "", "Medians in ms. dense, flex: torch's fastest; others: a dense mask in SDPA, or eager attention.", ""]
    for name, r in results.items():
        by_mask = {}
        for row in r.get("results", ()):
            by_mask.setdefault(row["mask"], []).append(row)
        made += [f"### {name}", "", *spaced([f"- **no figures**: {r['said']}"] if not r.get("ok") and r.get("said") else []),
                 *table(["mask", "ours", "own dense", "dense", "flex", "others", "vs dense", "vs flex", ""],
                        [row_of(rows) for rows in by_mask.values()])]
    return made
