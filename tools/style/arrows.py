# SPDX-License-Identifier: Apache-2.0
"""Includes run one way, between top folders (a folder inside one may have a row of its own) and between the rooms of a
folder: HACKING.md's two tables are the rule, read from the page itself. The rows of a table form no circle. An exception
(exceptions.txt) is an arrow that is still there; one that is gone has to leave the list."""
import fnmatch
import posixpath
import re

import sources

ROW = re.compile(r"^\| `([a-z0-9_/]+)/` \| .* \| ([^|]+) \|$", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)


class Rule:
    def __init__(self, folder, allowed):
        words = [w.strip().strip("`") for w in allowed.split(",")]
        self.everything = "all" in words
        self.system = "no system header" not in words
        self.targets = [folder] + [w for w in words if w not in ("all", "itself", "no system header")]

    def allows(self, included):
        return self.everything or any(
            included.startswith(t + "/") or fnmatch.fnmatch(included, t) for t in self.targets)


def rules(page, first="folder"):
    """Rows of the table whose columns are `first`, "holds" and "may include"."""
    head = f"| {first} | holds | may include |"
    if head not in page:
        return {}
    begin = page.index(head)
    return {m[1]: Rule(m[1], m[2]) for m in ROW.finditer(page[begin:page.index("\n\n", begin)])}


def from_the_top(path, included):
    """The path from the top of a file that is named relative to the one that includes it."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), included))
    return beside if included.startswith(".") or (sources.ROOT / beside).is_file() else included


def includes_of(path):
    """(name in quotes, name in angle brackets) of each include; one of them is empty."""
    text = sources.NOT_CODE.sub(lambda m: m.group() if m.group()[0] == '"' else " ", sources.text(path))
    return [(ours and from_the_top(path, ours), system) for ours, system in INCLUDE.findall(text)]


def row_of(known, path):
    """The rule of the innermost folder around the path that has a row, or None."""
    folder = path.rpartition("/")[0]
    while folder and folder not in known:
        folder = folder.rpartition("/")[0]
    return known.get(folder)


def wrong_between_folders(known, path):
    rule = row_of(known, path)
    if not rule:
        yield "anything: HACKING.md's table has no such folder"
        return
    for ours, system in includes_of(path):
        # A folder's own templates include each other by paths from their room.
        if ours and ours.split("/")[0] in known and not rule.allows(ours):
            yield ours
        if system and not rule.system:
            yield f"<{system}>"


def is_child(rooms, other, room):
    """True if `other` is a room inside `room`. A ground floor, which includes only itself, does not count."""
    return other.startswith(room + "/") and rooms[other].targets != [other]


def wrong_between_rooms(rooms, path):
    """A room's files include only the rooms of its row, and its headers no header of a room inside it. Folders without any
    row are not checked."""
    room = path.rsplit("/", 1)[0]
    if room not in rooms:
        if path.split("/")[0] in rooms:
            yield "anything: HACKING.md's table has no such room"
        return
    for ours, _ in includes_of(path):
        other = ours.rsplit("/", 1)[0]
        if other not in rooms or other.split("/")[0] != room.split("/")[0]:
            continue
        if other not in rooms[room].targets or path.endswith(".h") and is_child(rooms, other, room):
            yield ours


def wrong_arrows():
    """Pairs of a file and what it includes against the rules."""
    page = sources.text("HACKING.md")
    known, rooms = rules(page), rules(page, "room")
    return [(path, included) for path in sources.files("*.c", "*.h", "*.cu")
            for included in (*wrong_between_folders(known, path), *wrong_between_rooms(rooms, path))]


def circle(rows):
    """The folders of one circle among the rows, its first folder also last; empty where there is none."""
    arrows = {name: [t for t in rule.targets if t in rows and t != name] for name, rule in rows.items()}
    while ends := [name for name, targets in arrows.items() if not any(t in arrows for t in targets)]:
        for name in ends:
            del arrows[name]
    path = list(arrows)[:1]
    while path and path[-1] not in path[:-1]:
        path.append(next(t for t in arrows[path[-1]] if t in arrows))
    return path[path.index(path[-1]):] if path else []


def circles():
    """A circle of each of HACKING.md's tables that has one."""
    page = sources.text("HACKING.md")
    return filter(None, (circle(rules(page)), circle(rules(page, "room"))))


def complaints():
    for path in circles():
        yield f"HACKING.md: these rows form a circle: {' -> '.join(path)}"
    allowed = {(row[1], row[2]) for row in sources.table("tools/style/exceptions.txt") if row[0] == "include"}
    wrong = set(wrong_arrows())
    for path, included in sorted(wrong - allowed):
        yield f"{path}: includes {included}, which HACKING.md's tables of folders and rooms do not allow"
    for path, included in sorted(allowed - wrong):
        yield f"tools/style/exceptions.txt: {path} does not include {included} any more: take the line out"
