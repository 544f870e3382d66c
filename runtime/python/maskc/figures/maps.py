# SPDX-License-Identifier: Apache-2.0
"""Maps of queries by keys: heatmaps (attention, P), film (a learned mask over the steps), pruned (what masks keep of an importance)."""
import math

from . import data, paper
from .data import array, listing, optional, record, text

HEATMAPS = record(title=optional(text), label=text, panels=listing(optional(record(values=array(2), title=optional(text)))),
                  rows=optional(listing(text)), columns=optional(listing(text)), tokens=optional(listing(text)), note=optional(text),
                  least=optional(data.number), most=optional(data.number), scale=optional(data.choice("linear", "root"), "linear"))
FILM = record(title=optional(text), heads=listing(text), frames=listing(record(step=data.number, density=data.number, masks=array(3))))
PRUNED = record(title=optional(text), label=text, importance=array(2),
                lines=listing(record(name=text, masks=listing(record(name=text, mask=optional(array(2)), density=optional(data.number),
                                                                     cosine=optional(data.number))))))
TITLE, LABELS, SCALE = 0.17, 0.42, 0.55  # inches: above a panel, left of and below all panels, right of them


# ---- one map ----

def constant(values):
    return bool((values == values.flat[0]).all())


def draw_map(axes, values, norm, first=0):
    """Query i goes down, key j goes right; `first` is the position of the first row and column."""
    n = len(values)
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(paper.GREY)
    return axes.imshow(values, cmap=paper.MAP, norm=norm, extent=(first - 0.5, first + n - 0.5, first + n - 0.5, first - 0.5), aspect="equal")


def say_constant(axes, value, words=None):
    """In place of a map whose values are all equal."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, words or f"all {paper.short(value)}", ha="center", va="center", transform=axes.transAxes, fontsize=paper.SMALL, color=paper.GREY)


def position_ticks(axes, n, inches, labelled=(True, True)):
    """Positions at round numbers on the panels at the left and at the bottom."""
    if inches < 0.4:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    most = max(1, min(6, int(inches / 0.32)))
    for axis, named in ((axes.yaxis, labelled[0]), (axes.xaxis, labelled[1])):
        paper.round_ticks(axis, most, whole=True)
        axis.set_tick_params(length=2, pad=1.5, labelleft=named) if axis is axes.yaxis else axis.set_tick_params(length=2, pad=1.5, labelbottom=named)


def token_ticks(axes, tokens, labelled):
    """The tokens' text at each row and column."""
    for axis, named, how in ((axes.yaxis, labelled[0], {}), (axes.xaxis, labelled[1], {"rotation": 90})):
        axis.set_ticks(range(len(tokens)))
        axis.set_ticklabels(tokens if named else [], **how)
        axis.set_tick_params(length=2, pad=1.5)


def limits(values, least, most):
    """The scale's ends: as given, or round numbers around all values."""
    from matplotlib.ticker import MaxNLocator
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high if high > low else low + 1)
    return (ticks[0] if least is None else least), (ticks[-1] if most is None else most)


def colour_bar(figure, image, axes, label, inches):
    """The scale of all maps of the figure, at most 2.5 in high."""
    bar = figure.colorbar(image, ax=axes, shrink=min(1, 2.5 / inches), aspect=25, pad=0.02)
    bar.outline.set_linewidth(0.5)
    bar.set_label(label)
    paper.round_ticks(bar.ax.yaxis, 6)
    return bar


# ---- a sheet of maps ----

class Sheet:
    """Panels in rows and columns that share a scale. Empty ones stay blank."""

    def __init__(self, columns, rows, across, title=None, scale=True, head=TITLE, most=4.5):
        width = paper.WIDTH[columns] - LABELS - SCALE * scale
        self.side = min(width / across - 0.06, most)
        body = rows * (self.side + head + 0.04)
        limit = paper.HEIGHT - 1.2
        if body > limit:
            self.side, body = max(0.2, self.side * limit / body), limit
        self.inches = body
        self.figure = paper.new_figure(columns, body + 0.75 + 0.25 * bool(title), title)
        self.figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)
        self.axes = self.figure.subplots(rows, across, squeeze=False)
        self.rows, self.across = rows, across

    def outer(self, row, column):
        """(at the left, at the bottom)"""
        return column == 0, row == self.rows - 1

    def finish(self, image, label, y="query i"):
        self.figure.supylabel(y, fontsize=paper.NORMAL)
        if image is not None:
            colour_bar(self.figure, image, list(self.axes.flat), label, self.inches)


