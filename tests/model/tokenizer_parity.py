#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `maskbert tokenize` with the Rust library `tokenizers`, number by number and byte by byte.

usage: tokenizer_parity.py MASKBERT [--model DIR] [--megabytes N] [--speed] [--google] [FILE ...]

Text: every code point in four surroundings, random mixtures of scripts, accents, emoji, controls and broken UTF-8,
special tokens, long words, pairs, then FILEs (default: /usr/share/doc and /usr/include) up to N megabytes in all.
Without --model a small vocabulary is made from the text. Up to one megabyte only one in 16 of the code points that are
alike or not assigned. --google compares --tokenizer-compat google with Google's rules, restated below on Python's own
unicodedata (code points that are assigned there). Exit code 77: the library is not here.
"""
import argparse
import glob
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

try:
    import tokenizers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
except ImportError:
    tokenizers = None

ALIKE = ((0xAC00, 0xD7A3), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B739), (0x2B820, 0x2CEA1), (0x30000, 0x3134A))
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def is_one_of_many(c):
    """In planes 15 and 16, all for private use, or among Hangul's syllables and ideographs: one in 16 and the ends stand for them."""
    many = c & 0xFFFF not in (1, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF) if c >= 0xF0000 else any(first < c < last for first, last in ALIKE)
    return c % 16 and many


def code_points(google, few):
    """Every code point, many to a line, in surroundings that show whether it splits or goes."""
    cells = []
    for c in range(1, 0x110000):
        ch = chr(c)
        if 0xD800 <= c < 0xE000 or c in (9, 10) or few and (is_one_of_many(c) or unicodedata.category(ch) == "Cn" and (google or c % 16)):
            continue
        cells.append(f"a{ch}b {ch} e\u0301{ch}\u0323 {ch}{ch}")
    for k in range(0, len(cells), 64):
        yield " ".join(cells[k:k + 64]).encode()


def random_char(r):
    lo, hi = r.choice([(0x20, 0x7e), (0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x5ff),
                       (0x600, 0x6ff), (0x900, 0xdff), (0xe00, 0xfff), (0x1100, 0x11ff), (0x1e00, 0x1fff),
                       (0x2000, 0x2bff), (0x3000, 0x30ff), (0x4e00, 0x4fff), (0xac00, 0xd7a3), (0xf900, 0xfaff),
                       (0xfe00, 0xffff), (0x1d100, 0x1d200), (0x1f300, 0x1faff), (0x2b800, 0x2ba00), (0, 0x1f)])
    return chr(r.randint(lo, hi))


def mixtures(count, google):
    r = random.Random(1)
    words = ["the", "Internationalization", "naïve", "Ångström", "ΣΊΣΥΦΟΣ", "ΟΔΟΣ.", "İstanbul", "ǅ", "straße", "Ⅷ",
             "don't", "x" * 99, "x" * 100, "x" * 101, "é" * 101, "y" * 200, "y" * 201, "日本語", "한국어", "e\u0301\u0323\u0327",
             "...", "#tag", "##ing", "e-mail", "\u200d", "\ufeff", "\u00ad", "½", "ﬁ", "👩‍👩‍👧", "\u2028", "\u0344"]
    if not google:
        words += SPECIAL + ["[MASK]s", "[ MASK ]", "[mask]", "[[CLS]]"]
    for _ in range(count):
        parts = []
        for _ in range(r.randint(0, 30)):
            kind = r.random()
            if kind < 0.4:
                parts.append(r.choice(words).encode())
            elif kind < 0.9:
                word = "".join(random_char(r) for _ in range(r.randint(1, 8)))
                if google:
                    word = "".join(c for c in word if unicodedata.category(c) != "Cn")
                parts.append(word.encode())
            else:
                parts.append(bytes(r.randint(0x80, 0xff) for _ in range(r.randint(1, 4))))
        line = r.choice([b" ", b"", b"  "]).join(parts).replace(b"\n", b" ").replace(b"\t", b" ")
        if r.random() < 0.2:
            cut = r.randint(0, len(line))
            line = line[:cut] + b"\t" + line[cut:]
        yield line


def file_lines(names, limit):
    for name in names:
        try:
            data = (gzip.open if name.endswith(".gz") else open)(name, "rb").read(1 << 20)
        except OSError:
            continue
        limit -= len(data)
        yield from data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n")
        if limit < 0:
            return


def default_files():
    names = sorted(glob.glob("/usr/share/doc/**/*", recursive=True) + glob.glob("/usr/include/**/*.h", recursive=True))
    names = [n for n in names if os.path.isfile(n) and not n.endswith((".png", ".svg", ".pdf", ".css"))]
    random.Random(2).shuffle(names)
    return names


