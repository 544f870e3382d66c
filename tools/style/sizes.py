# SPDX-License-Identifier: Apache-2.0
"""Lengths of functions and files, numbers of parameters and of files in a folder, against limits. Those beyond a limit stand in
exceptions.txt with their size: it may become less, not more, and a line that is not needed has to leave the list."""
import collections
import re
import statistics

import sources

FUNCTION_LINES, FILE_LINES, PARAMETERS, FOLDER_FILES = 60, 350, 8, 25
MEDIAN_LINES, P90_LINES, MANY_PARAMETERS = 10, 20, 20  # of all functions
LIMITS = {"function": FUNCTION_LINES, "file": FILE_LINES, "parameters": PARAMETERS, "folder": FOLDER_FILES}
UNITS = {"function": "lines", "file": "lines", "parameters": "parameters", "folder": "files"}
# clang-format leaves a definition's braces in the first column, and nothing but definitions with (...) before them.
BODY = re.compile(r"^([A-Za-z_](?:[^;{}#=]|\n)*?\))(?:[^;{}()=#]*)\n\{\n(.*?)^\}", re.M | re.S)
ROOMS_OF = {"gen", "runtime", "templates", "masks", "model", "tests", "tools"}  # whose folders have a limit
DATA = {"corpus", "gallery", "golden", "known", "results"}  # folders of data
OTHERS_INTERFACE = {"FAKE"}  # functions of CUDA's, whose parameters nobody here chooses
NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")


def parameters_of(head):
    """The name and the number of parameters of a definition's head: those of its last (...) at the outermost level
    that is no attribute, as in ENTRY(name)(ARGS a)."""
    depth, begin, spans = 0, 0, []
    for at, c in enumerate(head):
        if c == "(":
            begin = at if depth == 0 else begin
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                spans.append((begin, at))
    spans = [s for s in spans if not re.search(r"(__attribute__|__launch_bounds__|_Alignas|aligned)\s*$", head[:s[0]])]
    if not spans:
        return None, 0
    first, last = spans[0], spans[-1]
    inner = head[last[0] + 1:last[1]].strip()
    name = NAME.search(head[:first[0] + 1].split("\n")[-1]) or NAME.search(head)
    if first != last:  # ENTRY(name)(...)
        name = re.match(r"\s*(\w+)", head[first[0] + 1:first[1]])
    depth, count = 0, 1 if inner and inner != "void" else 0
    for c in inner:
        depth += (c in "([{") - (c in ")]}")
        count += c == "," and depth == 0
    return name and name[1], count


def functions(text):
    """(name, lines from the head to the closing brace, parameters) of each definition in a C text without comments."""
    for match in BODY.finditer(text):
        name, parameters = parameters_of(match[1])
        if name:
            yield name, match.group().count("\n") + 1, parameters


def folders():
    """{folder: number of its files, without those of its subfolders}. Folders of data have no limit."""
    parents = [path.split("/")[:-1] for path in sources.files("*")]
    return collections.Counter("/".join(p) for p in parents if p and p[0] in ROOMS_OF and not DATA.intersection(p))


def measured():
    """{(kind, what): size} of everything that has a limit."""
    sizes = {}
    for path in sources.files("*.c", "*.h", "*.cu", "*.py"):
        sizes["file", path] = sources.text(path).count("\n")
        if path.endswith(".py"):
            continue
        for name, lines, parameters in functions(sources.code(path)):
            what = f"{path}:{name}"
            for kind, size in (("function", lines), ("parameters", 0 if name in OTHERS_INTERFACE else parameters)):
                sizes[kind, what] = max(size, sizes.get((kind, what), 0))
    sizes.update({("folder", path): count for path, count in folders().items()})
    return sizes


def complaints():
    sizes = measured()
    known = {(row[0], row[1]): int(row[2]) for row in sources.table("tools/style/exceptions.txt") if row[0] in LIMITS}
    for (kind, what), size in sorted(sizes.items()):
        most = max(LIMITS[kind], known.get((kind, what), 0))
        if size > most:
            yield f"{what}: {size} {UNITS[kind]}, at most {most}"
    yield from of_all(sizes)
    for kind, what in sorted(known):
        if sizes.get((kind, what), 0) <= LIMITS[kind]:
            yield f"tools/style/exceptions.txt: {kind} {what} is within its limit or gone: take the line out"


def of_all(sizes):
    """Complains of limits on all functions together, where there are enough of them."""
    lengths = sorted(size for (kind, _), size in sizes.items() if kind == "function")
    many = sum(size > 6 for (kind, _), size in sizes.items() if kind == "parameters")
    if len(lengths) < 100:
        return
    for what, found, most in (("lines, median", statistics.median(lengths), MEDIAN_LINES), ("lines, nine of ten", lengths[int(0.9 * (len(lengths) - 1))], P90_LINES),
                              ("with more than 6 parameters", many, MANY_PARAMETERS)):
        if found > most:
            yield f"functions, {what}: {found:g}, at most {most}"


def shrink(path="tools/style/exceptions.txt"):
    """Rewrites the list with today's sizes, without what is within its limit; adds nothing."""
    sizes, kept = measured(), []
    for line in sources.text(path).splitlines():
        row = [field.strip() for field in line.split("#", 1)[0].split("|")]
        if row[0] in LIMITS:
            size = sizes.get((row[0], row[1]), 0)
            if size <= LIMITS[row[0]]:
                continue
            line = " | ".join([*row[:2], str(min(size, int(row[2])))])
        kept.append(line + "\n")
    (sources.ROOT / path).write_text("".join(kept), encoding="utf-8")


def figures():
    sizes = measured()
    for kind in LIMITS:
        values = sorted(size for (k, _), size in sizes.items() if k == kind)
        yield (f"{kind}: {len(values)}, median {statistics.median(values):g}, "
               f"p90 {values[int(0.9 * (len(values) - 1))]}, most {values[-1]}, limit {LIMITS[kind]}")
