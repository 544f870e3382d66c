# SPDX-License-Identifier: Apache-2.0
"""endings/: which of four sentences follows?"""
import dataclasses

import names
import records
import splits
from folders import Example, Task

RULE = """\
sent1 is the synopsis of a package and its description up to a sentence (at most 64 words, the nearest sentences), sent2 is empty, and one of
the four endings is the sentence that follows (5 to 40 words). The wrong ones follow in descriptions of the same section, of other sources than
this one and each other. Each sentence is once the right ending and three times a wrong one, so endings say nothing by
themselves. Sentences that name the package or its source are left out, as a name is found by its letters, and so are those that
tell of the package ("This package contains .."), not of what is in it.
One example a package, at most 4 packages of a family of sources."""
OF_PACKAGE = ("this package ", "this is the ", "this module contains ")
PER_FAMILY, CONTEXT_WORDS, LEAST, MOST = 4, 64, 5, 40


@dataclasses.dataclass(frozen=True)
class Place:
    """A record, the text before one of its sentences, and that sentence."""
    record: records.Record
    before: str
    ending: str

    def __getattr__(self, name):  # section, source, package
        return getattr(self.record, name)


def context(r, at):
    kept, words = [], len(r.synopsis.split())
    for sentence in reversed(r.sentences[:at]):
        words += len(sentence.split())
        if words > CONTEXT_WORDS:
            break
        kept.insert(0, sentence)
    return " ".join([r.synopsis + ".", *kept]) if kept else None


def places(r):
    own = names.stems(r)
    for at in range(1, len(r.sentences)):
        ending, lower = r.sentences[at], r.sentences[at].lower()
        before = context(r, at)
        if before and LEAST <= len(ending.split()) <= MOST and not lower.startswith(OF_PACKAGE) and not any(n in lower for n in own):
            yield Place(r, before, ending)


def choose(r, seed):
    """One of the record's places; None where it has none."""
    found = list(places(r))
    return found[splits.draw(seed, "place", r.package) % len(found)] if found else None


def examples(some, seed, part):
    for section, rows in sorted(splits.by_section(some).items()):
        for p, others in splits.with_partners(rows, 3, seed, "endings", part, section):
            at = splits.draw(seed, "label", p.package) % 4
            four = [*others[:at], p, *others[at:]]
            yield Example((p.before, "", *(x.ending for x in four), str(at)), tuple(x.record for x in four), (p.before, *(x.ending for x in four)))


def make(parts, seed, counts):
    found = {part: [p for r in splits.capped(parts[part], PER_FAMILY) if (p := choose(r, seed))] for part in parts}
    kept = splits.without_repeats(found, lambda p: [p.before, p.ending], counts)
    made = {part: list(examples(kept[part], seed, part)) for part in kept}
    return {part: sorted(made[part], key=lambda x: splits.draw(seed, "ending", *x.fields)) for part in made}


TASK = Task("endings", "swag", ("sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"), RULE, make, ".csv")
