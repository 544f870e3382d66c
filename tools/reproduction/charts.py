# SPDX-License-Identifier: Apache-2.0
"""Pictures: curves and points as SVG text, a map of P as PNG. White paper, dark ink; no other program is needed."""
import html
import math
import struct
import zlib

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 64, 200, 34, 48
COLOURS = ("#1f5fa8", "#c4501b", "#2e8540", "#7a3e9d", "#8a6d00", "#555555", "#b0305c", "#007c89")


def ticks(low, high):
    """About five round numbers between."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= raw * 0.8)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


class Frame:
    """Places of values on the paper."""

    def __init__(self, series):
        xs, ys = [[p[k] for _, _, points in series for p in points] for k in (0, 1)]
        self.x, self.y = ((min(v) - (max(v) - min(v) or 1) * 0.04, max(v) + (max(v) - min(v) or 1) * 0.04) for v in (xs, ys))

    def at(self, x, y):
        return (LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM))


def text(x, y, words, anchor="middle", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {more}>{html.escape(words)}</text>'


def axes(frame, x_name, y_name):
    out = [f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#888"/>']
    for value in ticks(*frame.x):
        x, _ = frame.at(value, frame.y[0])
        out += [f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v4" stroke="#888"/>', text(x, HEIGHT - BOTTOM + 17, f"{value:g}")]
    for value in ticks(*frame.y):
        _, y = frame.at(frame.x[0], value)
        out += [f'<path d="M{LEFT} {y:.1f}h-4" stroke="#888"/>', text(LEFT - 7, y + 4, f"{value:g}", "end")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return out + [text(middle, HEIGHT - 10, x_name), text(16, (TOP + HEIGHT - BOTTOM) / 2, y_name, more=f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"')]


def draw(frame, colour, kind, points):
    places = [frame.at(*p) for p in points]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    line = f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
    return [line] if kind == "curve" else dots if kind == "points" else [line, *dots]


def chart(title, x_name, y_name, series):
    """series: (name, "line", "curve" or "points", [(x, y), ..]); those without points are left out. None where all are."""
    series = [s for s in series if s[2]]
    if not series:
        return None
    frame = Frame(series)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', text(LEFT, 20, title, "start", 14), *axes(frame, x_name, y_name)]
    for k, (name, kind, points) in enumerate(series):
        colour, y = COLOURS[k % len(COLOURS)], TOP + 10 + 18 * k
        out += draw(frame, colour, kind, points)
        out += [f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 8}" width="10" height="10" fill="{colour}"/>', text(WIDTH - RIGHT + 28, y + 1, name, "start", 11)]
    return "\n".join([*out, "</svg>", ""])


def heat_map(values, scale=3):
    """A PNG of rows of numbers, light where large; greys end at the 1st and the 99th percent of the values."""
    ordered = sorted(v for row in values for v in row)
    low, high = ordered[len(ordered) // 100], ordered[-1 - len(ordered) // 100]
    def grey(v):
        return round(255 * min(1, max(0, (v - low) / (high - low or 1))))
    lines = b"".join((b"\0" + bytes(grey(v) for v in row for _ in range(scale))) * scale for row in values)
    side = scale * len(values)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))
