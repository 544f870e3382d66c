# SPDX-License-Identifier: Apache-2.0
"""Maps of queries by keys: heatmaps (attention, P), and what other figures of maps share."""
import math

from . import data, paper
from .data import array, listing, optional, record, text

HEATMAPS = record(title=optional(text), label=text, panels=listing(optional(record(values=array(2), title=optional(text)))),
                  rows=optional(listing(text)), columns=optional(listing(text)), tokens=optional(listing(text)), note=optional(text), corner=optional(data.number),
                  least=optional(data.number), most=optional(data.number), scale=optional(data.choice("linear", "root"), "linear"))
TITLE, LABELS, SCALE = 0.17, 0.42, 0.55  # inches: above a panel, left of and below all panels, right of them
TOKEN = 0.125  # inches of a token's row


# ---- one map ----

def constant(values):
    return bool((values == values.flat[0]).all())


def draw_map(axes, values, norm, first=0, apart=False):
    """Query i goes down, key j goes right; `first` is the position of the first row and column. `apart` leaves a blank line between the
    map and its frame: entries of the first and last row and column are then told from the frame."""
    n, gap = len(values), max(0.45, 0.025 * len(values)) if apart else 0
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color("#aaaaaa" if apart else paper.GREY)
    image = axes.imshow(values, cmap=paper.MAP, norm=norm, extent=(first - 0.5, first + n - 0.5, first + n - 0.5, first - 0.5), aspect="equal")
    axes.set_xlim(first - 0.5 - gap, first + n - 0.5 + gap)
    axes.set_ylim(first + n - 0.5 + gap, first - 0.5 - gap)
    return image


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
    """The scale of all maps of the figure, at most 2.5 in high; of one line of maps as high as a map."""
    if axes[0].get_gridspec().nrows == 1 and axes[-1].axison:
        bar = figure.colorbar(image, cax=axes[-1].inset_axes([1.05, 0, 0.06, 1]))
    else:
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
        if y:
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


def in_lines(panels, columns, longest, tokens):
    """Panels one after another; as many across as titles and tokens leave room for."""
    most = paper.WIDTH[columns] - LABELS - SCALE
    least = max(0.9, longest * 0.55 * paper.SMALL / 72 + 0.1, min(TOKEN * len(tokens or ()) + 0.06, most))
    fits = max(1, int(most / least))
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
    if d.corner and len(shown) == 1:
        varied = with_corner(d, shown[0])
    grid = in_grid(d) if d.rows and not in_one_line(d, columns) else in_lines(varied, columns, max(len(p.title or "") for p in varied), d.tokens)
    sheet = Sheet(columns, len(grid), len(grid[0]), d.title, head=TITLE if not d.rows or any(p.title for p in varied) else 0.02)
    labels = shorten(sheet, d) if d.rows else ("", "")
    image = fill(sheet, grid, d, norm)
    notes = [d.note, footnote(sum(constant(p.values) for p in shown))]
    if d.rows:
        sheet.figure.supxlabel(note_below(labels[0], notes, sheet.figure), fontsize=paper.NORMAL)
    else:
        paper.note(sheet.figure, notes)
    sheet.finish(image, d.label, labels[1])
    return sheet.figure


def with_corner(d, panel):
    """The whole map, and its first rows and columns, larger."""
    n, size = len(panel.values), int(d.corner)
    if not 1 < size < n:
        raise data.Bad(f"corner: a number from 2 to {n - 1} is expected")
    corner = type(panel)(values=panel.values[:size, :size], title=f"the first {size}")
    panel.title = panel.title or f"all {n} tokens"
    return [panel, corner]


def in_one_line(d, columns):
    """One layer's heads whose tokens have no room side by side become lines of maps; then titles have the names."""
    across = len(d.columns)
    if not d.tokens or len(d.rows) != 1 or across < 3 or (paper.WIDTH[columns] - LABELS - SCALE) / across >= TOKEN * len(d.tokens):
        return False
    if len(d.panels) != across:
        raise data.Bad(f"panels: 1 row of {across} columns is expected, not {len(d.panels)} panels")
    for name, p in zip(d.columns, d.panels):
        if p:
            p.title = f"{d.rows[0]}, {name}" + (f": {p.title}" if p.title else "")
    d.rows = d.columns = None
    return True


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
            if not d.rows and panel is not None:
                axes.set_xlabel("key j" if r == sheet.rows - 1 else "")
                axes.set_ylabel("query i" if c == 0 else "")
    return image


def put(sheet, axes, panel, d, norm, outer):
    image = draw_map(axes, panel.values, norm)
    if d.tokens and sheet.side >= TOKEN * len(d.tokens):
        token_ticks(axes, d.tokens, outer)
    else:
        position_ticks(axes, len(panel.values), sheet.side, outer)
    return image


def put_title(axes, d, r, c, title):
    """The column's name above the panel's own title."""
    lines = [d.columns[c]] if d.columns and r == 0 else []
    axes.set_title("\n".join(lines + [title] * bool(title)), fontsize=paper.SMALL, pad=2)


def name_row(axes, name):
    """The name stays where the map is left out and its axes are off."""
    axes.set_ylabel(name, fontsize=paper.SMALL)
    if not axes.axison:
        axes.text(-0.15, 0.5, name, ha="right", va="center", rotation=90, transform=axes.transAxes, fontsize=paper.SMALL)
