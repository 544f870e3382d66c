#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ids, offsets and types of `maskbert tokenize` with the library tokenizers, for each family of families.py with
vocabularies trained here, on 500 texts in 20 scripts, broken UTF-8 and every code point. Exit code 77: no library.

usage: live_test.py MASKBERT [--size N] [--few] [FAMILY ..]"""
import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import families
except ImportError:
    sys.exit(77)
import texts  # noqa: E402
import tokenizer_parity as parity  # noqa: E402


def check(program, name, tokenizer, lines, options=(), limit=None):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.no_padding()
        tokenizer.save(f"{folder}/tokenizer.json")
        if limit:
            tokenizer.enable_truncation(limit)
        path = f"{folder}/lines.txt"
        parity.write_lines(path, lines)
        got = [json.loads(line) for line in parity.ours(program, folder, path, "--json", *options)]
        expected = list(parity.expect_rust(tokenizer, lines))
        tokenizer.no_truncation()
        return parity.compare(name, lines, [tuple(x) for x in expected],
                              [(x["ids"], x["offsets"], x["types"]) for x in got])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("family", nargs="*")
    p.add_argument("--size", type=int, default=600)
    p.add_argument("--few", action="store_true")
    o = p.parse_intermixed_args()
    lines = [line.encode() for line in texts.texts(500)]
    more = list(parity.mixtures(80 if o.few else 3000, False))
    points = list(parity.code_points(False, False))[::400 if o.few else 1]
    o.size = 150 if o.few else o.size
    wrong = 0
    for name, tokenizer in families.families(o.size, 31 if o.few else 1).items():
        if o.family and name not in o.family:
            continue
        wrong += check(o.program, name, tokenizer, lines)
        wrong += check(o.program, f"{name}, cut", tokenizer, lines, ["--max-length", "16"], 16)
        wrong += check(o.program, f"{name}, mixtures", tokenizer, more)
        wrong += check(o.program, f"{name}, code points", tokenizer, points)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
