#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `maskbert tokenize` give the ids, offsets and types that the library tokenizers gave, for each family of
corpus/stored.json.xz, on 500 texts in 20 scripts? make_stored.py wrote the file; live_test.py names what differs.

usage: stored_test.py MASKBERT"""
import json
import lzma
import os
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import texts  # noqa: E402

STORED = f"{HERE}/corpus/stored.json.xz"
TEXTS, AT_ONCE = 500, 5  # texts, and those that share a sum


def sums(coded):
    """CRC-32 of [ids, offsets, types] of AT_ONCE texts each."""
    whole = [json.dumps(coded[k:k + AT_ONCE], separators=(",", ":")).encode() for k in range(0, len(coded), AT_ONCE)]
    return [zlib.crc32(w) for w in whole]


def ours(program, tokenizer, lines):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/tokenizer.json", "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
        out = subprocess.run([program, "tokenize", folder, "--json", "--threads", "1"], input=b"".join(x + b"\n" for x in lines),
                             stdout=subprocess.PIPE, check=True).stdout
    coded = [json.loads(line) for line in out.splitlines()]
    return [[x["ids"], x["offsets"], x["types"]] for x in coded]


def main(program):
    lines = [line.encode() for line in texts.texts(TEXTS)]
    with open(STORED, "rb") as f:
        stored = json.loads(lzma.decompress(f.read()))
    wrong = 0
    for name, family in stored["families"].items():
        coded = ours(program, family["tokenizer"], lines)
        have = sums(coded)
        bad = [k for k, (x, y) in enumerate(zip(have, family["sums"])) if x != y]
        print(f"{name}: {len(coded)} texts, {sum(len(x[0]) for x in coded)} tokens, {len(bad)} of {len(have)} sums differ")
        if bad:
            print(f"  texts {bad[0] * AT_ONCE} .. {bad[0] * AT_ONCE + AT_ONCE - 1} are the first")
        wrong += len(bad) + (len(coded) != TEXTS) + (len(have) != len(family["sums"]))
    if len(stored["families"]) < 10:
        print(f"{len(stored['families'])} families, at least 10 are expected")
        wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
