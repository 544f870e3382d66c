# SPDX-License-Identifier: Apache-2.0
"""Markdown of a run: what was checked, what is wrong, what was left."""
import functools

from gpu_check import calibrate, harness, maskbert, peers_table, python_tests, timing_table
from gpu_check.training import train
from gpu_check.work import is_dead

SHOWN = 8  # names of a list; the JSON file has all
REPORT_LINES = 12  # of a sanitizer's report


def some(names):
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def bad_lines(results):
    return [f"- **{case}**: {r.get('said') or 'does not hold'}" for case, r in results.items() if not r.get("ok", True)]


def verify_lines(results):
    bad = bad_lines(results)
    ratios = [((r.get("worst") or {}).get("error") or 0) / r["worst"]["tolerance"] for r in results.values()
              if (r.get("worst") or {}).get("tolerance")]
    worst = f" Largest error: {max(ratios):.2f} of its tolerance." if ratios else ""
    return ["## verify", "", f"{len(results)} cases, {len(bad)} wrong.{worst}", *bad, ""]


def sanitize_lines(results):
    """Counts of a whole run, and the text of each report that found something."""
    sums = {key: sum(r.get(key, 0) for r in results.values()) for key in ("access", "hazards", "api")}
    lines = ["## sanitize", "", f"{len(results)} cases: {sums['access']} wrong accesses, {sums['hazards']} hazards, "
             f"{sums['api']} failed calls of the driver.", *bad_lines(results), ""]
    for case, r in results.items():
        if r.get("report"):
            lines += [f"{case}:", "", "```", *r["report"].splitlines()[:REPORT_LINES], "```", ""]
    return lines


STAGES = {"verify": verify_lines, "harness": harness.lines, "time": timing_table.lines, "python": python_tests.lines, "maskbert": maskbert.lines, "train": train.lines,
          "calibrate": calibrate.lines, "sanitize": sanitize_lines, "maskbert-f32": functools.partial(maskbert.lines, name="maskbert-f32"), "peers": peers_table.lines}


def head_lines(data):
    known = [f"{name} {data[name]}" for name in ("revision", "driver", "torch", "python", "cores") if data.get(name)]
    died = sum(is_dead(r) for done in data["stages"].values() for r in done.values())
    lines = [f"# {data['device']}, {data['date']}", "", f"`tools/gpu-check`; sources {data['sources']}; {', '.join(known)}.", ""]
    for name, reason in data.get("left_out", {}).items():
        lines += [f"- **{name}** left out: {reason}", ""]
    for name, cases in data.get("left", {}).items():
        lines += [f"- **{name}**: {len(cases)} cases left for another call: {some(cases)}", ""]
    return lines + ([f"{died} cases came to no result.", ""] if died else [])


def text(data):
    lines = head_lines(data)
    for name, results in data["stages"].items():
        lines += STAGES[name](results) if name in STAGES else []
    return "\n".join(lines)
