# SPDX-License-Identifier: Apache-2.0
"""The command: python3 -m maskc.figures KIND -o FILE < JSON."""
import argparse
import errno
import importlib
import json
import sys
import warnings

from . import kinds
from .data import Bad

FORMATS = (".pdf", ".svg", ".png")
MISSING = "figures need matplotlib, which this python3 lacks: apt install python3-matplotlib, or python3 -m pip install matplotlib"
MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Bad(message)


def parser():
    p = Parser(prog="python3 -m maskc.figures", description=kinds.PAGE, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    p.add_argument("kind", metavar="KIND", nargs="?", help="one of the kinds above")
    p.add_argument("-o", "--output", metavar="FILE", help="FILE.pdf, .svg or .png: written whole or not at all")
    p.add_argument("--columns", metavar="N", default="2", help="width: 1 (3.3 in, a column of a paper) or 2 (6.9 in, both; default)")
    p.add_argument("--check", action="store_true", help="draw nothing: end with 0 where FILE could be drawn, with 3 where matplotlib is missing")
    return p


def read_json(stream):
    def refuse(word):
        raise Bad(f"JSON: {word} is not a number")
    try:
        return json.loads(stream.buffer.read(), parse_constant=refuse)
    except (ValueError, RecursionError) as e:
        raise Bad(f"JSON: {str(e).splitlines()[0]}") from None


def check_output(path):
    if not path:
        raise Bad("-o FILE.pdf, .svg or .png is expected")
    if not path.endswith(FORMATS):
        raise Bad(f"{path}: a figure is .pdf, .svg or .png")


def draw(kind, content, path, columns=2):
    """Draws `content`, the JSON of a kind as Python objects, into the file. Raises Bad, OSError or ImportError."""
    if kind not in kinds.KINDS:
        raise Bad(f"{kind}: one of {', '.join(kinds.KINDS)} is expected")
    check_output(str(path))
    if columns not in (1, 2):
        raise Bad(f"--columns {columns}: 1 or 2 is expected")
    from . import paper
    of = kinds.KINDS[kind]
    module = importlib.import_module("." + of.module, __package__)
    with paper.style(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that the font lacks
        paper.save(getattr(module, "draw_" + kind)(getattr(module, kind.upper())(content, kind), columns), path)


def run(arguments):
    o = parser().parse_args(arguments)
    if o.check:
        check_output(o.output)
        import matplotlib  # noqa: F401
        return
    if not o.kind:
        raise Bad(f"a kind is expected: {', '.join(kinds.KINDS)}")
    check_output(o.output)
    if o.columns not in ("1", "2"):
        raise Bad(f"--columns {o.columns}: 1 or 2 is expected")
    import matplotlib  # noqa: F401
    draw(o.kind, read_json(sys.stdin), o.output, int(o.columns))


def main(arguments):
    code, said = 0, None
    try:
        run(arguments)
    except Bad as e:
        code, said = 2, e
    except ImportError as e:
        code, said = 3, MISSING if (e.name or "").split(".")[0] in ("", "matplotlib", "numpy") else f"{e}"
    except OSError as e:
        code, said = 3 if e.errno in MACHINE else 2, f"{e.filename or 'output'}: cannot be written: {e.strerror}"
    if said is not None:
        print(f"figures: {said}", file=sys.stderr)
    return code
