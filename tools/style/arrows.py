# SPDX-License-Identifier: Apache-2.0
"""Includes between top folders run one way: HACKING.md's table of folders is the rule, read from the page itself.
An exception (exceptions.txt) is an arrow that is still there; one that is gone has to leave the list."""
import fnmatch
import re

import sources

ROW = re.compile(r"^\| `([a-z]+)/` \| .* \| ([^|]+) \|$", re.M)
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


def rules(page):
    """Of the table whose last column is "may include"."""
    begin = page.index("| folder | holds | may include |")
    end = page.index("\n\n", begin)
    found = {m[1]: Rule(m[1], m[2]) for m in ROW.finditer(page[begin:end])}
    return found


def wrong_arrows():
    """Pairs of a file and what it includes against the rules."""
    known = rules(sources.text("HACKING.md"))
    wrong = []
    for path in sources.files("*.c", "*.h", "*.cu"):
        folder = path.split("/")[0]
        if folder not in known:
            wrong.append((path, "anything: HACKING.md's table has no such folder"))
            continue
        for ours, system in INCLUDE.findall(sources.NOT_CODE.sub(
                lambda m: m.group() if m.group()[0] == '"' else " ", sources.text(path))):
            # A folder's own templates include each other by paths from their room.
            if ours and ours.split("/")[0] in known and not known[folder].allows(ours):
                wrong.append((path, ours))
            if system and not known[folder].system:
                wrong.append((path, f"<{system}>"))
    return wrong


def complaints():
    allowed = {(row[1], row[2]) for row in sources.table("tools/style/exceptions.txt") if row[0] == "include"}
    wrong = set(wrong_arrows())
    for path, included in sorted(wrong - allowed):
        yield f"{path}: includes {included}, which HACKING.md's table of folders does not allow"
    for path, included in sorted(allowed - wrong):
        yield f"tools/style/exceptions.txt: {path} does not include {included} any more: take the line out"
