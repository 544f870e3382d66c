# SPDX-License-Identifier: Apache-2.0
"""subject/: where in a text is the subject of a synopsis named, or nowhere?"""
import dataclasses

import names
import records
import splits
from folders import Example, Task

RULE = """\
The text joins the beginnings of three descriptions (whole sentences, at most 40 words each) of packages of one section and of three families of
sources, in random order. A question is a synopsis. Its answer is the first place where the text names the package that the synopsis is of: the
name of the package or its source, as the description writes it ("GNOME Terminal" for gnome-terminal); other spellings are further answers.
Two of the three packages are asked for. The third question of a text is the synopsis of a package that the text does not have, from the same
section: it has no answer.

So that a reader can answer, and knows when there is none:
- a question has 3 words or more, and contains neither its package's name nor that of a package of the text;
- a name is in its own description only, and is no ordinary word (the descriptions of at most 10 families of sources have it);
- each package is in one text at most, and its synopsis is asked once at most: for two of three where the package is, for the third elsewhere.
So neither a question nor a text tells by itself whether there is an answer. A synopsis may still fit two packages that do the same.
Offsets count code points from 0, as SQuAD's do."""
PASSAGE_WORDS, QUESTION_WORDS, PER_FAMILY = 40, 3, 4


@dataclasses.dataclass(frozen=True)
class Passage:
    record: records.Record
    text: str
    names: tuple  # (name as the text has it, where, in code points), the first place first

    def __getattr__(self, field):  # section, source, package, synopsis
        return getattr(self.record, field)

    @property
    def family(self):
        return records.family(self.record.source)


def beginning(r):
    kept, words = [], 0
    for sentence in r.sentences:
        words += len(sentence.split())
        if words > PASSAGE_WORDS:
            break
        kept.append(sentence)
    return " ".join(kept)


def passage_of(r, families):
    text = beginning(r)
    found = names.find(r, text, families) if text and len(r.synopsis.split()) >= QUESTION_WORDS else []
    if not found or names.mentions(r, r.synopsis) or any(m[0].lower() in r.synopsis.lower() for m in found):
        return None
    return Passage(r, text, tuple((m[0], m.start()) for m in found))


def knows(other, p):
    """Does the text or the question of one tell of the other?"""
    text = f"{p.text} {p.synopsis}"
    return names.mentions(other.record, text) or any(name.lower() in text.lower() for name, _ in other.names)


def apart(some):
    return len({p.family for p in some}) == len(some) and not any(knows(a, b) for a in some for b in some if a is not b)


def triples(rows, seed, words):
    """Three of different families that know nothing of each other; what finds no place is left out."""
    waiting, found = list(rows), []
    while waiting:
        first, *waiting = waiting
        for at, second in enumerate(waiting):
            third = next((p for p in waiting[at + 1:at + 20] if apart((first, second, p))), None) if apart((first, second)) else None
            if third:
                found.append(splits.shuffled([first, second, third], seed, "order", *words))
                waiting = [p for p in waiting if p is not second and p is not third]
                break
            if at == 20:
                break
    return found


def hosts(found, seed, words):
    """[(triple, the passage not asked for there, a stranger's)]: each stranger is the one not asked for in its own text."""
    silent = [three[splits.draw(seed, "silent", *words, k) % 3] for k, three in enumerate(found)]
    free, made = list(range(len(found))), []
    for k, three in enumerate(found):
        stranger = next((s for s in free if s != k and apart((*three, silent[s]))), None)
        if stranger is not None:
            free.remove(stranger)
            made.append((three, silent[k], silent[stranger]))
    return made


def question(p, names_at=()):
    answers = [{"text": name, "answer_start": at} for name, at in names_at]
    return {"id": p.package, "question": p.synopsis, "answers": answers, "is_impossible": not answers}


def paragraph(three, silent, stranger, seed):
    context, asked = "", []
    for p in three:
        context += " " * bool(context)
        if p is not silent:
            asked.append(question(p, [(name, len(context) + at) for name, at in p.names]))
        context += p.text
    for q in asked:
        for a in q["answers"]:
            assert context[a["answer_start"]:a["answer_start"] + len(a["text"])] == a["text"]
    texts = (*(p.text for p in three), *(q["question"] for q in asked), stranger.synopsis)
    asked = sorted([*asked, question(stranger)], key=lambda q: splits.draw(seed, "question", q["id"]))
    return Example({"context": context, "qas": asked}, (*(p.record for p in three), stranger.record), texts, 3, 1)


def examples(some, seed, part):
    for section, rows in sorted(splits.by_section(some).items()):
        found = triples(splits.shuffled(rows, seed, "subject", part), seed, (part, section))
        for three, silent, stranger in hosts(found, seed, (part, section)):
            yield paragraph(three, silent, stranger, seed)


def make(parts, seed, counts):
    families = names.families_with([r for part in splits.PARTS for r in parts[part]])
    found = {part: [p for r in splits.capped(parts[part], PER_FAMILY) if (p := passage_of(r, families))] for part in parts}
    kept = splits.without_repeats(found, lambda p: [p.synopsis, p.text], counts)
    return {part: list(examples(kept[part], seed, part)) for part in kept}


TASK = Task("subject", "squad2", (), RULE, make, ".json")
