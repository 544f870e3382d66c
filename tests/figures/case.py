# SPDX-License-Identifier: Apache-2.0
"""Helpers that the cases of kinds_test.py share. The module figures is loaded from the folder that this program was given."""
import os
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from matplotlib.axes import Axes
from matplotlib.text import Text

PACKAGE = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
sys.path.insert(0, str(PACKAGE / "maskc"))
import figures  # noqa: E402
from figures import bars, curves, data, dots, film, kinds, learned, maps, paper, series  # noqa: E402

MODULES = {"bars": bars, "curves": curves, "dots": dots, "film": film, "learned": learned, "maps": maps, "series": series}
SVG = "{http://www.w3.org/2000/svg}"
SHIPPED = dict(paper.STYLE)
paper.STYLE.update({"savefig.dpi": 60, "pdf.fonttype": 3})  # fewer pixels, and no font of its own for each PDF: less time


def texts(path):
    """The texts of an SVG, with plain minus signs."""
    return [(t.text or "").replace("\N{MINUS SIGN}", "-") for t in ElementTree.parse(path).iter(SVG + "text")]


def numbers(found):
    return [float(t) for t in found if re.fullmatch(r"-?[\d.]+(e-?\d+)?", t)]


def figure_of(kind, content, columns=2):
    """The figure before it is a file; the caller keeps the style."""
    module = MODULES[kinds.KINDS[kind].module]
    return getattr(module, "draw_" + kind)(getattr(module, kind.upper())(content, kind), columns)


def said_by(figure):
    """Returns the texts of a figure, with plain minus signs, without drawing it, which takes long."""
    found = []
    for axes in [a for a in figure.findobj(Axes) if a.axison]:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [label.get_text() for at, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels()) if low <= at <= high]
    ticks = {t for axes in figure.findobj(Axes) for axis in (axes.xaxis, axes.yaxis) for t in axis.get_majorticklabels()}
    found += [t.get_text() for t in figure.findobj(Text) if t not in ticks and t.get_visible()]
    return [line for t in found for line in t.replace("\N{MINUS SIGN}", "-").split("\n") if line]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.work = pathlib.Path(self.folder.name)

    def draw(self, kind, content, columns=2, suffix="svg"):
        path = self.work / f"{kind}.{suffix}"
        figures.draw(kind, content, path, columns)
        return path

    def said(self, kind, content, columns=2):
        with paper.style():
            return said_by(figure_of(kind, content, columns))

    def refused(self, says, kind, content):
        with self.assertRaises(data.Bad) as caught:
            self.draw(kind, content)
        self.assertIn(says, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(os.listdir(self.work), [])
