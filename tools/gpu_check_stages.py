# SPDX-License-Identifier: Apache-2.0
"""The stages of tools/gpu-check. Each is a list of cases by name; a case that has a result is not run
again, and no case is begun after the stage's deadline. A stage returns how many cases are left.
"""
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import gpu_check_bert as bert
import gpu_check_cases as known
from gpu_check_results import dead

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = 65536
GRACE = 10.0  # seconds that a command which is stopped may take; a stage of 520 stays below nine minutes


class Fatal(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def device_name(device):
    if device == "emulated":
        return "emulated"
    try:
        made = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
    except OSError:
        raise Fatal(3, "no GPU: nvidia-smi is not there") from None
    if made.returncode or not made.stdout.strip():
        raise Fatal(3, "no GPU: nvidia-smi lists none")
    return made.stdout.splitlines()[0].strip()


SOURCES = ("masks", "gen", "runtime", "templates", "model", "tools/maskc", "tools/reference", "tools/maskbert", "tools/compare")
METHOD = ("tools/peers", "runtime/python/maskc/torch_op.py", "tools/gpu_check_stages.py", "tools/gpu_check_cases.py",
          "tools/gpu_check_bert.py")


def sources(root):
    """A digest of what a kernel, its reference and its clock are made of: results of other sources are not reused."""
    digest = hashlib.sha256()
    found = [path for folder in SOURCES for path in (root / folder).rglob("*")
             if path.suffix in (".c", ".h", ".cu", ".py")]
    for path in sorted(found) + [root / name for name in METHOD]:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Run:
    """One stage at work."""

    def __init__(self, options, environment, kept, stage, deadline):
        self.o, self.environment, self.kept = options, environment, kept
        self.stage, self.deadline = stage, deadline
        self.maskc = options.build / "tools/maskc/maskc"
        self.maskbert = options.build / "tools/maskbert/maskbert"
        self.package = options.build / "runtime/python"
        self.stopped = False

    def todo(self, cases):
        """What has no result; what came to none before is last, so that it stands in nobody's way."""
        done = self.kept.stage(self.stage)
        return [n for n in cases if n not in done] + [n for n in cases if dead(done.get(n, {}))]

    def each(self, cases):
        """cases: {name: function without arguments that returns a result}. A case that the deadline stopped
        is left for the next call, whose first it is; if it is stopped there too, it is dead."""
        todo = self.todo(cases)
        for k, name in enumerate(todo):
            if time.monotonic() > self.deadline:
                return len(todo) - k
            if sys.stderr.isatty():
                print(f"\r\033[K{self.stage} {k + 1}/{len(todo)}: {name}", end="", file=sys.stderr)
            result = cases[name]()
            cut = self.stopped and not result.get("ok")  # else it was stopped when all was said
            if cut:
                result["dead"] = True
            if not cut or k == 0 or result.get("results"):
                self.kept.put(self.stage, name, result)
            if cut and k > 0:
                return len(todo) - k
        self.say(cases)
        return 0

    def say(self, cases):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        results = self.kept.stage(self.stage).values()
        died = sum(map(dead, results))
        bad = sum(not r.get("ok", True) for r in results) - died
        again = f", {died} without a result: a later call tries them again" if died else ""
        print(f"{self.stage}: {len(cases)} cases, {bad} wrong{again}")

    def command(self, *words):
        """(exit code, stdout, the line of stderr that says why); a command is stopped soon after the deadline."""
        limit = max(0.0, self.deadline - time.monotonic())
        try:
            made = subprocess.Popen([str(w) for w in words], env=self.environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as e:
            return 127, "", f"{words[0]}: {e.strerror}"
        try:
            out, err = made.communicate(timeout=min(limit, 3600.0))
        except subprocess.TimeoutExpired:
            self.stopped = True
            out, _ = interrupt(made)
            return 124, out, f"stopped after {limit:.0f} s"
        return made.returncode, out, reason_in(err)


def reason_in(text):
    """The first line, but of Python's tracebacks the last."""
    lines = text.strip().splitlines() or [""]
    return lines[-1 if any(x.startswith("Traceback") for x in lines) else 0]


def interrupt(process):
    """tools/peers writes what it has when it is interrupted."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


# ---- verify ----

def verify_one(run, mask, n, dtype, head_dim=64, options=(), under=()):
    target = "cuda" if run.o.device == "cuda" else "sm_80"
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "k.mkb"
        code, _, said = run.command(run.maskc, "compile", mask, "-n", n, "--heads", heads_of(mask),
                                    "--dtype", dtype, "--head-dim", head_dim, *options, "--target",
                                    target, "-o", path)
        if code:
            return {"ok": False, "dead": True, "said": f"compile: {said or f'exit status {code}'}"}
        code, out, said = run.command(*under, run.maskc, "verify", path, "--device", run.o.device,
                                      "--json")
    try:
        checks = json.loads(out[out.index("{"):out.rindex("}") + 1])["checks"]
    except (ValueError, KeyError):
        return {"ok": False, "dead": True, "said": said or f"verify: exit status {code}"}
    worst = max(checks, key=lambda c: (c["error"] or 0) / (c["tolerance"] or 1), default=None)
    return {"ok": code == 0, "checks": len(checks), "worst": worst, "said": said}


def heads_of(mask):
    return 12 if mask.startswith(("blockbert", "dam-s")) else 3


def verify_cases(run):
    return known.of_verify(run, verify_one)


def verify(run):
    return run.each(verify_cases(run))


# ---- time, peers ----

NEEDS_TORCH = """import sys
try:
    import numpy, torch
except ImportError as e:
    sys.exit(f"needs Python's torch and numpy ({e}): pip install torch numpy")
sys.exit(0 if torch.cuda.is_available() else "torch sees no CUDA GPU here")
"""


def torch_missing(run):
    """Why nothing can be timed here; nothing where it can."""
    code, _, said = run.command(sys.executable, "-c", NEEDS_TORCH)
    return (said or f"needs Python's torch: it ends with exit status {code}") if code else ""


def maskbert_missing(run):
    there = run.maskbert.exists()
    return "" if there else f"{run.maskbert} is not there: maskbert is built where libutf8proc is"


def timed_masks(run, stage, n):
    at = known.TIMED_AT[stage]
    masks = run.o.masks or at.get(128 if n < 128 else n, at[None])
    if n % 2 or n < 256:  # the long masks' offsets do not fit
        masks = [m for m in masks if "(" not in m] or masks
    return list(masks)


def finished(rows):
    """The masks that need no second try: of ours none failed."""
    failed = {r["mask"] for r in rows if r["contender"].startswith("ours") and r["verdict"] == "failed"}
    return {r["mask"] for r in rows} - failed


def run_peers(run, n, dtype, direction, masks, contenders):
    """(exit code, what it said, its JSON)."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "peers.json"
        more = ["--contenders", contenders] if contenders else []
        code, _, said = run.command(sys.executable, ROOT / "tools/peers", "--device", "cuda", "-n", n,
                                    "--dtype", dtype, "--pass", direction, "--batch",
                                    max(1, TOKENS // n), "--masks", *masks, "--maskc", run.maskc,
                                    "--package", run.package, "--json", path, *more)
        made = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return code, said or (f"tools/peers: exit status {code}" if code else ""), made


def run_rest(run, rows, masks, contenders, *case):
    """Adds what is not in `rows`: all in one process, then, as a kernel that crashes takes those after it along, what
    is still missing each in its own."""
    todo = [m for m in masks if m not in finished(rows)]
    if not todo:
        return 0, "", {}
    code, said, header = run_peers(run, *case, todo, contenders)
    rows += header.pop("results", [])
    missing = [m for m in todo if m not in {r["mask"] for r in rows}] if len(todo) > 1 else []
    for mask in missing:
        if run.stopped or time.monotonic() > run.deadline:
            break
        again, why, made = run_peers(run, *case, [mask], contenders)
        rows += made.pop("results", [])
        code, said, header = code or again, said or why, header or made
    return code, said, header


def peers_one(run, name, masks, contenders, *case):
    """Masks that an earlier call finished are kept, the others are run again."""
    before = run.kept.stage(run.stage).get(name, {})
    kept = before.get("results", [])
    rows = [r for r in kept if r["mask"] in finished(kept)]
    _, said, made = run_rest(run, rows, masks, contenders, *case)
    left = [m for m in masks if m not in finished(rows)]
    bad = [r for r in rows if r["contender"].startswith("ours") and r["verdict"] != "ok"]
    if left:
        why = [r["reason"] for r in rows if r["mask"] in left and r["contender"].startswith("ours") and r.get("reason")]
        said = f"{(why or [said or 'ended'])[0]}; no figures of {', '.join(left)}"
    return before | made | {"results": rows, "ok": not (left or bad), "dead": bool(left), "said": said}


def timing(stage, contenders):
    def timed(run):
        cases = {}
        for dtype in ("bf16", "f32"):
            for n in run.o.length or known.TIMED_LENGTHS:
                for direction in ("forward", "backward"):
                    name = f"n={n} {dtype} {direction}"
                    cases[name] = lambda name=name, n=n, dtype=dtype, direction=direction: peers_one(
                        run, name, timed_masks(run, stage, n), contenders, n, dtype, direction)
        return run.each(cases)
    return timed


# ---- calibrate ----

def calibrate_once(run):
    code, out, said = run.command(run.maskc, "calibrate", "--device", run.o.device, "--json")
    try:
        made = json.loads(out) if code == 0 else {}
    except ValueError:
        code, made, said = 1, {}, "calibrate: not JSON"
    return {"ok": code == 0, "dead": code != 0, "made": made,
            "said": said or (f"calibrate: exit status {code}" if code else "")}


def calibrate(run):
    """What was found is stored on the machine: where only the result came along it is found again."""
    before = run.kept.stage(run.stage)
    path = before.get("calibrate", {}).get("made", {}).get("path")
    if path and not pathlib.Path(path).exists():
        before.clear()
    return run.each({"calibrate": lambda: calibrate_once(run)})


def whole_models(run):
    return run.each(bert.cases(run))


# In this order: predictions of `time` and `peers` are those of the calibrated model.
STAGES = {"verify": verify, "calibrate": calibrate, "time": timing("time", "ours,ours-dense"),
          "peers": timing("peers", None), "maskbert": whole_models}
NEEDS = {"time": torch_missing, "peers": torch_missing, "maskbert": maskbert_missing}


def left_out(run_of, names):
    """{stage: why this machine cannot run it}; each question is asked once."""
    answers = {}
    for need in dict.fromkeys(NEEDS[name] for name in names if name in NEEDS):
        answers[need] = need(run_of("needs"))
    return {name: answers[NEEDS[name]] for name in names if name in NEEDS and answers[NEEDS[name]]}
