#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/stored.json.xz: small tokenizers of each family and sums of what the library tokenizers makes of the texts.

usage: make_stored.py     (pip install tokenizers)"""
import json
import lzma
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import families  # noqa: E402
import stored_test  # noqa: E402
import texts  # noqa: E402
import tokenizer_parity as parity  # noqa: E402
import tokenizers  # noqa: E402

TRAINED, RULES = 120, 61


def shortened(t):
    """The tokenizer with scores of few digits."""
    t.no_padding()
    t.no_truncation()
    whole = json.loads(t.to_str())
    if whole["model"]["type"] == "Unigram":
        whole["model"]["vocab"] = [[token, round(score, 3)] for token, score in whole["model"]["vocab"]]
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


def main():
    lines = [line.encode() for line in texts.texts(stored_test.TEXTS)]
    stored = {}
    for name, t in families.families(TRAINED, RULES).items():
        t = shortened(t)
        coded = [[ids, [list(span) for span in spans], types] for ids, spans, types in parity.expect_rust(t, lines)]
        stored[name] = {"tokenizer": json.loads(t.to_str()), "sums": stored_test.sums(coded)}
    data = json.dumps({"library": f"tokenizers {tokenizers.__version__}", "families": stored}, ensure_ascii=False,
                      separators=(",", ":")).encode()
    os.makedirs(f"{HERE}/corpus", exist_ok=True)
    with open(stored_test.STORED, "wb") as f:
        f.write(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    print(f"{os.path.getsize(stored_test.STORED)} bytes, {len(data)} without compression")


if __name__ == "__main__":
    main()
