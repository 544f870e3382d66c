# SPDX-License-Identifier: Apache-2.0
"""Size, fonts and colours of all figures, and how a figure becomes a file.

One convention: dark is active or important, light is off. Widths are those of a paper's column (3.3 in) and page (6.9 in), no font is
below 7 pt, series differ in colour (Okabe and Ito's, told apart with any colour vision), in marker and in dashes. A title says what is
shown, the notes below define names and give model, data and seeds. The legend is above the axes and hides nothing."""
import contextlib
import importlib
import io
import math
import os
import secrets

import matplotlib
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

WIDTH = {1: 3.3, 2: 6.9}  # inches
HEIGHT = 9.0              # of a page, inches: the most that a figure takes
SMALL, NORMAL = 7, 8      # points
LETTER = 0.53             # width of a letter over the font's size, on average
DARK, GREY, PALE = "#1e1b5e", "#666666", "#d9d9d9"
MAP = LinearSegmentedColormap.from_list("maskc", ["#ffffff", "#c6cfe8", "#7d8cc4", "#43459a", DARK])
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS, DASHES = "osD^vPX", ("-", "--", "-.", ":")
LEVELS = (*DASHES[1:], (0, (6, 1.5, 1, 1.5, 1, 1.5)))
STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": NORMAL, "axes.titlesize": NORMAL, "axes.labelsize": NORMAL,
    "figure.titlesize": NORMAL + 1, "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "legend.fontsize": SMALL, "legend.frameon": False,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "lines.linewidth": 1.2, "lines.markersize": 3.5,
    "axes.spines.top": False, "axes.spines.right": False, "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "maskc",
    "pdf.fonttype": 42, "savefig.dpi": 300, "figure.dpi": 100, "image.interpolation": "antialiased"}
NO_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}  # same input, same bytes


