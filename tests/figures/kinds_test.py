#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kinds_test.py FOLDER: maskc.figures of the package in FOLDER. Is each kind's example a valid PDF, SVG and PNG of the right width, do
ticks, labels and names say what the JSON says, is bad JSON refused in one line with nothing written? Skipped without matplotlib."""
import copy
import io
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
PACKAGE = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
try:
    import matplotlib  # noqa: F401
except ImportError as e:
    print(f"skipped: {sys.executable} has no matplotlib ({e}); apt install python3-matplotlib")
    sys.exit(77)
sys.path.insert(0, str(PACKAGE / "maskc"))
import figures  # noqa: E402
from figures import bars, command, data, kinds, learned, maps, paper, series  # noqa: E402

MODULES = {"bars": bars, "learned": learned, "maps": maps, "series": series}
SVG = "{http://www.w3.org/2000/svg}"
SHIPPED_DPI, paper.STYLE["savefig.dpi"] = paper.STYLE["savefig.dpi"], 60  # fewer pixels, less time


def texts(path):
    """The texts of an SVG, with plain minus signs."""
    return [(t.text or "").replace("\N{MINUS SIGN}", "-") for t in ElementTree.parse(path).iter(SVG + "text")]


def images(path):
    """Maps and scales: each scale has one, too."""
    return len(list(ElementTree.parse(path).iter(SVG + "image")))


def numbers(found):
    return [float(t) for t in found if re.fullmatch(r"-?[\d.]+(e-?\d+)?", t)]


def figure_of(kind, content, columns=2):
    """The figure before it is a file; the caller keeps the style."""
    module = MODULES[kinds.KINDS[kind].module]
    return getattr(module, "draw_" + kind)(getattr(module, kind.upper())(content, kind), columns)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.work = pathlib.Path(self.folder.name)

    def draw(self, kind, content, columns=2, suffix="svg"):
        path = self.work / f"{kind}.{suffix}"
        figures.draw(kind, content, path, columns)
        return path

    def refused(self, says, kind, content):
        with self.assertRaises(data.Bad) as caught:
            self.draw(kind, content)
        self.assertIn(says, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(os.listdir(self.work), [])


class Files(Case):
    def test_every_kind_is_a_valid_file_of_the_columns_width(self):
        for kind, known in kinds.KINDS.items():
            with self.subTest(kind=kind), paper.style():
                matplotlib.rcParams["pdf.fonttype"] = 3  # quicker than a font of its own for each file
                figure = figure_of(kind, known.example, 1)
                for suffix in ("svg", "png", "pdf"):
                    paper.save(figure, self.work / f"a.{suffix}")
                root = ElementTree.parse(self.work / "a.svg").getroot()
                self.assertAlmostEqual(float(root.get("width").removesuffix("pt")), 72 * 3.3, 3)
                self.assertLessEqual(float(root.get("height").removesuffix("pt")), 72 * 9)
                sizes = [float(s) for t in root.iter(SVG + "text") for s in re.findall(r"([\d.]+)px", t.get("style"))]
                self.assertTrue(sizes and min(sizes) >= 7, sizes)
                png = (self.work / "a.png").read_bytes()
                self.assertEqual((png[:8], png[-8:-4], struct.unpack(">I", png[16:20])[0]), (b"\x89PNG\r\n\x1a\n", b"IEND", 198))
                pdf = (self.work / "a.pdf").read_bytes()
                self.assertEqual((pdf[:5], pdf.rstrip()[-5:]), (b"%PDF-", b"%%EOF"))
                self.assertIn(b"/MediaBox [ 0 0 237.6 ", pdf)

    def test_two_columns_are_as_wide_as_a_page(self):
        self.assertEqual(SHIPPED_DPI, 300)
        self.assertIn('width="496.8pt"', self.draw("lines", kinds.KINDS["lines"].example).read_text())
        self.assertIn(b"/MediaBox [ 0 0 496.8 ", self.draw("lines", kinds.KINDS["lines"].example, 2, "pdf").read_bytes())

    def test_the_same_numbers_give_the_same_bytes(self):
        for suffix in ("svg", "pdf"):
            self.assertEqual(*(self.draw("times", kinds.KINDS["times"].example, 1, suffix).read_bytes() for _ in range(2)))

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
        said = texts(self.draw("curves", {"x": "time", "y": "mlm", "curves": [
            {"name": "a_b", "steps": [[60 * k, 6 - k / 100] for k in range(200)]}, {"name": "_c$d$", "evaluations": [[600, 5], [12000, 3]]}]}))
        for word in ("a_b", " _c$d$", "time (h)", "loss of masked words (nats)"):
            self.assertIn(word, said)
        self.assertTrue(any("running mean" in t and "marks: on held-out" in " ".join(said) for t in said), said)
        said = texts(self.draw("lines", {"x": {"label": "lambda", "scale": "log"}, "y": {"label": "accuracy (%)", "least": 60, "most": 80},
                                         "series": [{"name": "s", "points": [[1e-4, 61, 2], [1e-2, 79, 1]]}], "levels": [{"name": "dense", "value": 75}]}))
        for word in ("0.0001", "0.001", "0.01", "60", "80", "lambda", "accuracy (%)", "dense", "bars: standard deviation"):
            self.assertIn(word, said)
        self.assertTrue(all(60 <= x <= 80 for x in numbers(said) if x >= 1), said)

    def test_bars_say_each_value_with_its_deviation_and_begin_at_0(self):
        example = kinds.KINDS["bars"].example
        said = texts(self.draw("bars", example))
        for word in ("81.2 \N{PLUS-MINUS SIGN} 0.4", "76.1 \N{PLUS-MINUS SIGN} 0.7", "section", "pairs", "longformer", "majority", "accuracy (%)", "0"):
            self.assertIn(word, said)
        with paper.style():
            axes = figure_of("bars", example).axes[0]
            self.assertEqual(sorted((round(b.get_x(), 9), round(b.get_width(), 9)) for b in axes.patches), [(0, 76.1), (0, 77), (0, 80.9), (0, 81.2)])
            dots = {**example, "y": {"label": "accuracy (%)", "least": 70}}
            self.assertFalse(figure_of("bars", dots).axes[0].patches)

    def test_scatter_names_its_points_where_they_are(self):
        said = texts(self.draw("scatter", kinds.KINDS["scatter"].example))
        for word in ("dense", "longformer", "designed", "time of a step (ms)"):
            self.assertIn(word, said)
        with paper.style():
            axes = figure_of("scatter", kinds.KINDS["scatter"].example).axes[0]
            self.assertEqual({t.get_text(): t.xy for t in axes.texts}, {"dense": (75, 81.2), "longformer": (31, 80.9)})

    def test_times_are_those_of_bench(self):
        example = copy.deepcopy(kinds.KINDS["times"].example)
        self.assertIn("512", texts(self.draw("times", example)))
        example["results"] = example["results"][:1]
        example["results"][0].update(median_s=0.002, dense_s=0.0062, lowering="tiles")
        said = texts(self.draw("times", example))
        for word in ("2 ms, 3.1 \N{MULTIPLICATION SIGN} as fast", "star", "f32 forward", "time (ms)"):
            self.assertIn(word, said)
        self.assertTrue(any("512 tokens, cpu, 2 threads, 12 heads" in t for t in said), said)


class Maps(Case):
    def test_dark_is_large_and_the_scale_is_the_labels(self):
        with paper.style():
            figure = figure_of("heatmaps", {"label": "P", "panels": [{"values": [[0.1, 0.2], [0.3, 0.4]]}]})
            image = figure.axes[0].images[0]
            shades = image.to_rgba([[0.1, 0.2, 0.3, 0.4]])[0, :, :3].sum(1)
            self.assertTrue(all(x > y for x, y in zip(shades, shades[1:])), shades)
            self.assertEqual(tuple(image.get_clim()), (0.1, 0.4))
            self.assertTrue((image.get_array() == [[0.1, 0.2], [0.3, 0.4]]).all())
        for word in ("P", "0.1", "0.4", "key j", "query i"):
            self.assertIn(word, texts(self.draw("heatmaps", {"label": "P", "panels": [{"values": [[0.1, 0.2], [0.3, 0.4]]}]}, 1)))

    def test_constant_maps_are_left_out_and_counted(self):
        varied, constant = {"values": [[0, 1], [1, 0]]}, {"values": [[1, 1], [1, 1]]}
        path = self.draw("heatmaps", {"label": "P", "panels": [{**varied, "title": "one"}, {**constant, "title": "two"}, {**constant, "title": "three"}]})
        said = texts(path)
        self.assertIn("2 of the maps, whose values are all equal, are left out", said)
        self.assertTrue("one" in said and "two" not in said, said)
        self.assertEqual(images(path), 2)
        said = texts(self.draw("heatmaps", {"label": "P", "rows": ["layer 0"], "columns": ["head 0", "head 1"], "panels": [constant, varied]}))
        for word in ("head 0", "head 1", "layer 0", "all 1", "1 of the maps, whose values are all equal, is left out"):
            self.assertIn(word, said)
        said = texts(self.draw("film", {"heads": ["head 0", "head 1"], "frames": [
            {"step": 5, "density": 0.5, "masks": [[[1, 1], [1, 1]], [[0, 0], [0, 0]]]}, {"step": 10, "density": 0.25, "masks": [varied["values"]] * 2}]}))
        for word in ("all on", "all off", "step 5", "50 %", "10", "25 %", "head 1"):
            self.assertIn(word, said)

    def test_tokens_stand_at_their_rows_and_columns(self):
        said = texts(self.draw("heatmaps", kinds.KINDS["heatmaps"].example, 1))
        self.assertEqual(said.count("cat"), 3)  # on the left, and below each map
        long = {"label": "P", "tokens": [f"t{k}" for k in range(99)], "panels": [{"values": [[int(i == j) for i in range(99)] for j in range(99)]}]}
        self.assertNotIn("t1", texts(self.draw("heatmaps", long, 1)))

    def test_a_forced_border_is_in_no_map_and_no_scale(self):
        n = 6
        head = [[1 if {i, j} & {0, n - 1} else 0.1 + 0.01 * abs(i - j) for j in range(n)] for i in range(n)]
        content = {"border": True, "mean": head, "by_distance": [0.1, 0.11, 0.12, 0.13], "heads": [{"name": f"head {k}", "values": head} for k in (0, 1)]}
        with paper.style():
            figure = figure_of("importance", content)
            shown = [a.images[0] for a in figure.axes if a.images]
        self.assertEqual(len(shown), 3)
        for image in shown:
            self.assertEqual((image.get_array().shape, image.get_clim(), tuple(image.get_extent())), ((4, 4), (0.1, 0.13), (0.5, 4.5, 4.5, 0.5)))
        self.assertIn("the first and last row and column are forced on and left out", texts(self.draw("importance", content)))
        content["border"] = False
        with paper.style():
            self.assertEqual([a.images[0] for a in figure_of("importance", content).axes if a.images][0].get_clim(), (0, 1))

    def test_pruned_says_what_each_mask_keeps(self):
        said = texts(self.draw("pruned", {"title": "Layer 1, head 2", "label": "mean attention", "importance": [[0.6, 0.4], [0.1, 0.9]], "lines": [
            {"name": "10 % of\nthe entries", "masks": [{"name": "snap", "mask": [[1, 0], [0, 1]], "density": 0.5, "cosine": 0.987},
                                                     {"name": "tiles", "mask": None}]}]}))
        for word in ("Layer 1, head 2", "snap", "density 0.5", "cosine 0.99", "tiles", "none", "10 % of", "importance", "mean attention"):
            self.assertIn(word, said)

    def test_arrays_in_base64_are_little_endian_floats_and_bytes(self):
        for content in ({"type": "f4", "shape": [1, 2], "base64": "AAAAPwAAgD4="}, [[0.5, 0.25]]):
            self.assertEqual(data.array(2)(content, "a").tolist(), [[0.5, 0.25]])
        self.assertEqual(data.array(1)({"type": "u1", "shape": [3], "base64": "AAEC"}, "a").tolist(), [0, 1, 2])


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
                ("no curve has a point", "curves", {"x": "step", "y": "loss", "curves": [{"name": "a"}]}),
                ("masks of 1 heads over 3", "film", {"heads": ["h"], "frames": [{"step": 1, "density": 1, "masks": [[[1] * 3] * 3] * 2}]})):
            with self.subTest(says=says):
                self.refused(says, kind, content)

    def test_changed_examples_are_drawn_or_refused(self):
        """Never another exception."""
        draw = random.Random(7)
        for turn in range(10):
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
            self.assertIn("a", texts(self.work / "a.svg"))
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
