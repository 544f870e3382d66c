# SPDX-License-Identifier: Apache-2.0
"""The papers' figures, as far as there are results: 2 (P), 3 (pruning), 5 and 6 (learned masks), 7 (one stage and two). maskc.figures draws
them. python3 tools/reproduction/pictures.py PAGE.md draws those again that need no more than the page's table."""
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

import learned
import rows
from programs import Fatal

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "runtime/python/maskc/figures"
BINS = 60  # of a curve of losses: the page's pictures are small
NAMES = ("loss.png", "loss.svg", "P.png", "P_distance.svg", "pruning.svg", "stages.svg", "sparsity.svg", "dam-u.png", "dam-s.png", "film.png", "importance.png")
SPARSITY, LOSS = {"label": "sparsity (%)"}, {"label": "held-out loss of masked words (nats)"}


def draw(d, g):
    """name: file, of what could be drawn, in DIR/pictures."""
    folder = d.folder / "pictures"
    folder.mkdir(exist_ok=True)
    makers = {"loss": loss, "loss of each step": every_loss, "P": mean_p, "P by distance": by_distance, "pruning": pruning, "stages": stages, "sparsity": sparsity,
              "dam-u": mask_of("dam-u-1e-1"), "dam-s": mask_of("dam-s-1e-1"), "film": film, "importance": importance}
    made = {}
    for name, make in makers.items():
        try:
            file = make(d, g, folder)
        except Fatal as e:
            d.stages.say(f"picture '{name}' is left out: {e}")
            file = None
        if file:
            made[name] = file
    return made


