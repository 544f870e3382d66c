# SPDX-License-Identifier: Apache-2.0
"""Small files of every kind of task, about the sentences of pretrain_toy."""
import csv
import json
import math
import pathlib
import random
import struct

from pretrain_toy import OBJECTS, SUBJECTS, VERBS

LARGEST = 3e38  # near the end of f32: sums of a few overflow
COUNTS = {"train": 320, "dev": 90}
WORDS = {"V": VERBS, "D": ["the", "a", "an", "my", "some", "this", "our"]}


def sentence(draw):
    return draw.choice(SUBJECTS), draw.choice(VERBS), draw.choice(OBJECTS)


def table(path, header, rows):
    pathlib.Path(path).write_text("".join("\t".join(r) + "\n" for r in [header, *rows]))


def text(draw, folder, part):
    """The verb."""
    rows = [sentence(draw) for _ in range(COUNTS[part])]
    table(f"{folder}/{part}.tsv", ["text", "label"], [(" ".join(r), r[1]) for r in rows])


def pair(draw, folder, part):
    """Is it the same verb?"""
    rows = []
    for _ in range(COUNTS[part]):
        a, b = sentence(draw), sentence(draw)
        b = (b[0], a[1] if draw.random() < 0.5 else b[1], b[2])
        rows.append((" ".join(a), " ".join(b), "same" if a[1] == b[1] else "other"))
    table(f"{folder}/{part}.tsv", ["text", "text2", "label"], rows)


def number(draw, folder, part):
    """A sum over verb and subject."""
    rows = [sentence(draw) for _ in range(COUNTS[part])]
    table(f"{folder}/{part}.tsv", ["text", "label"],
          [(" ".join(r), f"{VERBS.index(r[1]) / 4 + SUBJECTS.index(r[0]) / 8:.3f}") for r in rows])


def tokens(draw, folder, part):
    """Verbs, determiners and the rest."""
    lines = []
    for _ in range(COUNTS[part]):
        for word in " ".join(sentence(draw)).split():
            lines.append(word + "\t" + next((k for k, words in WORDS.items() if word in words), "O"))
        lines.append("")
    pathlib.Path(f"{folder}/{part}.tsv").write_text("\n".join(lines))


def swag(draw, folder, part):
    """The ending with the sentence's own verb."""
    with open(f"{folder}/{part}.csv", "w", newline="", encoding="utf-8") as f:
        to = csv.writer(f)
        to.writerow(["sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"])
        for _ in range(COUNTS[part]):
            s, label = sentence(draw), draw.randrange(4)
            verbs = draw.sample([v for v in VERBS if v != s[1]], 4)
            verbs[label] = s[1]
            to.writerow([" ".join(s), s[0], *(v + " some water" for v in verbs), label])


def squad(draw, folder, part, unanswerable):
    """Questions for a verb's object in texts of three sentences."""
    paragraphs = []
    for k in range(COUNTS[part]):
        verbs = draw.sample(VERBS, 4)
        said = [(draw.choice(SUBJECTS), v, draw.choice(OBJECTS)) for v in verbs[:3]]
        context = " . ".join(" ".join(s) for s in said) + " ."
        of = draw.randrange(4 if unanswerable else 3)
        answers = []
        if of < 3:
            before = f"{said[of][0]} {said[of][1]} "
            answers = [{"text": said[of][2], "answer_start": context.index(before) + len(before)}]
        paragraphs.append({"context": context, "qas": [{"id": f"{part}-{k}", "question": "what " + verbs[of], "answers": answers}]})
    pathlib.Path(f"{folder}/{part}.json").write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))


def squad1(draw, folder, part):
    squad(draw, folder, part, False)


def squad2(draw, folder, part):
    squad(draw, folder, part, True)


TASKS = {"text": text, "pair": pair, "number": number, "tokens": tokens, "swag": swag, "squad1": squad1, "squad2": squad2}
NAMES = {"number": "text"}  # the other folders have their task's name


def make(work):
    for name, write in TASKS.items():
        folder = pathlib.Path(work) / name
        folder.mkdir()
        for part in COUNTS:
            write(random.Random(f"{name} {part}"), folder, part)


def overflow(model, name, word=None, value=LARGEST):
    """Sets a tensor of a model's file, or its row for a word, to a value. All numbers stay finite."""
    path = pathlib.Path(model) / "model.safetensors"
    blob = bytearray(path.read_bytes())
    begin = 8 + struct.unpack("<Q", blob[:8])[0]
    tensor = next(v for k, v in json.loads(blob[8:begin]).items() if k.endswith(name))
    rows = tensor["shape"][0]
    at = 0 if word is None else (pathlib.Path(model) / "vocab.txt").read_text().split("\n").index(word)
    size = math.prod(tensor["shape"]) // rows
    count = size if word else size * rows
    first = begin + tensor["data_offsets"][0] + 4 * size * at
    blob[first:first + 4 * count] = struct.pack(f"<{count}f", *([value] * count))
    path.write_bytes(blob)


def arguments(task, run, *options):
    return ["finetune", "trained", "--task", NAMES.get(task, task), "--data", task, "-o", run, "--lr", 4e-3, "--batch", 16, "--dropout", 0, *options]


def evaluate(toy, task, run, *options):
    made = toy.ok("eval", run, "--task", NAMES.get(task, task), "--data", task, "--json", *options)
    return json.loads(made.stdout)


def dev_texts(task):
    """Lines as `classify` and `answer` take them, in the order of the dev file."""
    folder = pathlib.Path(task)
    if task.startswith("squad"):
        paragraphs = json.loads((folder / "dev.json").read_text())["data"][0]["paragraphs"]
        return [p["qas"][0]["question"] + "\t" + p["context"] for p in paragraphs]
    if task == "tokens":
        return [" ".join(line.split("\t")[0] for line in s.split("\n")) for s in (folder / "dev.tsv").read_text().rstrip("\n").split("\n\n")]
    if task == "swag":
        rows = [line.split(",") for line in (folder / "dev.csv").read_text().splitlines()[1:]]
        return ["\t".join([r[0], *(r[1] + " " + e for e in r[2:6])]) for r in rows]
    return [line.rpartition("\t")[0] for line in (folder / "dev.tsv").read_text().splitlines()[1:]]


def answers(toy, task, run, *options):
    """Output of classify or answer, in the form of a prediction."""
    command = "answer" if task.startswith("squad") else "classify"
    lines = [json.loads(x) for x in toy.ok(command, run, "--json", *options, stdin="\n".join(dev_texts(task)) + "\n").stdout.splitlines()]
    if command == "answer":
        none = [x["no_answer_score"] - x["answers"][0]["score"] > 0 and task == "squad2" for x in lines]
        return ["" if n else x["answers"][0]["text"] for x, n in zip(lines, none)]
    return lines
