# SPDX-License-Identifier: Apache-2.0
"""importance: the probabilities P of a learned mask. Above, their mean over the heads as a map, over the distance, and in the rows of the
first and the last token; below, a map for each head."""
from matplotlib.colors import Normalize

from . import data, maps, paper
from .data import array, listing, optional, record, text

IMPORTANCE = record(title=optional(text), note=optional(text), border=data.flag, mean=array(2), by_distance=listing(data.number, 0), of_heads=optional(data.number),
                    heads=listing(record(name=text, values=array(2))))


def inside(values, border):
    """Without a border that is forced on: it is 1, and nothing of it was learned."""
    return values[1:-1, 1:-1] if border else values


def check(d):
    n = len(data.square(d.mean, "mean"))
    if d.border and n < 4:
        raise data.Bad("border: at least 4 tokens are expected with a border")
    for h in d.heads:
        if h.values.shape != (n, n):
            raise data.Bad(f"heads: maps over {n} tokens are expected")
    if len(d.by_distance) > n:
        raise data.Bad(f"by_distance: at most {n} numbers are expected")
    return n


def layout(columns, heads, rows_too):
    """(figure's height, panels of the first line, heads across, lines of heads)"""
    across = min(heads, 4 if columns == 1 else 8) if heads else 1
    lines = -(-heads // across)
    side = (paper.WIDTH[columns] - 1) / across
    top = 1.9 if columns == 2 else 1.7
    tops = 1 if columns == 2 else 3 if rows_too else 2
    return top * tops + lines * (min(side, 1.3) + 0.3) + 0.7, top * tops, across, lines


def draw_importance(d, columns):
    n, first = check(d), 1 if d.border else 0
    mean, shown = inside(d.mean, d.border), [(h.name, inside(h.values, d.border)) for h in d.heads]
    varied = [(name, v) for name, v in shown if not maps.constant(v)] if len(shown) > 1 else []
    drawn = varied + [] if maps.constant(mean) else varied + [("", mean)]
    if not drawn:
        raise data.Bad("mean, heads: in each map all values are equal: there is nothing to draw")
    low, high = maps.limits([v for _, v in drawn], None, None)
    height, top, across, lines = layout(columns, len(varied), not d.border)
    figure = paper.new_figure(columns, height, d.title or "Learned mask: probability P that an entry is on")
    above, below = (figure.subfigures(2, 1, height_ratios=[top, max(height - top - 0.7, 0.1)]) if varied else (figure.subfigures(1, 1), None))
    image = draw_above(above, d, mean, first, n, columns, Normalize(low, high))
    if varied:
        image = draw_heads(below, varied, first, n, across, lines, Normalize(low, high)) or image
    notes = [d.note, f"{len(d.heads)} of {d.of_heads:g} heads are drawn" if (d.of_heads or 0) > len(d.heads) else "",
             "the first and last row and column are forced on and left out" if d.border else "",
             maps.footnote(len(shown) - len(varied), "heads") if len(shown) > 1 else ""]
    paper.note(figure, notes)
    return figure


def draw_above(figure, d, mean, first, n, columns, norm):
    many = (2 if d.border else 3)
    axes = list(figure.subplots(1, many) if columns == 2 else figure.subplots(many, 1))
    image = None
    if maps.constant(mean):
        maps.say_constant(axes[0], mean.flat[0])
    else:
        image = maps.draw_map(axes[0], mean, norm, first)
        maps.position_ticks(axes[0], n, 1.5)
        axes[0].set_xlabel("key j")
        axes[0].set_ylabel("query i")
        bar = figure.colorbar(image, cax=axes[0].inset_axes([1.03, 0, 0.05, 1]))
        bar.set_label("P, in all maps")
        paper.round_ticks(bar.ax.yaxis, 5)
    axes[0].set_title("mean of all heads")
    draw_distances(axes[1], d.by_distance)
    if not d.border:
        draw_rows(axes[2], mean)
    return image


def plain_axes(axes, title, x, y):
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    paper.round_ticks(axes.xaxis, 5, whole=True)
    paper.round_ticks(axes.yaxis, 6)
    paper.grid(axes)


def draw_distances(axes, by_distance):
    axes.plot(range(len(by_distance)), by_distance, color=paper.colour(0))
    plain_axes(axes, "by distance", "distance |i \N{MINUS SIGN} j|", "mean P")


def draw_rows(axes, mean):
    """Draws the mean probabilities of the first and the last token for each key."""
    for k, (row, name) in enumerate(((mean[0], "first ([CLS])"), (mean[-1], "last"))):
        axes.plot(range(len(row)), row, color=paper.colour(k), linestyle=("-", "--")[k], label=name)
    plain_axes(axes, "queries at the ends", "key j", "mean P")
    axes.legend(loc="best", handlelength=1.6)


def draw_heads(figure, varied, first, n, across, lines, norm):
    axes = figure.subplots(lines, across, squeeze=False)
    image = None
    for k, at in enumerate(axes.flat):
        if k >= len(varied):
            at.set_axis_off()
            continue
        name, values = varied[k]
        image = maps.draw_map(at, values, norm, first)
        at.set_title(name, fontsize=paper.SMALL, pad=2)
        maps.position_ticks(at, n, 0.8, (k % across == 0, k + across >= len(varied)))
    return image
