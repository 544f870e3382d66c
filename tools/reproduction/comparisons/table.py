# SPDX-License-Identifier: Apache-2.0
"""Cells over their seeds: mean, deviation, counts; the Markdown table."""
import statistics

from . import cells, folders, ordering

BASELINES = ("majority", "bag-of-words")


def gather(c, variants):
    """{label: {task: entry}}; an entry has each seed's value."""
    return {v.label: {task.name: entry(c, v, task) for task in c.tasks} for v in variants}


def entry(c, variant, task):
    """Seeds without a score (a loss that was not finite) are counted apart."""
    found = [r for seed in range(c.s.seeds) if (r := c.done(cells.Cell(variant, task, seed)))]
    good = {r["seed"]: r["value"] for r in found if r["value"] is not None}
    values = list(good.values())
    return {"each": good, "mean": statistics.mean(values) if values else None, "deviation": statistics.stdev(values) if len(values) > 1 else None,
            "seeds": len(values), "failed": len(found) - len(values), "examples": found[0]["examples"] if found else 0,
            "dev": next((r["dev"] for r in found if "dev" in r), 0), "metric": next((r["metric"] for r in found if r["metric"]), None),
            "sparsity": statistics.mean(r["sparsity"] for r in found) if found else None,
            "more": [r["more"] for r in found if "more" in r]}


def cell_text(e):
    if e["mean"] is None:
        return "not finite" if e["failed"] else ""
    spread = f" +- {e['deviation']:.1f}" if e["deviation"] is not None else ""
    return f"{e['mean']:.1f}{spread} ({e['seeds']} x {e['examples']})" + (f", {e['failed']} not finite" if e["failed"] else "")


def sparsity_text(row):
    found = [e["sparsity"] for e in row.values() if e["sparsity"] is not None]
    return f"{statistics.mean(found):.1f}" if found else ""


def markdown(lines):
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rest]) + "\n"


def column(c, gathered, task):
    """The name of a task's column: its metric, and how many examples of dev judge."""
    first = next((row[task.name] for row in gathered.values() if row[task.name]["metric"]), None)
    return f"{task.name}, {first['metric']} %, dev {first['dev']}" if first else f"{task.name} (not run)"


def as_markdown(c, variants, gathered):
    lines = [["mask", "sparsity %", *(column(c, gathered, task) for task in c.tasks)]]
    for v in variants:
        row = gathered[v.label]
        lines.append([v.label, sparsity_text(row), *(cell_text(row[task.name]) for task in c.tasks)])
    majority = [f"{m:.1f}" if (m := folders.majority(task)) is not None else "" for task in c.tasks]
    return markdown(lines + [["(majority, these examples of dev)", "", *majority]] + baseline_lines(c, gathered))


def judged(c, gathered):
    """Names of the tasks of which something was learned."""
    return [t.name for t in c.tasks if ordering.learned(gathered, t.name, folders.majority(t))]


def baseline_lines(c, gathered):
    """Majority and bags of words, on the whole dev part; a line for each method that any task has."""
    lines = []
    for method in BASELINES:
        texts = [baseline_text(c, gathered, task, method) for task in c.tasks]
        if any(texts):
            lines.append([f"({method}, trained on all of train)", "", *texts])
    return lines


def baseline(c, metric, task, method):
    """(value in percent, examples) of the metric that the cells are judged by."""
    found = c.s.baselines.get(task.name, {}).get(method)
    value = found["metrics"].get(metric) if found and metric else None
    return (task.percent(metric, value), found["examples"]) if value is not None else None


def baseline_text(c, gathered, task, method):
    metric = next((row[task.name]["metric"] for row in gathered.values() if row[task.name]["metric"]), None)
    found = baseline(c, metric, task, method)
    return f"{found[0]:.1f} (all {found[1]} of dev)" if found else ""
