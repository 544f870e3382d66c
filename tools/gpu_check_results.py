# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu-check keeps: one JSON file for a device, a day and a state of the sources, {stage: {case: result}},
and a table of it in Markdown. Both appear whole or not at all.
"""
import datetime
import json
import os
import re

import gpu_check_bert as bert
from peers_report import DENSE, finite

NEAR = 0.25  # a prediction that is off by no more holds


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def write_whole(path, text):
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def dead(result):
    """Whether a case came to no result, as its program is missing, crashed or was stopped: tried again."""
    return bool(result.get("dead"))


class Results:
    def __init__(self, folder, device, sources, fresh):
        date = datetime.date.today().isoformat()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{slug(device)}-{date}.json"
        self.data = {"device": device, "date": date, "sources": sources, "stages": {}}
        if self.path.exists() and not fresh:
            try:
                old = json.loads(self.path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                old = {}
            if old.get("sources") == sources and old.get("device") == device:
                self.data = old

    def stage(self, name):
        return self.data["stages"].setdefault(name, {})

    def put(self, stage, case, result):
        self.stage(stage)[case] = result
        self.save()

    def save(self):
        write_whole(self.path, json.dumps(finite(self.data), indent=1, sort_keys=True) + "\n")
        write_whole(self.path.with_suffix(".md"), self.table())

    def leave_out(self, asked, reasons):
        """reasons: {stage: why it is not run}; of stages that are asked for, what was said before is forgotten."""
        before = self.data.get("left_out", {})
        self.data["left_out"] = {name: why for name, why in before.items() if name not in asked} | reasons

    def wrong(self):
        """Whether some kernel (ours, not PyTorch's) did not hold or could not be captured in a graph, or a case came to
        no result."""
        verified = [r for stage in ("verify", "maskbert", "calibrate")
                    for r in self.data["stages"].get(stage, {}).values()]
        if any(dead(r) for cases in self.data["stages"].values() for r in cases.values()):
            return True
        timed = [row for stage in ("time", "peers")
                 for cell in self.data["stages"].get(stage, {}).values()
                 for row in cell.get("results", ())]
        ours = [row for row in timed if row["contender"].startswith("ours")]
        return (any(not r["ok"] for r in verified) or
                any(row["verdict"] != "ok" or row.get("graph") is False for row in ours))

    # ---- the table ----

    def table(self):
        lines = [f"# {self.data['device']}, {self.data['date']}", "",
                 f"Sources {self.data['sources']}. `tools/gpu-check`; times in ms, medians.", ""]
        stages = self.data["stages"]
        for name, reason in self.data.get("left_out", {}).items():
            lines += [f"- **{name}** left out: {reason}", ""]
        if "verify" in stages:
            lines += verify_lines(stages["verify"])
        if "calibrate" in stages:
            lines += calibrate_lines(stages["calibrate"])
        for name in ("time", "peers"):
            if name in stages:
                lines += timing_lines(name, stages[name])
        if "maskbert" in stages:
            lines += bert.lines(stages["maskbert"])
        return "\n".join(lines)


def verify_lines(cases):
    bad = [f"- **{case}**: {r.get('said', 'does not hold')}" for case, r in cases.items() if not r["ok"]]
    return ["## verify", "", f"{len(cases)} cases, {len(bad)} wrong.", *bad, ""]


def calibrate_lines(cases):
    lines = ["## calibrate", ""]
    for r in cases.values():
        if not r["ok"]:
            lines.append(f"- **failed**: {r.get('said')}")
            continue
        made = r.get("made", {})
        near = [p for p in made.get("probes", ()) if off(p.get("fitted_s"), p.get("measured_s")) <= NEAR]
        lines.append(f"{len(near)} of {len(made.get('probes', ()))} probes are fitted within 25 %; "
                     f"{made.get('path', 'not stored')}")
    return lines + [""]


def off(predicted, measured):
    return abs(predicted / measured - 1) if predicted and measured else float("inf")


# ---- times ----

def seconds_of(row):
    return row.get("median_s") if row else None


def fastest(by, names):
    return min(filter(None, (seconds_of(by.get(c)) for c in names)), default=None)


def floor_of(ours):
    """Neither memory nor the products of what is executed can be faster."""
    return max(filter(None, (ours.get("floor_s"), ours.get("area_floor_s"))), default=None)


def ratio(over, under, text):
    return text.format(over / under) if over and under else "-"


# column: its text for the results of one mask, n, dtype and pass by contender, and ours among them
FIGURES = {
    "of floor": lambda by, ours: ratio(100 * (floor_of(ours) or 0), seconds_of(ours), "{:.0f} %"),
    "vs own dense": lambda by, ours: ratio(seconds_of(by.get("ours-dense")), seconds_of(ours), "{:.2f} x"),
    "vs torch's dense": lambda by, ours: ratio(fastest(by, DENSE), seconds_of(ours), "{:.2f} x"),
    "vs best flex": lambda by, ours: ratio(fastest(by, [c for c in by if c.startswith("flex-")]), seconds_of(ours),
                                           "{:.2f} x"),
    "predicted / measured": lambda by, ours: ratio(ours.get("predicted_s"), seconds_of(ours), "{:.2f}"),
    "executed": lambda by, ours: ratio(ours.get("executed_fraction"), 0.01, "{:.2f} %"),
    "verdict": lambda by, ours: ours.get("verdict", "-") + (", no graph" if ours.get("graph") is False else ""),
}
FLOORS = {"memory floor": "floor_s", "area floor": "area_floor_s"}


def grouped(rows):
    groups = {}
    for r in rows:
        groups.setdefault((r["mask"], r["length"], r["dtype"], r["pass"]), {})[r["contender"]] = r
    return groups


def timing_lines(name, cells):
    rows = [r for cell in cells.values() for r in cell.get("results", ())]
    contenders = list(dict.fromkeys(r["contender"] for r in rows))
    head = ["mask", "n", "dtype", "pass", *FLOORS, *contenders, *FIGURES]
    lines = [f"## {name}", "", *silent_lines(cells), *measured_lines(cells), *load_lines(rows), *near_lines(rows)]
    lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] if rows else []
    for (mask, n, dtype, direction), by in grouped(rows).items():
        ours = by.get("ours", {})
        words = [mask, str(n), dtype, direction, *(cell_text(ours.get(key)) for key in FLOORS.values()),
                 *(cell_text(seconds_of(by.get(c))) for c in contenders),
                 *(figure(by, ours) for figure in FIGURES.values())]
        lines.append("| " + " | ".join(w.replace("|", "\\|") for w in words) + " |")
    return lines + [""]


def silent_lines(cells):
    """Why a cell has no figures, or not all."""
    said = [f"- **{name}**: {cell.get('said') or 'does not hold'}" for name, cell in cells.items()
            if dead(cell) or not cell.get("results")]
    return [*said, ""] if said else []


def measured_lines(cells):
    """What floors are made of, as the last run measured it."""
    made = [c for c in cells.values() if c.get("copy_bytes_per_s")]
    if not made:
        return []
    mma = made[-1].get("mma") or {}
    products = (f"; {mma['flops_per_s'] / 1e12:.0f} TFLOP/s in products ({mma['by']})"
                if mma.get("flops_per_s") else "")
    return [f"A copy moves {made[-1]['copy_bytes_per_s'] / 1e12:.2f} TB/s{products}.", ""]


def load_lines(rows):
    known = [r["load_s"] for r in rows if r.get("load_s") and r["contender"].startswith("ours")]
    if not known:
        return []
    return [f"Kernel files load in {1e3 * sorted(known)[len(known) // 2]:.1f} ms (median of {len(known)}; the longest "
            f"{1e3 * max(known):.1f} ms).", ""]


def near_lines(rows):
    known = [off(r["predicted_s"], seconds_of(r)) for r in rows if r.get("predicted_s") and seconds_of(r)]
    if not known:
        return []
    return [f"{sum(x <= NEAR for x in known)} of {len(known)} predictions are within 25 %.", ""]


def cell_text(seconds):
    return f"{1e3 * seconds:.4f}" if seconds else "-"
