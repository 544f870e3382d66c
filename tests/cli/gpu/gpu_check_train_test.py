#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_train_test.py MASKC [--long]: the stage train of tools/gpu-check on the emulated device: small models are trained, wrong
gradients and losses are found, figures become a table. --long: torch's process makes a step, where torch and transformers are.
Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import array
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gpu_check_help import BUILD, call_of, options, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import report, stages  # noqa: E402
from gpu_check.training import train  # noqa: E402

MASKBERT = BUILD / "tools/maskbert/maskbert"
NAMES = ("bert.encoder.layer.0.attention.self.query.weight", "bert.encoder.layer.0.attention.self.key.bias", "bert.embeddings.word_embeddings.weight")


def one_thread(folder):
    """A call whose programs have a thread each."""
    call = call_of(folder)
    call.environment["OMP_NUM_THREADS"] = "1"
    return call


def gradients(*scales):
    """Three tensors, scaled."""
    return {name: array.array("f", [s * x for x in (3.0, -4.0, 12.0)]) for name, s in zip(NAMES, scales)}


class ComparingTest(unittest.TestCase):
    def test_gradients_by_tensor(self):
        truth = gradients(1, 1e-6, 1)
        self.assertEqual(train.worst_tensor(truth, truth)[0], 0)
        error, name = train.worst_tensor(gradients(1.01, 1e-6, 1.001), truth)
        self.assertEqual(name, NAMES[0])
        self.assertAlmostEqual(error, 0.01, 5)
        self.assertLess(train.worst_tensor(gradients(1, 2e-6, 1), truth)[0], 1.1e-5)  # rounding of what is 0
        self.assertFalse(train.worst_tensor(gradients(1, 1e-6, float("nan")), truth)[0] <= 1)
        self.assertAlmostEqual(train.error_of_all(gradients(1.01, 1e-6, 1.01), truth), 0.01, 5)
        with self.assertRaises(train.Failed):
            train.worst_tensor({NAMES[0]: truth[NAMES[0]]}, truth)
        with self.assertRaises(train.Failed):
            train.error_of_all({}, {})

    def test_steps(self):
        truth = [{"loss": 2.0, "grad_norm": 1.0}] * train.STEPS
        self.assertEqual(train.off(truth, truth, "loss"), 0)
        ours = [dict(x) for x in truth]
        ours[7]["loss"] = 2.1
        self.assertAlmostEqual(train.off(ours, truth, "loss"), 0.05)
        ours[7]["loss"] = None  # as log.jsonl has NaN
        self.assertEqual(train.off(ours, truth, "loss"), float("inf"))
        with self.assertRaises(train.Failed):
            train.off(ours[:9], truth, "loss")

    def test_operations_of_a_step(self):
        """BERT-base at 40 % of an H100's peak makes about 725,000 tokens a second at n = 128, 670,000 at n = 512."""
        for (size, mask, batch, n, *_, vocabulary), tokens in zip(train.TIMED, (725e3, 670e3)):
            rate = 0.4 * train.peak_of("NVIDIA H100 80GB HBM3") * batch * n / train.flops_of(size, mask, batch, n, vocabulary)
            self.assertLess(abs(rate / tokens - 1), 0.06)
        self.assertLess(train.flops_of("base", "longformer(64,2)", 2, 8192, 30522), train.flops_of("base", "dense", 2, 8192, 30522) / 1.8)
        self.assertIsNone(train.peak_of("emulated"))


