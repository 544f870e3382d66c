# SPDX-License-Identifier: Apache-2.0
"""From a documentation file to English prose: paragraphs, what is dropped, sentences. Functions of their arguments alone;
tools/fetch-text calls them and tests/data/fetch_text_test.py asks them.

What stays: a paragraph of at least 40 characters that
  - begins with a capital letter, a digit or an opening quote or bracket, and ends a sentence, a colon or a
    source in brackets behind one included;
  - is letters, blanks and usual punctuation to at least 95 %, letters and blanks to at least 85 %, and has at most one
    character in 30 of those that code has (such as _ / = { \\);
  - is English: of its words at least a seventh are among the sixty most usual ones, two of them different;
  - was not there before, letter by letter, but for case and digits.
Tables, code, preformatted text, headings, lists of links and navigation are dropped before."""
import hashlib
import html
import re

# ---- HTML: blocks that hold no prose go, block tags end a paragraph, other tags vanish.
NOT_PROSE = re.compile(
    r"<(script|style|pre|table|nav|header|footer|form|svg|math|button|select|head)\b.*?</\1\s*>", re.S | re.I)
COMMENT = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.S)
PARAGRAPH_END = re.compile(
    r"</?(?:p|li|dd|dt|div|h[1-6]|ul|ol|dl|blockquote|section|article|main|aside|body|tr|td|th|hr|figure|figcaption|details|"
    r"summary)\b[^>]*>|<br\s*/?>\s*<br\s*/?>", re.I)
LINE_END = re.compile(r"<br\b[^>]*>", re.I)
TAG = re.compile(r"<[a-zA-Z/!?][^>]*>")
BLANKS = re.compile(r"\s+")


def html_paragraphs(text):
    text = COMMENT.sub(" ", text)
    text = NOT_PROSE.sub("\n\0", text)
    for part in PARAGRAPH_END.sub("\0", text).split("\0"):
        part = BLANKS.sub(" ", html.unescape(TAG.sub("", LINE_END.sub(" ", part)))).replace("\u00b6", "").strip()
        if part:
            yield part


# ---- POD: indented lines are code, "=" begins a command, C<..> and its like are unwrapped.
FORMAT = re.compile(r"[BCIFSL]<([^<>]*)>")
DOUBLED = re.compile(r"[BCIFSL]<<+\s(.*?)\s>>+", re.S)
ESCAPE = re.compile(r"E<(\w+)>")
ESCAPES = {"lt": "<", "gt": ">", "verbar": "|", "sol": "/"}


def unformat(text):
    before, text = None, DOUBLED.sub(lambda m: m[1].replace("<", "E<lt>").replace("->", "-E<gt>"), text)
    while before != text:
        before, text = text, FORMAT.sub(lambda m: m[1].split("|")[0], re.sub(r"[XZ]<[^<>]*>", "", text))
    return ESCAPE.sub(lambda m: ESCAPES.get(m[1].lower(), html.unescape(f"&{m[1]};")), text)


def pod_paragraphs(text):
    for part in re.split(r"\n\s*\n", text):
        if part[:1] not in ("=", " ", "\t", ""):
            yield BLANKS.sub(" ", unformat(part)).strip()


# ---- Plain text and Markdown: indented by four or fenced is code; marks of lists and emphasis go.
def text_paragraphs(text):
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
    for part in re.split(r"\n\s*\n", text):
        lines = part.split("\n")
        if part.startswith(("    ", "\t", "#", "|", "..")) or re.search(r"^[-=+~|]{4,}|\S   +\S", part, re.M):
            continue
        line = " ".join(re.sub(r"^\s*(?:[-*+o]|\d+[.)])\s+", "", x) for x in lines)
        line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        yield BLANKS.sub(" ", re.sub(r"[`*]+|\b_+|_+\b", "", line)).strip()


# ---- Recognition of prose.
USUAL = frozenset(
    "the of and to in a is that for it as was with be by on not he i this are or his from at which but have an had they you "
    "were their one all we can her has there been if more when will would who so no out up into than them some could do "
    "these may then its only other such".split())
