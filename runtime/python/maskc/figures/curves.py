# SPDX-License-Identifier: Apache-2.0
"""curves: logs of runs. A second panel shows the part that all runs have, where one is much shorter than another."""
import itertools

from matplotlib.lines import Line2D

from . import data, paper
from .data import listing, numbers, optional, record, text

CURVES = record(title=optional(text), note=optional(text), line=optional(text), x=data.choice("step", "tokens", "time"), y=text,
                levels=optional(listing(data.level, 0), []),
                curves=listing(record(name=text, steps=optional(listing(numbers(2, 2), 0), []), evaluations=optional(listing(numbers(2, 2), 0), []))))
SMOOTH = 100   # points from which on a curve is drawn as a running mean over its points
PART = 50      # the mean is over this part of the curve
SHORT = 0.4    # of the longest curve: a shorter one has a panel up to its end
MEANINGS = {   # of fields of log.jsonl, with units
    "loss": "training loss (nats)", "mlm": "masked-word loss (nats)", "nsp": "next-sentence loss (nats)", "perplexity": "perplexity of masked words",
    "accuracy": "accuracy (share)", "lr": "learning rate", "grad_norm": "norm of the gradients", "tokens_per_s": "tokens per second",
    "mfu": "share of the machine's peak (MFU)", "density": "density of the mask (share of entries on)", "l1": "sum of the mask's entries",
    "entropy": "entropy of the mask (nats)", "price_s": "predicted time of a step's attention (s)", "p_diagonal": "mean P of the diagonal",
    "p_neighbour": "mean P of neighbours, |i \N{MINUS SIGN} j| = 1", "p_special": "mean P of the first and last token", "elapsed_s": "time (s)"}


def scale_of(what, most):
    """(label of the x axis, what its numbers are divided by): so that ticks are short."""
    if what == "time":
        unit, scale = ("h", 3600) if most > 3 * 3600 else ("min", 60) if most > 180 else ("s", 1)
        return f"training time ({unit})", scale
    unit, scale = (("millions", 1e6) if most >= 2e6 else ("thousands", 1e3)) if what == "tokens" and most >= 2e3 else (None, 1)
    return f"training {'steps' if what == 'step' else 'tokens'}" + (f" ({unit})" if unit else ""), scale


def running_mean(points):
    """Means over a part of the curve around each point, as long before it as after it, so that none lags. Near the ends they are over fewer
    points; at the very end, where one would be noise, there is none."""
    sums, radius, last = [0, *itertools.accumulate(y for _, y in points)], max(1, len(points) // (2 * PART)), len(points) - 1
    out = []
    for k, (x, _) in enumerate(points):
        r = min(k, last - k, radius)
        if 3 * (last - k) < radius:
            break
        out.append((x, (sums[k + r + 1] - sums[k - r]) / (2 * r + 1)))
    return out


def dashes(k):
    """Another one for each curve: a curve that runs over another lets it be seen."""
    return paper.DASHES[k % len(paper.DASHES)]


def draw_curve(axes, k, curve, scale, most):
    """Returns the kinds of its lines: raw, mean, marks."""
    made = set()
    def put(points, kind, **how):
        shown = [(x / scale, y) for x, y in points if most is None or x <= most]
        axes.plot([x for x, _ in shown], [y for _, y in shown], color=paper.colour(k), **how)
        made.add(kind)
    smooth = len(curve.steps) >= SMOOTH
    if curve.steps:
        put(curve.steps, "raw", **({"alpha": 0.25, "linewidth": 0.5} if smooth else {"linestyle": dashes(k)}))
    if smooth:
        put(running_mean(curve.steps), "mean", linestyle=dashes(k))
    if curve.evaluations:
        put(curve.evaluations, "marks", linestyle="none" if curve.steps else dashes(k), marker=paper.marker(k), markerfacecolor="white", zorder=3)
    return made


def handles(d, made):
    """Legend entries: the colour of each curve, where there are several, then the meaning of pale lines, lines and marks."""
    several = len(d.curves) > 1
    grey = paper.GREY if several else paper.colour(0)
    found = [Line2D([], [], color=paper.colour(k), linestyle=dashes(k), marker="" if c.steps else paper.marker(k), label=paper.name_of(c.name))
             for k, c in enumerate(d.curves)] if several else []
    if "mean" in made:
        found += [Line2D([], [], color=grey, alpha=0.4, linewidth=0.5, label=d.line or "each step"),
                  Line2D([], [], color=grey, label=f"mean over 1/{PART} of the run")]
    elif "raw" in made:
        found.append(Line2D([], [], color=grey, label=d.line or "each step"))
    if "marks" in made:
        found.append(Line2D([], [], color=grey, linestyle="none" if "raw" in made else "-", marker=paper.marker(0), markerfacecolor="white", label="held-out text"))
    return found


def limits(d):
    """Ends of the panels: none, and that of the shortest curve where it would be a small part of the whole."""
    ends = [max(x for x, _ in c.steps + c.evaluations) for c in d.curves if c.steps + c.evaluations]
    return [None, min(ends)] if 0 < min(ends) < SHORT * max(ends) else [None]


def panel(axes, d, most, whole):
    label, scale = scale_of(d.x, most or whole)
    made = set().union(*(draw_curve(axes, k, c, scale, most) for k, c in enumerate(d.curves)))
    paper.set_axis(axes, "x", data.axis({"label": label}, ""), ())
    paper.set_axis(axes, "y", data.axis({"label": MEANINGS.get(d.y, d.y)}, ""), ())
    paper.grid(axes)
    return made


def draw_curves(d, columns):
    points = [p for c in d.curves for p in c.steps + c.evaluations]
    if not points:
        raise data.Bad("curves: no curve has a point")
    ends = limits(d)
    figure = paper.new_figure(columns, (2.3 if columns == 1 else 3.0) * (len(ends) if columns == 1 else 1), d.title)
    axes = list(figure.subplots(*((len(ends), 1) if columns == 1 else (1, len(ends))), squeeze=False).flat)
    lines = [paper.draw_levels(at, d.levels, [y for _, y in points]) for at in axes][0]
    made = [panel(at, d, most, max(x for x, _ in points)) for at, most in zip(axes, ends)]
    paper.legend(axes[0], handles(d, made[0]) + lines)
    if len(ends) > 1:
        axes[1].set_title("the part that all runs have")
    paper.note(figure, [d.note])
    return figure
