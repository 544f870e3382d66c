#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a build find the torch of the python that installs, within pip's isolation and without it, and does it name the python where
torch is missing or too old: _torch_flags.py, meson's configuration, the package's first use, tools/wheel? Torch is a mock."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import cmocka_count  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ROOT / "runtime/python/maskc/_torch_flags.py"
OPTIONS = [f"-D{name}=disabled" for name in ("cmocka", "cairo", "microhttpd", "onednn", "utf8proc")] + ["-Donce=false"]
ISOLATION = """import site, sys
if sys.prefix == {prefix!r}:
    sys.path[:] = [p for p in sys.path if p not in site.getsitepackages()]
"""  # what pip's build environment does to the python that installs


def run(*command, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("MASKC_TORCH_PYTHON", "PYTHONPATH", "CC", "CXX")}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT, env=kept | environment)


class BuildTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.folder / "venv"], check=True)
        cls.python = cls.folder / "venv/bin/python"
        cls.torch = next((cls.folder / "venv/lib").glob("python3*/site-packages")) / "torch"
        (cls.folder / "isolation").mkdir()
        (cls.folder / "isolation/sitecustomize.py").write_text(ISOLATION.format(prefix=str(cls.folder / "venv")))

    def put_torch(self, version):
        """A torch in the environment; None: no torch."""
        shutil.rmtree(self.torch, ignore_errors=True)
        if version:
            header = self.torch / "include/torch/csrc/stable/library.h"
            header.parent.mkdir(parents=True)
            header.touch()
            (self.torch / "__init__.py").touch()
            (self.torch / "version.py").write_text(f"__version__ = '{version}'\n")

    def flags(self, **environment):
        done = run(self.python, FLAGS, "", **environment)
        return done.returncode, done.stdout.split("\n")[0]

    def test_flags(self):
        isolated = {"PYTHONPATH": str(self.folder / "isolation")}
        for version, code, line in ((None, 1, f"no torch in {self.python}"), ("2.9.1", 1, f"torch 2.9, before 2.10 in {self.python}"),
                                    ("2.11.0+cu130", 0, str(self.torch / "include"))):
            self.put_torch(version)
            for environment in ({}, isolated):
                self.assertEqual(self.flags(**environment), (code, line))
            found = run(self.python, "-c", "import torch", **isolated)
            self.assertNotEqual(found.returncode, 0)  # hidden in that environment
        self.assertEqual(self.flags(MASKC_TORCH_PYTHON="/nowhere/python"), (1, "no torch: /nowhere/python: No such file or directory"))

    def configured(self):
        """The summary's line of a build that pip starts: its native file names the python that installs."""
        native = self.folder / "native.ini"
        native.write_text(f"[binaries]\npython = '{self.python}'\n")
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        done = run("meson", "setup", self.folder / "build", ROOT, "--native-file", native, *OPTIONS, PYTHONPATH=str(self.folder / "isolation"))
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])
        return next(line for line in done.stdout.split("\n") if "operator of torch" in line)

    @unittest.skipUnless(shutil.which("meson"), "no meson")
    def test_meson_asks_the_python_that_installs(self):
        self.put_torch(None)
        self.assertIn(f"NO: no torch in {self.python}", self.configured())
        self.assertIn(f'"no torch in {self.python}"', (self.folder / "build/runtime/python/maskc/_build.py").read_text())
        self.put_torch("2.12.0")
        line = self.configured()
        if "no C++ compiler" in line:
            self.skipTest("no C++ compiler")
        self.assertIn("YES", line)
        self.assertIn(f"-isystem{self.torch}/include", (self.folder / "build/compile_commands.json").read_text())

    def test_first_use_names_the_fix(self):
        (self.folder / "maskc").mkdir(exist_ok=True)
        (self.folder / "maskc/_build.py").write_text("NO_OPERATOR = 'no torch in /some/python'\n")
        source = (ROOT / "runtime/python/maskc/_library.py").read_text().replace("LIB = load()", "")
        (self.folder / "maskc/__init__.py").touch()
        (self.folder / "maskc/_library.py").write_text(source)
        done = run(self.python, "-c", "from maskc import _library; print(_library.without_operator())", PYTHONPATH=str(self.folder))
        self.assertIn("no torch in /some/python", done.stdout)
        self.assertIn(f"MASKC_TORCH_PYTHON={self.python} {self.python} -m pip install", done.stdout)
        self.assertEqual(done.stdout.count("\n"), 1)

    def test_wheel_says_it_first(self):
        """Before a quarter of an hour of compiling."""
        stub = self.folder / "stub/python3"
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(textwrap.dedent(f"""\
            #!/bin/sh
            case "$*" in "-c import"*) exit 0 ;; "-m build"*) echo stopped; exit 1 ;; *) exec "{self.python}" "$@" ;; esac
            """))
        stub.chmod(0o755)
        for version, lines in ((None, [f"no torch in {self.python}: the wheel will have no operator of torch; MASKC_TORCH_PYTHON=", "stopped"]),
                               ("2.12.0", ["stopped"])):
            self.put_torch(version)
            done = run("tools/wheel", "--ahead", "none", self.folder / "dist", PYTHON=str(stub), MASKC_TORCH_PYTHON=str(self.python))
            said = (done.stdout + done.stderr).strip().split("\n")
            for line, expected in zip(said, lines):
                self.assertIn(expected, line)
            self.assertEqual(done.returncode, 3)


if __name__ == "__main__":
    cmocka_count.run_cases()
