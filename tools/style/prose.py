# SPDX-License-Identifier: Apache-2.0
"""Counts comments that open with a clause in place of a noun, and five idioms; their numbers may only fall."""
import re

import sources

OPENINGS_LIMIT = 20
IDIOMS_LIMIT = 5

CLAUSE = re.compile(r"(?:-+ *)?(?:What|Whatever|Who|Whoever|Whose|Whichever|How|Of)\b")
# [ ] in place of a blank keeps the patterns from matching themselves.
IDIOM = re.compile(r"\b(?:by[ ]turns|that[ ]is[ ]none(?! of)|is[ ]told(?! apart)|to[ ]be[ ]had|the[ ]own)\b", re.I)
STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
C_TEXT = re.compile(r"(?P<comment>//[^\n]*(?:\n\s*//[^\n]*)*|/\*.*?\*/)|" + STRING, re.S)
HASH = r"(?P<comment>(?<!\S)#[^\n]*(?:\n[ \t]*#[^\n]*)*)"
PYTHON_TEXT = re.compile(r'(?P<docstring>^[ \t]*"""(?:\\.|[^\\])*?""")|"""(?:\\.|[^\\])*?"""|' + "'''(?:\\\\.|[^\\\\])*?'''|" + HASH + "|" + STRING,
                         re.S | re.M)
MESON_TEXT = re.compile(HASH + "|" + STRING, re.S)
SHELL_TEXT = re.compile(r"^[ \t]*" + HASH, re.M)
OPENER = re.compile(r'(?:[/*#"\s]|!/[^\n]*|SPDX-License-Identifier[^\n]*)*')  # a shebang and the licence are no openings


def grammar(path):
    """Pattern whose groups are a file's comments; None for Markdown, False for files that are not checked."""
    end = re.search(r"(?:^|/)(?:[^/]*\.(c|h|cu|py|sh|md)|(meson\.build|meson_options\.txt))$", path)
    if end:
        return {"md": None, "py": PYTHON_TEXT, "sh": SHELL_TEXT, None: MESON_TEXT}.get(end[1], C_TEXT)
    if "." in path.rsplit("/", 1)[-1]:
        return False
    with open(sources.ROOT / path, "rb") as f:
        first = f.readline(100)
    return (PYTHON_TEXT if b"python" in first else SHELL_TEXT) if first.startswith(b"#!") else False


def openings(text, pattern):
    """Offsets and first lines of the comments that open with a clause."""
    for match in pattern.finditer(text):
        groups = match.groupdict()
        comment = groups.get("comment") or groups.get("docstring")
        begin = OPENER.match(comment).end() if comment else 0
        if comment and CLAUSE.match(comment, begin):
            yield match.end() - len(comment) + begin, comment[begin:].split("\n", 1)[0]


def found():
    """Two lists, of clauses and of idioms: (path:line, text) of each. Help texts are strings, so idioms count in them too."""
    clauses, idioms = [], []
    for path in sources.files():
        pattern = grammar(path)
        if pattern is False:
            continue
        text = sources.text(path)
        if pattern:
            clauses += [(f"{path}:{text.count(chr(10), 0, at) + 1}", line) for at, line in openings(text, pattern)]
        idioms += [(f"{path}:{text.count(chr(10), 0, m.start()) + 1}", m.group()) for m in IDIOM.finditer(text)]
    return clauses, idioms


def listing():
    """Lines for `tools/lint --prose`."""
    clauses, idioms = found()
    return [*(f"{place}: {text}" for place, text in clauses + idioms),
            f"{len(clauses)} comments open with a clause, at most {OPENINGS_LIMIT}; {len(idioms)} idioms, at most {IDIOMS_LIMIT}"]


def complaints():
    clauses, idioms = found()
    if len(clauses) > OPENINGS_LIMIT:
        yield f"{len(clauses)} comments open with a clause, at most {OPENINGS_LIMIT}: `tools/lint --prose` lists them"
    if len(idioms) > IDIOMS_LIMIT:
        yield f"{len(idioms)} odd idioms, at most {IDIOMS_LIMIT}: `tools/lint --prose` lists them"
