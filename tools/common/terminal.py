# SPDX-License-Identifier: Apache-2.0
"""Tables and lines of the Python tools, at most WIDTH columns wide; tools/common/table.h is the same for C."""
import re

WIDTH = 100
NARROWEST = 14  # of a text column that is wrapped


def next_line(text, width):
    """Length of the first line of text: up to a blank, else another break, else cut."""
    if len(text) <= width or text[width] == " ":
        return min(len(text), width)
    at = text.rfind(" ", 0, width) + 1
    if at < width // 2:
        at = max(text.rfind(c, 0, width) for c in " ,;|+") + 1
    return at or width


def wrap(text, width):
    lines = []
    while text:
        at = next_line(text, width)
        lines.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return lines or [""]


def fold(text, width=WIDTH, hang=2):
    """Lines longer than width, broken at blanks. Continued lines are indented; a longer word stays whole."""
    folded = []
    for line in text.split("\n"):
        indent = re.match(" *", line)[0]
        words, made = line[len(indent):].split(" "), [indent]
        for word in words:
            if made[-1].strip() and len(made[-1]) + 1 + len(word) > width:
                made.append(indent + " " * hang + word)
            else:
                made[-1] += (" " if made[-1].strip() else "") + word
        folded += made if len(line) > width else [line]
    return "\n".join(line.rstrip() for line in folded)


def column_widths(table, left, width):
    """(widths, blanks between columns): two blanks; if that is too wide, one; then text columns are narrowed, the widest first."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
    narrow = list(widths)
    while sum(narrow) + gap * (len(narrow) - 1) > width:
        texts = [k for k in range(left) if narrow[k] > NARROWEST]
        if not texts:
            return [min(w, width // 3) if k < left else w for k, w in enumerate(widths)], 2
        narrow[max(texts, key=narrow.__getitem__)] -= 1
    return narrow, gap


def blocks(widths, left, gap, width):
    """Lists of columns that fit beside the first `left`, which each block repeats."""
    made, first = [[]], sum(w + gap for w in widths[:left])
    for k in range(left, len(widths)):
        if made[-1] and first + sum(widths[c] + gap for c in made[-1]) + widths[k] > width:
            made.append([])
        made[-1].append(k)
    return [[*range(left), *columns] for columns in made]


def row_lines(row, columns, widths, left, gap):
    cells = [wrap(row[k], widths[k]) if k in left else [row[k]] for k in columns]
    for line in range(max(map(len, cells))):
        parts = [cell[line] if line < len(cell) else "" for cell in cells]
        yield (" " * gap).join(part.ljust(widths[k]) if k in left else part.rjust(widths[k])
                               for k, part in zip(columns, parts)).rstrip()


def table(head, rows, left=1, width=WIDTH):
    """Text of a table, a string a cell. The first `left` columns are text and wrapped, the others are numbers. A table that is
    still too wide comes in blocks of columns. width None: any."""
    every = [[str(cell) for cell in row] for row in (head, *rows)]
    width = width or float("inf")
    widths, gap = column_widths(every, left, width)
    return "\n\n".join("\n".join(line for row in every for line in row_lines(row, columns, widths, range(left), gap))
                       for columns in blocks(widths, left, gap, width))


class Rows:
    """A table printed row by row, for runs that take long. widths: of each column; the last column may be longer text, which
    follows on lines of its own."""

    def __init__(self, widths, left):
        self.widths, self.left = widths, left

    def line(self, cells):
        """Text of a row: its lines."""
        note = len(cells[-1]) > self.widths[-1]
        shown = [*cells[:-1], ""] if note else cells
        gap = 2 if sum(self.widths) + 2 * (len(self.widths) - 1) <= WIDTH else 1
        lines = row_lines(shown, range(len(cells)), self.widths, self.left, gap)
        return "\n".join([*lines, *([fold("    " + cells[-1])] if note else [])])
