# SPDX-License-Identifier: Apache-2.0
"""Stage time: kernels are compiled in parallel, then one process measures all of them (timing_gpu.py). A contender that
crashes that process is left out, and the process is started again for the rest.
"""
import concurrent.futures
import json
import pathlib
import signal
import sys
import tempfile
import time

from gpu_check import expected, timing_cases as known
from gpu_check.programs import OutOfTime, ended_by, interrupt, send
from gpu_check.work import Item, Stage, dead, progress
import peers_plan

PROGRAM = pathlib.Path(__file__).resolve().parent / "timing_gpu.py"
RESTARTS = 4  # of the process that measures, in one call
POLL_S = 0.05  # between two looks at its lines
NEEDS = """import sys
try:
    import numpy, torch
except ImportError as e:
    sys.exit(f"needs Python's torch and numpy ({e}): pip install torch numpy")
sys.exit(0 if torch.cuda.is_available() else "torch sees no CUDA GPU here")
"""


def missing(call):
    """The reason why nothing can be timed here, or an empty text."""
    code, _, said = call.attempt(0).command(sys.executable, "-c", NEEDS)
    return (said or f"needs Python's torch: it ends with exit status {code}") if code else ""


def is_bad(row):
    """True if one of our kernels is wrong, failed, or no CUDA graph captures its launch."""
    return row["contender"].startswith("ours") and (row["verdict"] != "ok" or row.get("graph") is False)


def result_of(rows, clock):
    bad = [f"{r['contender']} {r['mask']}: {r.get('reason') or r['verdict']}" for r in rows if is_bad(r)]
    return {"ok": not bad, "results": rows, "said": "; ".join(bad)} | clock


# ---- kernels, mask tables and plans ----

def outputs(attempt, commands):
    """Runs maskc: (name, file that it writes, words) each. {name: file} of those that worked, and "said" of the others."""
    made, said = {}, []
    for name, output, words in commands:
        code, _, why = attempt.command(attempt.maskc, *words)
        said += [f"{words[0]}: {why or f'exit status {code}'}"] if code else []
        made |= {} if code else {name: str(output)}
    return made | {"said": "; ".join(said)}


def prepared(call, folder, number, key):
    """Files of one kernel for the process that measures: {"kernel", "table", "plans", "said"}."""
    mask, n, batch, head_dim, dtype = key
    attempt = call.attempt(expected.of("verify", "cuda"))
    path, table = folder / f"{number}.mkb", folder / f"{number}.npy"
    case = {"length": n, "dtype": dtype, "head_dim": head_dim, "heads": known.HEADS, "device": call.o.device,
            "batch": batch, "threads": 1}
    target = "cuda" if call.o.device == "cuda" else "cpu"
    made = outputs(attempt, (
        ("kernel", path, ("compile", mask, "-n", n, "--heads", known.HEADS, "--dtype", dtype, "--head-dim", head_dim,
                          "--target", target, "-o", path)),
        ("table", table, ("make", mask, "-n", n, "-o", table))))
    plans = {p: peers_plan.read(call.maskc, mask, case, p, call.environment) for p in known.PASSES}
    return made | {"plans": plans}


def prepare(call, folder, some):
    """{key: files}; the key is the text that timing_gpu.py makes of the same values."""
    keys = known.kernels_of(some)
    with concurrent.futures.ThreadPoolExecutor(call.o.jobs) as threads:
        files = threads.map(lambda pair: prepared(call, folder, *pair), enumerate(keys))
        return {" ".join(map(str, key)): made for key, made in zip(keys, files)}


# ---- the process that measures ----

