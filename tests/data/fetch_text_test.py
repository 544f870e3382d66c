#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text that tools/fetch-text drops and keeps, on texts of our own and a package of our own: no network. Closes with cmocka's
lines, so that tools/count_tests adds it up."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402
import fetch_text_clean as clean  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("fetch_text", str(ROOT / "tools/fetch-text"))
fetch_text = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_text", LOADER))
LOADER.exec_module(fetch_text)

PROSE = "This is a paragraph that all of the rules let through, with a second sentence. It has two of them."


class Paragraphs(unittest.TestCase):
    def test_html_without_what_is_no_prose(self):
        page = """<html><head><title>No</title></head><body><script>var a = "<p>no</p>";</script><nav><p>No</p></nav>
            <p>One &amp; <code>two</code>,<br>three&nbsp;four.</p><!-- <p>No</p> --><pre>int no;</pre>
            <ul><li>Five <a href="x">six</a></li><li>Seven</ul><table><tr><td><p>No</p></table>After 1 < 2."""
        self.assertEqual(list(clean.html_paragraphs(page)),
                         ["One & two, three four.", "Five six", "Seven", "After 1 < 2."])

    def test_pod(self):
        pod = "=head1 No\n\nOne B<two C<three>> L<four|no/x>\nE<lt>five\n\n    no code\n\n=over\n\nSix F<< a->b >>."
        self.assertEqual(list(clean.pod_paragraphs(pod)), ["One two three four <five", "Six a->b."])

    def test_plain_text(self):
        text = "# No\n\nOne *two*\nthree [four](no).\n\n    no code\n\n```\nno\n\nno\n```\n\n- Five\n\na   b  no\n\n| no |"
        self.assertEqual(list(clean.text_paragraphs(text)), ["One two three four.", "Five"])


class Prose(unittest.TestCase):
    def test_what_stays_and_what_goes(self):
        self.assertTrue(clean.is_prose(PROSE))
        self.assertTrue(clean.is_prose('"' + PROSE + '" [Somebody, Somewhere, p. 3]'))
        for bad in ("Too short to be of any use.", PROSE[:-1], PROSE.lower(), PROSE + " x = a[i] + b_c->d(e) / {f};",
                    "Das ist ein Absatz in einer anderen Sprache, und er ist lang genug.", "\u65e5\u672c " * 30 + "the of and.",
                    "One 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 of the and is."):
            self.assertFalse(clean.is_prose(bad), bad)

    def test_plain_characters(self):
        self.assertEqual(clean.plain("\u201cIt\u2019s\u201d\u00a0 so\u2026 More..."), '"It\'s" so...')

    def test_repetitions_differ_by_case_and_digits_alone(self):
        key = clean.paragraph_key
        self.assertEqual(key("Version 12 is out."), key("version 7 is out."))
        self.assertNotEqual(key("Version 12 is out."), key("Version 12 is in."))


class Sentences(unittest.TestCase):
    def test_they_end_where_those_of_prep_do(self):
        for text, parts in (
                ("Mr. Smith met Dr. J. Jones. They left.", ["Mr. Smith met Dr. J. Jones.", "They left."]),
                ("See Fig. 3 and No. 5. He said no. Then he left.", ["See Fig. 3 and No. 5.", "He said no.", "Then he left."]),
                ("1. Introduction begins. 2. It ends.", ["1. Introduction begins.", "2. It ends."]),
                ("It is 3.14 or e.g. Pi. So did I. Fine", ["It is 3.14 or e.g. Pi.", "So did I.", "Fine"]),
                ('"Stop!" He stopped. (Why?) Nobody knows.', ['"Stop!"', "He stopped.", "(Why?)", "Nobody knows."]),
                ("Wait... What? yes. No... it goes on.", ["Wait...", "What? yes.", "No... it goes on."])):
            self.assertEqual(clean.sentences(text), parts)


