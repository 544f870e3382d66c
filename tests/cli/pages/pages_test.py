#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages_test.py MASKC MASKBERT: do the commands of the pages run, print what the pages say, and do all links lead somewhere?

README.md, gen/TOUR.md and "ten minutes" of gen/README.md, at n = 128 in place of 512 except where the output is compared. MASKBERT is - where it is not
built. A command that needs what this machine lacks (exit code 3: cairo, NVRTC) is skipped.
"""
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
import cmocka_count  # noqa: E402

MASKBERT, MASKC = (name if name == "-" else str(pathlib.Path(name).resolve()) for name in (sys.argv.pop(), sys.argv.pop()))
PAGES = sorted(p for p in ROOT.rglob("*.md") if not any(part.startswith(("build", ".")) for part in p.relative_to(ROOT).parts))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def sessions(text):
    """(command, lines that it printed) of the lines behind a "$ " in the blocks of a page."""
    found = []
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((re.sub(r" +", " ", command), printed.rstrip("\n").split("\n") if printed.strip() else []))
    return found


def anchors(text):
    """The names of a page's sections, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", t).strip().lower()).replace(" ", "-") for t in titles}


def links(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [a or b for a, b in re.findall(r'\]\(([^)\s]+)\)|src="([^"]+)"', text) if not re.match(r"[a-z]+:", a or b)]


class LinksTest(unittest.TestCase):
    def test_each_link_leads_to_a_file_and_a_section(self):
        count = 0
        for page in PAGES:
            for link in links(page.read_text(encoding="utf-8")):
                name, _, section = link.partition("#")
                target = page.parent / name if name else page
                self.assertTrue(target.exists(), f"{page}: {link}")
                if section:
                    self.assertIn(section, anchors(target.read_text(encoding="utf-8")), f"{page}: {link}")
                count += 1
        self.assertGreater(count, 100)

    def test_papers_of_the_gallery_can_be_cited(self):
        keys = set(re.findall(r"^@\w+\{(\w+),", read("masks/gallery/papers.bib"), re.MULTILINE))
        papers = set(re.findall(r'"(\w+) et al\. (\d{4})"', read("masks/language/gallery.c")))
        self.assertGreater(len(papers), 5)
        self.assertLessEqual({name.lower() + year for name, year in papers}, keys)

    def test_versions_are_one(self):
        version = re.search(r'^version = "([\d.]+)"', read("pyproject.toml"), re.MULTILINE)[1]
        self.assertIn(f"\nversion: {version}\n", read("CITATION.cff"))
        self.assertIn(f"Version {version}}}", read("masks/gallery/papers.bib"))


class CommandsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_line(self, line, shell=""):
        """Output of a line for the shell, a bench for a short time; None where this machine cannot run it."""
        line = re.sub(r"^(maskc bench .*)", r"\1 --seconds 0.05", line)
        programs = f"maskc() {{ {shlex.quote(MASKC)} \"$@\"; }}; maskbert() {{ {shlex.quote(MASKBERT)} \"$@\"; }}\n"
        r = subprocess.run(["bash", "-ec", programs + shell + "\n" + line], cwd=self.folder, capture_output=True, text=True, check=False)
        if r.returncode == 3:
            return None
        self.assertEqual((r.returncode, r.stderr), (0, r.stderr), line)
        return r.stdout

    def check_output(self, line, printed, said):
        """The lines of the page appear in what was printed, in their order; "..." stands for any lines."""
        rest = iter(printed.split("\n"))
        for expected in said:
            if expected != "...":
                self.assertIn(expected, rest, line)

    def test_readme(self):
        for name in ("q", "k", "v"):
            head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 128, 12, 64), }".ljust(117) + "\n"
            (self.folder / f"{name}.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + bytes(4 * 12 * 128 * 64))
        lines = [line.replace("-n 512", "-n 128") for line, _ in sessions(read("README.md"))]
        self.assertEqual([line.split()[1] for line in lines], ["show", "plan", "compile", "verify", "bench", "run", "convert"])
        for line in lines:
            if line.startswith("maskbert"):
                if MASKBERT == "-":
                    continue
                self.run_line("printf '[PAD]\\n[UNK]\\n[CLS]\\n[SEP]\\n[MASK]\\nthe\\n' > vocab.txt; maskbert init --size tiny --vocab vocab.txt -o bert-base-uncased")
            if self.run_line(line) is None:
                self.assertIsNotNone(self.run_line(line.replace(",sm_80,sm_90a", "")), line)
        self.assertTrue((self.folder / "out/out.npy").exists())
        self.assertEqual((self.folder / "sparse/config.json").exists(), MASKBERT != "-")

    def test_the_tour(self):
        compared = 0
        for line, said in sessions(read("gen/TOUR.md")):
            if not line.startswith("maskc show"):
                line = line.replace("-n 512", "-n 128").replace(",sm_80,sm_90a", "")
            printed = self.run_line(line)
            if printed is not None and line.startswith("maskc show"):
                self.check_output(line, printed, said)
                compared += len(said)
        self.assertGreater(compared, 5)

    def test_ten_minutes(self):
        text = read("gen/README.md")
        text = text[text.index("## From text to launch"):text.index("## Families")]
        lines = [re.sub(r"\s+", " ", line) for line in re.findall(r"`(maskc [^`]+)`", text)]
        known = [line for line in lines if "FILE" not in line]
        self.assertEqual([line.split()[1] for line in known], ["show", "plan", "emit", "compile", "info", "verify"])
        mask = re.search(r"^    (mask='.*')$", text, re.MULTILINE)[1]
        printed = {line.split()[1]: self.run_line(line, mask) for line in known}
        self.assertIn("diagonal  10 lines, 300 entries: -4(4..31)", printed["plan"])
        self.assertIn("rows      1 range, 96 columns: 0..95", printed["plan"])
        self.assertTrue((self.folder / "ten/kernel_config.h").exists())


cmocka_count.run_cases()
