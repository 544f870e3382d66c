# SPDX-License-Identifier: Apache-2.0
"""Package records from the lists of apt: one for each description, without what packages share.

Left out, and counted: packages without a description in the lists; placeholders (transitional and dummy packages, metapackages,
debug symbols); descriptions that repeat another one's, but for case and digits; those of fewer than 12 words. A sentence that
packages of three families of sources or more have, but for words of their names, is dropped from each, as it tells of no package."""
import collections
import dataclasses
import re
import subprocess
import unicodedata

import fetch_text_clean as clean

COMPONENTS = re.compile(r"_(main|universe)_")
DESCRIPTIONS, PACKAGES = "*_i18n_Translation-en*", "*_binary-*_Packages*"
PACKED = (".lz4", ".gz", ".xz", ".zst", ".bz2")
APT_HELPER = "/usr/lib/apt/apt-helper"  # unpacks whatever apt packs
PLACEHOLDER = re.compile(r"\b(transitional|dummy|virtual|empty) .*package|meta-?package|debug(ging)? symbols|\bdebug (files|package)\b", re.I)
SENTENCE_END = re.compile(r"[.!?][\"')\]]*$")
WORD = re.compile(r"[^\W_]+")
NUMBER = re.compile(r"\d+")
WORDS = 12  # of a description, at least
SHARED = 3  # families of sources that make a sentence a common one


class Missing(Exception):
    """A required file or program is missing; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Record:
    package: str
    source: str
    section: str
    synopsis: str
    sentences: tuple

    @property
    def body(self):
        return " ".join(self.sentences)


# ---- Lists of apt.
def stanzas(folder, pattern):
    """Fields of the stanzas of all lists of main and universe, files in the order of their names."""
    for path in sorted(folder.glob(pattern)):
        if not COMPONENTS.search(path.name) or path.suffix == ".part":
            continue
        if path.suffix not in PACKED:
            with open(path, encoding="utf-8", errors="replace") as lines:
                yield from clean.stanzas(lines)
            continue
        command = [APT_HELPER, "cat-file", str(path)]
        try:
            with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as child:
                yield from clean.stanzas(child.stdout)
        except FileNotFoundError:
            raise Missing(f"{path}: {APT_HELPER}, which unpacks it, is not here") from None
        if child.returncode:
            raise Missing(f"{path}: apt-helper cannot unpack it")


def tidy(text):
    """One line of plain characters: no tabs, no control characters, single blanks."""
    text = text.translate(clean.PLAIN_TABLE)
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text)
    return clean.BLANKS.sub(" ", text).strip()


def sentences_of(paragraphs):
    """Whole sentences; what ends in a colon or in nothing led to a list."""
    found = [tidy(s) for p in paragraphs for s in clean.sentences(tidy(p))]
    return tuple(s for s in found if SENTENCE_END.search(s) and "\ufffd" not in s)


def read(folder, counts):
    """Records by package; of a package in several lists the first."""
    texts = {s["description-md5"]: s.get("description-en", "") for s in stanzas(folder, DESCRIPTIONS) if s.get("description-md5")}
    if not texts:
        raise Missing(f"{folder}: no descriptions (Translation-en of main or universe); apt-get -o Acquire::Languages=en update fetches them")
    found = {}
    for s in stanzas(folder, PACKAGES):
        package, section, text = s.get("package", ""), s.get("section", ""), texts.get(s.get("description-md5"), "")
        if not package or package in found:
            continue
        synopsis, paragraphs = clean.description_parts(text)
        synopsis = tidy(synopsis).rstrip(".")
        if not synopsis or not section or "\ufffd" in synopsis:
            counts["without a description"] += 1
            found[package] = None
            continue
        source = (s.get("source") or package).split(" ")[0]
        found[package] = Record(package, source, section.split("/")[-1], synopsis, sentences_of(paragraphs))
    if not found:
        raise Missing(f"{folder}: no packages (binary-*_Packages of main or universe)")
    return [found[p] for p in sorted(found) if found[p]]


# ---- Text that several packages share.
def key(text):
    """Equal for texts that differ by case, digits, blanks and punctuation only."""
    return " ".join(words_of(text))


def words_of(text):
    return WORD.findall(NUMBER.sub("0", text.lower()))


def family(source):
    """Sources of one program in several versions are one: llvm-toolchain-14 and -15."""
    return re.sub(r"[-_.]*\d[\d.]*", "", source) or source


def template(sentence, name):
    """The sentence with a dash for each run of words of the package's name: equal for what is said of every package of a kind."""
    words = ["-" if w in name else w for w in words_of(sentence)]
    return " ".join(w for at, w in enumerate(words) if w != "-" or words[at - 1:at] != ["-"])


def without_common_sentences(some, counts):
    families, templates = collections.defaultdict(set), []
    for r in some:
        name = {*words_of(r.package), *words_of(r.source)}
        templates.append([template(s, name) for s in r.sentences])
        for t in templates[-1]:
            families[t].add(family(r.source))
    for r, own in zip(some, templates):
        kept = tuple(s for s, t in zip(r.sentences, own) if len(families[t]) < SHARED)
        counts["common sentences"] += len(own) - len(kept)
        yield dataclasses.replace(r, sentences=kept)


def unique(records, counts):
    seen = set()
    for r in records:
        if PLACEHOLDER.search(r.synopsis):
            counts["placeholders"] += 1
        elif len(words_of(r.body)) < WORDS:
            counts["too short"] += 1
        elif (k := key(r.body)) in seen:
            counts["repeated descriptions"] += 1
        else:
            seen.add(k)
            yield r


def load(folder, counts):
    """All records, by package."""
    return list(unique(without_common_sentences(read(folder, counts), counts), counts))
