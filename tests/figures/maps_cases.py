# SPDX-License-Identifier: Apache-2.0
"""Cases of kinds_test.py: maps of queries by keys."""
from case import Case, data, figure_of, kinds, paper


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
            self.assertIn(word, self.said("heatmaps", {"label": "P", "panels": [{"values": [[0.1, 0.2], [0.3, 0.4]]}]}, 1))

    def test_constant_maps_are_left_out_and_counted(self):
        varied, constant = {"values": [[0, 1], [1, 0]]}, {"values": [[1, 1], [1, 1]]}
        said = self.said("heatmaps", {"label": "P", "panels": [{**varied, "title": "one"}, {**constant, "title": "two"}, {**constant, "title": "three"}]})
        self.assertIn("2 of the maps, whose values are all equal, are left out", said)
        self.assertTrue("one" in said and "two" not in said, said)
        said = self.said("heatmaps", {"label": "P", "rows": ["layer 0"], "columns": ["head 0", "head 1"], "panels": [constant, varied]})
        for word in ("head 0", "head 1", "layer 0", "all 1", "1 of the maps, whose values are all equal, is left out"):
            self.assertIn(word, said)
        said = self.said("film", {"heads": ["head 0", "head 1"], "frames": [
            {"step": 5, "density": 0.5, "masks": [[[1, 1], [1, 1]], [[0, 0], [0, 0]]]}, {"step": 10, "density": 0.25, "masks": [varied["values"]] * 2}]})
        for word in ("all on", "all off", "step 5", "sparsity 50.0 %", "step 10", "sparsity 75.0 %", "head 1"):
            self.assertIn(word, said)

    def test_masks_are_told_from_their_frames(self):
        """A blank line lies between the first and last rows and columns and the frame; a border that is on at every step is said to be."""
        mask = [[int({i, j} & {0, 3} != set()) for j in range(4)] for i in range(4)]
        content = {"heads": ["head 0"], "of_heads": 12, "frames": [{"step": 1, "density": 0.75, "masks": [mask]}]}
        with paper.style():
            axes = figure_of("film", content).axes[0]
        self.assertEqual((axes.get_xlim(), axes.get_ylim(), list(axes.images[0].get_extent())), ((-0.95, 3.95), (3.95, -0.95), [-0.5, 3.5, 3.5, -0.5]))
        said = " ".join(self.said("film", content))
        for word in ("1 of 12 heads", "The first and the last token see all tokens"):
            self.assertIn(word, said)

    def test_a_corner_is_drawn_a_second_time(self):
        values = [[(7 * i + j) % 11 for j in range(9)] for i in range(9)]
        with paper.style():
            whole, corner = [a.images[0].get_array() for a in figure_of("heatmaps", {"label": "P", "corner": 4, "panels": [{"values": values}]}).axes if a.images]
        self.assertTrue((whole[:4, :4] == corner).all() and whole.shape == (9, 9))

    def test_heads_of_one_layer_have_room_for_their_tokens(self):
        tokens = [f"word{k}" for k in range(14)]
        panels = [{"values": [[(i * j + k) % 5 for j in range(14)] for i in range(14)], "title": f"{k}.5 keys"} for k in range(4)]
        said = self.said("heatmaps", {"label": "P", "tokens": tokens, "rows": ["layer 2"], "columns": [f"head {k}" for k in range(4)], "panels": panels})
        self.assertEqual(said.count("word13"), 4)  # 2 x 2 maps: twice on the left, twice below
        self.assertIn("layer 2, head 3: 3.5 keys", said)

    def test_tokens_stand_at_their_rows_and_columns(self):
        said = self.said("heatmaps", kinds.KINDS["heatmaps"].example, 1)
        self.assertEqual(said.count("cat"), 3)  # on the left, and below each map
        long = {"label": "P", "tokens": [f"t{k}" for k in range(99)], "panels": [{"values": [[int(i == j) for i in range(99)] for j in range(99)]}]}
        self.assertNotIn("t1", self.said("heatmaps", long, 1))

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
        self.assertIn("the first and last row and column are forced on and left out", self.said("importance", content))
        content["border"] = False
        with paper.style():
            self.assertEqual([a.images[0] for a in figure_of("importance", content).axes if a.images][0].get_clim(), (0, 1))

    def test_pruned_says_what_each_mask_keeps(self):
        said = self.said("pruned", {"title": "Layer 1, head 2", "label": "mean attention", "importance": [[0.6, 0.4], [0.1, 0.9]], "lines": [
            {"name": "10 % of\nthe entries", "masks": [{"name": "snap", "mask": [[1, 0], [0, 1]], "density": 0.5, "cosine": 0.987},
                                                     {"name": "tiles", "mask": None}]}]})
        for word in ("Layer 1, head 2", "snap", "sparsity 50.0 %", "cosine 0.987", "tiles", "none", "10 % of", "importance", "mean attention"):
            self.assertIn(word, said)

    def test_arrays_in_base64_are_little_endian_floats_and_bytes(self):
        for content in ({"type": "f4", "shape": [1, 2], "base64": "AAAAPwAAgD4="}, [[0.5, 0.25]]):
            self.assertEqual(data.array(2)(content, "a").tolist(), [[0.5, 0.25]])
        self.assertEqual(data.array(1)({"type": "u1", "shape": [3], "base64": "AAEC"}, "a").tolist(), [0, 1, 2])
