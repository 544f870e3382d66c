# SPDX-License-Identifier: Apache-2.0
"""section/: which section does the package belong to?"""
import splits
from folders import Example, Task

# Sections that name a package's subject. Left out: those of its form (libs, doc, debug, ..), those of a programming language
# (python, perl, ..), the catch-alls (misc, utils), and the small ones.
CLASSES = ("admin", "database", "devel", "editors", "electronics", "fonts", "games", "graphics", "hamradio", "mail", "math", "net",
           "science", "sound", "text", "video", "web")
RULE = f"""\
The text is the synopsis and the description, the label the package's section: one of {len(CLASSES)} that tell of its subject:
{', '.join(CLASSES[:9])},
{', '.join(CLASSES[9:])}. Packages of other sections are left out: those of a package's form (libs, doc), of a language
(python, perl), catch-alls (misc, utils), small ones. At most 4 packages of a family of sources."""
PER_FAMILY = 4


def text_of(r):
    return f"{r.synopsis}. {r.body}"


def make(parts, seed, counts):
    kept = {part: splits.capped([r for r in parts[part] if r.section in CLASSES], PER_FAMILY) for part in parts}
    kept = splits.without_repeats(kept, lambda r: [text_of(r)], counts)
    return {part: [Example((text_of(r), r.section), (r,), (text_of(r),)) for r in splits.shuffled(kept[part], seed, "section")] for part in kept}


TASK = Task("section", "text", ("text", "label"), RULE, make)
