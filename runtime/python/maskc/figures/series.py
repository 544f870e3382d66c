# SPDX-License-Identifier: Apache-2.0
"""lines: a metric over density or lambda. scatter: quality over time. Both may show a part a second time, larger."""
import types

from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from . import data, paper
from .data import listing, optional, record, text

LINES = record(title=optional(text), note=optional(text), x=data.axis, y=data.axis, levels=optional(listing(data.level, 0), []), zoom=optional(data.zoom),
               series=listing(record(name=text, points=listing(data.point), joined=optional(data.flag, True), ring=optional(data.flag, False),
                                     colour=optional(data.number), names=optional(listing(text)))))
SCATTER = record(title=optional(text), note=optional(text), x=data.axis, y=data.axis, levels=optional(listing(data.level, 0), []), zoom=optional(data.zoom),
                 points=listing(record(name=text, x=data.number, y=data.number, dx=optional(data.deviation), dy=optional(data.deviation),
                                       group=optional(text, ""))))
MARKED = 30  # points of a line that have marks: more would hide it
BARS = "bars: standard deviation over seeds; where none is seen it is smaller than the mark"


# ---- axes ----

def positive(d, name, values):
    """A logarithmic axis has no place for 0 and less."""
    if getattr(d, name).scale != "linear" and min(values) <= 0:
        raise data.Bad(f"{name}: a logarithmic scale needs values above 0")
    return values


def set_axes(axes, d, xs, ys):
    """Both axes of a figure, with grid and levels. Returns the levels' handles."""
    positive(d, "y", ys + [x.value for x in d.levels])
    levels = paper.draw_levels(axes, d.levels, ys)
    paper.set_axis(axes, "x", d.x, positive(d, "x", xs))
    paper.set_axis(axes, "y", d.y, ys)
    paper.grid(axes)
    return levels


def two_panels(d, columns, height, draw):
    """The figure of draw(axes), which returns handles for the legend; with a zoom another panel of the same, cut to it."""
    count = 2 if d.zoom else 1
    beside = columns == 2
    figure = paper.new_figure(columns, height * (1 if beside else count), d.title)
    axes = list(figure.subplots(1 if beside else count, count if beside else 1, squeeze=False).flat)
    found = [draw(at) for at in axes]
    if d.zoom:
        (left, right), (low, high) = sorted(d.zoom.x), sorted(d.zoom.y)
        axes[0].add_patch(Rectangle((left, low), right - left, high - low, fill=False, edgecolor="#000000", linewidth=0.7, linestyle=":"))
        axes[1].set_xlim(left, right)
        axes[1].set_ylim(low, high)
        axes[1].set_title("the dotted part, larger")
    return figure, axes, found[0]


# ---- lines ----

def draw_line(axes, k, series):
    """A ring is larger than a dot and hollow: a dot of another series at the same place is seen in it."""
    points = sorted(series.points)
    deviations = [p[2] if len(p) > 2 else 0 for p in points]
    colour = paper.colour(k if series.colour is None else int(series.colour))
    ring = {"markerfacecolor": "none", "markersize": 6, "linestyle": ":"} if series.ring else {"linestyle": paper.dashes(k)}
    marked = len(points) <= MARKED or not series.joined
    return axes.errorbar([p[0] for p in points], [p[1] for p in points], deviations if any(deviations) else None, color=colour,
                         **{**ring, "marker": "o" if series.ring else paper.marker(k) if marked else None, **({} if series.joined else {"linestyle": "none"})},
                         capsize=2, elinewidth=0.8, label=paper.name_of(series.name))


def named(d):
    """Points with their names, as those of a scatter plot; others, which names must not cover, have none."""
    for s in d.series:
        if s.names and len(s.names) != len(s.points):
            raise data.Bad(f"series: {s.name}: {len(s.points)} names are expected, one for each point, not {len(s.names)}")
    return [types.SimpleNamespace(name=name, x=p[0], y=p[1], dx=0, dy=p[2] if len(p) > 2 else 0)
            for s in d.series for p, name in zip(s.points, s.names or [""] * len(s.points))]