class Session:
    """One process that measures. Its lines are read from a file, while it runs: programs of torch's compilers may keep
    a pipe open after its end."""

    def __init__(self, call, stage, folder, task):
        self.call, self.stage, self.clock, self.at, self.finished = call, stage, {}, [], set()
        self.lines, self.errors = folder / "lines", folder / "errors"
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        with open(self.lines, "wb") as out, open(self.errors, "wb") as errors:
            self.child = call.start([sys.executable, PROGRAM, folder / "task.json"], stdout=out, stderr=errors)

    def read(self, line):
        if "clock" in line:
            self.clock = line["clock"]
        elif "case" in line:
            self.call.kept.put(self.stage.name, line["case"], result_of(line["rows"], self.clock))
            self.finished.add(line["case"])
            self.at = []
        else:
            self.at = line["at"]
            progress(self.stage.name, len(self.finished) + 1, len(self.stage.items), " ".join(self.at))

    def follow(self, stop_at):
        """Reads lines until the process ends. Kills it at `stop_at`."""
        rest = b""
        with open(self.lines, "rb") as file:
            ended = False
            while not ended:
                ended = self.child.poll() is not None
                *whole, rest = (rest + file.read()).split(b"\n")
                for line in whole:
                    if line.startswith(b"{"):  # torch's compilers print other lines
                        self.read(json.loads(line))
                if not ended and time.monotonic() > stop_at:
                    send(self.child, signal.SIGKILL)
                time.sleep(0 if ended else POLL_S)

    def run(self, seconds):
        """Follows the process, kills it after `seconds`. Returns why it failed, or an empty text."""
        try:
            self.follow(time.monotonic() + seconds)
        except BaseException:
            interrupt(self.child)
            raise
        finally:
            self.call.forget(self.child)
        return self.reason(self.child.returncode) if self.child.returncode else ""

    def reason(self, code):
        said = self.errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return ended_by(code) or (said[-1] if said else f"exit status {code}")


def excluded_after(session, why, excluded):
    """Excludes the contender that was running at the crash and returns None. If none was running, returns the name of the
    case, or "" before the first case."""
    if len(session.at) > 1:
        case, contender, mask = session.at
        excluded.setdefault(case, {})[f"{contender} {mask}"] = why
        return None
    return session.at[0] if session.at else ""


def measure_all(call, stage, folder, waiting, files):
    """waiting: {name: case}; finished cases leave it. Returns the reason of the last crash."""
    excluded, why = {}, ""
    for _ in range(RESTARTS):
        if not waiting or call.left() <= 0:
            break
        some = [case.described() | {"seconds": expected.of_timing(case)} for case in waiting.values()]
        task = {"cases": some, "files": files, "excluded": excluded, "device": call.o.device, "package": str(call.package),
                "stop_at": time.time() + call.left()}
        session = Session(call, stage, folder, task)
        limit = call.attempt(sum(c["seconds"] for c in some) + expected.of("time start", "cuda")).stop_at - time.monotonic()
        why = session.run(limit)
        for name in session.finished:
            waiting.pop(name)
        if not why:
            break
        guilty = excluded_after(session, why, excluded)
        if guilty == "":  # it ended before the first case
            break
        if guilty and call.left() > 0:
            call.kept.put(stage.name, guilty, dead(why))
            waiting.pop(guilty)
    return why


def run(call, stage, todo):
    """Names of the cases that are left."""
    known_cases = {c.name: c for c in known.cases(call.o.masks, call.o.length)}
    waiting, budget = {}, call.left() - stage.start
    for item in todo:
        if item.seconds <= budget:
            waiting[item.name] = known_cases[item.name]
            budget -= item.seconds
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        folder = pathlib.Path(folder)
        try:
            why = measure_all(call, stage, folder, waiting, prepare(call, folder, waiting.values()) if waiting else {})
        except OutOfTime:
            why = ""
        if why and call.left() > 0:  # crashes that were not resolved: a later call tries them again
            for name in waiting:
                call.kept.put(stage.name, name, dead(why))
    done = call.kept.stage(stage.name)
    return [item.name for item in todo if item.name not in done]


def stage(o):
    items = [Item(c.name, expected.of_timing(c), alone=True) for c in known.cases(o.masks, o.length)]
    start = expected.of("time start", o.device) + expected.of("time kernels", o.device)
    return Stage("time", items, start=start, missing=missing, together=run)