PLAIN = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": " - ", "\u2026": "...", "\u00a0": " ",
         "\u00ad": "", "\u2010": "-", "\u2011": "-", "\u2212": "-", "\ufeff": "", "\u200b": ""}
PLAIN_TABLE = str.maketrans(PLAIN)
BEGIN = re.compile(r"[\"'(\[]*[A-Z0-9]")
END = re.compile(r"[.!?:][\"')\]]*(?:\s*\[[^\]]*\][\"')\]]*\.?)?$")
LETTERS = re.compile(r"[A-Za-z ]")
COMMON = re.compile(r"[A-Za-z0-9 .,;:!?'\"()\[\]-]")
CODE = re.compile(r"[_/=<>{}\\|@#$^~*+&%]|::|\(\)")
WORD = re.compile(r"[A-Za-z']+")


def plain(paragraph):
    return BLANKS.sub(" ", paragraph.translate(PLAIN_TABLE)).strip().removesuffix(" More...")


def is_prose(paragraph):
    size = len(paragraph)
    if size < 40 or not BEGIN.match(paragraph) or not END.search(paragraph):
        return False
    if len(COMMON.findall(paragraph)) < 0.95 * size or len(LETTERS.findall(paragraph)) < 0.85 * size:
        return False
    if 30 * len(CODE.findall(paragraph)) > size:
        return False
    words = WORD.findall(paragraph.lower())
    usual = [w for w in words if w in USUAL]
    return 7 * len(usual) >= len(words) and len(set(usual)) >= 2


def paragraph_key(paragraph):
    return hashlib.blake2b(re.sub(r"\d+", "0", paragraph.lower()).encode(), digest_size=12).digest()


# ---- Sentences: the rules of model/data/sentences.h.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr rev hon gen col maj capt cmdr lt sgt gov sen rep pres mt ft vs cf viz e.g i.e eg ie ca al "
    "approx esp resp incl ph.d messrs mme mlle op".split())
BEFORE_DIGITS = frozenset(
    "no nos fig figs p pp vol vols sec sect ch chap eq eqs art ver v par tab jan feb mar apr jun jul aug sep sept oct nov "
    "dec".split())
STOP = re.compile(r"([.!?]+)([\"')\]}]*)\s+(?=([\"'(\[{]*)([A-Z0-9]|[^\x00-\x7f]))")
LAST_WORD = re.compile(r"[^\s(\[{\"'/-]*$")


def ends_sentence(text, begin, match):
    if match[1] != "." or match[2]:
        return True
    word = LAST_WORD.search(text, begin, match.start())[0]
    if len(word) == 1 and word.isupper() and word != "I":
        return False
    if text[begin:match.start()] == word and re.fullmatch(r"[\d.]+", word):
        return False
    first = match[3][:1] or match[4]
    return word.lower() not in ABBREVIATIONS and not (first.isdigit() and word.lower() in BEFORE_DIGITS)


def sentences(paragraph):
    found, begin = [], 0
    for match in STOP.finditer(paragraph):
        if ends_sentence(paragraph, begin, match):
            found.append(paragraph[begin:match.end(2)])
            begin = match.end()
    return found + [paragraph[begin:].strip()] if paragraph[begin:].strip() else found


# ---- Package descriptions.
def description_parts(field):
    """Returns the short line and the paragraphs of a Description field; lists and indented text are left out."""
    short, *rest = field.split("\n")
    parts, current = [], []
    for line in rest + [" ."]:
        if line.strip() == ".":
            parts += [" ".join(current)] if current else []
            current = []
        elif not line.startswith("  ") and not re.match(r"\s[-*o+] ", line):
            current.append(line.strip())
    return short.strip(), parts


def stanzas(lines):
    """Fields of each stanza of a control file, names in lower case."""
    fields, name = {}, None
    for line in lines:
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            if name:
                fields[name] += "\n" + line.rstrip("\n")
        else:
            name, _, value = line.partition(":")
            name = name.lower()
            fields[name] = value.strip()
    if fields:
        yield fields
