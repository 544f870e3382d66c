# SPDX-License-Identifier: Apache-2.0
"""Prints two lines, torch's folder of headers and its folder of libraries: for the build of the operator. Torch is not
imported. The python is the one that is named, else $MASKC_TORCH_PYTHON, else this one: the python that installs the package, if
pip starts the build. It is asked in a process of its own, outside of the isolation of pip's build environment.
Exits with 1 and one line that says why if there is no torch, or one before 2.10."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

OLDEST = (2, 10)
HEADER = "include/torch/csrc/stable/library.h"


def folder():
    spec = importlib.util.find_spec("torch")
    return pathlib.Path(spec.origin).parent if spec and spec.origin else None


def version(torch):
    path = torch / "version.py"
    found = re.search(r"__version__[^'\"\n]*['\"](\d+)\.(\d+)", path.read_text() if path.is_file() else "")
    return tuple(map(int, found.groups())) if found else (0, 0)


def problem(torch):
    """Returns why this python's torch cannot be used; empty if it can."""
    if not torch:
        return "no torch"
    if version(torch) < OLDEST:
        return "torch {}.{}, before 2.10".format(*version(torch))
    return "" if (torch / HEADER).is_file() else "a torch without headers"


def here():
    torch = folder()
    reason = problem(torch)
    print(reason + " in " + sys.executable if reason else f"{torch / 'include'}\n{torch / 'lib'}")
    return bool(reason)


def main():
    if sys.argv[1:] == ["--here"]:
        sys.path.pop(0)  # this script's folder
        return here()
    python = (sys.argv[1:2] or [""])[0] or os.environ.get("MASKC_TORCH_PYTHON") or sys.executable
    try:
        # -E: without PYTHONPATH, by which pip hides the packages that are installed.
        return subprocess.run([python, "-E", __file__, "--here"], check=False).returncode
    except OSError as e:
        print(f"no torch: {python}: {e.strerror}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