def make_model(folder, lines):
    """A vocabulary of characters, suffixes and frequent words of the text."""
    count = {}
    for line in lines[::7]:
        for word in line.decode("utf-8", "ignore").lower().split():
            if len(word) < 20:
                count[word] = count.get(word, 0) + 1
    words = sorted(count, key=lambda w: (-count[w], w))[:8000]
    chars = sorted({c for w in words for c in w} | {chr(c) for c in range(0x21, 0x600)} | set("日本語한국어ςσδοια"))
    ends = sorted({"##" + w[k:] for w in words[:3000] for k in range(1, len(w))} | {"##" + c for c in chars})
    seen = dict.fromkeys(SPECIAL + words + chars + ends)
    with open(f"{folder}/vocab.txt", "w", encoding="utf-8", newline="\n") as f:
        f.writelines(t + "\n" for t in seen if t.strip() == t and t and not set(t) & set("\n\0"))


def rust(folder, **settings):
    if os.path.exists(f"{folder}/tokenizer.json") and not settings:
        t = Tokenizer.from_file(f"{folder}/tokenizer.json")
    else:
        with open(f"{folder}/vocab.txt", encoding="utf-8", newline="\n") as f:
            vocab = {line.rstrip("\n"): k for k, line in enumerate(f)}
        t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(**settings)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.add_special_tokens([s for s in SPECIAL if s in vocab])
        t.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    t.no_truncation()
    t.no_padding()
    return t


def decoded(part):
    """Text, and for each character (and the end) its byte in the line."""
    text = part.decode("utf-8", "replace")
    if "\ufffd" not in text:
        at, places = 0, [0]
        for ch in text:
            at += len(ch.encode())
            places.append(at)
        return text, places
    places, at, text = [], 0, ""
    while at < len(part):
        size = 4
        for n in range(1, 5):
            ch = part[at:at + n].decode("utf-8", "replace")
            if len(ch) == 1 and ch != "\ufffd":
                size = n
                break
        else:
            ch = "\ufffd"
            if part[at:at + 3] == b"\xef\xbf\xbd":
                size = 3
            else:  # the longest part that is still one replacement
                size = max(n for n in range(1, 5) if len(part[at:at + n].decode("utf-8", "replace")) == 1)
        text += ch
        places.append(at)
        at += min(size, len(part) - at)
    places.append(len(part))
    return text, places


def expect_rust(tokenizer, lines):
    inputs, maps = [], []
    for line in lines:
        a, tab, b = line.partition(b"\t")
        ta, pa = decoded(a)
        if tab:
            tb, pb = decoded(b)
            inputs.append((ta, tb))
        else:
            inputs.append(ta)
            pb = None
        maps.append((pa, pb))
    for coded, (pa, pb) in zip(tokenizer.encode_batch(inputs), maps):
        spans = []
        for (x, y), side, special in zip(coded.offsets, coded.sequence_ids, coded.special_tokens_mask):
            p = pb if side == 1 else pa
            spans.append([0, 0] if side is None else [p[x], p[y]])
        yield coded.ids, spans, coded.type_ids


class Google:
    """The rules of google-research/bert's tokenization.py, restated."""

    def __init__(self, folder, lower):
        with open(f"{folder}/vocab.txt", encoding="utf-8", newline="\n") as f:
            self.vocab = {line.strip(): k for k, line in enumerate(f)}
        self.lower = lower

    @staticmethod
    def clean(text):
        for ch in text:
            category = unicodedata.category(ch)
            if ch in "\t\n\r" or category == "Zs":
                yield " "
            elif ch not in "\0\ufffd" and category not in ("Cc", "Cf"):
                c = ord(ch)
                cjk = (0x4E00 <= c <= 0x9FFF or 0x3400 <= c <= 0x4DBF or 0x20000 <= c <= 0x2A6DF or 0x2A700 <= c <= 0x2B73F
                       or 0x2B740 <= c <= 0x2B81F or 0x2B820 <= c <= 0x2CEAF or 0xF900 <= c <= 0xFAFF
                       or 0x2F800 <= c <= 0x2FA1F)
                yield f" {ch} " if cjk else ch

    def words(self, text):
        for token in "".join(self.clean(text)).split():
            if self.lower:
                token = unicodedata.normalize("NFD", token.lower())
                token = "".join(c for c in token if unicodedata.category(c) != "Mn")
            out = ""
            for c in token:
                p = 33 <= ord(c) <= 47 or 58 <= ord(c) <= 64 or 91 <= ord(c) <= 96 or 123 <= ord(c) <= 126
                out += f" {c} " if p or unicodedata.category(c).startswith("P") else c
            yield from out.split()

    def encode(self, text):
        for word in self.words(text):
            pieces, at = [], 0
            while at < len(word) <= 200:
                for end in range(len(word), at, -1):
                    piece = ("##" if at else "") + word[at:end]
                    if piece in self.vocab:
                        break
                else:
                    break
                pieces.append(self.vocab[piece])
                at = end
            yield from pieces if at == len(word) else [self.vocab["[UNK]"]]

    def line(self, line):
        ids = [self.vocab["[CLS]"]]
        for part in line.split(b"\t", 1):
            ids += [*self.encode(part.decode("utf-8", "replace")), self.vocab["[SEP]"]]
        return ids


def ours(program, folder, path, *options):
    out = subprocess.run([program, "tokenize", folder, *options], stdin=open(path, "rb"), stdout=subprocess.PIPE, check=True)
    return out.stdout.split(b"\n")[:-1]


