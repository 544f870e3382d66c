# SPDX-License-Identifier: Apache-2.0
"""The papers' figures, as far as there are results: 2 (P), 3 (pruning), 5 and 6 (learned masks), 7 (one stage and two). maskc.figures draws
them. python3 tools/reproduction/pictures.py PAGE.md draws those again that need no more than the page's table and numbers.json beside its pictures."""
import base64
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

import learned
import rows
from programs import Fatal, read_json, write_whole

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "runtime/python/maskc/figures"
BINS = 60  # of a curve of losses: the page's pictures are small
CORNER = 32  # rows and columns of P that are drawn a second time
NAMES = ("loss.png", "loss.svg", "P.png", "P_distance.svg", "pruning.svg", "stages.svg", "sparsity.svg", "dam-u.png", "dam-s.png", "film.png", "importance.png",
         "numbers.json")
SPARSITY, LOSS = {"label": "sparsity (% of the entries that are off)"}, {"label": "masked-word loss, held out (nats)"}
P_IS = "P: learned probability that an entry is on."
DAM_IS = ("DAM: masks learned in training; each distance |i \N{MINUS SIGN} j| of a head, or each entry, is on or off; 1e-4 to 1e-1: lambda, the price of an entry "
          "that is on.")
PRUNED_IS = "By P: the entries with the largest P are kept; at random: as many of each head."


