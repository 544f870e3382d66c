# SPDX-License-Identifier: Apache-2.0
"""The glossary's old words stay out of identifiers and names of files: words.txt. Public names keep theirs."""
import re

import sources

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
INCLUDE_LINE = re.compile(r"^[ \t]*#[ \t]*include.*$", re.M)


class Word:
    def __init__(self, row):
        self.old, self.new = row[0], row[1]
        self.folders = row[2].split()
        self.allowed = set(row[3].split()) if len(row) > 3 else set()

    def refused_in(self, path):
        return any(f == "*" or path.startswith(f + "/") for f in self.folders)


def words_of(identifier):
    """Between underscores and where small letters meet capital ones."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", identifier).lower().split("_")


def names_in(path):
    """(line, identifier) of a C text."""
    text = INCLUDE_LINE.sub("", sources.code(path))
    for number, line in enumerate(text.split("\n"), 1):
        for match in IDENTIFIER.finditer(line):
            yield number, match.group()


def complaints():
    table = {row[0]: Word(row) for row in sources.table("tools/style/words.txt")}
    seen = {}
    for path in sources.files("*.c", "*.h", "*.cu"):
        for number, name in names_in(path):
            if name not in seen:
                seen[name] = [table[w] for w in words_of(name) if w in table]
            for word in seen[name]:
                if word.refused_in(path) and name not in word.allowed:
                    yield f"{path}:{number}: '{name}': '{word.old}' is an old word for {word.new}"
    for path in sources.files("*.c", "*.h", "*.cu", "*.sh"):
        for w in re.split(r"[/._-]", path):
            for word in (table[part] for part in words_of(w) if part in table):
                if word.refused_in(path):
                    yield f"{path}: in its name '{word.old}' is an old word for {word.new}"
