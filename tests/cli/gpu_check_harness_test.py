#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_harness_test.py MASKC: the stage harness of tools/gpu-check with a mock harness and a mock process that measures:
its turns, lines, masks, table, and what happens without one. Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
from gpu_check_help import MASKC, call_of, gpu_check, options, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import expected, harness, harness_cases as known, timing, work  # noqa: E402

TEXT = """f64_k128_w3t+q64_k128_w2+k64_k128_w2s
  dense      n=2048  ok  o 2.2e-03 lse 7e-07 fwd 0.811 ms 508 dense 508 exec TF | dq 0.975 (634 exec) dkv 1.404 (541 exec) bwd 2.379 ms 412 dense TF all 3.190
  blocks     n=8192  BAD o 2.2e-03 lse 7e-07 fwd 0.155 ms 293 dense 293 exec TF
"""
# Its two rounds take 1 and 3 ms forward; it fails for the mask causal.
HOST = """echo harness >> $FOLDER/turns
echo "$@" >> $FOLDER/words
name=$(echo $3 | cut -d: -f2) n=$(echo $3 | cut -d: -f3)
[ $name = causal ] && { echo "error 700" >&2; exit 3; }
turn=$(grep -c "util.*$3" $FOLDER/words)
echo "  $name n=$n ok  o 1e-3 lse 1e-6 fwd $((2 * turn - 1)).000 ms 5 dense 5 exec TF | dq 2.500 (1 exec) dkv 3.500 (1 exec) bwd 6.0 ms"
"""
# Measures every case at 2 ms; no graph captures the mask window(256).
MOCK = """
import json, os, pathlib, sys
task = json.loads(pathlib.Path(sys.argv[1]).read_text())
with open(os.environ["FOLDER"] + "/turns", "a") as f:
    f.write("ours\\n")
print(json.dumps({"clock": {}}))
for c in task["cases"]:
    (contender, mask), = c["contenders"]
    key = " ".join(map(str, (mask, c["length"], c["batch"], c["head_dim"], c["dtype"])))
    assert (contender, c["pass"] in ("forward", "backward")) == ("ours", True) and task["files"][key]["kernel"].endswith(".mkb")
    row = {k: c[k] for k in ("length", "batch", "heads", "head_dim", "dtype", "pass")} | {"contender": contender, "mask": mask}
    print(json.dumps({"case": c["name"], "rows": [row | {"verdict": "ok", "median_s": 2e-3, "graph": mask != "window(256)"}]}))
"""
MOCK_MASKC = """[ $1 = plan ] && echo '{"steps": {"forward": {"shape": "wide"}, "dq": {"shape": "narrow"}, "dkv": {"shape": "four"}}}'
exit 0"""


