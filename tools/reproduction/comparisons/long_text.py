# SPDX-License-Identifier: Apache-2.0
"""Questions about long texts: those of a SQuAD task with an answer, their texts joined with others to fill n tokens. Questions without an answer are
left out, as a text that is joined may have one."""
import random

from . import folders

FILLED = 0.85  # of n
MOST = 4096  # questions of the training part


def tokens(programs, model, contexts):
    """Number of tokens of each text."""
    path = model.parent / "contexts.txt"
    path.write_text("\n".join(" ".join(x.split()) for x in contexts) + "\n", encoding="utf-8")
    with open(path, "rb") as stdin:
        said = programs.run("maskbert", "tokenize", model, stdin=stdin)
    path.unlink()
    return {x: len(line.split()) - 2 for x, line in zip(contexts, said.splitlines())}


def answerable(rows):
    return [r for r in rows if r.get("answers") and not r.get("is_impossible")]


def join(row, sizes, contexts, n, draw):
    """The question with its text between others, answers shifted."""
    room = int(n * FILLED) - len(row["question"].split()) * 2 - sizes[row["context"]]
    before, after = [], []
    for _ in range(len(contexts)):
        other = contexts[draw.randrange(len(contexts))]
        if other == row["context"]:
            continue
        if sizes[other] > room:
            break
        (before if draw.random() < 0.5 else after).append(other)
        room -= sizes[other]
    start = sum(len(x) + 1 for x in before)
    answers = [{**a, "answer_start": a["answer_start"] + start} for a in row["answers"]]
    return {**row, "context": " ".join([*before, row["context"], *after]), "answers": answers}


def make(programs, model, task, n, output):
    """A squad1 task in a folder of its own."""
    made = folders.Task(f"long-{n}", "squad1", output, n)
    if output.exists():
        return made
    aside = output.with_name(output.name + ".part")
    aside.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev"):
        rows = answerable(folders.read_rows(task, part))
        draw = random.Random(f"{n} {part}")
        contexts = list(dict.fromkeys(r["context"] for r in rows))
        sizes = tokens(programs, model, contexts)
        rows = [rows[k] for k in sorted(draw.sample(range(len(rows)), min(MOST, len(rows))))]
        folders.write_rows("squad1", [join(r, sizes, contexts, n, draw) for r in rows], aside / f"{part}.json")
    aside.rename(output)
    return made
