# SPDX-License-Identifier: Apache-2.0
"""Names of tensors are spelled in model/arch alone: the names of its tables, or the ends of them, stand in no string of
another file of model/, tools/ or runtime/."""
import re

import sources

HOME = "model/arch/"
ROW = re.compile(r'\{\s*PARAMETER_\w+,\s*"([^"]+)"')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def names():
    """Each name without the word at its end: "attention.self.query" of "attention.self.query.weight"."""
    found = set()
    for path in sources.files("*.c", "*.h"):
        if path.startswith(HOME):
            found |= {name.rpartition(".")[0] for name in ROW.findall(sources.text(path))}
    return {name for name in found if "." in name}


def complaints():
    known = names()
    for path in sources.files("*.c", "*.h"):
        if not path.startswith(("model/", "tools/", "runtime/")) or path.startswith(HOME):
            continue
        for number, line in enumerate(sources.text(path).splitlines(), 1):
            for text in STRING.findall(line):
                name = next((n for n in known if n in text), None)
                if name:
                    yield f"{path}:{number}: the tensor's name '{name}': model/arch alone spells it"