def draw(d, g):
    """name: file, of what could be drawn, in DIR/pictures."""
    folder = d.folder / "pictures"
    folder.mkdir(exist_ok=True)
    write_whole(folder / "numbers.json", json.dumps(numbers(d, g), separators=(",", ":")) + "\n")
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
    """Draws a figure as wide as one column of a paper. Fatal with 3 where matplotlib is missing."""
    done = subprocess.run([sys.executable, FIGURES, kind, "-o", folder / name, "--columns", "1"], input=json.dumps(content), capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Fatal(done.returncode if done.returncode in (2, 3) else 3, (done.stderr.strip().splitlines() or ["no word"])[-1])
    return name


def lines(folder, name, axes, series, **more):
    """series: dictionaries of the kind; those without points are left out. None where all are."""
    series = [x for x in series if x["points"]]
    return figure(folder, name, "lines", {"x": axes[0], "y": axes[1], "series": series, **more}) if series else None


def plain(name):
    """dam-s-1e-4 in words."""
    kind, _, price = name.rpartition("-1e")
    return {"dam-s": f"DAM by distance, 1e{price}", "dam-u": f"DAM by entry, 1e{price}"}.get(kind, name)


# ---- the numbers of pictures that the page's table does not have ----

def numbers(d, g):
    """Returns the numbers that figures show, small enough to be kept with the page."""
    p = {name: r for name, r in g["runs"].items() if name.startswith("p-")}
    return {"setting": setting(d, g), "P": packed(learned.mean_over_heads(d.folder / "runs/p-0", d.s)) if "p-0" in p else None,
            "P_by_distance": {str(r["seed"]): [None if v is None else round(v, 5) for v in r["P_by_distance"]] for r in p.values()},
            "loss": {name.name: means(d.trainer.read_log(name)) for name in trained(d, g)}}


def setting(d, g):
    """Model and data, for the note of each figure."""
    held = g["samples"]["held-out"]["tokens"] if g["samples"] else None
    said = f"Model: {d.s.size} (layers x hidden size x heads), n = {d.s.length}"
    rows_have = f"; each mask takes the dense one's place in the trained model, which trains on for {g['plan']['row']} steps" if g["plan"] else ""
    return {"model": said + ".", "rows": said + rows_have + (f"; loss of masked words in {held:,} held-out tokens." if held else ".")}


def packed(values):
    """A map in bytes: 255 steps from the least to the most."""
    least, most = min(map(min, values)), max(map(max, values))
    step = (most - least) / 255 or 1
    return {"least": least, "most": most, "size": len(values), "base64": base64.b64encode(bytes(round((v - least) / step) for row in values for v in row)).decode()}


def unpacked(p):
    data, step = base64.b64decode(p["base64"]), (p["most"] - p["least"]) / 255
    return [[p["least"] + step * x for x in data[k:k + p["size"]]] for k in range(0, len(data), p["size"])]


def trained(d, g):
    """Folders of the dense run and of those that learn DAM masks."""
    if not g["dense"] or not (d.folder / "runs/dense/log.jsonl").exists():
        return []
    return [d.folder / "runs" / name for name in ("dense", *g["runs"]) if name == "dense" or name.startswith("dam")]


def means(steps):
    """(tokens, loss), each the mean of its part of the run."""
    size = max(1, math.ceil(len(steps) / BINS))
    parts = [steps[k:k + size] for k in range(0, len(steps), size)]
    return [tuple(round(statistics.mean(x[name] for x in part), digits) for name, digits in (("tokens", 0), ("mlm", 4))) for part in parts]


# ---- the figures ----

def kept(folder):
    """numbers.json, or nothing where a page has none."""
    path = folder / "numbers.json"
    return read_json(path) if path.exists() else {"setting": {"model": "", "rows": ""}, "P": None, "P_by_distance": {}, "loss": {}}


def loss(_d, _g, folder):
    of = kept(folder)
    curves = [{"name": plain(name), "steps": points} for name, points in of["loss"].items() if points]
    note = ("dense begins from a model that was trained with the mask window(2); each DAM run begins from the dense model at its end, with a random "
            f"mask. {DAM_IS} {of['setting']['model']}")
    return figure(folder, "loss.svg", "curves", {"title": "Training loss, dense and learning masks", "x": "tokens", "y": "mlm", "curves": curves,
                                                  "line": "mean of a 60th of the run", "note": note}) if curves else None


def every_loss(d, g, folder):
    """By maskbert plot, for DIR alone, as it is large."""
    runs = trained(d, g)
    if not runs:
        return None
    d.programs.run("maskbert", "plot", *runs, "-o", folder / "loss.png", "--x", "tokens", "--y", "mlm")
    return "loss.png"


def mean_p(_d, _g, folder):
    of = kept(folder)
    if not of["P"]:
        return None
    note = (f"{P_IS} It begins at random with mean 0.5, where it stays for entries that do not matter. Mean over heads, first seed. The scale's "
            f"ends hold for the least and the most 1 % of the entries, too. {of['setting']['model']}")
    return figure(folder, "P.png", "heatmaps", {"title": "Importance P of each entry of the mask", "label": "P", "note": note, "corner": CORNER, **shades(of["P"]),
                                                "panels": [{"values": unpacked(of["P"])}]})


def shades(p):
    """Ends of the scale: the least and the most hundredth of the entries lie beyond them."""
    found = sorted(x for row in unpacked(p) for x in row)
    cut = len(found) // 100
    least, most = round(found[cut], 2), round(found[-1 - cut], 2)
    return {"least": least, "most": most} if least < most else {}


def by_distance(_d, _g, folder):
    of = kept(folder)
    series = [{"name": f"seed {seed}", "points": [(k, v) for k, v in enumerate(P) if v is not None]} for seed, P in of["P_by_distance"].items()]
    values = [y for x in series for _, y in x["points"]]
    near = [y for x in series for k, y in x["points"] if k <= NEAR]
    room = 0.05 * (max(values) - min(values)) if values else 0
    zoom = {"zoom": {"x": [-0.5, NEAR + 0.5], "y": [min(near) - room, max(near) + room]}} if near and room else {}
    return lines(folder, "P_distance.svg", ({"label": "distance |i \N{MINUS SIGN} j| of query and key"}, {"label": "P, mean over heads and entries"}), series,
                 title="Importance P by distance", note=f"{P_IS} Without the first and the last token. {of['setting']['model']}", **zoom)


NEAR = 12  # distances that are drawn a second time


def losses(g, names):
    """(sparsity, loss) of the rows that are off the plateau, with a deviation where there are several seeds."""
    by_name = {e["mask"]: e for e in g["entries"]}
    found = [by_name[n] for n in names if n in by_name and not by_name[n]["plateau"]]
    return sorted((e["sparsity"], e["mlm"], *([e["deviation"]] if e["deviation"] is not None else [])) for e in found)


def levels(g):
    """Dense, and no attention at all."""
    by_name = {e["mask"]: e for e in g["entries"]}
    return [{"name": f"{words}: {by_name[name]['mlm']:.2f}", "value": by_name[name]["mlm"]} for name, words in (("dense", "dense"), ("none", "no attention at all"))
            if name in by_name]


def one_seed(g):
    """Returns a note on the number of seeds and their deviation."""
    dense = next((e for e in g["entries"] if e["mask"] == "dense" and e["deviation"] is not None), None)
    return "One seed a mask" + (f"; dense: standard deviation {dense['deviation']:.4f} nats over its seeds." if dense else ".")


def pruning(_d, g, folder):
    percents = sorted({*rows.PROGRESSIVE, *rows.THRESHOLDS})
    series = [{"name": label, "ring": bool(off), "colour": colour, "points": losses(g, [form.format(p) + off for p in percents])}
              for form, colour, label, off in (("P pruned {} %", 0, "pruned by P", ""), ("P pruned {} %", 0, "pruned by P, without the diagonal", " - diagonal(0)"),
                                               ("random {} %", 1, "pruned at random", ""), ("random {} %", 1, "at random, without the diagonal", " - diagonal(0)"))]
    return lines(folder, "pruning.svg", (SPARSITY, LOSS), series, title="Masks pruned by importance and at random", levels=levels(g),
                 note=f"{P_IS} {PRUNED_IS} A loss within 0.1 of no attention at all, or above it, is not drawn. {kept(folder)['setting']['rows']} {one_seed(g)}")


def stages(_d, g, folder):
    one = [n for n in rows.LEARNED if losses(g, [n])]
    two = losses(g, [f"P pruned {p} %" for p in rows.THRESHOLDS])
    if not one or not two:
        return None
    series = [{"name": f"one stage: {words}", "joined": False, "points": [losses(g, [n])[0] for n in one if n.startswith(kind)],
               "names": [n[6:] for n in one if n.startswith(kind)]} for kind, words in (("dam-s", "DAM by distance"), ("dam-u", "DAM by entry"))]
    series.append({"name": "two stages: pruned by P", "points": two})
    return lines(folder, "stages.svg", (SPARSITY, LOSS), series, title="Masks learned in one stage and in two", levels=levels(g)[:1],
                 note=f"{DAM_IS} {P_IS} By P: the entries with the largest P are kept. {kept(folder)['setting']['rows']} {one_seed(g)}")


KINDS = {"designed": "designed by hand", "dam-s": "DAM by distance", "dam-u": "DAM by entry", "pruned": "pruned by P", "random": "pruned at random", "snapped": "snapped"}
SNAPPED_IS = "Snapped: tiles and columns that are fast to compute, by P."


def kind_of(e):
    """In words; of masks pruned to a time the most important entries are kept, as of those pruned to a share."""
    word = "random" if "random" in e["mask"] else "pruned" if "threshold" in e["mask"] else e["mask"][:5] if e["group"] == "learned" else e["group"]
    return KINDS[word]


def sparsity(_d, g, folder):
    """All masks with the diagonal, each in the dense model; those settled in P's own model are not comparable. Dense is a line."""
    found = [e for e in g["entries"] if e["diagonal"] and not e["plateau"] and e["group"] not in ("dense", "settled")]
    points = [{"name": point_name(e), "group": kind_of(e), "x": e["sparsity"], "y": e["mlm"]} for e in found]
    near = [p["y"] for p in points if p["group"] in (KINDS["designed"], KINDS["dam-s"]) and p["x"] >= ZOOM]
    zoom = {"zoom": {"x": [ZOOM, 100], "y": [min(near) - 0.04, max(near) + 0.04]}} if near else {}
    return figure(folder, "sparsity.svg", "scatter", {
        "title": "Sparsity and loss of all masks", "x": SPARSITY, "y": LOSS, "points": points, "levels": levels(g), **zoom,
        "note": f"{P_IS} {PRUNED_IS} {SNAPPED_IS} {DAM_IS} {kept(folder)['setting']['rows']} {one_seed(g)}"}) if points else None


ZOOM = 84  # percent, from which on masks lie near each other


def point_name(e):
    return e["mask"] if e["group"] == "designed" else e["mask"][6:] if e["group"] == "learned" else ""


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
        print(*filter(None, (make(None, g, folder) for make in (pruning, stages, sparsity, mean_p, by_distance, loss))))
    except Fatal as e:
        print(f"pictures.py: {e}", file=sys.stderr)
        return e.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
