# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu-check keeps: one JSON file for a device, a day and a state of the sources, {stage: {case: result}},
and a table of it in Markdown. Both appear whole or not at all.
"""
import datetime
import json
import os
import re

import gpu_check_bert as bert
from peers_report import finite


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def write_whole(path, text):
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


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

    def wrong(self):
        """Whether some kernel did not hold: ours, not PyTorch's."""
        verified = [r for stage in ("verify", "maskbert") for r in self.data["stages"].get(stage, {}).values()]
        timed = [row for stage in ("time", "peers")
                 for cell in self.data["stages"].get(stage, {}).values()
                 for row in cell.get("results", ())]
        return (any(not r["ok"] for r in verified) or
                any(r["contender"].startswith("ours") and r["verdict"] != "ok" for r in timed))

    # ---- the table ----

    def table(self):
        lines = [f"# {self.data['device']}, {self.data['date']}", "",
                 f"Sources {self.data['sources']}. `tools/gpu-check`; times in ms, medians.", ""]
        stages = self.data["stages"]
        if "verify" in stages:
            lines += verify_lines(stages["verify"])
        for name in ("time", "peers"):
            if name in stages:
                lines += timing_lines(name, stages[name])
        if "calibrate" in stages:
            lines += ["## calibrate", "", "```", *(r.get("printed", "").strip()
                                                  for r in stages["calibrate"].values()), "```", ""]
        if "maskbert" in stages:
            lines += bert.lines(stages["maskbert"])
        return "\n".join(lines)


def verify_lines(cases):
    bad = [f"- **{case}**: {r.get('said', 'does not hold')}" for case, r in cases.items() if not r["ok"]]
    return ["## verify", "", f"{len(cases)} cases, {len(bad)} wrong.", *bad, ""]


def timing_lines(name, cells):
    rows = [r for cell in cells.values() for r in cell.get("results", ())]
    contenders = list(dict.fromkeys(r["contender"] for r in rows))
    head = ["mask", "n", "dtype", "pass", "floor", *contenders]
    lines = [f"## {name}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    groups = {}
    for r in rows:
        groups.setdefault((r["mask"], r["length"], r["dtype"], r["pass"]), {})[r["contender"]] = r
    for (mask, n, dtype, direction), by in groups.items():
        floor = next(iter(by.values())).get("floor_s")
        cells_of_row = [mask, str(n), dtype, direction, cell_text(floor)]
        cells_of_row += [cell_text(by[c].get("median_s")) if c in by else "-" for c in contenders]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells_of_row) + " |")
    return lines + [""]


def cell_text(seconds):
    return f"{1e3 * seconds:.4f}" if seconds else "-"