class Arguments(unittest.TestCase):
    def test_a_text_where_the_cache_makes_a_folder_is_refused_before_anything_is_fetched(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            target = pathlib.Path(folder) / "corpus"
            with self.assertRaises(SystemExit) as end:
                fetch_text.refuse_wrong_kind(target, False, (target / "cache").resolve())
            self.assertEqual(end.exception.code, 2)
            self.assertIn("a folder; the name of a file is expected", said.getvalue())
            fetch_text.refuse_wrong_kind(target / "text.txt", False, (target / "cache").resolve())


class Descriptions(unittest.TestCase):
    def test_stanzas(self):
        self.assertEqual(list(clean.stanzas(["A: b\n", "C: d\n", " e\n", "\n", "\n", "A: f\n"])),
                         [{"a": "b", "c": "d\n e"}, {"a": "f"}])

    def test_lists_are_left_out(self):
        field = "short line\n A long\n line.\n .\n  * no\n  * no\n - no\n + no\n .\n The\tend."
        self.assertEqual(clean.description_parts(field), ("short line", ["A long line.", "The\tend."]))


class Lists(unittest.TestCase):
    def update(self, apt_get, cache):
        """(the folder, stderr) with that program in the place of apt-get."""
        program = cache / "bin/apt-get"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{apt_get}\n")
        program.chmod(0o755)
        with unittest.mock.patch.dict("os.environ", {"PATH": f"{program.parent}:/usr/bin:/bin"}), contextlib.redirect_stderr(io.StringIO()) as said:
            return fetch_text.update_lists(cache), said.getvalue()

    def test_without_a_network_those_of_this_machine_are_read_and_a_later_call_tries_again(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = pathlib.Path(folder)
            for end in ("exit 0", "exit 100"):
                found, said = self.update(end, cache)
                self.assertEqual((found, said.count("\n"), (cache / "lists/done").exists()), (fetch_text.LOCAL_LISTS, 1, False))
            found, said = self.update(f"touch {cache}/lists/x_main_i18n_Translation-en", cache)
            self.assertEqual((found, said), (cache / "lists", ""))
            self.assertEqual(self.update(f"rm -r {cache}/lists", cache), (cache / "lists", ""))  # once for each cache
            self.assertTrue((cache / "lists/done").exists())


class Package(unittest.TestCase):
    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb")
    def test_a_target_of_the_wrong_kind_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file"
            file.touch()
            for labelled, target in ((False, pathlib.Path(folder)), (True, file)):
                with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                    fetch_text.refuse_wrong_kind(target, labelled, pathlib.Path("elsewhere").resolve())
                self.assertEqual(ended.exception.code, 2)

    def test_a_package_becomes_sentences(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            doc = root / "tree/usr/share/doc/x"
            doc.mkdir(parents=True)
            (root / "tree/DEBIAN").mkdir()
            (root / "tree/DEBIAN/control").write_text("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n")
            other = PROSE.replace("paragraph", "text")
            (doc / "b.html").write_text(f"<p>{PROSE}</p><p>{other}</p><p>{PROSE}</p>")
            (doc / "a.html").write_text(f"<p>{PROSE}</p><p>no</p>")
            (doc / "changelog.html").write_text(f"<p>{PROSE}</p>")
            subprocess.run(["dpkg-deb", "-b", root / "tree", root / "x.deb"], check=True, capture_output=True)
            fetch_text.clean_package(root / "x.deb", fetch_text.HTML, root / "clean")
            self.assertEqual((root / "clean").read_text(), f"{PROSE}\n\n{PROSE}\n{other}\n{PROSE}\n\n")
            (root / "cut.deb").write_bytes((root / "x.deb").read_bytes()[:300])
            with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(io.StringIO()) as said:
                fetch_text.clean_package(root / "cut.deb", fetch_text.HTML, root / "nothing")
            self.assertEqual((end.exception.code, said.getvalue().count("\n")), (3, 1))
            self.assertFalse((root / "nothing").exists())
            seen = set()
            texts = [fetch_text.document_text(d, seen) for d in (root / "clean").read_text().split("\n\n")]
            self.assertEqual(texts, ["", "", ""])  # two sentences each, once the repetitions are gone
            long = f"{other}\n{PROSE.replace('paragraph', 'page')}"
            self.assertEqual(fetch_text.document_text(long, set()), "\n".join(
                clean.sentences(other) + clean.sentences(long.split("\n")[1])) + "\n\n")


if __name__ == "__main__":
    cmocka_count.run_cases()