def figure(folder, name, kind, content):
    """Of this width on a page: one column of a paper. Fatal with 3 where matplotlib is missing."""
    done = subprocess.run([sys.executable, FIGURES, kind, "-o", folder / name, "--columns", "1"], input=json.dumps(content), capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Fatal(done.returncode if done.returncode in (2, 3) else 3, (done.stderr.strip().splitlines() or ["no word"])[-1])
    return name


def lines(folder, name, title, axes, series):
    """series: (name, joined, points); those without points are left out. None where all are."""
    series = [{"name": label, "joined": joined, "points": points} for label, joined, points in series if points]
    return figure(folder, name, "lines", {"title": title, "x": axes[0], "y": axes[1], "series": series}) if series else None


def trained(d, g):
    """Folders of the dense run and of those that learn DAM masks."""
    if not g["dense"] or not (d.folder / "runs/dense/log.jsonl").exists():
        return []
    return [d.folder / "runs" / name for name in ("dense", *g["runs"]) if name == "dense" or name.startswith("dam")]


def means(steps):
    """(tokens, loss), each the mean of its part of the run."""
    size = max(1, math.ceil(len(steps) / BINS))
    parts = [steps[k:k + size] for k in range(0, len(steps), size)]
    return [tuple(statistics.mean(x[name] for x in part) for name in ("tokens", "mlm")) for part in parts]


def loss(d, g, folder):
    curves = [{"name": name.name, "steps": means(d.trainer.read_log(name))} for name in trained(d, g)]
    curves = [c for c in curves if c["steps"]]
    return figure(folder, "loss.svg", "curves", {"title": "Training", "note": f"lines: means of {BINS} parts of a run", "x": "tokens", "y": "mlm",
                                                  "curves": curves}) if curves else None


def every_loss(d, g, folder):
    """By maskbert plot, for DIR alone, as it is large."""
    runs = trained(d, g)
    if not runs:
        return None
    d.programs.run("maskbert", "plot", *runs, "-o", folder / "loss.png", "--x", "tokens", "--y", "mlm")
    return "loss.png"


def mean_p(d, g, folder):
    if "p-0" not in g["runs"]:
        return None
    values = learned.mean_over_heads(d.folder / "runs/p-0", d.s)
    return figure(folder, "P.png", "heatmaps", {"label": "P, mean of all heads", "panels": [{"values": values}]})


def by_distance(_d, g, folder):
    series = [(f"seed {r['seed']}", True, [(k, v) for k, v in enumerate(r["P_by_distance"]) if v is not None and k < 64])
              for name, r in g["runs"].items() if name.startswith("p-")]
    return lines(folder, "P_distance.svg", "P by distance", ({"label": "distance |i - j|"}, {"label": "P, mean of all heads"}), series)


def losses(g, names):
    """(sparsity, loss) of the rows that are off the plateau, with a deviation where there are several seeds."""
    by_name = {e["mask"]: e for e in g["entries"]}
    found = [by_name[n] for n in names if n in by_name and not by_name[n]["plateau"]]
    return sorted((e["sparsity"], e["mlm"], *([e["deviation"]] if e["deviation"] is not None else [])) for e in found)


def pruning(_d, g, folder):
    percents = sorted({*rows.PROGRESSIVE, *rows.THRESHOLDS})
    series = [(label, True, losses(g, [form.format(p) for p in percents]))
              for label, form in (("by P", "P pruned {} %"), ("at random", "random {} %"), ("by P, no diagonal", "P pruned {} % - diagonal(0)"),
                                  ("at random, no diagonal", "random {} % - diagonal(0)"))]
    return lines(folder, "pruning.svg", "Pruned by P and at random", (SPARSITY, LOSS), series)


def stages(_d, g, folder):
    series = [("one stage: DAM", False, losses(g, rows.LEARNED)),
              ("two stages: P, then a threshold", True, losses(g, [f"P pruned {p} %" for p in rows.THRESHOLDS]))]
    return lines(folder, "stages.svg", "One stage and two", (SPARSITY, LOSS), series) if all(s[2] for s in series) else None


def sparsity(_d, g, folder):
    """All masks with the diagonal."""
    groups = {}
    for e in g["entries"]:
        if e["diagonal"]:
            kind = next((word for word in ("random", "threshold") if word in e["mask"] and e["group"] != "dense"), e["group"])
            groups.setdefault(kind, []).append(e["mask"])
    series = [(group, False, losses(g, names)) for group, names in groups.items()]
    return lines(folder, "sparsity.svg", "All masks with the diagonal", (SPARSITY, LOSS), series)


def mask_of(name):
    def make(d, g, folder):
        if name not in g["runs"]:
            return None
        file = f"{name[:5]}.png"
        d.programs.run("maskc", "show", next((d.folder / "runs" / name).glob("mask.*")), "-n", d.s.length, "-o", folder / file)
        return file
    return make


def film(d, g, folder):
    """The masks over the steps, from the states that its run has kept."""
    if rows.FILM not in g["runs"] or not d.programs.takes("maskbert", "importance", "--film"):
        return None
    d.programs.run("maskbert", "importance", d.folder / "runs" / rows.FILM, "--film", "-o", folder / "film.png")
    return "film.png"


def importance(d, g, folder):
    """By maskbert importance, where this one has it: for DIR alone, as it is large."""
    if "p-0" not in g["runs"] or not d.programs.takes("maskbert", "importance", "--output"):
        return None
    d.programs.run("maskbert", "importance", d.folder / "runs/p-0", "-o", folder / "importance.png")
    return "importance.png"


# ---- from a page ----

def entries_of(page):
    """The rows of a page's table, as far as it says them."""
    known, found = {row.label: row for row in rows.all_rows()}, []
    for line in page.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        name = re.sub(r" \(plateau\)$", "", cells[0])
        if len(cells) == 11 and name in known:
            found.append({"mask": name, "group": known[name].group, "diagonal": known[name].diagonal, "sparsity": float(cells[1]), "mlm": float(cells[2]),
                          "deviation": float(cells[3]) if cells[3] else None, "plateau": cells[0] != name})
    return found


def main():
    page = pathlib.Path(sys.argv[1])
    folder = page.parent / page.with_suffix("").name.lower()
    g = {"entries": entries_of(page.read_text())}
    try:
        print(*(make(None, g, folder) for make in (pruning, stages, sparsity)))
    except Fatal as e:
        print(f"pictures.py: {e}", file=sys.stderr)
        return e.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
