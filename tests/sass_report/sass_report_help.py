# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of tools/sass: where its parts are, the program, and code from a small listing (loop.sass, of
loop.cu by NVRTC 13.0 for sm_80). Imported first: it sets the path."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/sass_report"), str(ROOT / "tools"), str(ROOT / "tests/support")]
import disassembly  # noqa: E402

BUDGETS = ROOT / "tools/sass_report/budgets.txt"
LISTING = (ROOT / "tests/sass_report/loop.sass").read_text(encoding="utf-8")


def program(name, *arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "tools" / name), *map(str, arguments)], text=True,
                          capture_output=True, check=False, env=os.environ | environment)


def code_of(text):
    """Instructions of lines `[LABEL:] TEXT`, without control codes."""
    lines, address = ["\t.section\t.text.k,\"ax\""], 0
    for line in filter(None, map(str.strip, text.splitlines())):
        label, colon, rest = line.partition(":")
        lines += [f"{label}:"] if colon else []
        lines.append(f"/*{address:04x}*/ {rest if colon else line} ; /* 0x0000000000000000 */")
        address += 16
    return disassembly.parse("\n".join(lines))["k"].code


def only_loop(name="loop"):
    kernel = disassembly.parse(LISTING)["loop"]
    kernel.name = name
    return kernel