def footnote(count, what="maps"):
    return f"{count} of the {what}, whose values are all equal, {'is' if count == 1 else 'are'} left out" if count else ""


# ---- heatmaps ----

def in_grid(d):
    """Panels by rows and columns that have names; a row or column without a map is dropped."""
    rows, columns = d.rows, d.columns
    if len(d.panels) != len(rows) * len(columns):
        raise data.Bad(f"panels: {len(rows)} rows of {len(columns)} columns are expected, not {len(d.panels)} panels")
    return [[d.panels[r * len(columns) + c] for c in range(len(columns))] for r in range(len(rows))]


def in_lines(panels, columns, longest):
    """Panels one after another; as many across as titles leave room for."""
    least = max(0.9, longest * 0.55 * paper.SMALL / 72 + 0.1)
    fits = max(1, int((paper.WIDTH[columns] - LABELS - SCALE) / least))
    across = min(fits, len(panels), max(1, math.ceil(math.sqrt(len(panels) * 1.5))))
    rows = math.ceil(len(panels) / across)
    across = math.ceil(len(panels) / rows)
    return [(panels[r * across:(r + 1) * across] + [None] * across)[:across] for r in range(rows)]


def check_maps(d):
    shown = [p for p in d.panels if p]
    if not shown:
        raise data.Bad("panels: at least one map is expected")
    for p in shown:
        data.square(p.values, "panels")
        if len(p.values) != len(shown[0].values):
            raise data.Bad("panels: maps of one size are expected")
    if d.tokens and len(d.tokens) != len(shown[0].values):
        raise data.Bad(f"tokens: {len(shown[0].values)} are expected, one for each row, not {len(d.tokens)}")
    if (d.rows is None) != (d.columns is None):
        raise data.Bad("rows, columns: both or neither are expected")
    return shown


def draw_heatmaps(d, columns):
    shown = check_maps(d)
    varied = [p for p in shown if not constant(p.values)]
    if not varied:
        raise data.Bad("panels: in each map all values are equal: there is nothing to draw")
    norm = norm_of(d, varied)
    grid = in_grid(d) if d.rows else in_lines(varied, columns, max(len(p.title or "") for p in varied))
    sheet = Sheet(columns, len(grid), len(grid[0]), d.title, head=TITLE if not d.rows or any(p.title for p in varied) else 0.02)
    labels = shorten(sheet, d) if d.rows else ("key j", "query i")
    image = fill(sheet, grid, d, norm)
    sheet.figure.supxlabel(note_below(labels[0], [d.note, footnote(len(shown) - len(varied))], sheet.figure), fontsize=paper.NORMAL)
    sheet.finish(image, d.label, labels[1])
    return sheet.figure


def shorten(sheet, d):
    """Labels of the axes. On small maps names lose all but their last word, which the labels then explain, and titles go."""
    wide = max(len(x) for x in d.rows + d.columns + [p.title or "" for p in d.panels if p])
    if wide * 0.62 * paper.SMALL / 72 < sheet.side:
        return "key j", "query i"
    said = [f"{name}: {names[0]} to {names[-1]}" for name, names in (("columns", d.columns), ("rows", d.rows))]
    d.columns, d.rows = ([x.split()[-1] if x.split() else x for x in names] for names in (d.columns, d.rows))
    for p in filter(None, d.panels):
        p.title = None
    d.note = None
    sheet.inches = sheet.rows * (sheet.side + 0.08)
    sheet.figure.set_figheight(min(paper.HEIGHT, sheet.inches + 0.9))
    return "key j; " + said[0], "query i; " + said[1]


def note_below(label, lines, figure):
    """The label of the keys, and the notes under it."""
    words = "; ".join(x for x in lines if x)
    return label + (words and "\n" + paper.wrap(words, figure.get_figwidth(), paper.NORMAL))


def norm_of(d, panels):
    from matplotlib.colors import Normalize, PowerNorm
    low, high = limits([p.values for p in panels], d.least, d.most)
    if not low < high:
        raise data.Bad("least, most: least is to be below most")
    return PowerNorm(0.5, low, high) if d.scale == "root" else Normalize(low, high)


def fill(sheet, grid, d, norm):
    image = None
    for r, line in enumerate(grid):
        for c, panel in enumerate(line):
            axes = sheet.axes[r, c]
            if panel is None:
                axes.set_axis_off()
            elif d.rows and constant(panel.values):
                say_constant(axes, panel.values.flat[0])
                put_title(axes, d, r, c, None)
            else:
                image = put(sheet, axes, panel, d, norm, sheet.outer(r, c))
                put_title(axes, d, r, c, panel.title)
            if d.rows and c == 0:
                name_row(axes, d.rows[r])
    return image


