# SPDX-License-Identifier: Apache-2.0
"""The stages of tools/gpu-check. Each is a list of cases by name; a case that has a result is not run
again, and no case is begun after the stage's deadline. A stage returns how many cases are left.
"""
import hashlib
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_check_bert as bert

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ("star", "logsparse", "strided", "fixed", "longformer", "bigbird", "fairseq-fixed",
           "blockbert-2", "blockbert-3", "dam-s-example", "dense", "causal")
TIMED = ("star", "distance(1,2,4,7,12)|global(0,-1)-diagonal(0)", "longformer(64,2)", "fixed(45,1)",
         "logsparse", "strided(45)", "bigbird(1,2,2)", "blockbert-2", "blockbert-3")
TIMED_SHORT = GALLERY[:-2]  # at n=128 the masks' own parameters
TOKENS = 65536
GRACE = 10.0  # seconds that a command which is stopped may take; a stage of 520 stays below nine minutes
HEAD_DIMS = (16, 32, 40, 72, 80, 96, 128, 200, 256)


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


def sources(root):
    """A digest of what a kernel and its judge are made of: results of other sources are not reused."""
    digest = hashlib.sha256()
    for folder in ("masks", "gen", "runtime", "templates", "model", "tools/maskc", "tools/check", "tools/maskbert"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cu"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Run:
    """One stage at work."""

    def __init__(self, options, environment, kept, stage, deadline):
        self.o, self.environment, self.kept = options, environment, kept
        self.stage, self.deadline = stage, deadline
        self.maskc = options.build / "tools/maskc/maskc"
        self.maskbert = options.build / "tools/maskbert/maskbert"
        self.library = options.build / "runtime/libmaskc.so"
        self.stopped = False

    def each(self, cases):
        """cases: {name: function without arguments that returns a result}. A case that the deadline stopped
        is left for the next call, whose first it is; if it is stopped there too, that is its result."""
        done = self.kept.stage(self.stage)
        todo = {name: run for name, run in cases.items() if name not in done}
        for k, (name, run) in enumerate(todo.items()):
            if time.monotonic() > self.deadline:
                return len(todo) - k
            if sys.stderr.isatty():
                print(f"\r\033[K{self.stage} {k + 1}/{len(todo)}: {name}", end="", file=sys.stderr)
            result = run()
            if self.stopped and k > 0:
                return len(todo) - k
            self.kept.put(self.stage, name, result)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        bad = sum(not r.get("ok", True) for r in self.kept.stage(self.stage).values())
        print(f"{self.stage}: {len(cases)} cases, {bad} wrong")
        return 0

    def command(self, *words):
        """(exit code, stdout, first line of stderr); a command is stopped soon after the deadline."""
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
        return made.returncode, out, (err.strip().splitlines() or [""])[0]


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
            return {"ok": False, "said": f"compile: {said}"}
        code, out, said = run.command(*under, run.maskc, "verify", path, "--device", run.o.device,
                                      "--json")
    try:
        checks = json.loads(out[out.index("{"):out.rindex("}") + 1])["checks"]
    except (ValueError, KeyError):
        return {"ok": False, "said": said or f"verify: exit status {code}"}
    worst = max(checks, key=lambda c: (c["error"] or 0) / (c["tolerance"] or 1), default=None)
    return {"ok": code == 0, "checks": len(checks), "worst": worst, "said": said}


def heads_of(mask):
    return 12 if mask.startswith(("blockbert", "dam-s")) else 3


def verify_cases(run):
    masks = run.o.masks or GALLERY
    cases = {}

    def add(mask, n, dtype, *rest, **more):
        name = " ".join([mask, f"n={n}", dtype, *(f"D={r}" for r in rest),
                         *(f"{k}={' '.join(map(str, v))}" for k, v in more.items())])
        cases[name] = lambda: verify_one(run, mask, n, dtype, *rest, **more)

    for n in run.o.length or (128, 512, 1000):
        for mask in masks:
            for dtype in ("f32", "bf16", "f16"):
                add(mask, n, dtype)
    short = min(run.o.length or (128,))
    for head_dim in HEAD_DIMS:
        add(masks[0], short, "bf16", head_dim)
    for options in (("--dropout",), ("--transform", "sparsegen=-4"), ("--soft", "bias"), ("--soft", "scale")):
        for mask in masks[:4]:
            add(mask, short, "bf16", options=options)
    for mask in masks[:4]:
        add(mask, short, "tf32")
    tool = shutil.which("compute-sanitizer")
    if tool and run.o.device == "cuda":
        add_sanitized(add, masks, short, tool)
    return cases


def add_sanitized(add, masks, short, tool):
    """Every mask with heads on chip and streamed, every head dimension, each soft mask; the float kernels once."""
    for check in ("memcheck", "racecheck"):
        under = (tool, "--tool", check, "--error-exitcode", "9")
        for mask in masks:
            add(mask, short, "bf16", under=under)
            add(mask, 4 * short, "bf16", under=under)
        for head_dim in HEAD_DIMS:
            add(masks[0], short, "bf16", head_dim, under=under)
        for kind in ("bias", "scale"):
            add(masks[0], short, "bf16", options=("--soft", kind), under=under)
        for dtype in ("f32", "tf32"):
            add(masks[0], short, dtype, under=under)


def verify(run):
    return run.each(verify_cases(run))


# ---- time, peers ----

def peers_one(run, n, dtype, direction, contenders):
    masks = run.o.masks or (TIMED_SHORT if n <= 128 else TIMED)
    if n % 2 or n < 256:  # the long masks' offsets do not fit
        masks = [m for m in masks if "(" not in m] or masks
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "peers.json"
        more = ["--contenders", contenders] if contenders else []
        code, out, said = run.command(sys.executable, ROOT / "tools/peers", "--device", "cuda", "-n", n,
                                      "--dtype", dtype, "--pass", direction, "--batch",
                                      max(1, TOKENS // n), "--masks", *masks, "--maskc", run.maskc,
                                      "--library", run.library, "--json", path, *more)
        if not path.exists():
            return {"ok": False, "said": said or f"tools/peers: exit status {code}"}
        made = json.loads(path.read_text(encoding="utf-8"))
    return {"ok": code == 0, "said": said, "printed": out} | made


def timing(contenders):
    def stage(run):
        if run.o.device != "cuda":
            raise Fatal(2, "--device emulated: nothing to time there; give --stages verify")
        return run.each({
            f"n={n} {dtype} {direction}": lambda n=n, dtype=dtype, direction=direction: peers_one(
                run, n, dtype, direction, contenders)
            for n in run.o.length or (128, 512, 2048) for dtype in ("bf16", "f32")
            for direction in ("forward", "backward")})
    return stage


# ---- calibrate ----

def calibrate(run):
    def once():
        code, out, said = run.command(run.maskc, "calibrate", "--device", run.o.device)
        return {"ok": code == 0, "printed": out, "said": said}
    return run.each({"calibrate": once})


def whole_models(run):
    if not run.maskbert.exists():
        raise Fatal(3, f"{run.maskbert} is not there: maskbert is built where libutf8proc is")
    return run.each(bert.cases(run))


STAGES = {"verify": verify, "time": timing("ours,ours-dense"), "peers": timing(None),
          "calibrate": calibrate, "maskbert": whole_models}
