# SPDX-License-Identifier: Apache-2.0
"""The papers' figures, as far as there are results: 2 (P), 3 (pruning), 5 and 6 (learned masks), 7 (one stage and two)."""
import math
import statistics

import charts
import learned
import rows
from programs import Fatal, write_whole

BINS = 60  # of a curve of losses: the page's pictures are small
NAMES = ("loss.png", "loss.svg", "P.png", "P_distance.svg", "pruning.svg", "stages.svg", "sparsity.svg", "dam-u.png", "dam-s.png", "film.png", "importance.png")


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


def put(folder, name, data):
    if not data:
        return None
    write_whole(folder / name, data)
    return name


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
    series = [(run.name, "curve", means(d.trainer.read_log(run))) for run in trained(d, g)]
    return put(folder, "loss.svg", charts.chart("Training", "tokens", "loss of the masked words", series))


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
    return put(folder, "P.png", charts.heat_map(learned.mean_over_heads(d.folder / "runs/p-0", d.s)))


def by_distance(_d, g, folder):
    series = [(f"seed {r['seed']}", "curve", [(k, v) for k, v in enumerate(r["P_by_distance"]) if v is not None and k < 64])
              for name, r in g["runs"].items() if name.startswith("p-")]
    return put(folder, "P_distance.svg", charts.chart("P by distance |i - j|, mean over heads", "distance", "P", series))


def losses(g, names):
    """(sparsity, loss) of the rows that are off the plateau."""
    by_name = {e["mask"]: e for e in g["entries"]}
    return sorted((by_name[n]["sparsity"], by_name[n]["mlm"]) for n in names if n in by_name and not by_name[n]["plateau"])


def pruning(_d, g, folder):
    percents = sorted({*rows.PROGRESSIVE, *rows.THRESHOLDS})
    series = [(label, "line", losses(g, [form.format(p) for p in percents]))
              for label, form in (("by P", "P pruned {} %"), ("at random", "random {} %"), ("by P, no diagonal", "P pruned {} % - diagonal(0)"),
                                  ("at random, no diagonal", "random {} % - diagonal(0)"))]
    return put(folder, "pruning.svg", charts.chart("Pruning (Figure 3)", "sparsity %", "held-out MLM loss", series))


def stages(_d, g, folder):
    series = [("one stage: DAM", "points", losses(g, rows.LEARNED)),
              ("two stages: P, threshold", "line", losses(g, [f"P pruned {p} %" for p in rows.THRESHOLDS]))]
    return put(folder, "stages.svg", charts.chart("One stage and two (Figure 7)", "sparsity %", "held-out MLM loss", series)) if all(
        s[2] for s in series) else None


def sparsity(_d, g, folder):
    """All masks with the diagonal."""
    groups = {}
    for e in g["entries"]:
        if e["diagonal"]:
            groups.setdefault(e["group"], []).append(e["mask"])
    series = [(group, "points", losses(g, names)) for group, names in groups.items()]
    return put(folder, "sparsity.svg", charts.chart("All masks", "sparsity %", "held-out MLM loss", series))


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
