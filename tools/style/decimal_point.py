# SPDX-License-Identifier: Apache-2.0
"""Library code runs in processes of any locale, where strtod() may expect a decimal comma: it reads numbers by number_read()."""
import re

import sources

LIBRARIES = ("masks/", "gen/", "runtime/", "model/")
READER = "masks/base/number.c"
LOCALE = re.compile(r"\b(strto(?:d|f|ld)(?:_l)?|atof)\s*\(")


def complaints():
    for path in sources.files("*.c", "*.h", "*.cpp"):
        if path.startswith(LIBRARIES) and path != READER:
            for number, line in enumerate(sources.code(path).split("\n"), 1):
                for match in LOCALE.finditer(line):
                    yield f"{path}:{number}: {match.group(1)}() obeys the locale, number_read() of masks/base/number.h does not"
