# SPDX-License-Identifier: Apache-2.0
"""Finds a package's name in its description: gnome-terminal as GNOME Terminal, libwww-perl as www, python3-foo as foo."""
import collections
import functools
import re

import records

PARTS = re.compile(r"[-_.]+")
# Parts of names that tell of a package's form or language.
AFFIXES = frozenset(
    "lib dev doc docs common data bin core base utils tools tool util extra extras plugin plugins module modules perl python python2 python3 "
    "py ruby java node golang go r cran bioc haskell php elpa gir1 gir fonts font ttf otf qt4 qt5 qt6 gtk gtk2 gtk3 cli gui client server "
    "daemon all full nox x11 examples tests src source dkms el ocaml lua rust librust cil sharp".split())
LEAST = 3  # letters
COMMON = 10  # families beyond which a name is an ordinary word
SEPARATOR = r"(?:[-_ ./]|::)?"
BEFORE, AFTER = r"(?<![\w@/.+:-])", r"(?![\w@/+]|[-.:][\w:])"


@functools.lru_cache(maxsize=None)
def forms_of(name):
    """The name in parts: as it is, without affixes and numbers, without its last digits, these with and without a leading lib."""
    parts = tuple(p for p in PARTS.split(name.lower()) if p)
    found = [parts]
    for first in (parts[:1], (parts[0].removeprefix("lib"),)) if parts else ():
        short = tuple(p for p in (*first, *parts[1:]) if p and p not in AFFIXES and not p.isdigit())
        found += [short, (*short[:-1], short[-1].rstrip("0123456789"))] if short else []
    return [f for f in found if len("".join(f)) >= LEAST and all(f)]


def forms(r):
    """Forms of the names of package and source, the longest first."""
    found = {f for name in (r.package, r.source) for f in forms_of(name)}
    return sorted(found, key=lambda f: (-len("".join(f)), f))


def stems(r):
    """Words of the names of package and source, three letters or longer, as a text could contain them."""
    both = {r.package.lower(), r.source.lower()}
    return {w for name in both for w in [name, *PARTS.split(name)] if len(w) >= LEAST and w not in AFFIXES}


@functools.lru_cache(maxsize=None)
def pattern(form):
    return re.compile(BEFORE + SEPARATOR.join(map(re.escape, form)) + AFTER, re.I)


def mentions(r, text):
    return any(pattern(f).search(text) for f in forms(r))


def families_with(some):
    """{name without separators: number of families whose descriptions have it}, for names up to three words long."""
    wanted = {"".join(f) for r in some for f in forms(r)}
    found = collections.defaultdict(set)
    for r in some:
        words = re.findall(r"[a-z0-9+]+", f"{r.synopsis} {r.body}".lower())
        for size in (1, 2, 3):
            for at in range(len(words) - size + 1):
                if (word := "".join(words[at:at + size])) in wanted:
                    found[word].add(records.family(r.source))
    return {word: len(families) for word, families in found.items()}


def find(r, text, families):
    """Where the text has its name, forms that are ordinary words apart: a match for each different spelling, in the order of the text."""
    able = [f for f in forms(r) if families.get("".join(f), 0) <= COMMON]
    found = sorted((m for f in able for m in pattern(f).finditer(text)), key=lambda m: (m.start(), -m.end()))
    kept, end = {}, 0
    for match in found:
        if match.start() >= end:  # not a part of a longer form
            kept.setdefault(match[0].lower(), match)
            end = match.end()
    return list(kept.values())
