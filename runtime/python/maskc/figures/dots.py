# SPDX-License-Identifier: Apache-2.0
"""dots: a number by row, for one series or several: a mask with its diagonal and without it, ways that compute it. The axis need not begin at 0."""
from . import data, paper
from .data import listing, optional, record, text

DOTS = record(title=optional(text), note=optional(text), x=data.axis, levels=optional(listing(data.level, 0), []), said=optional(text),
              rows=listing(record(name=text, group=optional(text, ""), said=optional(text))),
              series=listing(record(name=text, values=listing(optional(data.number)), deviations=optional(listing(optional(data.deviation))),
                                    ring=optional(data.flag, False), colour=optional(data.number))))
ROW = 0.165  # inches of a row


def check(d):
    for s in d.series:
        for name in ("values", "deviations"):
            found = getattr(s, name)
            if found is not None and len(found) != len(d.rows):
                raise data.Bad(f"series: {s.name}: {len(d.rows)} {name} are expected, one for each row, not {len(found)}")
    values = [v for s in d.series for v in s.values if v is not None]
    if not values:
        raise data.Bad("series: no series has a value")
    if d.x.scale != "linear" and min(values) <= 0:
        raise data.Bad("x: a logarithmic scale needs values above 0")
    return values


def places(rows):
    """([y of each row], [(group, y of its heading)]): rows go down, a group begins with a line for its name."""
    at, heads, y, group = [], [], 0, ""
    for r in rows:
        if r.group and r.group != group:
            heads.append((r.group, y))
            y -= 1
        group = r.group
        at.append(y)
        y -= 1
    return at, heads


def lanes(series):
    """Where each series lies in its rows: those of one colour together; with deviations each by itself, so that no bar covers another."""
    spread = any(any(s.deviations or []) for s in series)
    keys = [k if spread or s.colour is None else -1 - int(s.colour) for k, s in enumerate(series)]
    order = list(dict.fromkeys(keys)) if spread or any(s.colour is not None for s in series) else []
    return [0.36 * (order.index(key) / (len(order) - 1) - 0.5) if len(order) > 1 else 0 for key in keys]


def draw_series(axes, k, series, at, shift):
    """A ring has the form of the first series of its colour."""
    own = series[k]
    shown = [(v, y, (own.deviations or [None] * len(at))[r] or 0) for r, (v, y) in enumerate(zip(own.values, at)) if v is not None]
    same = [i for i, s in enumerate(series) if s.colour is not None and s.colour == own.colour]
    form = paper.marker(same[0] if same else 0) if own.ring else paper.marker(k)
    colour = paper.colour(k if own.colour is None else int(own.colour))
    return axes.errorbar([x[0] for x in shown], [x[1] - shift for x in shown], xerr=[x[2] for x in shown] if any(x[2] for x in shown) else None, color=colour,
                         marker=form, markersize=6 if own.ring else 4, markerfacecolor="none" if own.ring else colour,
                         linestyle="none", capsize=1.5, elinewidth=0.8, label=paper.name_of(own.name), zorder=3)


def draw_dots(d, columns):
    values = check(d)
    at, heads = places(d.rows)
    figure = paper.new_figure(columns, 0.85 + ROW * (len(at) + len(heads) + bool(d.said)), d.title)
    axes = figure.subplots()
    made = [draw_series(axes, k, d.series, at, shift) for k, shift in enumerate(lanes(d.series))]
    levels = paper.draw_levels(axes, d.levels, values, False)
    if d.x.scale == "linear":
        axes.margins(x=0.06)
    paper.set_axis(axes, "x", d.x, values)
    name_rows(axes, d, at, heads)
    paper.legend(axes, (made if len(made) > 1 or levels else []) + levels)
    spread = any(any(s.deviations or []) for s in d.series)
    paper.note(figure, [d.note, "bars: standard deviation over seeds" if spread else ""])
    return figure


def name_rows(axes, d, at, heads):
    lines = [(y, r.name, False) for y, r in zip(at, d.rows)] + [(y, name, True) for name, y in heads]
    axes.set_yticks([y for y, _, _ in lines])
    for label, (_, _, head) in zip(axes.set_yticklabels([name for _, name, _ in lines]), lines):
        label.set_fontweight("bold" if head else "normal")
    axes.set_ylim(min(at) - 0.7, 1.6 if d.said else 0.7)
    axes.tick_params(axis="y", length=0)
    paper.grid(axes)
    for tick, (_, _, head) in zip(axes.yaxis.get_major_ticks(), lines):
        tick.gridline.set_visible(not head)
    for y, r in zip(at, d.rows):
        if r.said:
            axes.annotate(r.said, (1, y), (4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", va="center", fontsize=paper.SMALL)
    if d.said:
        axes.annotate(d.said, (1, 1), (4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", va="center", fontsize=paper.SMALL)