class LinesTest(unittest.TestCase):
    def test_lines_of_the_harness(self):
        dense, blocks = known.PROBLEMS[0], known.PROBLEMS[4]
        self.assertEqual(harness.parse(TEXT, dense), {"verdict": "ok", "forward": 0.811, "dq": 0.975, "dkv": 1.404})
        self.assertEqual(harness.parse(TEXT, blocks), {"verdict": "BAD", "forward": 0.155})
        self.assertIsNone(harness.parse(TEXT, known.PROBLEMS[1]))

    def test_a_command(self):
        folder = pathlib.Path("/f")
        self.assertEqual([str(w) for w in harness.command(folder, known.PROBLEMS[5])],
                         ["/f/host", "/f/util128.cubin", "@/f/f128_k128_w2+/f/q128_w2+/f/k128_k64_w2s", "T:dense:2048:16:12"])

    def test_masks_are_known_to_maskc(self):
        for p in known.PROBLEMS:
            if p.mask != known.TILES:
                made = subprocess.run([MASKC, "plan", *map(str, p.options(p.mask)), "--json"], capture_output=True, text=True, check=False)
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertEqual(set(json.loads(made.stdout)["steps"]), {"forward", "dq", "dkv"})

    def test_the_mask_of_tiles(self):
        """One in ten tiles, some of them full; maskc reads the file."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tiles.npy")
            known.write_tiles(path, 512)
            data = path.read_bytes()[-512 * 512:]
            said = subprocess.run([MASKC, "make", str(path), "-n", "512", "-o", f"{folder}/m.npy"], capture_output=True, text=True, check=False)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(pathlib.Path(folder, "m.npy").read_bytes()[-512 * 512:], data)
        tiles = [[data[512 * (64 * b + r) + 32 * t:][:32] for r in range(64)] for b in range(8) for t in range(16)]
        active = [t for t in tiles if any(map(any, t))]
        self.assertEqual(len(active), sum(known.hashed(b, t) % 10 == 0 for b in range(8) for t in range(16)))
        self.assertEqual([known.hashed(*x) for x in ((0, 0), (1, 2), (7, 15))], [0, 3037463076, 884037456])
        whole = sum(all(map(all, t)) for t in active)
        self.assertTrue(0 < whole < len(active), (whole, len(active)))


class StageTest(unittest.TestCase):
    def run_stage(self, folder, seconds=100, **more):
        script(f"{folder}/h/host", HOST)
        script(f"{folder}/build/tools/maskc/maskc", MOCK_MASKC)
        pathlib.Path(folder, "mock.py").write_text(MOCK, encoding="utf-8")
        call = call_of(f"{folder}/out", seconds, device="cuda", build=f"{folder}/build", harness=pathlib.Path(folder, "h"), **more)
        call.environment |= {"FOLDER": folder}
        with unittest.mock.patch.object(timing, "PROGRAM", f"{folder}/mock.py"):
            left = work.run_stage(call, harness.stage(call.o))
        turns = pathlib.Path(folder, "turns")
        return call.kept, left, turns.read_text().split() if turns.exists() else []

    def test_turns_and_medians(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, left, turns = self.run_stage(folder, masks=["dense", "window(256)", "causal"])
            text = kept.path.with_suffix(".md").read_text(encoding="utf-8")
        made = kept.stage("harness")
        self.assertEqual((left, turns), ([], (["harness"] * 4 + ["ours"]) * 2))
        self.assertEqual(list(made), ["dense n=2048 D=64", "causal n=8192 D=64", "window256 n=8192 D=64", "dense n=2048 D=128"])
        dense = made["dense n=2048 D=64"]
        self.assertEqual((dense["ok"], dense["rounds"], dense["said"]), (True, 2, ""))
        self.assertEqual((dense["harness_ms"], dense["ours_ms"]), ({"forward": 2, "dq": 2.5, "dkv": 3.5}, {"forward": 2, "backward": 2}))
        self.assertIn("| dense n=2048 D=64 | forward | wide | 2.000 | 2.000 |  | 1.00 | f64_k128_w3t |", text)
        self.assertIn("| dense n=2048 D=64 | backward | narrow, four | 2.000 | 6.000 | 2.500 + 3.500 | 0.33 | q64_k128_w2 k64_k128_w2s |", text)
        # A harness that fails costs its own figures; a kernel that no graph captures is wrong.
        causal, window = made["causal n=8192 D=64"], made["window256 n=8192 D=64"]
        self.assertEqual((causal["dead"], causal["ours_ms"]["forward"]), (True, 2))
        self.assertEqual(causal["said"], "harness: error 700")
        self.assertIn("- **causal n=8192 D=64**: harness: error 700", text)
        self.assertEqual((window["ok"], window["dead"]), (False, False))

    def test_a_slower_kernel_is_bold(self):
        self.assertEqual([harness.ratio(1.06, 1), harness.ratio(1.04, 1), harness.ratio(None, 1)], ["**1.06**", "1.04", "-"])

    def test_nothing_starts_without_time(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, left, turns = self.run_stage(folder, seconds=expected.of("time start", "cuda"))
            self.assertEqual((left, turns, kept.stage("harness")), ([p.title for p in known.PROBLEMS], [], {}))

    def test_without_a_harness(self):
        said = gpu_check("--dry-run")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("harness skipped: no --harness DIR\n", said.stdout)
        said = gpu_check("--dry-run", "--harness", "/nowhere", "--stages", "harness")
        self.assertRegex(said.stdout, r"harness +\d+\.\d s  7 of 7 cases")
        self.assertNotIn("skipped", said.stdout)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(harness.missing(call_of(folder, harness=pathlib.Path("/nowhere"))), "/nowhere: it has no program 'host'")
            keys = []
            for text in ("a", "a", "b"):
                pathlib.Path(folder, "q64_w2.cubin").write_text(text, encoding="utf-8")
                keys.append({i.key for i in harness.stage(options(device="cuda", harness=pathlib.Path(folder))).items})
            self.assertTrue(len(keys[0]) == 1 and keys[0] == keys[1] and not keys[0] & keys[2], keys)


if __name__ == "__main__":
    cmocka_count.run_cases()
