# SPDX-License-Identifier: Apache-2.0
"""Figures by python3 -m maskc.figures, where it and matplotlib are there."""
import json
import os
import pathlib
import subprocess
import sys

from . import table

MODULE = pathlib.Path(__file__).resolve().parents[3] / "runtime/python/maskc/figures"


class Figures:
    def __init__(self, folder, say):
        self.folder, self.say, self.made, self.missing = folder, say, {}, None

    def command(self, *arguments):
        python = os.environ.get("MASKC_PYTHON", sys.executable)
        return [python, MODULE, *arguments] if MODULE.is_dir() else [python, "-m", "maskc.figures", *arguments]

    def draw(self, name, title, kind, content):
        """A figure as NAME.svg; one line says why there is none."""
        if self.missing:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.svg"
        done = subprocess.run([str(x) for x in self.command(kind, "-o", path)], input=json.dumps(content).encode(), capture_output=True, check=False)
        if done.returncode == 0:
            self.made[path.name] = title
            return
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        if done.returncode == 2:
            self.say(f"the figure {path.name} is left out: {why}")
        else:  # matplotlib or the module is missing: once is enough
            self.missing = why
            self.say(f"figures are left out: {why}")

    def markdown(self):
        return "".join(f"\n![{title}](figures/{name})\n\n{title}\n" for name, title in self.made.items())


def point(x, e):
    """[x, mean, deviation], in percent."""
    return [x, e["mean"]] + ([e["deviation"]] if e["deviation"] is not None else [])


def lines(figures, name, title, axes, series, levels=()):
    """series: (name, points); those without points are left out."""
    series = [{"name": n, "points": points} for n, points in series if points]
    if series:
        figures.draw(name, title, "lines", {"title": title, "x": {"label": axes[0]}, "y": {"label": axes[1]}, "series": series,
                                            "levels": [{"name": n, "value": v} for n, v in levels if v is not None]})


def bars(figures, name, title, label, rows, levels=()):
    """rows: (name, entry), one task."""
    rows = [(n, e) for n, e in rows if e["mean"] is not None]
    if rows:
        least = min(e["mean"] - (e["deviation"] or 0) for _, e in rows)
        most = max(e["mean"] for _, e in rows)
        levels = [(n, v) for n, v in levels if v <= most + (most - least)]  # others would leave no room for the rows
        y = {"label": label, "least": max(0.0, 5 * (least // 5) - 5)}
        figures.draw(name, title, "bars", {"title": title, "y": y, "levels": [{"name": n, "value": v} for n, v in levels], "methods": [
            {"name": n, "values": [e["mean"]], "deviations": [e["deviation"]]} for n, e in rows]})


def each_task(c, gathered, draw):
    """draw(task, metric, levels) for each task that has a score; levels are dense and the baselines."""
    for task in c.tasks:
        metric = next((row[task.name]["metric"] for row in gathered.values() if row[task.name]["metric"]), None)
        if metric:
            found = [(m, table.baseline(c, metric, task, m)) for m in table.BASELINES]
            draw(task, metric, [(name, b[0]) for name, b in found if b])
