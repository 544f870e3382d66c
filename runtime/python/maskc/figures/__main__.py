# SPDX-License-Identifier: Apache-2.0
"""python3 -m maskc.figures; also python3 FOLDER/maskc/figures, which loads no other part of the package: neither libmaskc nor torch."""
import importlib.util
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads that a figure does not need


def load_folder():
    """This folder as a package of its own, for `python3 FOLDER`."""
    here = pathlib.Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location("maskc_figures", here / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return importlib.import_module("maskc_figures.command")


if __package__:
    from . import command
else:
    command = load_folder()
sys.exit(command.main(sys.argv[1:]))
