# SPDX-License-Identifier: Apache-2.0
"""Tasks as folders: train, dev and test in the task's own format, packages.tsv (which packages each example is of) and a README."""
import csv
import dataclasses
import io
import json
import os

import splits


@dataclasses.dataclass(frozen=True)
class Example:
    fields: object  # of a row; of squad2 a paragraph
    records: tuple
    texts: tuple  # none of which may be in another part
    questions: int = 1
    unanswerable: int = 0


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    format: str  # of maskbert finetune --task
    header: tuple
    rule: str
    make: object  # (parts, seed, counts) -> {part: examples}
    ending: str = ".tsv"


LICENCE = """\
Descriptions are part of the packages' sources and under the licence of each package's packaging: /usr/share/doc/PACKAGE/copyright, or
https://metadata.ftp-master.debian.org/changelogs/ for Debian. These files were made on this machine from the lists that apt fetched; whoever
passes them on has to keep to those licences."""


def write_whole(path, text):
    aside = path.with_name(path.name + ".part")
    aside.write_text(text, encoding="utf-8", newline="")
    os.replace(aside, path)


def as_tsv(header, rows):
    for row in rows:
        assert not any(c in field for field in row for c in "\t\n\r\0"), row
    return "".join("\t".join(row) + "\n" for row in [header, *rows])


def as_csv(header, rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def as_squad(examples):
    """SQuAD 2.0: an article for each section."""
    articles = {}
    for x in examples:
        articles.setdefault(x.records[0].section, []).append(x.fields)
    data = [{"title": title, "paragraphs": articles[title]} for title in sorted(articles)]
    return json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False, indent=1) + "\n"


def file_text(task, examples):
    if task.ending == ".json":
        return as_squad(examples)
    return (as_csv if task.ending == ".csv" else as_tsv)(task.header, [x.fields for x in examples])


def packages_text(made):
    rows = [(part, str(number), r.package, r.source, r.section) for part in splits.PARTS for number, x in enumerate(made[part]) for r in x.records]
    return as_tsv(("part", "example", "package", "source", "section"), rows)


def counts_of(task, made):
    """{part: {"examples", "sources", ..}}"""
    found = {}
    for part in splits.PARTS:
        found[part] = {"examples": sum(x.questions for x in made[part]), "sources": len({r.source for x in made[part] for r in x.records})}
        if task.format == "squad2":
            found[part]["unanswerable"] = sum(x.unanswerable for x in made[part])
        else:
            found[part]["classes"] = len({x.fields[-1] for x in made[part]})
    return found


def readme(task, counts, dropped, origin):
    parts = "".join(f"| {part} | {c['examples']} | {c['sources']} | {c.get('unanswerable', '')} |\n" for part, c in counts.items())
    left = "".join(f"- {what}: {number}\n" for what, number in dropped.items())
    return f"""\
# {task.name}: made by `tools/fetch-text --labelled`

For `maskbert finetune DIR --task {task.format} --data FOLDER`. {origin}

## Rule

{task.rule}

{splits.__doc__.strip()}

## Counts

| part | examples | sources | without an answer |
| --- | --- | --- | --- |
{parts}
Dropped, of all records and then of this task:

{left}
packages.tsv names the packages of each example (numbered from 0 in each part; of subject the paragraphs are numbered).

## Licence

{LICENCE}
"""


def write(folder, task, made, dropped, origin):
    """The folder's counts. The files of a task appear one after another, each whole."""
    splits.check({part: [([r.source for r in x.records], x.texts) for x in made[part]] for part in made})
    folder.mkdir(parents=True, exist_ok=True)
    counts = counts_of(task, made)
    for part in splits.PARTS:
        write_whole(folder / f"{part}{task.ending}", file_text(task, made[part]))
    write_whole(folder / "packages.tsv", packages_text(made))
    write_whole(folder / "README.md", readme(task, counts, dropped, origin))
    return counts
