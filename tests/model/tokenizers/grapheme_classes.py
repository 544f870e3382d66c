#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model/tokenizer/normalize/grapheme_classes.h: the classes of grapheme clusters in the Rust library tokenizers where
its Unicode is newer than utf8proc's, asked by its Precompiled normalizer, one code point after the other.

usage: grapheme_classes.py > model/tokenizer/normalize/grapheme_classes.h     (pip install tokenizers)"""
import base64
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import texts  # noqa: E402
import tokenizers  # noqa: E402

POINTS = [c for c in (*range(0x80, 0x32000), *range(0xe0000, 0xe1000)) if not 0xd800 <= c < 0xe000]
BLOCK = 2048


def normalizer(rules):
    return tokenizers.normalizers.Precompiled(base64.b64decode(texts.charsmap(rules)))


def utf8proc_joins(library, one, two):
    state = ctypes.c_int32(0)
    return not library.utf8proc_grapheme_break_stateful(one, two, ctypes.byref(state)) & 1


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, comment, points):
    print(f"\n/* {comment} */\nstatic const struct grapheme_range {name}[] = {{")
    cells = [f"{{0x{a:04x}, 0x{b:04x}}}," for a, b in ranges(points)]
    for k in range(0, len(cells), 4):
        print("    " + " ".join(cells[k:k + 4]))
    print("};")


def in_blocks(text, joined):
    """Code points whose replacement also replaces what follows, or does not."""
    found = set()
    for k in range(0, len(POINTS), BLOCK):
        block = [c for c in POINTS[k:k + BLOCK] if chr(c) != text]
        n = normalizer({chr(c): "Z" for c in block})
        found |= {c for c in block if len((chr(c) + text).encode()) < 6 and (n.normalize_str(chr(c) + text) == "Z") == joined}
    return found


def main():
    library = ctypes.CDLL("libutf8proc.so.2")
    letter = normalizer({"a": "X", "©": "Y"})
    extend = {c for c in POINTS if letter.normalize_str("a" + chr(c)) == "X"}
    pictographs = {c for c in POINTS if letter.normalize_str("©\u200d" + chr(c)).startswith("Y\u200d")} - extend
    prepend, control = in_blocks("a", True), in_blocks("\u0301", False)
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print(f"/* Written by tests/model/tokenizers/grapheme_classes.py with the Rust library tokenizers {tokenizers.__version__}. */")
    print("#pragma once\n#include <stdint.h>\n\nstruct grapheme_range {\n    uint32_t first, last;\n};\n\n/* clang-format off */")
    table("new_extend", "joined with what comes before", {c for c in extend if not utf8proc_joins(library, 0x61, c)})
    table("new_prepend", "joined with what follows", {c for c in prepend if not utf8proc_joins(library, c, 0x61)})
    table("new_control", "joined with nothing", {c for c in control if utf8proc_joins(library, c, 0x301)})
    table("no_prepend", "no longer joined with what follows",
          {c for c in POINTS if c not in prepend and utf8proc_joins(library, c, 0x61)})
    table("pictographs", "joined by U+200D, and U+00A9, U+00AE", pictographs | {0xa9, 0xae})
    print("/* clang-format on */")


if __name__ == "__main__":
    sys.exit(main())
