# SPDX-License-Identifier: Apache-2.0
"""Texts of the tokenizers' tests: 20 scripts, blanks, controls, compositions, emoji, special tokens; and a double-array trie
of replacements as sentencepiece stores it."""
import base64
import random
import struct
import unicodedata

SCRIPTS = [(0x41, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x530, 0x58f), (0x590, 0x5ff), (0x600, 0x6ff),
           (0x900, 0x97f), (0x980, 0x9ff), (0xa00, 0xa7f), (0xb80, 0xbff), (0xc00, 0xc7f), (0xe00, 0xe7f),
           (0x10a0, 0x10ff), (0x1100, 0x11ff), (0x1200, 0x137f), (0x1780, 0x17ff), (0x3040, 0x30ff), (0x4e00, 0x4fff),
           (0xac00, 0xad00)]
ODD = [*"0123456789.,;:!?'\"()-_/@#%&*+=<>[]{}|~^`$\\", "'s", "'re", "'ll", "n't", "'S", "  ", "   ", "\u00a0",
       "\u3000", "\u2028", "\u0085", "\r", "…", "ﬁ", "½", "①", "ｆｕｌｌ", "Å", "e\u0301", "e\u0323\u0301", "\u0301", "\u200d",
       "\ufeff", "\u00ad", "👩‍👩‍👧", "🇩🇪🇫", "😀", "©\u200d©", "™", "Ⅷ", "ǅ", "İ", "ß", "ﷺ", "\u0344", "각",
       "\u1100\u1161\u11a8", "▁", "Ġ", "\x01", "\x7f", "\u0600a", "ำ", "<mask>", "<s>", "</s>", "[MASK]", " <mask> ", "<unk>",
       "<pad>", "a\u0300b", "\u0915\u093c", "\u0958", "\U0001d400", "\U00011935\U00011930", "\u1c89", "\ua7f2", "¨", "\u0149",
       "  x", "HTML", "www.", "ab1c2", "\u2460\u2461", "ﬃ", "\ufdfb", "\u1e9b\u0323", "\u0d4e\u0d15", "ॐ"]


def texts(count, seed=1):
    """Every line is a text, or a pair around a tab. No line is in more than a few scripts."""
    r = random.Random(seed)

    def letter(script):
        c = chr(r.randint(*script))
        return c if unicodedata.category(c) not in ("Cc", "Cs") else "x"

    words = [["".join(letter(s) for _ in range(r.randint(1, 7))) for _ in range(25)] for s in SCRIPTS]
    for k in range(count):
        parts = []
        for _ in range(r.randint(0, 25)):
            kind = r.random()
            parts.append(r.choice(words[k % 20]) if kind < 0.6 else r.choice(ODD) if kind < 0.8
                         else r.choice(r.choice(words)) if kind < 0.9 else str(r.randint(0, 99999)))
            parts.append(r.choice([" "] * 6 + ["", "  ", "   "]))
        line = "".join(parts).replace("\n", " ").replace("\t", " ")
        if k % 5 == 4:
            at = r.randint(0, len(line))
            line = line[:at] + "\t" + line[at:]
        yield line if k % 3 else line.strip(" ")


def double_array(entries):
    """Units of a darts-clone trie of {bytes: value}."""
    root = {}
    for key, value in entries.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[-1] = value
    unit, used = {0: 0}, {0}
    pending = [(root, 0)]
    while pending:
        node, place = pending.pop()
        labels = sorted(0 if b < 0 else b for b in node)
        base = place + 1
        while True:
            offset = place ^ base
            small = offset < 1 << 21 or not offset & 0xff and offset < 1 << 29
            if small and base not in taken_bases and all(base ^ b not in used for b in labels):
                break
            base += 1
        taken_bases.add(base)
        unit[place] |= offset << 10 if offset < 1 << 21 else offset << 2 | 1 << 9
        for b, below in node.items():
            at = base ^ max(b, 0)
            used.add(at)
            if b < 0:
                unit[place] |= 1 << 8
                unit[at] = below | 1 << 31
            else:
                unit[at] = b
                pending.append((below, at))
    return [unit.get(k, 0) for k in range(max(unit) // 256 * 256 + 256)]


taken_bases = set()


def charsmap(rules):
    """precompiled_charsmap of {text: replacement}, in base64."""
    taken_bases.clear()
    blob, values = b"", {}
    for text, by in rules.items():
        values[text.encode()] = len(blob)
        blob += by.encode() + b"\0"
    units = double_array(values)
    array = b"".join(struct.pack("<I", u) for u in units)
    return base64.b64encode(struct.pack("<I", len(array)) + array + blob).decode()


def rules(every):
    """Like sentencepiece's nmt_nfkc: compatibility forms, compositions of two, blanks, controls. every: one of so many."""
    ret = {}
    for c in range(0x80, 0x30000):
        ch = chr(c)
        if 0xd800 <= c < 0xe000 or c % every:
            continue
        by = unicodedata.normalize("NFKC", ch)
        if by != ch:
            ret[ch] = by
        if len(decomposed := unicodedata.normalize("NFD", ch)) == 2 and unicodedata.normalize("NFC", decomposed) == ch:
            ret[decomposed] = ch
    for c in [*range(1, 9), 0x0b, *range(0x0e, 0x20), 0x7f, 0xad, 0x200b, 0xfeff, 0x200d]:
        ret[chr(c)] = ""
    ret.update({c: " " for c in "\t\r\u00a0\u3000\u2028\u0085"})
    ret.update({"…": "...", "ﬁ": "fi", "½": "1\u20442", "ﷺ": "صلى الله عليه وسلم", "e\u0301": "é", "™": "TM", "\r\n": " ", "©": "(c)"})
    return ret
