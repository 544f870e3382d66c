# SPDX-License-Identifier: Apache-2.0
"""Input of the checks of this folder: the repository's files, C without its comments and strings, tables."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files(*patterns):
    """Tracked files and new ones that git does not ignore, without the golden ones."""
    try:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                                text=True, capture_output=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"git cannot list the files of {ROOT}: {(getattr(e, 'stderr', '') or str(e)).splitlines()[0]}", file=sys.stderr)
        raise SystemExit(2) from None
    return [f for f in sorted(set(listed)) if not f.startswith("tests/golden/") and (ROOT / f).is_file()]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def code(path):
    """C text with comments and strings blanked; lines stay where they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return NOT_CODE.sub(blank, text(path))


def table(path):
    """Rows of a text file: fields between bars; from # on a line is a comment."""
    rows = []
    for line in text(path).splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            rows.append([field.strip() for field in line.split("|")])
    return rows
