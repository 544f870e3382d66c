# SPDX-License-Identifier: Apache-2.0
"""Stage harness: kernels of cuda_hopper beside those of a harness, interleaved in one call. The harness is a folder with an
executable `host`, cubins, and util64.cubin and util128.cubin; the option --harness names it. For `host UTIL @FORWARD+DQ+DKV
T:MASK:N:BATCH:HEADS` it prints `MASK n=N ok ... fwd MS ms ... dq MS (...) dkv MS (...)`. Ours are timed as in the stage time.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import tempfile

from gpu_check import expected, timing
from gpu_check.harness_cases import PASSES, PROBLEMS, TILES, write_tiles
from gpu_check.programs import OutOfTime
from gpu_check.timing_cases import HEADS
from gpu_check.work import Item, Stage

ROUNDS = 2  # of the harness, then ours
LINE = re.compile(r"^\s+(?P<name>\S+)\s+n=(?P<n>\d+)\s+(?P<verdict>ok|BAD)\b.*?\bfwd (?P<forward>[\d.]+) ms"
                  r"(?:.*?\bdq (?P<dq>[\d.]+) .*?\bdkv (?P<dkv>[\d.]+) )?", re.M)
PARTS = ("forward", "dq", "dkv")  # that the harness times


# ---- the harness ----

def command(folder, problem):
    """Words of one process of the harness, which times one problem."""
    kernels = "+".join(str(folder / name) for name in problem.kernels)
    return [folder / "host", folder / f"util{problem.head_dim}.cubin", f"@{kernels}",
            f"T:{problem.name}:{problem.length}:{problem.batch}:{HEADS}"]


def digest(folder):
    """Hash of the program and the kernels in a harness's folder; empty where there is none."""
    found = hashlib.sha256()
    paths = sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []
    for path in paths:
        found.update(f"{path.name}\0".encode() + path.read_bytes())
    return found.hexdigest()[:12] if paths else ""


def parse(text, problem):
    """{part: milliseconds} of the problem's line, with its verdict; None where it has none."""
    for found in LINE.finditer(text):
        if (found["name"], int(found["n"])) == (problem.name, problem.length):
            return {"verdict": found["verdict"]} | {p: float(found[p]) for p in PARTS if found[p]}
    return None


def run_harness(call, problem):
    """Returns the harness's output for a problem, or {"said"}."""
    attempt = call.attempt(expected.of("harness run", "cuda"))
    code, out, said = attempt.command(*command(call.o.harness.resolve(), problem))
    made = parse(out, problem) if code == 0 else None
    return made or {"said": f"harness: {said or out.strip()[-200:] or f'exit status {code}'}"}


# ---- ours ----

def shapes(attempt, options):
    """{pass: kernel shape} as the plan says."""
    code, out, _ = attempt.command(attempt.maskc, "plan", *options, "--json")
    try:
        return {name: step["shape"] for name, step in json.loads(out)["steps"].items()} if code == 0 else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def prepared(call, folder, problem):
    """Files of one problem for the process that measures, and the shapes of its kernels."""
    attempt, stem = call.attempt(expected.of("verify", "cuda")), problem.title.replace(" ", "-")
    mask = problem.mask
    if mask == TILES:
        mask = folder / f"{stem}-mask.npy"
        write_tiles(mask, problem.length)
    path, table = folder / f"{stem}.mkb", folder / f"{stem}.npy"
    made = timing.outputs(attempt, (("kernel", path, ("compile", *problem.options(mask), "-o", path)),
                                    ("table", table, ("make", mask, "-n", problem.length, "-o", table))))
    return made | {"plans": {}, "shapes": shapes(attempt, problem.options(mask))}


class Recorder:
    """A call whose results stay in a dictionary: those of one round."""

    def __init__(self, call):
        self.call, self.kept, self.made = call, self, {}

    def __getattr__(self, name):
        return getattr(self.call, name)

    def put(self, stage, name, result):
        self.made[name] = result


def run_ours(call, stage, folder, problems, files):
    """({case: result} of one round, the reason of a crash)."""
    recorder = Recorder(call)
    waiting = {c.name: c for p in problems for direction in PASSES for c in [p.case(direction)]}
    why = timing.measure_all(recorder, stage, folder, waiting, files)
    return recorder.made, why


# ---- rounds ----

