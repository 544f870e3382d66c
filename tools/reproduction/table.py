# SPDX-License-Identifier: Apache-2.0
"""The table: one line a mask, as text and as JSON."""
import statistics

import rows

PLATEAU = 0.1  # nats below the loss without attention; a loss above that says nothing of masks


def plateau(found, unigram):
    """The loss without attention: that of the row without a key, or about what frequencies give, as a tenth of the masked words is left in place."""
    return found["none"]["mlm"] if found.get("none") else 0.9 * unigram


def on_plateau(mlm, reference):
    """Is attention worth less than PLATEAU to it? NaN is on it."""
    return not mlm < reference - PLATEAU


def join(found, reference):
    """Rows of the same mask with other seeds become one, with mean and deviation."""
    groups = {}
    for row in rows.all_rows():
        result = found.get(row.key)
        if result:
            groups.setdefault((row.name, row.diagonal), []).append((row, result))
    return [entry(pairs, reference) for pairs in groups.values()]


def entry(pairs, reference):
    first, results = pairs[0][0], [r for _, r in pairs]
    def mean(pick):
        return statistics.mean(pick(r) for r in results)
    losses = [r["mlm"] for r in results]
    return {"mask": first.label, "name": first.name, "group": first.group, "diagonal": first.diagonal, "seeds": [r["seed"] for r in results],
            "losses": {str(r["seed"]): r["mlm"] for r in results},
            "sparsity": mean(lambda r: r["sparsity"]), "active": [r["active"] for r in results], "mlm": statistics.mean(losses),
            "deviation": statistics.stdev(losses) if len(losses) > 1 else None, "accuracy": mean(lambda r: r["accuracy"]),
            "plateau": on_plateau(statistics.mean(losses), reference), "step_s": mean(lambda r: r["step_s"]),
            "forward_s": mean(lambda r: r["attention"]["forward"]["median_s"]), "backward_s": mean(lambda r: r["attention"]["backward"]["median_s"]),
            "forward_speedup": mean(lambda r: r["attention"]["forward"]["speedup"]),
            "backward_speedup": mean(lambda r: r["attention"]["backward"]["speedup"]), "lowering": results[0]["lowering"],
            "memory": mean(lambda r: r["memory"]), "tokens": results[0]["tokens"], "empty_rows": results[0]["empty_rows"]}


HEAD = ("mask", "sparsity %", "MLM loss", "+- seeds", "accuracy %", "step ms", "forward us", "x dense", "backward us", "x dense", "predicted MiB")


def cells(e):
    spread = "" if e["deviation"] is None else f"{e['deviation']:.4f}"
    return (e["mask"] + (" (plateau)" if e["plateau"] else ""), f"{e['sparsity']:.1f}", f"{e['mlm']:.4f}", spread, f"{100 * e['accuracy']:.2f}",
            f"{1e3 * e['step_s']:.1f}", f"{1e6 * e['forward_s']:.0f}", f"{e['forward_speedup']:.2f}", f"{1e6 * e['backward_s']:.0f}",
            f"{e['backward_speedup']:.2f}", f"{e['memory'] / 2**20:.1f}")


def as_text(entries):
    """Columns of even width, a blank line between groups."""
    lines = [HEAD, *map(cells, entries)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    def form(line):
        return "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths))).rstrip()
    out = [form(HEAD)]
    for before, e in zip([None, *entries], entries):
        if before is None or before["group"] != e["group"]:
            out.append("")
        out.append(form(cells(e)))
    return "\n".join(out) + "\n"


def as_markdown(entries):
    lines = ["| " + " | ".join(HEAD) + " |", "| " + " | ".join(["---"] * len(HEAD)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells(e)) + " |" for e in entries])


def paired(a, b):
    """Differences of the losses of two entries, seed by seed: the same seed means the same batches in the same order."""
    return [a["losses"][k] - b["losses"][k] for k in sorted(a["losses"].keys() & b["losses"].keys())]


def noise(entries):
    """Standard deviation of such a difference over seeds, pooled over the dense rows, which have several; None where none has two."""
    dense = [e for e in entries if e["group"] == "dense"]
    found = [d for e in dense[1:] if len(d := paired(e, dense[0])) > 1]
    freedom = sum(len(d) - 1 for d in found)
    return (sum((len(d) - 1) * statistics.variance(d) for d in found) / freedom)**0.5 if freedom else None
