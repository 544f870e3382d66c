# SPDX-License-Identifier: Apache-2.0
"""The plan of a call by expected times: its stages and cases, the total, and what the budget leaves out."""
import dataclasses
import heapq
import textwrap

from gpu_check import expected


@dataclasses.dataclass
class Planned:
    """One stage: cases that fit, cases that are left, and its seconds."""
    stage: object
    fits: list
    left: list
    seconds: float


def fill(stage, items, workers, left):
    """(items that fit, items that do not, seconds) of items on so many workers, as the scheduler takes them."""
    free, fits, out = [0.0] * workers, [], []
    for item in items:
        begin = heapq.heappop(free)
        ends = begin + item.seconds <= left
        heapq.heappush(free, begin + item.seconds if ends else begin)
        (fits if ends else out).append(item)
    return fits, out, max(free)


def of_stage(stage, left):
    start = stage.start
    beside = [i for i in stage.items if not i.alone]
    fits, out, seconds = fill(stage, beside, stage.workers, left - start)
    alone = fill(stage, [i for i in stage.items if i.alone], 1, left - start - seconds)
    fits, out, seconds = fits + alone[0], out + alone[1], seconds + alone[2]
    return Planned(stage, fits, out, start + seconds if fits else 0.0)


def plan(stages, budget, build):
    """[Planned] in order, and the total with the build's seconds."""
    spent, made = build, []
    for stage in stages:
        made.append(of_stage(stage, budget - spent))
        spent += made[-1].seconds
    return made, spent


def wrapped(line):
    """A line of at most 100 columns, or several of them, which are indented below the first."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)


def case_lines(planned):
    for item in planned.fits:
        yield f"    {item.seconds:6.1f} s  {item.name}"


def figures(device):
    """Where the expected times are from."""
    if device == "emulated":
        return [f"  every case: {expected.EMULATED:.0f} s (measured on two cores, two cases at a time)"]
    return [f"  {case}: {seconds:.1f} s ({source})" for case, (seconds, source) in expected.SECONDS.items()]


def text(stages, budget, o, build, stages_skipped=()):
    """Text of --dry-run."""
    made, total = plan(stages, budget, build)
    machine = "the emulated device" if o.device == "emulated" else "one H100 80GB HBM3 with 16 CPU cores"
    lines = [f"Plan for {machine}, {o.jobs} workers, {budget} s; the start of the machine is not included.", "",
             f"{'build':14} {build:6.1f} s"]
    for p in made:
        lines.append(f"{p.stage.name:14} {p.seconds:6.1f} s  {len(p.fits)} of {len(p.stage.items)} cases, "
                     f"{p.stage.workers} at a time" + (f", {p.stage.start:.0f} s before the first" if p.stage.start else ""))
        lines += case_lines(p)
    lines += stages_skipped
    lines += ["", f"{'total':14} {total:6.1f} s of {budget} s", ""]
    left = [p for p in made if p.left]
    lines += [f"Left for another call, which goes on where this one ends: {', '.join(f'{p.stage.name} ({len(p.left)})' for p in left)}:",
              *(f"    {i.seconds:6.1f} s  {p.stage.name}: {i.name}" for p in left for i in p.left), ""] if left else []
    return "\n".join([wrapped(line) for line in lines] + ["Expected seconds of a case:", *figures(o.device)])