def compare(name, lines, expected, got):
    wrong, tokens = 0, 0
    for line, want, have in zip(lines, expected, got):
        tokens += len(want[0]) if isinstance(want, tuple) else len(want)
        if want != have:
            wrong += 1
            if wrong <= 5:
                print(f"{name}: {line[:400]!r}\n  wanted {str(want)[:600]}\n  got    {str(have)[:600]}", file=sys.stderr)
    print(f"{name}: {len(lines)} lines, {sum(map(len, lines)) / 1e6:.1f} MB, {tokens} tokens, {wrong} lines differ")
    return wrong + (len(lines) != len(got))


def write_lines(path, lines):
    with open(path, "wb") as f:
        f.writelines(line + b"\n" for line in lines)


def parse_json(rows):
    for row in rows:
        r = json.loads(row)
        yield r["ids"], r["offsets"], r["types"]


FASTER = 5  # times the library, both on one thread: what is promised; 20 are measured


def speed(program, folder, path, tokenizer, lines):
    """Medians of 5 interleaved runs: the library on one thread in one batch, the program with its start. Is it too slow?"""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    texts = [line.decode("utf-8", "replace") for line in lines]
    size = sum(map(len, lines)) / 1e6
    library, one, all_threads = [], [], []
    for _ in range(5):
        began = time.perf_counter()
        tokenizer.encode_batch(texts)
        library.append(time.perf_counter() - began)
        for times, options in ((one, ["--threads", "1"]), (all_threads, [])):
            began = time.perf_counter()
            subprocess.run([program, "tokenize", folder, *options], stdin=open(path, "rb"), stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - began)
    rate = {k: size / sorted(v)[2] for k, v in (("library", library), ("one", one), ("all", all_threads))}
    print(f"speed over {size:.1f} MB: library, 1 thread {rate['library']:.1f} MB/s; maskbert, 1 thread {rate['one']:.1f} MB/s "
          f"({rate['one'] / rate['library']:.1f} x); maskbert, {os.cpu_count()} threads {rate['all']:.1f} MB/s "
          f"({rate['all'] / rate['library']:.1f} x)")
    return rate["one"] < FASTER * rate["library"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--model")
    p.add_argument("--megabytes", type=float, default=1)
    p.add_argument("--speed", action="store_true")
    p.add_argument("--google", action="store_true")
    p.add_argument("file", nargs="*")
    a = p.parse_args()
    if tokenizers is None and not a.google:
        print("skipped: the library tokenizers is not here (pip install tokenizers)")
        return 77
    lines = [*code_points(a.google, a.google or a.megabytes <= 1), *mixtures(3000, a.google), b"", b"\t", b" ", b"\r"]
    if not a.google:
        lines += file_lines(a.file or default_files(), a.megabytes * 1e6 - sum(map(len, lines)))
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path, model = f"{folder}/lines", a.model or folder
        write_lines(path, lines)
        if not a.model:
            make_model(folder, lines)
        if a.google:
            print(f"Google's rules, Unicode {unicodedata.unidata_version}")
            for lower, every in ((True, 1), (False, 3)):  # cased text only skips a step
                lines = lines[::every]
                write_lines(path, lines)
                json.dump({"do_lower_case": lower}, open(f"{folder}/tokenizer_config.json", "w"))
                judge = Google(model, lower)
                got = [list(map(int, row.split())) for row in ours(a.program, model, path, "--tokenizer-compat", "google")]
                bad += compare(f"google, lower case {lower}", lines, map(judge.line, lines), got)
            return bad > 0
        print(f"tokenizers {tokenizers.__version__}")
        if a.model:
            bad += compare("model", lines, expect_rust(rust(model), lines), list(parse_json(ours(a.program, model, path, "--json"))))
        else:
            configs = ({"do_lower_case": True}, {"do_lower_case": False}, {"do_lower_case": True, "strip_accents": False},
                       {"do_lower_case": False, "strip_accents": True}, {"tokenize_chinese_chars": False})
            for config in configs[:2] if a.megabytes <= 1 else configs:
                json.dump(config, open(f"{folder}/tokenizer_config.json", "w"))
                judge = rust(model, lowercase=config.get("do_lower_case", True), strip_accents=config.get("strip_accents"),
                             handle_chinese_chars=config.get("tokenize_chinese_chars", True))
                got = list(parse_json(ours(a.program, model, path, "--json")))
                bad += compare(str(config), lines, expect_rust(judge, lines), got)
        lines = lines[-(len(lines) // 2):]  # without the code points
        write_lines(path, lines)
        for length in (16, 33):
            judge = rust(model) if a.model else judge
            judge.enable_truncation(length, strategy="longest_first")
            got = list(parse_json(ours(a.program, model, path, "--json", "--max-length", str(length))))
            bad += compare(f"cut to {length}", lines, expect_rust(judge, lines), got)
            judge.no_truncation()
        if a.speed:
            bad += speed(a.program, model, path, rust(model) if a.model else judge, [l for l in lines if b"\t" not in l])
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