@contextlib.contextmanager
def style():
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(columns, height, title=None):
    figure = Figure(figsize=(WIDTH[columns], min(height, HEIGHT)), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(wrap(title, WIDTH[columns] - 0.2, NORMAL + 1))
    return figure


def wrap(words, inches, size):
    """Line breaks before words that would make a line wider, in letters of matplotlib's font; a word of a line's width and more is cut."""
    font, lines = FontProperties(family=STYLE["font.sans-serif"], size=size), [""]
    def fits(text):
        return text_to_path.get_text_width_height_descent(text, font, False)[0] <= 72 * inches
    for word in words.split():
        if lines[-1] and not fits(f"{lines[-1]} {word}"):
            lines.append("")
        lines[-1] += " " * bool(lines[-1]) + word
        while not fits(lines[-1]) and len(lines[-1]) > 1:
            cut = max(1, next((k for k in range(len(lines[-1]), 1, -1) if fits(lines[-1][:k])), 1))
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return "\n".join(lines)


def note(figure, lines):
    """Text below the figure: how to read it, what its names mean. Each line begins anew."""
    shown = [wrap(part, figure.get_figwidth() - 0.15, SMALL) for line in lines if line for part in line.split("\n") if part.strip()]
    if shown:
        figure.set_figheight(min(HEIGHT, figure.get_figheight() + 0.12 * (sum(x.count("\n") + 1 for x in shown) - 1)))
        figure.supxlabel("\n".join(shown), x=0.02, ha="left", fontsize=SMALL, color=GREY)


def name_of(text):
    """A legend leaves out what begins with an underscore."""
    return " " + text if text.startswith("_") else text


def colour(k):
    return SERIES[k % len(SERIES)]


def marker(k):
    return MARKERS[k % len(MARKERS)]


def dashes(k):
    """Another one for each turn through the colours."""
    return DASHES[k // len(SERIES) % len(DASHES)]


def decimals(values):
    """Digits after the point for numbers that are compared: three of the largest one."""
    most = max((abs(v) for v in values if v), default=0)
    return min(6, max(0, 2 - math.floor(math.log10(most)))) if most else 0


# ---- axes ----

def short(value, _place=None):
    """5, 0.25, 20 k, 3 M, 2e-5."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[unit]:g} {unit}".replace("-", "\N{MINUS SIGN}")
    said = f"{value:.6g}" if abs(value) > 1e-12 else "0"
    mantissa, e, power = said.partition("e")
    return (mantissa + (e and f"e{int(power)}")).replace("-", "\N{MINUS SIGN}")


class Even(ticker.Formatter):
    """Ticks of an axis with as many digits after the point as one of them needs: 0.50 beside 0.52."""

    def __call__(self, value, _place=None):
        return short(value)

    def format_ticks(self, values):
        said = [short(v) for v in values]
        if any("e" in t or " " in t for t in said):
            return said
        digits = max((len(t.partition(".")[2]) for t in said), default=0)
        return [f"{v:.{digits}f}".replace("-", "\N{MINUS SIGN}") for v in values]


def round_ticks(axis, most=6, whole=False):
    axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 5, 10], integer=whole))
    axis.set_major_formatter(Even())


def log_ticks(axis, base, values):
    """The powers; where there are fewer than three of them 2 and 5 times a power too. Base 2: the values themselves."""
    low, high = min(values), max(values)
    if base == 2 and len(set(values)) <= 8:
        axis.set_major_locator(ticker.FixedLocator(sorted(set(values))))
    else:
        few = math.floor(math.log(high, base)) - math.ceil(math.log(low, base)) < 2
        axis.set_major_locator(ticker.LogLocator(base, subs=(1, 2, 5) if few and base == 10 else (1,), numticks=9))
    axis.set_major_formatter(ticker.FuncFormatter(short))
    axis.set_minor_locator(ticker.NullLocator())


def set_axis(axes, which, wanted, values):
    """Label, scale, limits and ticks of the x or y axis, for these values."""
    axis = getattr(axes, which + "axis")
    getattr(axes, f"set_{which}label")(wanted.label)
    if wanted.scale == "linear":
        round_ticks(axis, 5 if axes.figure.get_figwidth() < 4 and which == "x" else 6)
    else:
        base = 2 if wanted.scale == "log2" else 10
        getattr(axes, f"set_{which}scale")("log", base=base)
        log_ticks(axis, base, values)
    if wanted.least is not None or wanted.most is not None:
        getattr(axes, f"set_{which}lim")(wanted.least, wanted.most)


def grid(axes, which="both"):
    axes.grid(True, axis=which, color=PALE, linewidth=0.5)
    axes.set_axisbelow(True)


def legend(axes, handles=None, across=None):
    """Above the axes, so that it hides nothing."""
    found = handles if handles is not None else axes.get_legend_handles_labels()[0]
    if not found:
        return
    labels = [h.get_label() for h in found]
    width = max(map(len, labels)) * LETTER * SMALL / 72 + 0.42
    fits = max(1, int(axes.figure.get_figwidth() * 0.94 / width))
    across = min(across or fits, fits, len(found))
    axes.figure.set_figheight(min(HEIGHT, axes.figure.get_figheight() + 0.13 * (math.ceil(len(found) / across) - 1)))
    axes.legend(found, labels, loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0, ncol=across, handlelength=2.2, columnspacing=1.2,
                labelspacing=0.25)


# ---- levels: dense, the majority ----

def draw_levels(axes, levels, values, across=True):
    """Lines for levels, horizontal if `across`; returns their handles for the legend. A level far from the values is named in the legend
    with an arrow: its line would leave the values a fraction of the axes. A band shows differences that are within chance."""
    low, high = min(values), max(values)
    room = max(high - low, 0.25 * abs(high))
    return [draw_level(axes, k, level, across, (level.value > high + room) - (level.value < low - room)) for k, level in enumerate(levels)]


def draw_level(axes, k, level, across, outside):
    from matplotlib.lines import Line2D
    name = name_of(level.name)
    if outside:
        said = {(True, 1): "above", (True, -1): "below", (False, 1): "right of", (False, -1): "left of"}[across, outside]
        marks = {(True, 1): "^", (True, -1): "v", (False, 1): ">", (False, -1): "<"}[across, outside]
        return Line2D([], [], color=GREY, linestyle="none", marker=marks, label=f"{name}, {said} the axes")
    how = {"color": GREY, "linewidth": 0.9, "linestyle": LEVELS[k % len(LEVELS)], "zorder": 1}
    if level.band:
        (axes.axhspan if across else axes.axvspan)(level.value - level.band, level.value + level.band, color=PALE, alpha=0.5, linewidth=0, zorder=0)
    return (axes.axhline if across else axes.axvline)(level.value, label=name, **how)


# ---- files ----

def lay_out(figure):
    """Places all parts; they stay there."""
    engine = figure.get_layout_engine()
    if engine:
        engine.execute(figure)
    figure.set_layout_engine("none")


def save(figure, path):
    """Writes the figure whole or not at all; the suffix says the format. The canvas is drawn once: Figure.savefig would draw it twice."""
    kind = str(path).rpartition(".")[2]
    made = io.BytesIO()
    lay_out(figure)
    figure.set_dpi(matplotlib.rcParams["savefig.dpi"] if kind == "png" else 72)
    canvas = getattr(importlib.import_module("matplotlib.backends.backend_" + {"png": "agg"}.get(kind, kind)), "FigureCanvas")(figure)
    getattr(canvas, "print_" + kind)(made, metadata=NO_DATE[kind])
    write_whole(os.path.realpath(path), made.getvalue())


def write_whole(path, data):
    if os.path.exists(path) and not os.path.isfile(path):  # as /dev/stdout
        with open(path, "wb") as f:
            f.write(data)
        return
    beside = os.path.join(os.path.dirname(path), f".figure-{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as f:
            f.write(data)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
