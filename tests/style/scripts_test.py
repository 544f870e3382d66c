#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts_test.py EMBED: do tools/quickstart and tools/wheel, with mock programs, write where the caller's folder says, does tools/embed
name files by the right folder, and are the packages of the pages those that tools/dependencies.sh installs?"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import cmocka_count  # noqa: E402

EMBED = os.path.abspath(sys.argv.pop())
# `python -m build --outdir DIR`, `auditwheel repair -w DIR` and wheel_tag.py say where they would write.
PYTHON = """#!/bin/bash
case "$*" in
*--outdir*) mkdir -p "${*: -2:1}"; echo "$*" >>"$SAID"; touch "${*: -2:1}/maskc-0.whl" ;;
*repair*) cp "${*: -1}" "${*: -2:1}" ;;
*wheel_tag*) cp "${*: -2:1}" "${*: -1}" ;;
esac
"""


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        for name in ("quickstart", "wheel", "dependencies.sh"):
            self.write(f"checkout/tools/{name}", (ROOT / "tools" / name).read_text(encoding="utf-8"))
        self.write("checkout/tools/quickstart_bert", '#!/bin/sh\necho "$1"\n')
        self.write("checkout/build/build.ninja", "")
        self.write("bin/python", PYTHON)
        self.write("bin/ninja", "#!/bin/sh\n")
        self.write("bin/dpkg-query", "#!/bin/sh\necho install ok installed\n")
        self.write("else/where", "")

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")
        (self.folder / path).chmod(0o755)

    def run_in(self, folder, *command, code=0):
        variables = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PYTHON": f"{self.folder}/bin/python", "SAID": f"{self.folder}/said"}
        ended = subprocess.run(command, cwd=self.folder / folder, env=variables, text=True, capture_output=True, check=False)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout

    def test_quickstart_writes_where_it_is_called(self):
        said = self.run_in("else", "../checkout/tools/quickstart", "--bert", "-o", "out")
        self.assertEqual(said.splitlines()[0], f"{self.folder}/else/out")
        self.assertTrue((self.folder / "else/out").is_dir())
        self.assertEqual(self.run_in("checkout", "tools/quickstart", "--bert", "-o", "out").splitlines()[0], "out")
        self.assertEqual(self.run_in("else", "../checkout/tools/quickstart", "--bert").splitlines()[0], "quickstart")

    def test_wheel_writes_where_it_is_called(self):
        self.run_in("else", "../checkout/tools/wheel", "--cache", "kept", "out")
        self.assertTrue((self.folder / "else/out/maskc-0.whl").is_file())
        self.assertTrue((self.folder / "else/kept").is_dir())
        self.assertIn(f"test_cache={self.folder}/else/kept ", (self.folder / "said").read_text(encoding="utf-8"))

    def embedded(self, path, code=0):
        self.write(path, "text")
        self.run_in(".", EMBED, "made.c", "a.h", "file", "files", "/there/gallery", path, code=code)
        return re.findall(r'^    {"(.*)",', (self.folder / "made.c").read_text(encoding="utf-8"), re.M)

    def test_names_of_embedded_files(self):
        self.assertEqual(self.embedded("gallery/maskc/my-gallery/gallery/a.mask"), ["a.mask"])
        self.assertEqual(self.embedded("gallery/gallery-2/a.mask"), ["gallery-2/a.mask"])
        self.assertEqual(self.embedded("my-gallery/a.mask", code=1), [])

    def test_packages_of_pages(self):
        installed = (ROOT / "tools/dependencies.sh").read_text(encoding="utf-8")
        packages = set(" ".join(re.findall(r'^\w+_packages="(.*)"', installed, re.M)).split())
        listed = re.findall(r"apt-get install ([^#`\n]*)", (ROOT / "runtime/python/README.md").read_text(encoding="utf-8"))
        self.assertTrue(listed)
        self.assertEqual(set(" ".join(listed).split()) - packages, set())


if __name__ == "__main__":
    cmocka_count.run_cases()