def median(values):
    known = sorted(filter(None, values))
    return (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 if known else None


def row_of(round_, problem, direction):
    """Our row of a case in one round."""
    rows = round_[1].get(problem.case(direction).name, {}).get("results", ())
    return rows[0] if rows else {}


def reasons(rounds, problem):
    """Why figures are missing or a kernel of ours is wrong."""
    said = []
    for harness, ours, why in rounds:
        theirs = harness.get(problem.title, {})
        said += [theirs["said"]] if "said" in theirs else []
        said += ["harness: it calls its own result wrong"] if theirs.get("verdict") == "BAD" else []
        for direction in PASSES:
            made = ours.get(problem.case(direction).name)
            said.append(made["said"] if made else why or f"no time of our {direction}")
    return "; ".join(dict.fromkeys(filter(None, said)))


def result_of(rounds, problem, files):
    """The result of a problem: medians over the rounds, in milliseconds."""
    theirs = {p: median([r[0].get(problem.title, {}).get(p) for r in rounds]) for p in PARTS}
    ours = {d: median([row_of(r, problem, d).get("median_s") for r in rounds]) for d in PASSES}
    said = reasons(rounds, problem)
    bad = any(timing.is_bad(row) for r in rounds for d in PASSES for row in [row_of(r, problem, d)] if row)
    known = all(ours.values()) and all(theirs.values())
    return {"ok": known and not bad, "dead": not known and not bad, "said": said, "rounds": len(rounds),
            "harness_ms": theirs, "ours_ms": {d: s and 1e3 * s for d, s in ours.items()},
            "kernels": list(problem.kernels), "shapes": files.get("shapes", {})}


def one_round(call, stage, folder, problems, files):
    theirs = {p.title: run_harness(call, p) for p in problems}
    return theirs, *run_ours(call, stage, folder, problems, files)


def prepare(call, folder, problems):
    """{key: files}; the key is the text that timing_gpu.py makes of the same values."""
    with concurrent.futures.ThreadPoolExecutor(call.o.jobs) as threads:
        made = threads.map(functools.partial(prepared, call, folder), problems)
        return {" ".join(map(str, p.key)): files for p, files in zip(problems, made)}


def keep(call, stage, problems, rounds, files):
    for p in problems:
        call.kept.put(stage.name, p.title, result_of(rounds, p, files[" ".join(map(str, p.key))]))


def run(call, stage, todo):
    """Names of the problems that are left."""
    wanted = {item.name: item for item in todo}
    problems, budget = [], call.left() - stage.start
    for p in PROBLEMS:
        if p.title in wanted and wanted[p.title].seconds <= budget:
            problems.append(p)
            budget -= wanted[p.title].seconds
    rounds, files = [], {}
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        try:
            files = prepare(call, pathlib.Path(folder), problems) if problems else {}
            for _ in range(ROUNDS if problems else 0):
                rounds.append(one_round(call, stage, pathlib.Path(folder), problems, files))
        except OutOfTime:
            pass  # of the rounds before, if any, results are kept
    if rounds:
        keep(call, stage, problems, rounds, files)
    done = call.kept.stage(stage.name)
    return [item.name for item in todo if item.name not in done]


def missing(call):
    """The reason why the harness or our kernels cannot run here, or an empty text."""
    host = call.o.harness / "host"
    if not os.access(host, os.X_OK):
        return f"{call.o.harness}: it has no program 'host'"
    return timing.missing(call)


def stage(o):
    seconds = ROUNDS * (expected.of("harness run", o.device) + len(PASSES) * expected.of("time row", o.device))
    wanted = [p for p in PROBLEMS if (not o.masks or p.mask in o.masks) and (not o.length or p.length in o.length)]
    start = ROUNDS * expected.of("time start", o.device) + expected.of("time kernels", o.device)
    key = digest(o.harness) if o.harness else ""
    return Stage("harness", [Item(p.title, seconds, alone=True, key=key) for p in wanted], start=start, missing=missing, together=run)


# ---- Markdown ----

def milliseconds(value):
    return f"{value:.3f}" if value else "-"


def ratio(ours, theirs):
    """Ours by the harness's; what is more than 5 % slower is bold."""
    if not ours or not theirs:
        return "-"
    text = f"{ours / theirs:.2f}"
    return f"**{text}**" if ours > 1.05 * theirs else text


def rows_of(name, r):
    theirs, ours, made = r.get("harness_ms", {}), r.get("ours_ms", {}), r.get("shapes", {})
    parts = [theirs.get("dq"), theirs.get("dkv")]
    back = sum(parts) if all(parts) else None
    said = f"{milliseconds(parts[0])} + {milliseconds(parts[1])}"
    yield [name, "forward", made.get("forward", "-"), milliseconds(ours.get("forward")), milliseconds(theirs.get("forward")), "",
           ratio(ours.get("forward"), theirs.get("forward")), " ".join(r.get("kernels", [])[:1])]
    yield [name, "backward", f"{made.get('dq', '-')}, {made.get('dkv', '-')}", milliseconds(ours.get("backward")),
           milliseconds(back), said, ratio(ours.get("backward"), back), " ".join(r.get("kernels", [])[1:])]


def lines(results):
    """The stage in Markdown."""
    head = ["mask", "pass", "shape", "ours", "harness", "dQ + dK dV", "ours / harness", "kernels of the harness"]
    rows = [row for name, r in results.items() if not r.get("dead") or r.get("ours_ms") for row in rows_of(name, r)]
    bad = [f"- **{name}**: {r['said']}" for name, r in results.items() if r.get("said")]
    table = ["| " + " | ".join(x) + " |" for x in [head, ["---"] * len(head), *rows]] if rows else []
    return ["## harness", "", f"Medians of {ROUNDS} turns of each, in ms; {HEADS} heads, bf16; CUDA graphs (ours), events (the harness).",
            "", *bad, *([""] if bad else []), *table, ""]
