# SPDX-License-Identifier: Apache-2.0
"""curves: logs of runs. lines: a metric over density or lambda. scatter: quality over time."""
from matplotlib.transforms import Bbox

from . import data, paper
from .data import listing, numbers, optional, record, text

CURVES = record(title=optional(text), note=optional(text), x=data.choice("step", "tokens", "time"), y=text,
                curves=listing(record(name=text, steps=optional(listing(numbers(2, 2), 0), []), evaluations=optional(listing(numbers(2, 2), 0), []))))
LINES = record(title=optional(text), x=data.axis, y=data.axis, levels=optional(listing(data.level, 0), []),
               series=listing(record(name=text, points=listing(data.point), joined=optional(data.flag, True))))
SCATTER = record(title=optional(text), x=data.axis, y=data.axis, levels=optional(listing(data.level, 0), []),
                 points=listing(record(name=text, x=data.number, y=data.number, dx=optional(data.deviation), dy=optional(data.deviation),
                                       group=optional(text, ""))))
MARKED = 30  # points of a line that have marks: more would hide it
MEANINGS = {  # of fields of log.jsonl, with units
    "loss": "loss (nats)", "mlm": "loss of masked words (nats)", "nsp": "loss of next sentences (nats)", "perplexity": "perplexity of masked words",
    "accuracy": "accuracy", "lr": "learning rate", "grad_norm": "norm of the gradients", "tokens_per_s": "tokens per second",
    "mfu": "share of the machine's peak (MFU)", "density": "density of the mask", "l1": "sum of the mask's entries", "entropy": "entropy of the mask (nats)",
    "price_s": "predicted time of a step's attention (s)", "p_diagonal": "mean P of the diagonal", "p_neighbour": "mean P of neighbours, |i - j| = 1",
    "p_special": "mean P of the first and last token", "elapsed_s": "time (s)"}


# ---- curves ----

def time_unit(seconds):
    """(unit, seconds in it): so that a number of it is easy to read."""
    return ("h", 3600) if seconds > 3 * 3600 else ("min", 60) if seconds > 180 else ("s", 1)


def running_mean(points, part=50):
    """Means that forget what is more than a fiftieth of the curve before."""
    stays, total, weight, out = 1 - 1 / max(1, len(points) / part), 0, 0, []
    for x, y in points:
        total, weight = stays * total + y, stays * weight + 1
        out.append((x, total / weight))
    return out


def draw_curve(axes, k, curve, scale, evaluated):
    def put(points, **how):
        axes.plot([x / scale for x, _ in points], [y for _, y in points], color=paper.colour(k), **how)
    smooth = len(curve.steps) >= 100
    if smooth:
        put(curve.steps, alpha=0.25, linewidth=0.5)
    label = {"label": paper.name_of(curve.name)}
    if curve.steps:
        put(running_mean(curve.steps) if smooth else curve.steps, linestyle=paper.dashes(k), **label)
        label = {}
    if curve.evaluations:
        put(curve.evaluations, linestyle="none" if curve.steps else paper.dashes(k), marker=paper.marker(k), markersize=3.5, **label)
        evaluated.append(curve.name)
    return smooth


def draw_curves(d, columns):
    points = [p for c in d.curves for p in c.steps + c.evaluations]
    if not points:
        raise data.Bad("curves: no curve has a point")
    unit, scale = time_unit(max(x for x, _ in points)) if d.x == "time" else (None, 1)
    figure = paper.new_figure(columns, 2.4 if columns == 1 else 3.2, d.title)
    axes, evaluated = figure.subplots(), []
    smooth = [draw_curve(axes, k, c, scale, evaluated) for k, c in enumerate(d.curves)]
    paper.set_axis(axes, "x", data.axis({"label": f"time ({unit})" if unit else {"step": "training step", "tokens": "training tokens"}[d.x]}, ""), ())
    paper.set_axis(axes, "y", data.axis({"label": MEANINGS.get(d.y, d.y)}, ""), ())
    paper.grid(axes)
    paper.legend(axes)
    stepwise = "pale: each step; line: running mean over a fiftieth of the run" if any(smooth) else "line: each step"
    paper.note(figure, [d.note or stepwise if any(c.steps for c in d.curves) else "", "marks: on held-out text" if evaluated else ""])
    return figure


# ---- lines ----

