# SPDX-License-Identifier: Apache-2.0
"""bars: a metric by method. times: what maskc bench --json prints."""
from . import data, paper
from .data import listing, optional, record, text

BARS = record(title=optional(text), note=optional(text), y=data.axis, groups=optional(listing(text)), levels=optional(listing(data.level, 0), []),
              methods=listing(record(name=text, values=listing(optional(data.number)), deviations=optional(listing(optional(data.deviation))))))
RESULT = record(True, mask=text, length=data.number, heads=data.number, batch=data.number, head_dim=data.number, dtype=text,
                **{"pass": data.choice("forward", "backward")}, median_s=data.number, dense_s=data.number, p10_s=optional(data.number),
                p90_s=optional(data.number), dense_extrapolated=optional(data.flag, False))
TIMES = record(True, title=optional(text), note=optional(text), device=text, threads=data.number, results=listing(RESULT))


# ---- bars ----

def check_bars(d):
    groups = d.groups or [""]
    for m in d.methods:
        for name in ("values", "deviations"):
            found = getattr(m, name)
            if found is not None and len(found) != len(groups):
                raise data.Bad(f"methods: {m.name}: {len(groups)} {name} are expected, one for each group, not {len(found)}")
    if d.y.scale != "linear":
        raise data.Bad("y.scale: bars need a linear scale")
    if all(v is None for m in d.methods for v in m.values):
        raise data.Bad("methods: no method has a value")
    kept = [g for g in range(len(groups)) if any(m.values[g] is not None for m in d.methods)]
    for m in d.methods:  # a group without a value has no place
        m.values = [m.values[g] for g in kept]
        m.deviations = m.deviations and [m.deviations[g] for g in kept]
    return [groups[g] for g in kept]


def number_text(value, deviation, digits):
    if abs(value) >= 1e6:
        return paper.short(value)
    return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}") + (f" \N{PLUS-MINUS SIGN} {deviation:.{digits}f}" if deviation else "")


def draw_bars(d, columns):
    """Horizontal, so that names of any length have room. A bar begins at 0; where the axis does not, a dot stands in for it."""
    groups = check_bars(d)
    values = [v for m in d.methods for v in m.values if v is not None]
    figure = paper.new_figure(columns, 0.9 + len(groups) * (len(d.methods) * 0.18 + 0.14), d.title)
    axes, digits = figure.subplots(), paper.decimals(values)
    for g in range(len(groups)):
        for k, m in enumerate(d.methods):
            if m.values[g] is not None:
                draw_bar(axes, d, m, g, (-(g * (len(d.methods) + 1) + k), k if d.groups else 0, digits))
    name_bars(axes, d, groups)
    levels = paper.draw_levels(axes, d.levels, values + [0], False)
    finish_bars(axes, d)
    paper.legend(axes, patches(d) + levels)
    paper.note(figure, [d.note, "\N{PLUS-MINUS SIGN}: standard deviation over runs" if any(any(m.deviations or []) for m in d.methods) else ""])
    return figure


def draw_bar(axes, d, m, g, place):
    """place: (y, colour, digits)"""
    (at, k, digits), value, deviation = place, m.values[g], (m.deviations or [None] * (g + 1))[g]
    whisker = {"xerr": deviation or None, "capsize": 2, "ecolor": "#000000"}
    if d.y.least:
        axes.errorbar(value, at, color=paper.colour(k), marker=paper.marker(k), markersize=4.5, **{**whisker, "ecolor": None})
    else:
        axes.barh(at, value, 0.8, color=paper.colour(k), error_kw={"elinewidth": 0.8}, **whisker)
    axes.annotate(number_text(value, deviation, digits), (max(value, 0) + (deviation or 0), at), (5, 0), textcoords="offset points", va="center",
                  fontsize=paper.SMALL)


def name_bars(axes, d, groups):
    if not d.groups:
        axes.set_yticks([-k for k in range(len(d.methods))])
        axes.set_yticklabels([m.name for m in d.methods])
        return
    step = len(d.methods) + 1
    axes.set_yticks([-(g * step + (len(d.methods) - 1) / 2) for g in range(len(groups))])
    axes.set_yticklabels(groups)


def patches(d):
    """The legend of the methods, where their names are not on the axis."""
    from matplotlib.patches import Patch
    return [Patch(color=paper.colour(k), label=paper.name_of(m.name)) for k, m in enumerate(d.methods)] if d.groups else []


def finish_bars(axes, d):
    paper.set_axis(axes, "x", d.y, ())
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + (high - low) * 0.22 if d.y.most is None else d.y.most)
    paper.grid(axes, "x")
    axes.tick_params(axis="y", length=0)


# ---- times of maskc bench ----

