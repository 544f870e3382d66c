# SPDX-License-Identifier: Apache-2.0
"""synopsis/: does this synopsis belong to this description?"""
import names
import splits
from folders import Example, Task

RULE = """\
text is a synopsis, text2 a description, the label 1 where both are of one package and 0 where the synopsis is that of a package of the
same section and of another source. Each synopsis and each description occurs just once with either label, so neither says anything by
itself. A synopsis that two packages have is used once. Those that name the package or its source are left out, as a name is found by its
letters. At most 4 packages of a family of sources."""
PER_FAMILY = 4
MIN_WORDS = 2  # of a synopsis


def usable(r):
    lower = r.synopsis.lower()
    return len(r.synopsis.split()) >= MIN_WORDS and not any(n in lower for n in names.stems(r))


def pairs(some, seed, part):
    for section, rows in sorted(splits.by_section(some).items()):
        for r, (other,) in splits.with_partners(rows, 1, seed, "synopsis", part, section):
            yield Example((r.synopsis, r.body, "1"), (r,), (r.synopsis, r.body))
            yield Example((other.synopsis, r.body, "0"), (r, other), (other.synopsis, r.body))


def make(parts, seed, counts):
    kept = {part: splits.capped([r for r in parts[part] if usable(r)], PER_FAMILY) for part in parts}
    kept = splits.without_repeats(kept, lambda r: [r.synopsis, r.body], counts)
    made = {part: list(pairs(kept[part], seed, part)) for part in kept}
    return {part: sorted(made[part], key=lambda x: splits.draw(seed, "pair", *x.fields)) for part in made}


TASK = Task("synopsis", "pair", ("text", "text2", "label"), RULE, make)