def draw_lines(d, columns):
    points = named(d)
    xs, ys = ([p[k] for s in d.series for p in s.points] for k in (0, 1))
    def draw(axes):
        made = [draw_line(axes, k, s) for k, s in enumerate(d.series)]
        levels = set_axes(axes, d, xs, ys)
        return (made if len(made) > 1 or levels else []) + levels
    figure, axes, handles = two_panels(d, columns, 2.4 if columns == 1 else 3.1, draw)
    paper.legend(axes[0], handles)
    spread = any(len(p) > 2 and p[2] for s in d.series for p in s.points)
    paper.note(figure, [d.note, BARS if spread else ""])
    name_all(figure, axes, d.zoom, points)
    return figure


# ---- scatter ----

PLACES = (("left", "bottom", 4, 3), ("right", "bottom", -4, 3), ("left", "top", 4, -3), ("right", "top", -4, -3), ("center", "bottom", 0, 5),
          ("center", "top", 0, -5))


NEAR = 5  # pixels: a name that is so close to another, or to a point, would be taken for its own


def overlap(a, b):
    """Area that two boxes share."""
    return max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0))


def marks(axes, points):
    """Boxes of the marks, and of their deviations as lines."""
    found = []
    for p in points:
        (x, y), (left, low), (right, high) = axes.transData.transform([(p.x, p.y), (p.x - (p.dx or 0), p.y - (p.dy or 0)),
                                                                       (p.x + (p.dx or 0), p.y + (p.dy or 0))])
        found += [Bbox.from_extents(min(x - 3, left), y - 3, max(x + 3, right), y + 3), Bbox.from_extents(x - 3, min(y - 3, low), x + 3, max(y + 3, high))]
    return found


def name_points(figure, axes, points):
    """Names beside their points, each where it covers least of other names and points, and stays inside."""
    renderer, inside, taken = figure.canvas.get_renderer(), axes.get_window_extent(), marks(axes, points)
    for p in points:
        if not p.name:
            continue
        best = None
        for across, up, dx, dy in PLACES:
            label = axes.annotate(p.name, (p.x, p.y), (dx, dy), textcoords="offset points", ha=across, va=up, fontsize=paper.SMALL, annotation_clip=False)
            box = label.get_window_extent(renderer)
            cost = sum(overlap(box.padded(NEAR), other) for other in taken) + (box.width * box.height - overlap(box, inside)) * 2
            if best is None or cost < best[0] - 1e-6:
                if best:
                    best[1].remove()
                best = cost, label, box
            else:
                label.remove()
        best[1].set_in_layout(False)
        taken.append(best[2])


def name_all(figure, axes, zoom, points):
    """Each name once: in the zoom, where the point is in it."""
    if any(p.name for p in points):
        paper.lay_out(figure)
        for at, shown in zip(axes, ([p for p in points if not inside(zoom, p)], [p for p in points if inside(zoom, p)])):
            name_points(figure, at, shown)


def draw_group(axes, k, group, of):
    return axes.errorbar([p.x for p in of], [p.y for p in of], [p.dy or 0 for p in of] if any(p.dy for p in of) else None,
                         [p.dx or 0 for p in of] if any(p.dx for p in of) else None, color=paper.colour(k), marker=paper.marker(k), linestyle="none",
                         capsize=2, elinewidth=0.8, label=paper.name_of(group))


def inside(zoom, p):
    return zoom and min(zoom.x) <= p.x <= max(zoom.x) and min(zoom.y) <= p.y <= max(zoom.y)


def draw_scatter(d, columns):
    groups = list(dict.fromkeys(p.group for p in d.points))
    def draw(axes):
        made = [draw_group(axes, k, group, [p for p in d.points if p.group == group]) for k, group in enumerate(groups)]
        levels = set_axes(axes, d, [p.x for p in d.points], [p.y for p in d.points])
        if d.x.least is d.x.most is d.y.least is d.y.most is None:
            axes.margins(0.12)
        return [m for m, group in zip(made, groups) if group] + levels
    figure, axes, handles = two_panels(d, columns, 2.5 if columns == 1 else 3.3, draw)
    paper.legend(axes[0], handles)
    paper.note(figure, [d.note, BARS if any(p.dx or p.dy for p in d.points) else ""])
    name_all(figure, axes, d.zoom, d.points)
    return figure
