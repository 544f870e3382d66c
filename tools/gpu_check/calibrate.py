# SPDX-License-Identifier: Apache-2.0
"""Stage calibrate: measured rates of this GPU, which later predictions use."""
import json
import pathlib

from gpu_check import expected
from gpu_check.work import Item, Stage

NEAR = 0.25  # relative error of a prediction that holds


def calibrate_once(attempt):
    code, out, said = attempt.command(attempt.maskc, "calibrate", "--device", attempt.o.device, "--json")
    try:
        made = json.loads(out) if code == 0 else {}
    except ValueError:
        code, made, said = 1, {}, "calibrate: its output is not JSON"
    return {"ok": code == 0, "dead": code != 0, "made": made,
            "said": said or (f"calibrate: exit status {code}" if code else "")}


def forget_moved(call):
    """Drops a result from another machine: the rates are stored where they were measured."""
    before = call.kept.stage("calibrate")
    path = before.get("calibrate", {}).get("made", {}).get("path")
    if path and not pathlib.Path(path).exists():
        before.clear()
    return ""


def stage(o):
    item = Item("calibrate", expected.of("calibrate", o.device), calibrate_once, alone=True)
    return Stage("calibrate", [item], missing=forget_moved)


def relative_error(predicted, measured):
    return abs(predicted / measured - 1) if predicted and measured else float("inf")


def lines(results):
    """The stage in Markdown."""
    made_lines = ["## calibrate", ""]
    for r in results.values():
        made = r.get("made", {})
        probes = made.get("probes", ())
        near = [p for p in probes if relative_error(p.get("fitted_s"), p.get("measured_s")) <= NEAR]
        made_lines.append(f"{len(near)} of {len(probes)} probes are fitted within 25 %; {made.get('path', 'not stored')}"
                          if r["ok"] else f"- **failed**: {r.get('said')}")
    return made_lines + [""]
