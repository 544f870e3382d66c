# SPDX-License-Identifier: Apache-2.0
"""Prints two lines, torch's folder of headers and its folder of libraries: for the build of the operator. Torch is not
imported. Asked are the python that is named, else $MASKC_TORCH_PYTHON, else this one, outside of a build's isolation.
Exits with 1 where there is no torch, or one before 2.10."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

OLDEST = (2, 10)


def folder():
    spec = importlib.util.find_spec("torch")
    return pathlib.Path(spec.origin).parent if spec and spec.origin else None


def version(torch):
    found = re.search(r"__version__[^'\"\n]*['\"](\d+)\.(\d+)", (torch / "version.py").read_text())
    return tuple(map(int, found.groups())) if found else (0, 0)


def main():
    if sys.argv[1:] != ["--here"]:
        python = (sys.argv[1:2] or [""])[0] or os.environ.get("MASKC_TORCH_PYTHON") or sys.executable
        try:
            return subprocess.run([python, "-I", __file__, "--here"], check=False).returncode
        except OSError:
            return 1
    torch = folder()
    if not torch or version(torch) < OLDEST or not (torch / "include/torch/csrc/stable/library.h").is_file():
        return 1
    print(torch / "include")
    print(torch / "lib")
    return 0


if __name__ == "__main__":
    sys.exit(main())
