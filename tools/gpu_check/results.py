# SPDX-License-Identifier: Apache-2.0
"""Results of gpu-check: one JSON file for a device, a day and a state of the sources, {stage: {case: result}}, and its
Markdown. Both appear whole or not at all. Cases stand in the order of the stages, whichever ended first.
"""
import datetime
import json
import os
import re

from gpu_check import report
from gpu_check.timing import is_bad
from gpu_check.work import is_dead
from peers_report import finite


SAME = ("device", "sources", "driver", "torch")  # of an earlier call whose results are reused


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def write_whole(path, text):
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


class Results:
    def __init__(self, folder, device, sources, fresh=False, machine=None):
        """machine: more fields of the header, such as driver and revision."""
        date = datetime.date.today().isoformat()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{slug(device)}-{date}.json"
        self.order, self.keys = {}, {}
        self.data = {"device": device, "date": date, "sources": sources, "stages": {}}
        old = {} if fresh else self.read()
        found = self.data | (machine or {})
        if all(old.get(name) == found.get(name) for name in SAME):
            self.data = old
        self.data |= machine or {}

    def read(self):
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def set_order(self, stages):
        """stages: those of this call, in order. Other results follow as they were; those under another key go."""
        self.order = {s.name: {item.name: k for k, item in enumerate(s.items)} for s in stages}
        self.keys = {s.name: {item.name: item.key for item in s.items if item.key} for s in stages}
        for name, keys in self.keys.items():
            done = self.stage(name)
            for case in [case for case, key in keys.items() if case in done and done[case].get("key") != key]:
                del done[case]

    def stage(self, name):
        return self.data["stages"].setdefault(name, {})

    def put(self, stage, case, result):
        key = self.keys.get(stage, {}).get(case)
        self.stage(stage)[case] = result | ({"key": key} if key else {})
        self.save()

    def ordered(self):
        """The data with stages and cases in their order."""
        places = {name: k for k, name in enumerate(report.STAGES)}
        stages = sorted(self.data["stages"].items(), key=lambda pair: places.get(pair[0], len(places)))
        return self.data | {"stages": {name: self.ordered_cases(name, done) for name, done in stages if done}}

    def ordered_cases(self, stage, done):
        places = self.order.get(stage, {})
        return dict(sorted(done.items(), key=lambda pair: places.get(pair[0], len(places))))

    def save(self):
        data = self.ordered()
        write_whole(self.path, json.dumps(finite(data), indent=1) + "\n")
        write_whole(self.path.with_suffix(".md"), report.text(data))

    def note(self, field, stage, found):
        """found: why a stage is left out, in the field "left_out", or the names of its cases that are left, in "left"."""
        noted = self.data.setdefault(field, {})
        noted.pop(stage, None)
        if found:
            noted[stage] = found

    def wrong(self):
        """True if a kernel or model of ours is wrong, or a case came to no result."""
        every = [(stage, r) for stage, done in self.data["stages"].items() for r in done.values()]
        if any(is_dead(r) or not r.get("ok", True) for _, r in every):
            return True
        return any(is_bad(row) for _, r in every for row in r.get("results", ()) if "contender" in row)