def draw_line(axes, k, series):
    points = sorted(series.points)
    deviations = [p[2] if len(p) > 2 else 0 for p in points]
    axes.errorbar([p[0] for p in points], [p[1] for p in points], deviations if any(deviations) else None, color=paper.colour(k),
                  marker=paper.marker(k) if len(points) <= MARKED or not series.joined else None, linestyle=paper.dashes(k) if series.joined else "none", capsize=2, elinewidth=0.8,
                  label=paper.name_of(series.name))
    return any(deviations)


def positive(d, name, values):
    """A logarithmic axis has no place for 0 and less."""
    if getattr(d, name).scale != "linear" and min(values) <= 0:
        raise data.Bad(f"{name}: a logarithmic scale needs values above 0")
    return values


def set_axes(axes, d, xs, ys):
    """Both axes of a figure, with grid and levels."""
    paper.set_axis(axes, "x", d.x, positive(d, "x", xs))
    paper.set_axis(axes, "y", d.y, positive(d, "y", ys + [x.value for x in d.levels]))
    paper.grid(axes)
    for k, level in enumerate(d.levels):
        paper.draw_level(axes, k, level)


def draw_lines(d, columns):
    figure = paper.new_figure(columns, 2.5 if columns == 1 else 3.2, d.title)
    axes = figure.subplots()
    spread = [draw_line(axes, k, s) for k, s in enumerate(d.series)]
    set_axes(axes, d, [p[0] for s in d.series for p in s.points], [p[1] for s in d.series for p in s.points])
    paper.legend(axes)
    paper.note(figure, ["bars: standard deviation" if any(spread) else ""])
    return figure


# ---- scatter ----

PLACES = (("left", "bottom", 4, 3), ("right", "bottom", -4, 3), ("left", "top", 4, -3), ("right", "top", -4, -3), ("center", "bottom", 0, 5),
          ("center", "top", 0, -5))


def overlap(a, b):
    """Area that two boxes share."""
    return max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0))


def name_points(figure, axes, points):
    """Names beside their points, each where it covers least of other names and points, and stays inside."""
    figure.draw_without_rendering()
    renderer, inside, taken = figure.canvas.get_renderer(), axes.get_window_extent(), []
    for p in points:  # the mark, and its deviations as lines
        (x, y), (left, low), (right, high) = axes.transData.transform([(p.x, p.y), (p.x - (p.dx or 0), p.y - (p.dy or 0)),
                                                                       (p.x + (p.dx or 0), p.y + (p.dy or 0))])
        taken += [Bbox.from_extents(min(x - 3, left), y - 3, max(x + 3, right), y + 3), Bbox.from_extents(x - 3, min(y - 3, low), x + 3, max(y + 3, high))]
    for p in points:
        best = None
        for across, up, dx, dy in PLACES:
            label = axes.annotate(p.name, (p.x, p.y), (dx, dy), textcoords="offset points", ha=across, va=up, fontsize=paper.SMALL, annotation_clip=False)
            box = label.get_window_extent(renderer)
            cost = sum(overlap(box, other) for other in taken) + (box.width * box.height - overlap(box, inside)) * 2
            if best is None or cost < best[0] - 1e-6:
                if best:
                    best[1].remove()
                best = cost, label, box
            else:
                label.remove()
        best[1].set_in_layout(False)
        taken.append(best[2])


def draw_scatter(d, columns):
    figure = paper.new_figure(columns, 2.6 if columns == 1 else 3.4, d.title)
    axes, groups = figure.subplots(), list(dict.fromkeys(p.group for p in d.points))
    for k, group in enumerate(groups):
        of = [p for p in d.points if p.group == group]
        axes.errorbar([p.x for p in of], [p.y for p in of], [p.dy or 0 for p in of] if any(p.dy for p in of) else None,
                      [p.dx or 0 for p in of] if any(p.dx for p in of) else None, color=paper.colour(k), marker=paper.marker(k), linestyle="none",
                      capsize=2, elinewidth=0.8, label=paper.name_of(group))
    set_axes(axes, d, [p.x for p in d.points], [p.y for p in d.points])
    axes.margins(0.12)
    if groups != [""]:
        paper.legend(axes)
    paper.note(figure, ["bars: standard deviation" if any(p.dx or p.dy for p in d.points) else ""])
    name_points(figure, axes, d.points)
    return figure
