#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kinds_test.py FOLDER: maskc.figures of the package in FOLDER. Is each kind's example a valid PDF, SVG and PNG of the right width, do
ticks, labels and names say what the JSON says, is bad JSON refused in one line with nothing written? Skipped without matplotlib."""
import copy
import io
import os
import random
import re
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
try:
    import matplotlib
except ImportError as e:
    print(f"skipped: {sys.executable} has no matplotlib ({e}); apt install python3-matplotlib")
    sys.exit(77)
from case import PACKAGE, SHIPPED, SVG, Case, curves, data, figure_of, figures, kinds, numbers, paper, said_by, texts  # noqa: E402
from figures import command  # noqa: E402
from maps_cases import Maps  # noqa: E402, F401

ALL_FORMATS = ("lines", "heatmaps")  # kinds that are drawn as PNG and PDF, too: the formats know nothing of kinds


class Files(Case):
    def test_every_kind_is_a_valid_svg_of_the_columns_width(self):
        for kind, known in kinds.KINDS.items():
            with self.subTest(kind=kind):
                root = ElementTree.parse(self.draw(kind, {**known.example, "note": "P: learned\nsecond line"}, 1)).getroot()
                self.assertAlmostEqual(float(root.get("width").removesuffix("pt")), 72 * 3.3, 3)
                self.assertLessEqual(float(root.get("height").removesuffix("pt")), 72 * 9)
                sizes = [float(s) for t in root.iter(SVG + "text") for s in re.findall(r"([\d.]+)px", t.get("style"))]
                self.assertTrue(sizes and min(sizes) >= 7, sizes)
                said = " ".join(t.text or "" for t in root.iter(SVG + "text"))
                self.assertTrue("P: learned" in said and "second line" in said, said)

    def test_formats_are_valid_files_of_the_columns_width(self):
        for kind in ALL_FORMATS:
            with paper.style():
                figure = figure_of(kind, kinds.KINDS[kind].example, 1)
                for suffix in ("png", "pdf"):
                    paper.save(figure, self.work / f"a.{suffix}")
            png = (self.work / "a.png").read_bytes()
            self.assertEqual((png[:8], png[-8:-4], struct.unpack(">I", png[16:20])[0]), (b"\x89PNG\r\n\x1a\n", b"IEND", 198))
            pdf = (self.work / "a.pdf").read_bytes()
            self.assertEqual((pdf[:5], pdf.rstrip()[-5:]), (b"%PDF-", b"%%EOF"))
            self.assertIn(b"/MediaBox [ 0 0 237.6 ", pdf)

    def test_two_columns_are_as_wide_as_a_page(self):
        self.assertEqual((SHIPPED["savefig.dpi"], SHIPPED["pdf.fonttype"]), (300, 42))
        self.assertIn('width="496.8pt"', self.draw("lines", kinds.KINDS["lines"].example).read_text())
        self.assertIn(b"/MediaBox [ 0 0 496.8 ", self.draw("lines", kinds.KINDS["lines"].example, 2, "pdf").read_bytes())

    def test_a_note_of_wide_letters_stays_inside(self):
        with paper.style():
            figure = figure_of("lines", {**kinds.KINDS["lines"].example, "note": "MASKS OF WIDE WORDS " * 12 + "M" * 90}, 1)
            figure.set_dpi(SHIPPED["savefig.dpi"])
            figure.draw_without_rendering()
            box = figure._supxlabel.get_window_extent()
            self.assertTrue(0 <= box.x0 and box.x1 <= figure.bbox.x1, (box, figure.bbox))

    def test_the_same_numbers_give_the_same_bytes(self):
        for suffix in ("svg", "pdf"):
            self.assertEqual(*(self.draw("dots", kinds.KINDS["dots"].example, 1, suffix).read_bytes() for _ in range(2)))

    def test_a_file_is_whole_or_as_it_was(self):
        path = self.draw("lines", kinds.KINDS["lines"].example)
        path.write_text("before")
        replace, os.replace = os.replace, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        try:
            with self.assertRaises(OSError):
                self.draw("lines", kinds.KINDS["lines"].example)
        finally:
            os.replace = replace
        self.assertEqual(path.read_text(), "before")
        self.assertEqual(os.listdir(self.work), [path.name])
        (self.work / "link.svg").symlink_to(path)
        figures.draw("lines", kinds.KINDS["lines"].example, self.work / "link.svg")
        self.assertTrue((self.work / "link.svg").is_symlink() and path.read_text().endswith("</svg>\n"))


class Numbers(Case):
    def test_curves_and_lines_have_the_names_units_and_range_of_their_numbers(self):
        said = self.said("curves", {"x": "time", "y": "mlm", "curves": [
            {"name": "a_b", "steps": [[60 * k, 6 - k / 100] for k in range(200)]}, {"name": "_c$d$", "evaluations": [[600, 5], [12000, 3]]}]})
        for word in ("a_b", " _c$d$", "training time (h)", "masked-word loss (nats)", "each step", "mean over 1/50 of the run", "held-out text"):
            self.assertIn(word, said)
        said = self.said("lines", {"x": {"label": "lambda", "scale": "log"}, "y": {"label": "accuracy (%)", "least": 60, "most": 80},
                                         "series": [{"name": "s", "points": [[1e-4, 61, 2], [1e-2, 79, 1]]}], "levels": [{"name": "dense", "value": 75}]})
        for word in ("0.0001", "0.001", "0.01", "60", "80", "lambda", "accuracy (%)", "dense"):
            self.assertIn(word, said)
        self.assertIn("bars: standard deviation over seeds", " ".join(said))
        self.assertTrue(all(60 <= x <= 80 for x in numbers(said) if x >= 1), said)

    def test_a_running_mean_does_not_lag(self):
        """On a straight line it is the line, from the first point on."""
        line = [(k, 5 - 0.01 * k) for k in range(400)]
        mean = curves.running_mean(line)
        self.assertTrue(0 <= 400 - len(mean) <= 3, len(mean))
        self.assertTrue(all(abs(y - line[k][1]) < 1e-9 for k, (_, y) in enumerate(mean)))

    def test_a_short_run_has_a_panel_of_its_own(self):
        runs = [{"name": name, "steps": [[k, 5] for k in range(0, most, 2)]} for name, most in (("dense", 50), ("short", 12), ("middle", 30))]
        for kept, count in ((runs, 2), (runs[::2], 1), (runs[:1], 1)):
            with paper.style():
                figure = figure_of("curves", {"x": "step", "y": "loss", "curves": kept})
            self.assertEqual(len(figure.axes), count)
        with paper.style():
            shown = figure_of("curves", {"x": "step", "y": "loss", "curves": runs}).axes[1].lines
        self.assertEqual([max(line.get_xdata()) for line in shown], [10, 10, 10])
        self.assertNotIn("run", self.said("curves", {"x": "step", "y": "loss", "curves": [{"name": "run", "steps": [[1, 5], [2, 4]]}]}, 1))

    def test_levels_far_off_are_named_and_leave_the_axes_as_they_are(self):
        lines = {**kinds.KINDS["lines"].example, "levels": [{"name": "majority: 55.0", "value": 55}, {"name": "bag of words: 120.0", "value": 120, "band": 1},
                                                            {"name": "none: 5.0", "value": 5}]}
        with paper.style():
            axes = figure_of("lines", lines).axes[0]
        labels = [t.get_text() for t in axes.get_legend().get_texts()]
        self.assertEqual(labels[2:], ["majority: 55.0", "bag of words: 120.0, above the axes", "none: 5.0, below the axes"])
        self.assertEqual(len(set(map(str, paper.LEVELS))), 4, "as many levels as sparsegen has")
        self.assertTrue(50 < axes.get_ylim()[0] < 55 and axes.get_ylim()[1] < 85, axes.get_ylim())

    def test_dots_of_several_series_share_a_row(self):
        example = kinds.KINDS["dots"].example
        said = self.said("dots", example, 1)
        for word in ("dense", "designed", "longformer", "88.7", "sparsity (%)", "with the diagonal", "without it", "accuracy (%)"):
            self.assertIn(word, said)
        with paper.style():
            axes = figure_of("dots", {**example, "levels": []}).axes[0]
        marks = [(list(line.get_xdata()), list(line.get_ydata()), line.get_markerfacecolor()) for line in axes.lines if line.get_linestyle() == "None"]
        self.assertEqual([m[:2] for m in marks], [([81.2, 80.9], [0, -2]), ([81.1, 80.8], [0, -2])])
        self.assertEqual(marks[1][2], "none")
        grid = [tick.gridline.get_visible() for tick in axes.yaxis.get_major_ticks()]
        self.assertEqual(grid, [True, True, False], "no line through a group's name")

    def test_dots_of_two_colours_have_lanes_and_a_ring_the_form_of_its_colour(self):
        content = {**kinds.KINDS["dots"].example, "levels": [], "series": [{"name": str(k), "values": [50, 50], "colour": k // 2, "ring": bool(k % 2)} for k in range(4)]}
        with paper.style():
            axes = figure_of("dots", content).axes[0]
        marks = [(line.get_marker(), round(line.get_ydata()[0], 6)) for line in axes.lines if line.get_linestyle() == "None"]
        self.assertEqual(marks, [("o", 0.18), ("o", 0.18), ("D", -0.18), ("D", -0.18)])

    def test_a_zoom_shows_its_part_again(self):
        content = {**kinds.KINDS["scatter"].example, "zoom": {"x": [20, 40], "y": [80, 82]}}
        with paper.style():
            whole, part = figure_of("scatter", content).axes
        self.assertEqual((part.get_xlim(), part.get_ylim()), ((20, 40), (80, 82)))
        self.assertEqual(([t.get_text() for t in whole.texts], [t.get_text() for t in part.texts]), (["dense"], ["longformer"]))

    def test_ticks_have_as_many_digits_as_one_needs(self):
        self.assertEqual(paper.Even().format_ticks([0.5, 0.52, -0.1]), ["0.50", "0.52", "\N{MINUS SIGN}0.10"])
        self.assertEqual(paper.Even().format_ticks([0, 10000]), ["0", "10 k"])
        self.assertEqual([paper.decimals(v) for v in ([501, 1260.85], [24, 24.2], [0.0321], [0], [7.5, -81])], [0, 1, 4, 0, 1])

    def test_bars_say_each_value_with_its_deviation_and_begin_at_0(self):
        example = kinds.KINDS["bars"].example
        said = self.said("bars", example)
        for word in ("81.2 \N{PLUS-MINUS SIGN} 0.4", "76.1 \N{PLUS-MINUS SIGN} 0.7", "section", "pairs", "longformer", "majority", "accuracy (%)", "0"):
            self.assertIn(word, said)
        with paper.style():
            axes = figure_of("bars", example).axes[0]
            self.assertEqual(sorted((round(b.get_x(), 9), round(b.get_width(), 9)) for b in axes.patches), [(0, 76.1), (0, 77), (0, 80.9), (0, 81.2)])
            dots = {**example, "y": {"label": "accuracy (%)", "least": 70}}
            self.assertFalse(figure_of("bars", dots).axes[0].patches)

    def test_scatter_names_its_points_where_they_are(self):
        said = self.said("scatter", kinds.KINDS["scatter"].example)
        for word in ("dense", "longformer", "designed", "time of a step (ms)"):
            self.assertIn(word, said)
        with paper.style():
            axes = figure_of("scatter", kinds.KINDS["scatter"].example).axes[0]
            self.assertEqual({t.get_text(): t.xy for t in axes.texts}, {"dense": (75, 81.2), "longformer": (31, 80.9)})

    def test_times_are_those_of_bench(self):
        example = copy.deepcopy(kinds.KINDS["times"].example)
        self.assertIn("512", self.said("times", example))
        example["results"][1]["dense_extrapolated"] = True
        with paper.style():
            figure = figure_of("times", example)
            self.assertEqual([list(line.get_xdata()) for line in figure.axes[0].lines if line.get_fillstyle() == "none"], [[1024]])
        self.assertIn("extrapolated from a shorter length", " ".join(said_by(figure)))
        example["results"] = example["results"][:1]
        example["results"][0].update(median_s=0.002, dense_s=0.0062, lowering="tiles")
        said = self.said("times", example)
        for word in ("2 ms, 3.1 \N{MULTIPLICATION SIGN} as fast as dense", "star", "f32 forward", "time (ms)"):
            self.assertIn(word, said)
        self.assertTrue(any("512 tokens, cpu, 2 threads, 12 heads" in t for t in said), said)
        self.assertNotIn("extrapolated", " ".join(said))
        example["results"][0].update(dense_s=0.246, dense_extrapolated=True)
        said = " ".join(self.said("times", example))
        self.assertIn("2 ms, 123 \N{MULTIPLICATION SIGN} as fast as dense", said)
        self.assertIn("extrapolated from a shorter length", said)


class Refusals(Case):
    def test_what_does_not_fit_a_kind_is_refused_with_its_place(self):
        lines, maps_of = kinds.KINDS["lines"].example, kinds.KINDS["heatmaps"].example
        for says, kind, content in (
                ("one of curves, lines", "pie", {}), ("lines: an object", "lines", []), ('lines: has no field "x"', "lines", {}),
                ('has a field "colour"', "lines", {**lines, "colour": 1}), ("lines.series: a list of at least 1", "lines", {**lines, "series": []}),
                ("lines.x.scale: linear, log, log2", "lines", {**lines, "x": {"label": "x", "scale": "sqrt"}}),
                ("series[0].points[0]: a list of 2 or 3", "lines", {**lines, "series": [{"name": "a", "points": [[1]]}]}),
                ("a deviation is not below 0", "lines", {**lines, "series": [{"name": "a", "points": [[1, 2, -1]]}]}),
                ("values above 0", "lines", {**lines, "x": {"label": "x", "scale": "log"}, "series": [{"name": "a", "points": [[0, 1]]}]}),
                ("rows have different lengths", "heatmaps", {"label": "P", "panels": [{"values": [[1, 2], [3]]}]}),
                ("as many queries as keys", "heatmaps", {"label": "P", "panels": [{"values": [[1, 2]]}]}),
                ("there is nothing to draw", "heatmaps", {"label": "P", "panels": [{"values": [[1, 1], [1, 1]]}]}),
                ("tokens: 3 are expected", "heatmaps", {**maps_of, "tokens": ["a"]}), ("both or neither", "heatmaps", {**maps_of, "rows": None}),
                ("not the bytes", "heatmaps", {"label": "P", "panels": [{"values": {"type": "f4", "shape": [2, 2], "base64": "AAAA"}}]}),
                ("at most 1e+30", "heatmaps", {"label": "P", "panels": [{"values": {"type": "f4", "shape": [1, 1], "base64": "AADAfw=="}}]}),
                ("2 values are expected", "bars", {**kinds.KINDS["bars"].example, "methods": [{"name": "a", "values": [1]}]}),
                ("2 values are expected", "dots", {**kinds.KINDS["dots"].example, "series": [{"name": "a", "values": [1]}]}),
                ("no series has a value", "dots", {**kinds.KINDS["dots"].example, "series": [{"name": "a", "values": [None, None]}]}),
                ("2 names are expected", "lines", {**lines, "series": [{"name": "a", "points": [[1, 2], [2, 3]], "names": ["b"]}]}),
                ("corner: a number from 2 to 1", "heatmaps", {"label": "P", "corner": 5, "panels": [{"values": [[1, 2], [3, 4]]}]}),
                ("no curve has a point", "curves", {"x": "step", "y": "loss", "curves": [{"name": "a"}]}),
                ("masks of 1 heads over 3", "film", {"heads": ["h"], "frames": [{"step": 1, "density": 1, "masks": [[[1] * 3] * 3] * 2}]})):
            with self.subTest(says=says):
                self.refused(says, kind, content)

    def test_changed_examples_are_drawn_or_refused(self):
        """Never another exception."""
        draw = random.Random(7)
        for turn in range(8):
            kind = draw.choice(list(kinds.KINDS))
            content = changed(kinds.KINDS[kind].example, draw)
            try:
                self.draw(kind, content, 1)
            except data.Bad:
                pass
            except Exception as e:
                raise AssertionError(f"turn {turn}: {kind} {content}") from e

    def run_main(self, arguments, given):
        """(exit code, standard error) of the command in this process."""
        before, sys.stdin, sys.stderr = (sys.stdin, sys.stderr), io.TextIOWrapper(io.BytesIO(given)), io.StringIO()
        try:
            return command.main(arguments), sys.stderr.getvalue()
        finally:
            sys.stdin, sys.stderr = before

    def test_the_command_refuses_in_one_line_and_writes_nothing(self):
        out = str(self.work / "a.svg")
        good = b'{"x": {"label": "x"}, "y": {"label": "y"}, "series": [{"name": "a", "points": [[1, 2]]}]}'
        for says, arguments, given in (
                ("JSON: ", ["lines", "-o", out], b"{"), ("JSON: ", ["lines", "-o", out], b"\xff"), ("NaN is not", ["lines", "-o", out], b'{"x": NaN}'),
                ("JSON: ", ["lines", "-o", out], b"[" * 100000), ("-o FILE.pdf", ["lines"], good), ("a.gif: a figure is", ["lines", "-o", "a.gif"], good),
                ("--columns 3: 1 or 2", ["lines", "-o", out, "--columns", "3"], good), ("--colour", ["lines", "-o", out, "--colour"], good),
                ("a kind is expected", ["-o", out], good), ("nowhere", ["lines", "-o", str(self.work / "nowhere/a.svg")], good)):
            with self.subTest(arguments=arguments):
                code, said = self.run_main(arguments, given)
                self.assertEqual((code, said.count("\n"), os.listdir(self.work)), (2, 1, []), said)
                self.assertTrue(said.startswith("figures: ") and says in said, said)
        self.assertEqual(self.run_main(["lines", "-o", out], good), (0, ""))

    def test_the_module_runs_by_name_and_by_folder_without_torch(self):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        helped = subprocess.run([sys.executable, str(PACKAGE / "maskc/figures"), "--help"], capture_output=True, text=True, check=True, env=environment)
        for kind in kinds.KINDS:
            self.assertIn(f"python3 -m maskc.figures {kind} -o {kind}.pdf", helped.stdout)
        for how in (["-m", "maskc.figures"], ["-X", "importtime", str(PACKAGE / "maskc/figures")]):
            made = subprocess.run([sys.executable, *how, "lines", "-o", "a.svg"], cwd=self.work, capture_output=True, text=True, check=False, env=environment,
                                  input='{"x":{"label":"x"},"y":{"label":"y"},"series":[{"name":"a","points":[[1,2]]}]}')
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn("x", texts(self.work / "a.svg"))
        self.assertFalse(re.search(r"\| +(torch|transformers|maskc)$", made.stderr, re.M), "torch or the package was imported")


def changed(content, draw):
    """One value replaced: numbers by others, texts by odd ones, lists cut, doubled or turned."""
    paths = [()]
    for path in paths:
        at = content
        for step in path:
            at = at[step]
        paths += [path + (k,) for k in (at if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ())]
    path = draw.choice(paths[1:])
    made = at = copy.deepcopy(content)
    for step in path[:-1]:
        at = at[step]
    old = at[path[-1]]
    at[path[-1]] = (draw.choice((0, -1, 1e29, 1e308, 1e-320, 10**400, 0.5, 128)) if isinstance(old, (int, float)) else
                    draw.choice(("", "$a_{b$", "_n", "\0\ud800", "a\nb", "log", "\u4e2d" * 99)) if isinstance(old, str) else
                    draw.choice((old * 2, old[:1], old[::-1], None)) if isinstance(old, list) else draw.choice((None, [], {}, True)))
    return made


if __name__ == "__main__":
    unittest.main()
