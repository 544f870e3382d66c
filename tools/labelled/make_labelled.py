# SPDX-License-Identifier: Apache-2.0
"""Labelled text out of the package lists of Debian or Ubuntu: four tasks, each a folder for `maskbert finetune`."""
import collections
import hashlib

import endings
import folders
import records
import section
import splits
import subject
import synopsis

TASKS = (section.TASK, synopsis.TASK, endings.TASK, subject.TASK)
RELEASE = ("origin", "suite", "codename", "date")


def rules():
    """For the tool's help."""
    each = [f"{t.name}/ (maskbert finetune --task {t.format}):\n{t.rule}" for t in TASKS]
    return "\n\n".join([records.__doc__.strip(), splits.__doc__.strip(), *each])


def releases(lists):
    """Origin of the lists: {"origin", "suite", "codename", "date"} for each that has descriptions."""
    found = []
    for path in sorted(lists.glob("*_InRelease")):
        if not any(lists.glob(path.name.removesuffix("InRelease") + records.DESCRIPTIONS)):
            continue
        fields = {}
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(": ")
            fields.setdefault(name.lower(), value)
        found.append({name: fields.get(name, "") for name in RELEASE})
    return found


def digest(all_records):
    return hashlib.sha256("".join(map(repr, all_records)).encode()).hexdigest()[:16]


def origin_text(made):
    of = "; ".join(f"{r['origin']} {r['codename']} of {r['date']}" for r in made["releases"]) or "the lists that were given"
    return f"Texts: package descriptions of {of}; {made['records']} records (digest {made['digest']}); `--seed {made['seed']}`."


def make(lists, target, seed, say=lambda text: None):
    """Writes the folders and returns what was made, for --json."""
    counts = collections.Counter()
    all_records = records.load(lists, counts)
    parts = splits.by_part(all_records, seed, counts)
    made = {"folder": str(target), "seed": seed, "releases": releases(lists), "records": len(all_records), "digest": digest(all_records),
            "dropped": dict(counts), "tasks": {}}
    say(f"{len(all_records)} descriptions; dropped: " + ", ".join(f"{number} {what}" for what, number in counts.items()))
    for task in TASKS:
        own = collections.Counter()
        examples = task.make(parts, seed, own)
        empty = [part for part in splits.PARTS if not examples[part]]
        if empty:
            raise records.Missing(f"{lists}: too few packages for {task.name}/: no example for {', '.join(empty)}")
        found = folders.write(target / task.name, task, examples, {**counts, **own}, origin_text(made))
        made["tasks"][task.name] = {"task": task.format, "folder": str(target / task.name), "parts": found, "dropped": dict(own)}
        say(line(target / task.name, task, found, own))
    return made


def line(folder, task, found, dropped):
    parts = ", ".join(f"{part} {found[part]['examples']}" for part in splits.PARTS)
    more = f"{found['train']['unanswerable']} of train without an answer" if task.format == "squad2" else f"{found['train']['classes']} classes"
    return f"{folder} (--task {task.format}): {parts}; {more}; dropped: {', '.join(f'{n} {what}' for what, n in dropped.items()) or 'none'}"
