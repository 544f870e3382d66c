#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""timing_gpu.py TASK.json: the process that measures for the stage time. It loads all kernels, compares each contender
with float64 on a sample of heads, captures CUDA graphs, and replays them interleaved. Prints one JSON object per line:
{"clock"} first, then {"at": [case, contender, mask]} before each contender, {"case", "rows"} after each case.
"""
import copy
import functools
import json
import pathlib
import sys
import time
import types

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:1] = [str(TOOLS / "compare"), str(TOOLS)]  # in place of this folder, whose names are common
OURS = "ours"
REPEAT, LIMIT_S = 15, 4  # samples of each contender, seconds for those of a case
WARM_S = 0.03  # of untimed calls: the contender before keeps the clocks of the GPU high
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def emit(**line):
    print(json.dumps(line), flush=True)


def builder(contender, mask, files, device):
    """build(case, training) of a contender, as those in peers_contenders."""
    import peers_contenders as known
    backends = {"sdpa-cudnn": "CUDNN_ATTENTION", "sdpa-flash": "FLASH_ATTENTION", "sdpa-efficient": "EFFICIENT_ATTENTION"}
    if contender == OURS:
        return functools.partial(build_ours, files, device)
    if contender in backends:
        return known.build_sdpa_backend(backends[contender], causal=mask == "causal")
    if contender.startswith("flex-"):
        return known.build_flex(int(contender[5:]), tuned=False)
    raise ValueError(f"{contender}: no such contender")


def build_ours(files, device, case, training):
    import maskc
    if not files.get("kernel"):
        raise RuntimeError(files.get("said") or "the kernel was not compiled")
    kernel = maskc.load(files["kernel"], device=device)

    def attend(q, k, v):
        return maskc.attention(q, k, v, kernel)
    attend.load_s = kernel.load_s
    return attend


class Problem:
    """Inputs, mask tables and references that the cases of one problem share."""

    def __init__(self, described, files, device):
        import torch
        from peers_contenders import Case
        self.key, self.files, self.device = problem_key(described), files, device
        options = types.SimpleNamespace(batch=described["batch"], heads=described["heads"], head_dim=described["head_dim"],
                                        device=device, threads=torch.get_num_threads(), layout="bnhd")
        n = described["length"]
        everything = torch.ones(1, n, n, dtype=torch.bool, device=device)
        self.case = Case(everything, "dense", options, n, getattr(torch, DTYPES[described["dtype"]]))
        self.cases, self.references = {}, {}

    def case_of(self, mask):
        """The case with the table of another mask; inputs are shared."""
        if mask not in self.cases:
            self.cases[mask] = copy.copy(self.case)
            self.cases[mask].text, self.cases[mask].table = mask, self.table_of(mask)
        return self.cases[mask]

    def table_of(self, mask):
        import numpy
        import torch
        path = self.files_of(mask).get("table")
        if not path:
            raise RuntimeError(self.files_of(mask).get("said") or f"{mask}: no table")
        return torch.from_numpy(numpy.load(path) != 0).reshape(-1, self.case.n, self.case.n).to(self.device)

    def files_of(self, mask):
        return self.files.get(" ".join(map(str, (mask, *self.key))), {})

    def reference(self, mask):
        from peers_reference import Reference
        if mask not in self.references:
            ends = sorted({0, self.case.batch - 1})
            self.references[mask] = Reference(self.case, None if mask == "dense" else self.case_of(mask).table, ends)
        return self.references[mask]


def problem_key(described):
    return described["length"], described["batch"], described["head_dim"], described["dtype"]


class Measured:
    """One case: every contender is built and compared, then those that are right are measured."""

    def __init__(self, problem, described, clock, excluded):
        import peers_compare
        self.problem, self.described, self.clock, self.excluded = problem, described, clock, excluded
        self.comparison = peers_compare.Comparison(None, clock)
        self.training = described["pass"] != "forward"
        self.rows, self.calls = [], {}

    def add(self, contender, mask):
        """True unless the contender failed, which may have broken the context of the GPU."""
        reason = self.excluded.get(f"{contender} {mask}")
        row = {"contender": contender, "mask": mask, "verdict": "failed", "reason": reason}
        if not reason:
            try:
                made, attend = self.check(contender, mask)
            except Exception as e:  # of torch or numpy: this contender fails, not the others
                made, attend = {"verdict": "failed", "reason": (str(e).strip() or type(e).__name__).splitlines()[0][:300]}, None
            row = row | {"reason": None} | made | {"contender": contender}
            if attend:
                self.calls[contender, mask] = self.comparison.calls(self.problem.case_of(mask), attend, self.described["pass"])
        self.rows.append({k: v for k, v in row.items() if v is not None})
        return bool(reason) or row["verdict"] != "failed"

    def check(self, contender, mask):
        case = self.problem.case_of(mask)
        build = builder(contender, mask, self.problem.files_of(mask), self.problem.device)
        return self.comparison.attempt(case, self.problem.reference(mask), contender, build, self.training)

    def finished(self):
        """All rows, with their times."""
        import torch
        from peers_clock import interleave
        with torch.set_grad_enabled(self.training):
            times = interleave(self.clock, self.calls, REPEAT, LIMIT_S)
        return [self.common(row) | row | times.get((row["contender"], row["mask"]), {}) for row in self.rows]

    def common(self, row):
        """Sizes and floors of a row."""
        import peers_plan
        d, files = self.described, self.problem.files_of(row["mask"])
        made = {k: d[k] for k in ("length", "batch", "heads", "head_dim", "dtype", "pass")}
        copy_rate, mma = self.clock.copy_rate, self.clock.mma or {}
        made["floor_s"] = self.problem.case.moved(d["pass"]) / copy_rate if copy_rate else None
        if row["contender"] != OURS:
            return made
        plan = files.get("plans", {}).get(d["pass"], {})
        described = self.problem.case.described()
        return made | plan | {"area_floor_s": peers_plan.area_floor(described, d["pass"], plan.get("executed_fraction"),
                                                                    mma.get("flops_per_s"))}


def context_works(device):
    """False where a kernel has broken the context of the GPU for the whole process."""
    import torch
    try:
        return torch.ones(2, device=device).sum().item() == 2
    except RuntimeError:
        return False


def measure(problem, described, clock, excluded):
    """Rows of one case. Ends the process where a contender has broken the context of the GPU."""
    case = Measured(problem, described, clock, excluded.get(described["name"], {}))
    for contender, mask in described["contenders"]:
        emit(at=[described["name"], contender, mask])
        if not case.add(contender, mask) and not context_works(problem.device):
            sys.exit(f"{contender} {mask}: {case.rows[-1].get('reason')}")
    emit(at=[described["name"]])
    return case.finished()


def release(device):
    """Memory of the cases before goes back to the GPU."""
    import gc
    import torch
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def run(task, clock):
    """task: cases, files, excluded, device, stop_at (seconds of the epoch)."""
    problem = None
    for described in task["cases"]:
        if time.time() + described["seconds"] > task["stop_at"]:
            continue
        if not problem or problem.key != problem_key(described):
            problem = None
            release(task["device"])
            problem = Problem(described, task["files"], task["device"])
        emit(case=described["name"], rows=measure(problem, described, clock, task["excluded"]))
        release(task["device"])


def main():
    task = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, task["package"])
    import peers_clock
    clock = peers_clock.CudaClock(WARM_S) if task["device"] == "cuda" else peers_clock.CpuClock("wall")
    emit(clock={"copy_bytes_per_s": clock.copy_rate, "mma": clock.mma, "note": clock.note})
    run(task, clock)


if __name__ == "__main__":
    main()
