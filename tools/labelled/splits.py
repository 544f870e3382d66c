# SPDX-License-Identifier: Apache-2.0
"""Train, dev and test: 80, 10 and 10 % of the sources, so that packages of one source never meet across them.

Sources whose names differ by numbers only are one family, and on one side. A text of dev or test that is a near copy of one in an
earlier part is dropped: equal but for case, digits and punctuation, or with half or more of its runs of 8 words in texts there."""
import collections
import hashlib

import records

PARTS = ("train", "dev", "test")
RUN, NEAR = 8, 0.5  # words; share of the runs


def draw(seed, *words):
    """A whole number of 64 bits, a function of its arguments only."""
    return int.from_bytes(hashlib.sha256("\0".join([str(seed), *map(str, words)]).encode()).digest()[:8], "big")


def shuffled(items, seed, *words):
    """In random order; `items` are strings, or have a package."""
    return sorted(items, key=lambda x: draw(seed, *words, x if isinstance(x, str) else x.package))


def part_of(source, seed):
    return {0: "dev", 1: "test"}.get(draw(seed, "part", records.family(source)) % 10, "train")


def runs(text):
    words = records.words_of(text)
    return {hash(tuple(words[k:k + RUN])) for k in range(max(1, len(words) - RUN + 1))}


def by_part(all_records, seed, counts):
    """{part: records}, without near copies across parts."""
    parts = {part: [] for part in PARTS}
    for r in all_records:
        parts[part_of(r.source, seed)].append(r)
    found = {part: [(r, runs(r.body)) for r in parts[part]] for part in PARTS[1:]}
    wanted = set().union(*(own for rows in found.values() for _, own in rows))
    before = {h for r in parts["train"] for h in runs(r.body) if h in wanted}
    for part in PARTS[1:]:
        parts[part] = [r for r, own in found[part] if len(own & before) < NEAR * len(own)]
        counts[f"near copies, {part}"] = len(found[part]) - len(parts[part])
        before |= set().union(*(own for _, own in found[part]))
    return parts


def without_repeats(parts, texts_of, counts):
    """{part: items} without those of which a text is in an earlier part, or earlier in its own."""
    where, kept = {}, {}
    for part in PARTS:
        kept[part] = []
        for item in parts[part]:
            keys = [records.key(t) for t in texts_of(item)]
            before = {where[k] for k in keys if k in where}
            if before:
                counts["texts of another part" if before != {part} else "texts twice in a part"] += 1
            else:
                kept[part].append(item)
                where.update((k, part) for k in keys)
    return kept


def check(parts):
    """parts: {part: [(sources, texts)]} as written. Raises where a source or a text is on two sides."""
    for what in (0, 1):
        where = {}
        for part in PARTS:
            for example in parts[part]:
                for value in example[what]:
                    value = records.family(value) if what == 0 else records.key(value)
                    if where.setdefault(value, part) != part:
                        raise AssertionError(f"{value!r} is in {where[value]} and in {part}")


# ---- Examples made of several records.
def by_section(some):
    groups = collections.defaultdict(list)
    for r in some:
        groups[r.section].append(r)
    return groups


def in_family_order(some, seed, *words):
    """Records of a family side by side, families in random order."""
    return sorted(some, key=lambda r: (draw(seed, *words, records.family(r.source)), records.family(r.source), r.package))


def capped(some, most):
    """At most so many of a family."""
    had, kept = collections.Counter(), []
    for r in some:
        had[records.family(r.source)] += 1
        if had[records.family(r.source)] <= most:
            kept.append(r)
    return kept


def largest(some):
    return max(collections.Counter(records.family(r.source) for r in some).values(), default=0)


def with_partners(some, number, seed, *words):
    """[(record, its partners)]: `number` records of other families and of other families than each other; each record is a partner
    just as often. Families that are too large for that lose records; of few families nothing is left.

    In the order of families two records at least as far apart as the largest family are of two: partners stand at fixed distances."""
    rows = in_family_order(some, seed, *words)
    most = largest(rows)
    while most and len(rows) < (number + 1) * most:
        most -= 1
        rows = capped(rows, most)
    if not most:
        return []
    slack = len(rows) - (number + 1) * most
    cuts = sorted(draw(seed, "cut", *words, k) % (slack + 1) for k in range(number))
    steps = [(k + 1) * most + cut for k, cut in enumerate(cuts)]
    return [(r, [rows[(at + step) % len(rows)] for step in steps]) for at, r in enumerate(rows)]
