#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model/tokenizer/base/hf_classes.h: which code points the Rust `tokenizers` library drops, splits
or strips, asked one by one. Its tables are old and frozen, so they are kept as they are instead of
being derived from a Unicode library that moves on.

usage: unicode_classes.py > model/tokenizer/base/hf_classes.h        (pip install tokenizers)
"""
import sys
import tokenizers
from tokenizers import normalizers, pre_tokenizers

POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
OFF = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)


def normalizer(**on):
    return normalizers.BertNormalizer(**{**OFF, **on})


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def pieces(c, split=pre_tokenizers.BertPreTokenizer()):
    return [text for text, _ in split.pre_tokenize_str("a" + chr(c) + "b")]


def table(name, comment, points):
    print(f"\n/* {comment} */\nstatic const struct point_range {name}[] = {{")
    cells = [f"{{0x{a:04x}, 0x{b:04x}}}," for a, b in ranges(points)]
    for k in range(0, len(cells), 4):
        print("    " + " ".join(cells[k:k + 4]))
    print("};")


def main():
    clean, nfd = normalizer(clean_text=True), normalizers.NFD()
    accents = normalizer(strip_accents=True)
    marks = [c for c in POINTS if nfd.normalize_str(chr(c)) == chr(c)
             and accents.normalize_str("a" + chr(c)) == "a"]
    moved = [c for c in POINTS if nfd.normalize_str(chr(c)) == chr(c)
             and nfd.normalize_str("a" + chr(c) + "\u0334") != "a" + chr(c) + "\u0334"
             or nfd.normalize_str("a\u0345" + chr(c)) != "a\u0345" + nfd.normalize_str(chr(c))
             and nfd.normalize_str(chr(c)) == chr(c)]
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Written by tests/model/unicode_classes.py with the Rust library tokenizers "
          f"{tokenizers.__version__}:\n   the classes of its BERT normalizer and pre-tokenizer. */")
    print("#pragma once\n/* clang-format off */")
    table("hf_dropped", "removed by clean_text",
          [c for c in POINTS if clean.normalize_str("a" + chr(c) + "b") == "ab"])
    table("hf_whitespace", "splits words and is removed", [c for c in POINTS if pieces(c) == ["a", "b"]])
    table("hf_punctuation", "a word of its own", [c for c in POINTS if pieces(c) == ["a", chr(c), "b"]])
    table("hf_marks", "removed by strip_accents, after decomposition", marks)
    table("hf_combining", "reordered by decomposition: combining class not 0", moved)
    table("hf_decomposed", "has a canonical decomposition (Hangul syllables apart)",
          [c for c in POINTS if nfd.normalize_str(chr(c)) != chr(c) and not 0xAC00 <= c <= 0xD7A3])
    print("/* clang-format on */")


if __name__ == "__main__":
    sys.exit(main())
