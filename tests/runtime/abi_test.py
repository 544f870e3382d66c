#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what programs were compiled against: the symbols of both libraries, and the layouts of the public structs and
the numbers of the public enums, against tests/runtime/abi.txt.

usage: abi_test.py MASKC_H ABI_TXT CC LIBRARY... [--update]

A line that goes or changes breaks programs; runtime/API.md says when that may be. --update rewrites the file.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def structs(text):
    """(name, fields) of each struct that has a body."""
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, flags=re.S | re.M):
        fields = []
        for line in body.split(";"):
            fields += [re.search(r"(\w+)\s*(\[.*\])?\s*$", part).group(1) for part in line.split(",") if part.strip()]
        yield name, fields


def enums(text):
    """Names of all enumerators."""
    for _, body in re.findall(r"enum (\w+) \{(.*?)\};", text, flags=re.S):
        yield from re.findall(r"(\w+)\s*=", body)


def program(text):
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "maskc.h"', "int main(void) {"]
    for name, fields in structs(text):
        lines.append(f'printf("struct {name} %zu bytes\\n", sizeof(struct {name}));')
        lines += [f'printf("  {name}.{field} at %zu, %zu bytes\\n", offsetof(struct {name}, {field}), '
                  f'sizeof(((struct {name} *)0)->{field}));' for field in fields]
    lines += [f'printf("{name} = %d\\n", (int){name});' for name in enums(text)]
    return "\n".join(lines + ["return 0;", "}", ""])


def layouts(header, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder) / "abi.c", pathlib.Path(folder) / "abi"
        source.write_text(program(without_comments(header.read_text())))
        subprocess.run([compiler, "-I", header.parent, source, "-o", binary], check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def symbols(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    name = library.name.split(".so")[0]
    return "".join(f"{name}: {line.split()[2]}\n" for line in sorted(out.splitlines(), key=lambda l: l.split()[2]))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    if len(arguments) < 4:
        sys.exit(__doc__)
    header, stored, compiler = pathlib.Path(arguments[0]), pathlib.Path(arguments[1]), arguments[2]
    found = "".join(symbols(pathlib.Path(library)) for library in arguments[3:]) + layouts(header, compiler)
    if "--update" in sys.argv:
        stored.write_text(found)
        return
    if stored.read_text() != found:
        sys.stderr.writelines(difflib.unified_diff(stored.read_text().splitlines(True), found.splitlines(True),
                                                   "stored", "built"))
        sys.exit(f"{stored.name}: the binary interface changed; if that is meant, see runtime/API.md and --update")


main()
