# SPDX-License-Identifier: Apache-2.0
"""The commands maskc and maskbert: this process becomes the program."""
import os
import sys

from ._library import HERE, own_program


def become(name):
    path = own_program(name)
    if not path:
        sys.exit(f"{name}: this package was built without it")
    if (HERE / "kernels.ahead").is_file():
        os.environ.setdefault("MASKC_AHEAD", str(HERE / "kernels.ahead"))
    os.environ.setdefault("MASKC_PYTHON", sys.executable)  # figures: this Python, not the one on PATH
    os.execv(path, [name, *sys.argv[1:]])


def maskc():
    become("maskc")


def maskbert():
    become("maskbert")
