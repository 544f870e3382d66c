#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scale_model_test.py: tools/scale-model against cases computed by hand, and against what was measured (tests/results/h100-b84ec2a). Closes
with cmocka's lines, so that tools/count_tests adds it up."""
import dataclasses
import json
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/scale_model"), str(ROOT / "tools"), str(ROOT / "tests/support")]
import attention  # noqa: E402
import bert  # noqa: E402
import cmocka_count  # noqa: E402
import machine  # noqa: E402
import published  # noqa: E402
import ranks  # noqa: E402
import report  # noqa: E402
import scale  # noqa: E402
import step as steps  # noqa: E402

PROGRAM = ROOT / "tools/scale-model"
# 10 processors, 1e12 FLOP/s in products, 1e9 bytes/s; 1 s from launch to launch, no time to fill.
SLOW = machine.Gpu("slow", 10, 2e12, 1e12, 1e9, 1.0, 0.0, (100, 100))
NETWORK = machine.Network(8, 700.0, 100.0, 10.0, 0.0)


def fixed_step(forward_backward, optimizer, model=bert.BASE):
    return steps.Step(model, bert.batch_of("dense", 128, 1280), [], forward_backward, optimizer, 1.0)


class Counts(unittest.TestCase):
    def test_parameters(self):
        """transformers' BertForPreTraining has 110,106,428; its large one 336,226,108."""
        self.assertEqual(bert.BASE.parameters(), 110106428)
        self.assertEqual(bert.LARGE.parameters(), 336226108)

    def test_active_pairs_of_longformer(self):
        """1844 at 128 tokens (masks/README.md); by brute force elsewhere."""
        self.assertEqual(bert.longformer_active(128, 5, 2), 1844)
        special = (20, 40)
        brute = sum(abs(i - j) <= 3 or i in special or j in special for i in range(61) for j in range(61))
        self.assertEqual(bert.longformer_active(61, 3, 2), brute)

    def test_flops_of_a_step(self):
        """One layer, 2 columns, 4 tokens of one sequence, 1 masked, 10 words."""
        tiny = bert.Bert("tiny", 1, 2, 1, vocabulary=10)
        layer = 4 * (4 * 4 + 2 * 2 * 8) + 2 * 1 * 16 * 2
        self.assertEqual(bert.step_flops(tiny, bert.Batch(1, 4, "dense", 16)), 6 * (layer + 1 * (4 + 20) + 4))

    def test_launches_compute_these_flops(self):
        for model, n, mask in report.GRID:
            b = bert.batch_of(mask, n, 16384)
            launches = [(x, model.layers) for x in steps.layer_launches(model, b, 0, 0)] + [(x, 1) for x in steps.other_launches(model, b)]
            self.assertAlmostEqual(sum(x.flops * k for x, k in launches) / bert.step_flops(model, b), 1, 12)

    def test_launches_of_a_layer(self):
        for model, n, mask in report.STEPS:
            made = report.step_record(report.step_of(model, n, mask, 16384))
            self.assertLess(made["launches_per_layer"], 40)
            self.assertEqual(made["launches_per_layer"], 28 if mask == "longformer" else 26)


class Times(unittest.TestCase):
    def test_waves(self):
        """12 tiles on 10 processors: 2 waves of the whole depth; in 2 parts 3 of half of it; in 3 parts 4 of a third, the least."""
        self.assertEqual(steps.tile_waves(SLOW, (300, 400, 100)), (2, 100))
        self.assertEqual(steps.tile_waves(SLOW, (300, 400, 1000)), (4, 1000 / 3))

    def test_a_product(self):
        """A wave of 100 x 100 x 1000 / 3 takes 2e7 / 3 / 1e11 s, four take 4 of these; its bytes may take longer."""
        self.assertAlmostEqual(steps.launch_seconds(SLOW, steps.product("layer", "x", 300, 400, 1000)), 2 * (300 * 1000 + 1000 * 400 + 300 * 400) / 1e9)
        fast = dataclasses.replace(SLOW, dram=1e12)
        self.assertAlmostEqual(steps.launch_seconds(fast, steps.product("layer", "x", 300, 400, 1000)), 8e-4 / 3)

    def test_rows_are_bytes(self):
        self.assertEqual(steps.launch_seconds(SLOW, steps.row("layer", "x", 1000, 6, 2)), 6e-6)

    def test_causes_are_the_step(self):
        made = report.step_of(bert.BASE, 512, "dense", 16384)
        self.assertAlmostEqual(sum(steps.losses_of(machine.H100, made).values()), made.seconds, 9)

    def test_products_for_a_share(self):
        made = report.step_of(bert.BASE, 128, "dense", 16384)
        rate = steps.product_rate_for(machine.H100, made.model, made.batch, 0.4)
        again = steps.step_of(dataclasses.replace(machine.H100, product=rate), made.model, made.batch)
        self.assertAlmostEqual(again.flops / machine.H100.peak / again.seconds, 0.4, 4)
        self.assertIsNone(steps.product_rate_for(machine.H100, made.model, made.batch, 0.9))

    def test_attention_between_measured_lengths(self):
        rows = "\n".join(f"ours longformer(64,2) n={n} B=1 D=64 bfloat16 {k} {v} ms x 1 TF/s"
                         for n, k, v in ((2048, "fwd", 3), (2048, "both", 9), (8192, "fwd", 6), (8192, "both", 18)))
        times = attention.measured(rows)
        forward, backward = attention.seconds("longformer", 4096, 65536, 12, times)
        self.assertAlmostEqual(forward, 4e-3)
        self.assertAlmostEqual(backward, 8e-3)
        self.assertAlmostEqual(attention.seconds("longformer", 2048, 32768, 24, times)[0], 3e-3)
        self.assertRaises(ValueError, attention.seconds, "longformer", 9000, 65536, 12, times)