def put(sheet, axes, panel, d, norm, outer):
    image = draw_map(axes, panel.values, norm)
    if d.tokens and sheet.side >= 0.125 * len(d.tokens):
        token_ticks(axes, d.tokens, outer)
    else:
        position_ticks(axes, len(panel.values), sheet.side, outer)
    return image


def put_title(axes, d, r, c, title):
    """The column's name above the panel's own title."""
    lines = [d.columns[c]] if d.columns and r == 0 else []
    axes.set_title("\n".join(lines + [title] * bool(title)), fontsize=paper.SMALL, pad=2)


# ---- film ----

def draw_film(d, columns):
    from matplotlib.colors import Normalize
    n = len(data.square(d.frames[0].masks, "frames")[0])
    if any(f.masks.shape != (len(d.heads), n, n) for f in d.frames):
        raise data.Bad(f"frames: masks of {len(d.heads)} heads over {n} tokens are expected")
    sheet = Sheet(columns, len(d.heads), len(d.frames), d.title, scale=False, head=0.02, most=1.6)
    left_out = 0
    for c, frame in enumerate(d.frames):
        sheet.axes[0, c].set_title(f"{'' if c else 'step '}{paper.short(frame.step)}\n{100 * frame.density:.3g} %", fontsize=paper.SMALL, pad=3)
        for r, mask in enumerate(frame.masks):
            axes = sheet.axes[r, c]
            if constant(mask):
                left_out += 1
                say_constant(axes, 0, "all on" if mask.flat[0] else "all off")
            else:
                draw_map(axes, mask, Normalize(0, 1))
                position_ticks(axes, n, sheet.side, sheet.outer(r, c))
            if c == 0:
                name_row(axes, d.heads[r])
    lines = ["above: training step, and the share of the heads' entries that is on; dark: on", footnote(left_out)]
    sheet.figure.supxlabel(note_below("key j", lines, sheet.figure), fontsize=paper.NORMAL)
    sheet.finish(None, None)
    return sheet.figure


def name_row(axes, name):
    """The name stays where the map is left out and its axes are off."""
    axes.set_ylabel(name, fontsize=paper.SMALL)
    if not axes.axison:
        axes.text(-0.15, 0.5, name, ha="right", va="center", rotation=90, transform=axes.transAxes, fontsize=paper.SMALL)


# ---- pruned ----

def mask_title(m):
    """Two lines: the kind, and what it costs and keeps in the whole model."""
    facts = [] if m.density is None else [f"density {m.density:.2g}"]
    facts += [] if m.cosine is None else [f"cosine {m.cosine:.2g}"]
    return "\n".join([m.name, *facts])


def draw_pruned(d, columns):
    from matplotlib.colors import Normalize
    data.square(d.importance, "importance")
    n, across = len(d.importance), 1 + max(len(line.masks) for line in d.lines)
    sheet = Sheet(columns, len(d.lines), across, d.title, head=3 * TITLE)
    most = limits([d.importance], 0, None)[1]
    for r, line in enumerate(d.lines):
        for c in range(across):
            draw_pruned_cell(sheet, d, line, r, c, Normalize(0, most), n)
    lines = ["each mask keeps its dark entries; density and cosine (to the vectors of the dense model) are of the whole model"]
    sheet.figure.supxlabel(note_below("key j", lines, sheet.figure), fontsize=paper.NORMAL)
    sheet.finish(sheet.axes[0, 0].images[0], d.label)
    return sheet.figure


def draw_pruned_cell(sheet, d, line, r, c, norm, n):
    from matplotlib.colors import Normalize
    axes = sheet.axes[r, c]
    mask = line.masks[c - 1] if 0 < c <= len(line.masks) else None
    if c == 0:
        draw_map(axes, d.importance, norm)
        name_row(axes, line.name)
        axes.set_title("importance", fontsize=paper.SMALL, pad=3)
    elif mask is None:
        axes.set_axis_off()
        return
    elif mask.mask is None or constant(mask.mask):
        say_constant(axes, 0, "none" if mask.mask is None else "all kept" if mask.mask.flat[0] else "none kept")
        axes.set_title(mask_title(mask), fontsize=paper.SMALL, pad=3)
        return
    else:
        if mask.mask.shape != (n, n):
            raise data.Bad(f"lines: masks over {n} tokens are expected")
        draw_map(axes, mask.mask, Normalize(0, 1))
        axes.set_title(mask_title(mask), fontsize=paper.SMALL, pad=3)
    position_ticks(axes, n, sheet.side, (c == 0, r == sheet.rows - 1))
