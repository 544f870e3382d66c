#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_timing_gpu_test.py: the process that measures for the stage time of tools/gpu-check, on CPU tensors with real kernels,
and with a mock torch.cuda: streams, graphs and events. PYTHONPATH has the package. Skipped without torch.
"""
import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "tools/compare", "tests/support")]
if not importlib.util.find_spec("torch") or not importlib.util.find_spec("numpy"):
    print("skipped: this python has no torch or no numpy")
    sys.exit(77)
import cmocka_count  # noqa: E402
import maskc  # noqa: E402
import peers_clock  # noqa: E402
import torch  # noqa: E402
from maskc import _library  # noqa: E402

PROGRAM = ROOT / "tools/gpu_check/timing_gpu.py"
LENGTH, BATCH, HEAD_DIM = 32, 2, 16


def program():
    """timing_gpu.py as a module, without its folder on the path."""
    spec = importlib.util.spec_from_file_location("timing_gpu", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    with unittest.mock.patch.object(sys, "path", ["", *sys.path]):
        spec.loader.exec_module(module)
    return module


class MockCuda:
    """As much of torch.cuda as the clock uses. A replay lasts 1 ms per captured call of each graph's number."""

    def __init__(self, refuses=()):
        self.log, self.graphs, self.refuses, self.now = [], [], refuses, 0.0
        self.Stream = self.current_stream = lambda: types.SimpleNamespace(wait_stream=lambda other: self.log.append("wait"))
        self.synchronize = lambda: self.log.append("synchronize")
        self.Event = lambda enable_timing: MockEvent(self)

    def get_device_properties(self, device):
        return types.SimpleNamespace(L2_cache_size=1 << 20)

    def CUDAGraph(self):
        number = len(self.graphs) + 1
        self.graphs.append(number)
        return types.SimpleNamespace(number=number, replay=lambda: self.replay(number))

    def replay(self, number):
        self.log.append(number)
        self.now += number

    @contextlib.contextmanager
    def stream(self, side):
        self.log.append("side")
        yield

    @contextlib.contextmanager
    def graph(self, graph, stream):
        self.log.append(f"capture {graph.number}")
        yield
        if graph.number in self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing")


class MockEvent:
    def __init__(self, cuda):
        self.cuda = cuda

    def record(self):
        self.at = self.cuda.now

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other.at - self.at


class TimingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="gpu-check-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = {mask: cls.made(mask) for mask in ("dense", "star")}

    @classmethod
    def made(cls, mask):
        path, table = f"{cls.folder.name}/{mask}.mkb", f"{cls.folder.name}/{mask}.npy"
        maskc.compile(mask, n=LENGTH, heads=12, head_dim=HEAD_DIM).save(path)
        subprocess.run([_library.program_path(), "make", mask, "-n", str(LENGTH), "-o", table], check=True)
        return {"kernel": path, "table": table, "plans": {"forward": {"executed_fraction": 1.0, "predicted_s": 1e-3}}}

    def case(self, direction, *contenders, seconds=1):
        return {"name": f"case {direction}", "length": LENGTH, "batch": BATCH, "head_dim": HEAD_DIM, "dtype": "f32", "heads": 12,
                "pass": direction, "contenders": contenders or [["ours", "dense"], ["ours", "star"]], "seconds": seconds}

    def task(self, *cases, **more):
        files = {f"{mask} {LENGTH} {BATCH} {HEAD_DIM} f32": made for mask, made in self.files.items()}
        return {"cases": cases, "files": files, "excluded": {}, "device": "cpu", "stop_at": time.time() + 100,
                "package": str(pathlib.Path(maskc.__file__).parents[1])} | more

    def run_task(self, task, clock):
        """Lines that the process prints."""
        module, lines = program(), []
        with unittest.mock.patch.object(module, "emit", lambda **line: lines.append(json.loads(json.dumps(line)))):
            module.run(task, clock)
        return lines

    def rows(self, lines):
        return [row for line in lines if "case" in line for row in line["rows"]]

    def test_the_whole_process(self):
        path = pathlib.Path(self.folder.name) / "task.json"
        path.write_text(json.dumps(self.task(self.case("forward"), self.case("both"), self.case("late", seconds=1000))), encoding="utf-8")
        said = subprocess.run([sys.executable, PROGRAM, path], capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        lines = [json.loads(line) for line in said.stdout.splitlines()]
        self.assertEqual([next(iter(line)) for line in lines], ["clock", *["at", "at", "at", "case"] * 2])
        rows = self.rows(lines)
        self.assertEqual([(r["pass"], r["mask"], r["verdict"]) for r in rows],
                         [(p, m, "ok") for p in ("forward", "both") for m in ("dense", "star")])
        for row in rows:
            self.assertGreater(row["median_s"], 0)
            self.assertLess(row["error_in_tolerances"], 1)
            self.assertEqual(sorted(row["error"]), ["dk", "dq", "dv", "out"] if row["pass"] == "both" else ["out"])
        self.assertEqual(rows[0]["predicted_s"], 1e-3)

    def test_a_wrong_kernel_is_not_timed(self):
        files = self.files | {"star": self.files["star"] | {"kernel": self.files["dense"]["kernel"]}}
        with unittest.mock.patch.object(self, "files", files):
            rows = self.rows(self.run_task(self.task(self.case("both")), peers_clock.CpuClock("wall")))
        self.assertEqual([(r["verdict"], "median_s" in r) for r in rows], [("ok", True), ("wrong", False)])

    def test_what_fails_costs_its_own_row(self):
        files = self.files | {"star": {"said": "compile: no NVRTC"}}
        case = self.case("forward", ["ours", "star"], ["sdpa-cudnn", "dense"], ["ours", "dense"])
        excluded = {"case forward": {"ours dense": "illegal address"}}
        with unittest.mock.patch.object(self, "files", files):
            rows = self.rows(self.run_task(self.task(case, excluded=excluded), peers_clock.CpuClock("wall")))
        self.assertEqual([(r["verdict"], r.get("reason")) for r in rows],
                         [("failed", "compile: no NVRTC"), ("unavailable", "CUDA only"), ("failed", "illegal address")])

    def test_a_broken_context_ends_the_process(self):
        module, case = program(), self.case("forward", ["ours", "star"], ["ours", "dense"])
        files = self.files | {"star": {"said": "illegal address"}}
        with unittest.mock.patch.object(self, "files", files), unittest.mock.patch.object(module, "context_works", lambda d: False), \
                unittest.mock.patch.object(module, "emit", lambda **line: None), self.assertRaises(SystemExit) as caught:
            module.run(self.task(case), peers_clock.CpuClock("wall"))
        self.assertEqual(str(caught.exception), "ours star: illegal address")

    def mocked(self, cuda, case):
        """Rows measured by the clock for CUDA."""
        with unittest.mock.patch.object(peers_clock, "torch", types.SimpleNamespace(cuda=cuda)), \
                unittest.mock.patch.object(peers_clock, "copy_rate", lambda: 1e12), \
                unittest.mock.patch.object(peers_clock.peers_mma, "rate", lambda: {"flops_per_s": 1e14, "by": "mock"}):
            return self.rows(self.run_task(self.task(case), peers_clock.CudaClock(0)))

    def test_graphs_are_replayed_interleaved(self):
        for direction in ("forward", "both"):
            cuda = MockCuda()
            rows = self.mocked(cuda, self.case(direction))
            replays = [x for x in cuda.log if isinstance(x, int)]
            self.assertEqual(replays, [1, 2] * 15)  # A B A B
            self.assertEqual(cuda.log[:cuda.log.index("capture 1")].count("synchronize"), peers_clock.WARM_CALLS)
            sets = peers_clock.CudaClock.buffers(types.SimpleNamespace(l2=1 << 20), 8 * BATCH * LENGTH * 12 * HEAD_DIM * 4)
            self.assertGreater(sets * 8 * BATCH * LENGTH * 12 * HEAD_DIM * 4, 2 << 20)  # larger than L2
            for number, row in enumerate(rows, 1):
                self.assertEqual((row["graph"], row["samples"]), (True, 15))
                self.assertAlmostEqual(row["median_s"], number * 1e-3 / sets)
                self.assertGreater(row["floor_s"], 0)

    def test_a_launch_that_no_graph_captures_is_named(self):
        rows = self.mocked(MockCuda(refuses=[2]), self.case("forward"))
        self.assertEqual([r["graph"] for r in rows], [True, False])
        self.assertNotIn(False, [r["verdict"] == "ok" for r in rows])


if __name__ == "__main__":
    assert torch
    cmocka_count.run_cases()