class Scale(unittest.TestCase):
    def test_sums(self):
        """8 GPUs: 2 x 7/8 x 800 bytes at 700; 16: each node 7/8 x 800 at 100, 1/2 x 100 at 10, there and back."""
        self.assertAlmostEqual(scale.sum_seconds(NETWORK, 8, 800), 2.0)
        self.assertAlmostEqual(scale.sum_seconds(NETWORK, 16, 800), 2 * (7 + 5))
        self.assertEqual(scale.sum_seconds(NETWORK, 1, 800), 0)
        self.assertRaises(ValueError, scale.sum_seconds, NETWORK, 12, 800)

    def test_latency(self):
        late = dataclasses.replace(NETWORK, latency=1.0)
        self.assertEqual(scale.latency_seconds(late, 8, scale.BUCKET + 1), 2 * 3)

    def test_overlap_hides_what_is_there_early(self):
        """Early gradients behind 2/3 of 3 s; those of the embeddings wait for the end."""
        late = scale.late_parameters(bert.BASE) * 4
        early = bert.BASE.parameters() * 4 - late
        network = dataclasses.replace(NETWORK, reduced=early * 1.75 / 2.5)  # the early ones take 2.5 s
        tail = 2.5 * late / early
        made = fixed_step(3.0, 0.0)
        self.assertAlmostEqual(scale.exposed_seconds(made, network, scale.Way(8)), 0.5 + tail)
        self.assertAlmostEqual(scale.exposed_seconds(made, network, scale.Way(8, overlap=False)), 2.5 + tail)

    def test_accumulation(self):
        """1 s of sums beside 1 s of a micro-batch: half of the speed; 19 micro-batches have 95 %, so 32."""
        network = dataclasses.replace(NETWORK, reduced=bert.BASE.parameters() * 4 * 1.75)
        way = scale.Way(8, overlap=False)
        self.assertAlmostEqual(scale.efficiency(fixed_step(1.0, 0.0), network, way), 0.5)
        self.assertEqual(scale.least_accumulation(fixed_step(1.0, 0.0), network, way), 32)
        self.assertIsNone(scale.least_accumulation(fixed_step(1e-3, 0.0), network, way))

    def test_zero(self):
        """Half of the sums are a reduce-scatter, the other half the values; at equal bandwidths only the optimizer is left: 7/8 of it."""
        same = dataclasses.replace(NETWORK, reduced=100.0)
        saved, size = scale.zero_gain(fixed_step(1.0, 0.8), same, scale.Way(8, overlap=False))
        self.assertAlmostEqual(saved, 0.7, 3)
        self.assertAlmostEqual(size, bert.BASE.parameters() * 7)

    def test_ranks_of_a_cpu(self):
        """10 ms fixed, 2 ms a sequence, and 12 MB of gradients at 12 GB/s a copy: 1 ms for as many bytes."""
        one = ranks.fitted(26e-3, 74e-3, 12e9, 12e6)
        self.assertAlmostEqual(one.fixed, 10e-3)
        self.assertAlmostEqual(one.sequence, 2e-3)
        self.assertAlmostEqual(ranks.rank_seconds(one, 1), 74e-3)
        self.assertAlmostEqual(ranks.rank_seconds(one, 2), (10 + 32 + 2 + 0.75 - 4) * 1e-3)
        self.assertAlmostEqual(ranks.rank_seconds(one, 4), (10 + 16 + 3 + 1.125 - 6) * 1e-3)


class Measured(unittest.TestCase):
    def test_torch_steps(self):
        """Ten measured steps of BERT-base with one number for all that is not attention."""
        rows = published.torch_check()[1]
        self.assertEqual(len(rows), 10)
        for x in rows:
            self.assertLess(abs(x["predicted"] / x["measured"] - 1), 0.08, x)

    def test_nodes(self):
        made = published.nvidia_check()
        self.assertLess(abs(made["predicted"] / made["measured"] - 1), 0.05)


class Program(unittest.TestCase):
    def run_program(self, *options, code=0):
        made = subprocess.run([sys.executable, PROGRAM, *options], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, code, made.stderr)
        return made

    def test_json(self):
        made = json.loads(self.run_program("--json", "--tokens", "8192").stdout)
        self.assertEqual((made["measured"], len(made["scale"]), made["steps"][0]["sequences"]), (False, 12, 64))
        self.assertEqual(set(made["scale"][0]["tokens_per_s"]), {"1", "8", "64", "512"})

    def test_text(self):
        said = self.run_program("--kernels").stdout
        for word in ("Model, not measured", "launches (a layer)", "AdamW, bf16 copies", "BERT-large n=4096 longformer"):
            self.assertIn(word, said)

    def test_refusals(self):
        self.assertIn("whole number", self.run_program("--tokens", "0", code=2).stderr)
        self.assertIn("12288: a multiple of 8192", self.run_program("--tokens", "12288", code=2).stderr)
        self.assertIn("maskbert-mpi.so", self.run_program("--ranks", "/nowhere/maskbert", code=3).stderr)


if __name__ == "__main__":
    cmocka_count.run_cases()