def setting(d):
    """Describes the settings that all results share."""
    words = []
    for name, form in (("heads", "{} heads"), ("head_dim", "head dimension {}"), ("batch", "batch {}")):
        found = {getattr(r, name) for r in d.results}
        value = found.pop() if len(found) == 1 else None
        words += [] if value is None else ["1 head"] if (name, value) == ("heads", 1) else [form.format(paper.short(value))]
    return ", ".join([f"{d.device}, {d.threads:g} thread{'s' * (d.threads != 1)}" if d.device.startswith("cpu") else d.device, *words])


def draw_times(d, columns):
    if any(r.median_s <= 0 or r.dense_s <= 0 for r in d.results):
        raise data.Bad("results: times above 0 are expected")
    return (draw_lengths if len({r.length for r in d.results}) > 1 else draw_one_length)(d, columns)


def kinds(d):
    """The panels: each type and pass."""
    return list(dict.fromkeys((r.dtype, getattr(r, "pass")) for r in d.results))


def draw_lengths(d, columns):
    panels, masks = kinds(d), list(dict.fromkeys(r.mask for r in d.results))
    across = min(columns, len(panels))
    rows = -(-len(panels) // across)
    figure = paper.new_figure(columns, 0.9 + 1.9 * rows, d.title)
    axes = figure.subplots(rows, across, squeeze=False, sharex=True, sharey=True)
    for k, at in enumerate(axes.flat):
        if k < len(panels):
            draw_kind(at, d, panels[k], masks, (k % across == 0, k + across >= len(panels)))
        else:
            at.set_axis_off()
    paper.legend(axes[0, 0], across=3)
    paper.note(figure, [d.note, setting(d), "solid: under the mask; dashed: our dense kernel, which computes all entries", extrapolated(d)])
    return figure


def extrapolated(d):
    """The note's line about times of the dense kernel that maskc bench did not measure."""
    return "hollow: dense kernel's time extrapolated from a shorter length" if any(r.dense_extrapolated for r in d.results) else ""


def draw_kind(axes, d, kind, masks, outer):
    for k, mask in enumerate(masks):
        of = sorted((r.length, r.median_s * 1e3, r.dense_s * 1e3, r.dense_extrapolated) for r in d.results
                    if r.mask == mask and (r.dtype, getattr(r, "pass")) == kind)
        if of:
            axes.plot([r[0] for r in of], [r[2] for r in of], color=paper.colour(k), linestyle="--", linewidth=0.8, alpha=0.7)
            hollow = [r for r in of if r[3]]
            axes.plot([r[0] for r in hollow], [r[2] for r in hollow], paper.marker(k), color=paper.colour(k), fillstyle="none", markersize=4.5)
            axes.plot([r[0] for r in of], [r[1] for r in of], color=paper.colour(k), marker=paper.marker(k), label=paper.name_of(mask))
    values = [x * 1e3 for r in d.results for x in (r.median_s, r.dense_s)]
    label = {"scale": "log", "label": "time (ms)" if outer[0] else ""}
    paper.set_axis(axes, "x", data.axis({"scale": "log2", "label": "tokens" if outer[1] else ""}, ""), [r.length for r in d.results])
    paper.set_axis(axes, "y", data.axis(label, ""), values)
    paper.grid(axes)
    axes.annotate(" ".join(kind), (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=paper.SMALL)


def time_text(value):
    """Three digits, or all those before the point."""
    return paper.short(float(f"{value:.3g}")) if value < 100 else paper.short(round(value))


def ratio_text(value):
    """Two digits, or all those before the point."""
    return f"{value:.2g}" if value < 9.95 else paper.short(round(value))


def draw_one_length(d, columns):
    """Bars of ours and dense, with the speedup at their end."""
    from matplotlib.patches import Patch
    figure = paper.new_figure(columns, 0.95 + 0.42 * len(d.results), d.title)
    axes = figure.subplots()
    names = []
    for k, r in enumerate(d.results):
        axes.barh(-k + 0.19, r.median_s * 1e3, 0.36, color=paper.DARK)
        axes.barh(-k - 0.19, r.dense_s * 1e3, 0.36, edgecolor="#a9b3d6", color="none" if r.dense_extrapolated else "#a9b3d6")
        axes.annotate(f"{time_text(r.median_s * 1e3)} ms, {ratio_text(r.dense_s / r.median_s)} \N{MULTIPLICATION SIGN} as fast as dense",
                      (r.median_s * 1e3, -k + 0.19), (3, 0), textcoords="offset points", va="center", fontsize=paper.SMALL)
        names.append(f"{r.mask}\n{r.dtype} {getattr(r, 'pass')}")
    axes.set_yticks([-k for k in range(len(names))])
    axes.set_yticklabels(names)
    paper.set_axis(axes, "x", data.axis({"label": "time (ms)", "least": 0}, ""), ())
    axes.set_xlim(0, axes.get_xlim()[1] * 1.3)
    paper.grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    paper.legend(axes, [Patch(color=paper.DARK, label="under the mask"), Patch(color="#a9b3d6", label="our dense kernel")])
    paper.note(figure, [d.note, f"{d.results[0].length:g} tokens, " + setting(d), extrapolated(d)])
    return figure
