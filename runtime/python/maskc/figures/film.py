# SPDX-License-Identifier: Apache-2.0
"""Masks as maps: film (a learned mask over the steps), pruned (what masks keep of an importance)."""
from matplotlib.colors import Normalize

from . import data, maps, paper
from .data import array, listing, optional, record, text

FILM = record(title=optional(text), note=optional(text), heads=listing(text), of_heads=optional(data.number),
              frames=listing(record(step=data.number, density=data.number, masks=array(3))))
PRUNED = record(title=optional(text), note=optional(text), label=text, importance=array(2),
                lines=listing(record(name=text, masks=listing(record(name=text, mask=optional(array(2)), density=optional(data.number),
                                                                     cosine=optional(data.number))))))


# ---- film ----

def draw_film(d, columns):
    n = len(data.square(d.frames[0].masks, "frames")[0])
    if any(f.masks.shape != (len(d.heads), n, n) for f in d.frames):
        raise data.Bad(f"frames: masks of {len(d.heads)} heads over {n} tokens are expected")
    sheet = maps.Sheet(columns, len(d.heads), len(d.frames), d.title or "A learned mask over the training steps", scale=False, head=0.02, most=1.6)
    left_out = 0
    for c, frame in enumerate(d.frames):
        sheet.axes[0, c].set_title(frame_title(sheet, frame, c), fontsize=paper.SMALL, pad=3)
        for r, mask in enumerate(frame.masks):
            left_out += put_frame(sheet, (r, c), mask)
            if c == 0:
                maps.name_row(sheet.axes[r, c], d.heads[r])
    of = d.of_heads if d.of_heads and d.of_heads > len(d.heads) else 0
    border = all(all(part.all() for part in (m[0], m[-1], m[:, 0], m[:, -1])) for f in d.frames for m in f.masks)
    paper.note(sheet.figure, [
        f"Each map: {n} queries down, {n} keys across; dark: on. Above: training step, and sparsity, the share of all heads' entries that is off.",
        "The first and the last token see all tokens and are seen by all, at every step." if border else "",
        f"{len(d.heads)} of {of:g} heads are drawn." if of else "", maps.footnote(left_out), d.note])
    sheet.finish(None, None, None)
    return sheet.figure


def frame_title(sheet, frame, c):
    """The words go with the numbers where the maps are wide enough."""
    step, off = paper.short(frame.step), f"{100 * (1 - frame.density):.1f} %"
    return f"step {step}\nsparsity {off}" if sheet.side > 0.8 else f"{'' if c else 'step '}{step}\n{off}"


def put_frame(sheet, place, mask):
    """Returns 1 where the map is left out. Ticks at the lower left corner hold for all maps."""
    axes = sheet.axes[place]
    if maps.constant(mask):
        maps.say_constant(axes, 0, "all on" if mask.flat[0] else "all off")
        return 1
    maps.draw_map(axes, mask, Normalize(0, 1), apart=True)
    corner = sheet.outer(*place)
    maps.position_ticks(axes, len(mask), sheet.side if all(corner) else 0, corner)
    return 0


# ---- pruned ----

def mask_title(m):
    """Two lines: the kind, and what it costs and keeps in the whole model."""
    facts = [] if m.density is None else [f"sparsity {100 * (1 - m.density):.1f} %"]
    facts += [] if m.cosine is None else [f"cosine {m.cosine:.3f}"]
    return "\n".join([m.name, *facts])


def draw_pruned(d, columns):
    data.square(d.importance, "importance")
    n, across = len(d.importance), 1 + max(len(line.masks) for line in d.lines)
    sheet = maps.Sheet(columns, len(d.lines), across, d.title, head=3 * maps.TITLE)
    most = maps.limits([d.importance], 0, None)[1]
    for r, line in enumerate(d.lines):
        for c in range(across):
            draw_pruned_cell(sheet, d, line, r, c, Normalize(0, most), n)
    paper.note(sheet.figure, [f"Each map: {n} queries down, {n} keys across; dark: important, or kept by the mask. Sparsity: share of entries off; cosine: of the "
                              "vectors to those of the dense model. Both are of the whole model.", d.note])
    sheet.finish(sheet.axes[0, 0].images[0], d.label, None)
    return sheet.figure


def draw_pruned_cell(sheet, d, line, r, c, norm, n):
    axes = sheet.axes[r, c]
    mask = line.masks[c - 1] if 0 < c <= len(line.masks) else None
    if c == 0:
        maps.draw_map(axes, d.importance, norm)
        maps.name_row(axes, line.name)
        axes.set_title("importance", fontsize=paper.SMALL, pad=3)
    elif mask is None:
        axes.set_axis_off()
        return
    elif mask.mask is None or maps.constant(mask.mask):
        maps.say_constant(axes, 0, "none" if mask.mask is None else "all kept" if mask.mask.flat[0] else "none kept")
        axes.set_title(mask_title(mask), fontsize=paper.SMALL, pad=3)
        return
    else:
        if mask.mask.shape != (n, n):
            raise data.Bad(f"lines: masks over {n} tokens are expected")
        maps.draw_map(axes, mask.mask, Normalize(0, 1), apart=True)
        axes.set_title(mask_title(mask), fontsize=paper.SMALL, pad=3)
    maps.position_ticks(axes, n, sheet.side, (c == 0, r == sheet.rows - 1))