@unittest.skipUnless(MASKBERT.exists(), "no maskbert")
class EmulatedTest(unittest.TestCase):
    def test_cases(self):
        """All of them, as the device emulated has them."""
        with tempfile.TemporaryDirectory() as folder:
            call = one_thread(folder)
            items = {i.name: i for i in stages.of(options(stages=["train"]))[0].items}
            self.assertEqual(list(items), ["gradients f32", "gradients bf16", "10 steps adamw", "10 steps lamb", "ours 1x32x2 2 x 16 longformer(3,1)"])
            results = {name: item.do(call.attempt(100)) for name, item in items.items()}
            for name, r in results.items():
                self.assertTrue(r["ok"], (name, r))
                self.assertEqual(r.get("against", "cpu"), "cpu")
            self.assertGreater(results["gradients bf16"]["error"], 1e-4)
            timed = results["ours 1x32x2 2 x 16 longformer(3,1)"]
            self.assertGreater(min(timed[k] for k in ("launches", "memory_bytes", "flops_per_s")), 0)
            self.assertAlmostEqual(timed["tokens_per_s"] * timed["step_s"], 2 * 16)  # as torch's: every sample is full
            call.kept.data["stages"] = {"train": results}
            self.assertRegex(report.text(call.kept.data), r"\| 1x32x2 2 x 16 longformer\(3,1\) \| [0-9.]+ \| [0-9,]+ \|  \| 0.0 \| [0-9]+ \|")

    def test_a_wrong_device_is_found(self):
        """A maskbert whose device has another seed than the CPU: other dropout, other gradients and losses."""
        with tempfile.TemporaryDirectory() as folder:
            call = one_thread(folder)
            call.maskbert = pathlib.Path(folder, "maskbert")
            script(call.maskbert, f'case "$*" in "pretrain "*"--device emulated"*) exec {MASKBERT} "$@" --seed 5;; esac\nexec {MASKBERT} "$@"')
            made = train.compare(call.attempt(100), train.compare_gradients, "f32")
            self.assertFalse(made["ok"], made)
            self.assertIn("is off by", made["said"])

    def test_what_a_command_says(self):
        with tempfile.TemporaryDirectory() as folder:
            call = one_thread(folder)
            call.maskbert = pathlib.Path(folder, "maskbert")
            script(call.maskbert, f'[ $1 = pretrain ] && {{ echo "maskbert: no such luck" >&2; exit 3; }}\nexec {MASKBERT} "$@"')
            made = train.compare(call.attempt(100), train.compare_gradients, "f32")
            self.assertTrue(made["dead"])
            self.assertIn("no such luck", made["said"])


class TorchTest(unittest.TestCase):
    CASE = ("1x32x2", "dense", 2, 16, 0.1, 1, 64)

    def run_with(self, python):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(sys, "executable", python):
            return train.time_torch(call_of(folder).attempt(100), self.CASE)

    def test_where_there_is_no_torch(self):
        made = self.run_with("/proc/nonexistent")
        self.assertTrue(made["ok"])
        self.assertIn("No such file", made["said"])
        rows = train.lines({"ours x": {"ok": True, "step_s": 0.01, "tokens_per_s": 5e5, "share": 0.4, "memory_bytes": 3 << 30, "launches": 400},
                            "torch x": made})
        self.assertIn("| x | 10.0 | 500,000 | 40.0 % | 3.0 | 400 |  |  |  |  |  |", "\n".join(rows).replace("40 %", "40.0 %"))
        self.assertIn("- torch, x: no figures", "\n".join(rows))
        half = {"step_s": 0.01, "tokens_per_s": 1e5, "memory_bytes": None}
        self.assertEqual(train.row_of("x", half | {"tokens_per_s": 4e5}, half)[-1], "4.00 x")

    @unittest.skipUnless("--long" in sys.argv and importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"),
                         "without --long, torch or transformers")
    def test_a_step(self):
        made = self.run_with(sys.executable)
        self.assertEqual((made.get("said"), made["attention"]), (None, "SDPA"))
        self.assertGreater(made["tokens_per_s"], 0)
        self.assertGreater(json.loads(json.dumps(made))["flops_per_s"], 0)

    @unittest.skipUnless("--long" in sys.argv and importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"),
                         "without --long, torch or transformers")
    def test_the_head_computes_masked_rows_only(self):
        import torch
        seen, case = [], dict(zip(("size", "mask", "batch", "n", "attention_dropout", "steps", "vocabulary"), self.CASE))
        with unittest.mock.patch.object(sys, "path", list(sys.path)):
            spec = importlib.util.spec_from_file_location("train_torch", train.TORCH)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        hook = torch.nn.modules.module.register_module_forward_hook(lambda m, x, out: seen.append(out) if type(m).__name__ == "BertOnlyMLMHead" else None)
        with unittest.mock.patch.object(module, "batch_of", lambda case, device: (torch.full((2, 16), 7), torch.tensor([0, 5]), torch.tensor([7, 9]))):
            module.stepper(case, "cpu")[0]()
        hook.remove()
        self.assertEqual([tuple(x.shape) for x in seen], [(2, 64)])


if __name__ == "__main__":
    cmocka_count.run_cases()
