#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pieces_test.py MASKBERT: is sentencepiece.bpe.model read as the tokenizer.json that transformers makes of it, and all else refused in
one line? Models are written here, field by field; pieces_judge.py asks transformers. Closes with cmocka's lines."""
import base64
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import texts  # noqa: E402

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
FIRST = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def blob(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def piece(text, score, kind):
    data = text if isinstance(text, bytes) else text.encode()
    return blob(1, blob(1, data) + varint(2 << 3 | 5) + struct.pack("<f", score) + (number(3, kind) if kind != NORMAL else b""))


def model(pieces, charsmap=b"", kind=1):
    """With fields that no vocabulary needs: a name, an input of the trainer, a double, an unknown field."""
    trainer = blob(1, b"corpus.txt") + number(3, kind) + number(4, len(pieces)) + varint(10 << 3 | 5) + struct.pack("<f", 0.9995)
    normalizer = blob(1, b"nmt_nfkc") + (blob(2, charsmap) if charsmap else b"") + number(3, 1)
    return b"".join(piece(*p) for p in pieces) + blob(2, trainer) + blob(3, normalizer) + varint(99 << 3 | 1) + bytes(8)


def pieces_of(lines):
    """Characters and frequent words with scores that floats of 32 bits hold."""
    words = sorted({w for line in lines for w in line.split()})[:400]
    alphabet = sorted({c for line in lines for c in line if not c.isspace()})
    return [*FIRST, *((c, -9 - k / 512, NORMAL) for k, c in enumerate(["▁", *alphabet])),
            *(("▁" + w, -7 - k / 512, UNUSED if k % 7 == 0 else NORMAL) for k, w in enumerate(words) if len(w) > 1)]


def converted(pieces, charsmap, prefix):
    """The tokenizer.json of transformers' XLMRobertaTokenizer."""
    vocab = [["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0], *([p, s] for p, s, _ in pieces[3:]), ["<mask>", 0]]
    begin, end, a, b = ({"SpecialToken": {"id": "<s>", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}})
    special = {x: {"id": x, "ids": [k], "tokens": [x]} for k, x in ((0, "<s>"), (2, "</s>"))}
    names = ((0, "<s>"), (1, "<pad>"), (2, "</s>"), (3, "<unk>"), (len(vocab) - 1, "<mask>"))
    flags = {"single_word": False, "rstrip": False, "special": True}
    return {"added_tokens": [{"id": k, "content": x, "lstrip": x == "<mask>", "normalized": x == "<mask>", **flags} for k, x in names],
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()} if charsmap else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {
                "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" if prefix else "never", "split": True}]},
            "post_processor": {"type": "TemplateProcessing", "single": [begin, a, end], "pair": [begin, a, end, end, b, end],
                               "special_tokens": special},
            "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False}}


def tokenize(maskbert, folder, lines):
    made = subprocess.run([maskbert, "tokenize", folder, "--json"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    return made.stdout or made.stderr


def write(folder, files):
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


def equal(maskbert, folder):
    lines = [*texts.texts(120), "a <mask> b", "<mask>", "x  <mask>y</s>", "<s> <pad>"]
    pieces, fails = pieces_of(lines[:60]), []
    for charsmap, prefix in ((base64.b64decode(texts.charsmap(texts.rules(31))), True), (b"", False), (b"", True)):
        config = {"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": prefix,
                  "mask_token": {"content": "<mask>", "lstrip": True, "normalized": True, "rstrip": False, "single_word": False}}
        write(folder, {"sentencepiece.bpe.model": model(pieces, charsmap), "tokenizer_config.json": config})
        ours = tokenize(maskbert, folder, lines)
        write(folder, {"tokenizer.json": converted(pieces, charsmap, prefix), "tokenizer_config.json": config})
        theirs = tokenize(maskbert, folder, lines)
        if ours != theirs or len(ours.splitlines()) != len(lines) or '"ids"' not in ours:
            fails.append(f"add_prefix_space {prefix}: {ours[:200]}, {theirs[:200]} expected")
    write(folder, {"sentencepiece.bpe.model": model(pieces), "config.json": {"model_type": "xlm-roberta"}})
    if '"ids"' not in tokenize(maskbert, folder, ["a"]):
        fails.append("model_type xlm-roberta is refused")
    return fails


def refused(maskbert, folder):
    good, a = model([*FIRST, ("a", -1.0, NORMAL)]), ("a", -1.0, NORMAL)
    xlmr, cases = {"tokenizer_class": "XLMRobertaTokenizerFast"}, []
    for data, says in (((b""), "damaged"), (b"\xff" * 40, "damaged"), (good[:3], "damaged"), (b"\x0b" + good, "damaged"), (b"\x00\x01" + good, "damaged"),
                       (model(FIRST), "damaged"), (number(1, 5) + good, "damaged"), (blob(1, number(3, 1)), "damaged"),
                       (model([FIRST[1], FIRST[0], FIRST[2], a]), "piece 0: <unk> is expected"), (model([*FIRST[:2], a]), "piece 2: </s> is expected"),
                       (model([*FIRST, a, ("b", 0.0, USER)]), "piece 4 has type 4"), (model([*FIRST, a, ("<0x00>", 0.0, BYTE)]), "piece 4 has type 6"),
                       (model([*FIRST, a, ("[X]", 0.0, CONTROL)]), "piece 4 has type 3"), (model([*FIRST, a], kind=2), "model_type 2"),
                       (model([*FIRST, (b"\xc3", 0.0, NORMAL)]), "piece 3: UTF-8"), (model([*FIRST, ("", 0.0, NORMAL)]), "piece 3: UTF-8"),
                       (model([*FIRST, ("a\0b", 0.0, NORMAL)]), "piece 3: UTF-8"), (model([*FIRST, ("a", float("nan"), NORMAL)]), "finite score"),
                       (model([*FIRST, a], b"xy"), "sentencepiece.bpe.model")):
        cases.append(({"sentencepiece.bpe.model": data, "tokenizer_config.json": xlmr}, says))
    for config, says in (({}, "unnamed class"), ({"tokenizer_class": "CamembertTokenizer"}, "of CamembertTokenizer"), ({**xlmr, "mask_token": "[MASK]"}, "mask_token '[MASK]'"),
                         ({"tokenizer_class": "a\nb\x1b\x7f\x9bc\u00e9" + 60 * "\u2581"}, " of a?b????c\u00e9" + 16 * "\u2581" + " is"),
                         ({**xlmr, "add_prefix_space": 3}, "add_prefix_space")):
        cases.append(({"sentencepiece.bpe.model": good, "tokenizer_config.json": config}, says))
    cases.append(({"sentencepiece.bpe.model": good, "config.json": {"model_type": "camembert"}}, "of camembert"))
    fails = []
    for files, says in cases:
        write(folder, files)
        made = subprocess.run([maskbert, "tokenize", folder], input="a\n", capture_output=True, text=True, check=False)
        if made.returncode != 2 or made.stderr.count("\n") != 1 or says not in made.stderr:
            fails.append(f"'{says}' expected, code 2: {made.returncode} {made.stderr}")
    return fails


def main():
    with tempfile.TemporaryDirectory() as name:
        results = [test(sys.argv[1], pathlib.Path(name)) for test in (equal, refused)]
    bad = sum(bool(r) for r in results)
    print("\n".join(x for r in results for x in r[:9]))
    print(f"[  PASSED  ] {len(results) - bad} test(s).\n[  FAILED  ] {bad} test(s).")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
