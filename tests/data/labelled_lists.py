# SPDX-License-Identifier: Apache-2.0
"""Package lists of our own for tests of tools/fetch-text --labelled: enough sources for each part of each task, and hostile records."""
import hashlib

SECTIONS = ("net", "games", "libs", "science")  # libs is none of section/'s classes
WORDS = [a + b for a in "ba ce di fo gu ka le mi no pu ra se ti vo zu".split() for b in "lan mor ned pis rug tav wix yel".split()]
SOURCES, REPEATED = 320, 20  # the last packages repeat synopses of others, of the same section


def pick(count, *of):
    """That many words, a function of the arguments."""
    digest = hashlib.sha512("/".join(map(str, of)).encode()).digest()
    return [WORDS[digest[k] % len(WORDS)] for k in range(count)]


def name_of(number):
    return "zip" + "".join(pick(2, "name", number)) + chr(97 + number % 26)


def sentence(count, *of):
    return " ".join(pick(count, *of)).capitalize() + "."


def stanza(package, section, description, source=None, md5=None):
    """(of Packages, of Translation-en)"""
    md5 = md5 or hashlib.md5(description.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    first = f"Package: {package}\n" + (f"Source: {source}\n" if source else "") + f"Section: {section}\nDescription-md5: {md5}\n\n"
    return first, f"Package: {package}\nDescription-md5: {md5}\nDescription-en: {description}\n\n"


def plain(number):
    """A package whose description names it behind characters of several bytes and of two UTF-16 units, quotes, commas and tabs. Two words of
    its own are in its synopsis and in each sentence, and one of its section, so that bags of words find something."""
    name, section = name_of(number), SECTIONS[number % len(SECTIONS)]
    shown = name.capitalize() if number % 2 else name.upper()
    about = number - SOURCES // 2 if number >= SOURCES - REPEATED else number
    own = " ".join(pick(2, number, "own"))
    text = (f" \u00c4\U0001f600 \"{sentence(3, number, 0)[:-1]}\",\tthe\n {shown} {own} {section}like {sentence(4, number, 1).lower()}\n .\n"
            f"  * {sentence(9, number, 2)}\n {sentence(6, number, 3)[:-1]} {own}. {sentence(5, number, 4)[:-1]} {own}.")
    return stanza(f"{name}-{'tools' if number % 3 else 'data'}", section, " ".join(pick(2, about, "own") + pick(3, about, "synopsis")) + "\n" + text,
                  source=f"{name} (1.{number})" if number % 2 else name)


def hostile():
    long = " " + sentence(9, "long", 0) + " " + sentence(9, "long", 1)
    yield "Package: no-description\nSection: net\nDescription-md5: nowhere\n\n", ""
    yield "Package: no-section\nDescription-md5: 1\n\n", "Package: no-section\nDescription-md5: 1\nDescription-en: x\n" + long + "\n\n"
    yield "Section: net\nDescription-md5: 1\n\n", ""  # no name
    yield stanza("empty", "net", "")
    yield stanza("only-a-synopsis", "net", "of nothing else")
    yield stanza("dummy-one", "net", "transitional dummy package\n" + long)
    yield stanza("not-utf8", "net", "synopsis with \udcff\n" + long)
    yield stanza("folded", "net/extra", "\u201cfolded\u201d \t line\u00a0here.\n First\tline\x01 goes\x00\u2028on\n to \u2018here\u2019, "
                 + " ".join(pick(9, "folded")) + ".\n .\n Said: \"a\", b.\n Not a sentence\n  indented no\n - no", source="folded-source (2:1.0)")


def write(folder, sources=SOURCES, extra=()):
    """Lists of main in a folder, and one of another component that must not be read."""
    rows = [*map(plain, range(sources)), *hostile(), *extra]
    folder.mkdir(parents=True, exist_ok=True)
    for name, column in (("x_main_binary-amd64_Packages", 0), ("x_main_i18n_Translation-en", 1)):
        (folder / name).write_bytes("".join(row[column] for row in rows).encode("utf-8", "surrogateescape"))
    for name, text in zip(("x_contrib_binary-amd64_Packages", "x_contrib_i18n_Translation-en"), stanza("contrib-one", "net", "contrib\n Contrib.")):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "x_InRelease").write_text("-----BEGIN\n\nOrigin: Test\nCodename: testing\nDate: today\n", encoding="utf-8")
    return folder
