#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a page of comparisons again: python3 tools/reproduction/redraw.py model/reproduction/tasks.md

The numbers are those of NAME.json in the folder beside the page. Attention maps stay as they are: their models are gone."""
import json
import pathlib
import sys
import tempfile
import types

from comparisons import command, drawing, folders, publish
from programs import Fatal, read_json, write_whole


def cells_of(kept, folder):
    """Returns the part of cells.Cells that drawing needs, from table.json."""
    s = kept["settings"]
    lengths = {f"long-{n}": n for n in s.get("lengths", ())}
    tasks = [folders.Task(name, kind, folder, s["length"]) for name, kind in (t.split("=") for t in s["tasks"])]
    if lengths:
        tasks = [folders.Task(name, "squad1", folder, n) for name, n in lengths.items()]
    return types.SimpleNamespace(tasks=tasks, model_text=lambda: kept.get("model", ""),
                                 s=types.SimpleNamespace(baselines=kept["baselines"], note=kept["remark"], folder=folder))


def redraw(page, name):
    beside, comparison = page.with_suffix(""), command.COMPARISONS[name]
    kept = read_json(beside / f"{name}.json")
    with tempfile.TemporaryDirectory() as work:
        c = cells_of(kept, pathlib.Path(work))
        figures = drawing.Figures(c.s.folder / "figures", lambda text: print(text, file=sys.stderr))
        more = [kept["numbers"]] if kept.get("numbers") else []
        comparison.draw(c, {label: row["tasks"] for label, row in kept["rows"].items()}, figures, *more)
        if figures.missing:
            raise Fatal(3, f"{page} stays as it is: {figures.missing}")
        publish.replace(page, name, comparison.TITLE, figures)


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    try:
        for name in command.COMPARISONS:
            if (page.with_suffix("") / f"{name}.json").exists():
                redraw(page, name)
    except Fatal as e:
        print(f"redraw.py: {e}", file=sys.stderr)
        return e.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
