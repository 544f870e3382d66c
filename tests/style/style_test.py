#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""style_test.py: each check of tools/style complains of a small repository with one fault, and of nothing without it."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/style"), str(ROOT / "tests/support")]
import arrows  # noqa: E402
import cmocka_count  # noqa: E402
import decimal_point  # noqa: E402
import loader  # noqa: E402
import prose  # noqa: E402
import sizes  # noqa: E402
import tensors  # noqa: E402
import sources  # noqa: E402
import words  # noqa: E402

PAGE = """| folder | holds | may include |
| --- | --- | --- |
| `low/` | x | itself |
| `high/` | x | low, `top/one.h` |
| `top/` | x | itself, no system header |

| room | holds | may include |
| --- | --- | --- |
| `low/` | x | itself |
| `low/floor/` | x | low |
| `low/roof/` | x | low, low/floor |
| `low/many/` | x | low |

"""
GOOD = "/* seat */\nint good(int a, int b)\n{\n    return a + b;\n}\n"


def function(lines, parameters=1):
    return ("int f(" + ", ".join(f"int x{k}" for k in range(parameters)) + ")\n{\n" + "    g();\n" * (lines - 3) + "}\n")


class StyleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.kept, sources.ROOT = sources.ROOT, pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q", self.folder.name], check=True)
        self.write("HACKING.md", PAGE)
        self.write("tools/style/words.txt", "seat | slot | low high | seat_belt # to come: top\n")
        self.write("tools/style/exceptions.txt", "")
        self.write("low/a.c", GOOD)
        self.write("high/a.c", '#include "low/a.h"\n#include "top/one.h"\n#include <stdio.h>\n' + GOOD)

    def tearDown(self):
        sources.ROOT = self.kept
        self.folder.cleanup()

    def write(self, path, text):
        (sources.ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (sources.ROOT / path).write_text(text, encoding="utf-8")

    def complains(self, check, part):
        found = list(check.complaints())
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_nothing_wrong(self):
        self.assertEqual([line for check in (words, arrows, loader, sizes, tensors, decimal_point, prose) for line in check.complaints()], [])

    def test_folder_that_is_no_clone(self):
        self.write("tools/lint", (ROOT / "tools/lint").read_text(encoding="utf-8"))
        environment = os.environ | {"GIT_DIR": "/nonexistent"}
        said = subprocess.run(["bash", sources.ROOT / "tools/lint"], env=environment, stdin=subprocess.DEVNULL, text=True, capture_output=True, check=False)
        self.assertEqual((said.returncode, said.stdout, said.stderr.count("\n")), (2, "", 1), said.stderr)
        self.assertIn("not a git repository", said.stderr)
        with unittest.mock.patch.dict(os.environ, environment), contextlib.redirect_stderr(io.StringIO()) as heard, self.assertRaises(SystemExit) as ended:
            sources.files("*.c")
        self.assertEqual((ended.exception.code, heard.getvalue().count("\n")), (2, 1))

    def test_tensor_name_elsewhere(self):
        self.write("model/arch/one.c", '/* x */ {PARAMETER_X_WEIGHT, "layers.out.weight", "HH"},\n')
        self.write("model/train/a.c", 'f("layers.%u", "bout.weight");\n')
        self.assertEqual(list(tensors.complaints()), [])
        self.write("tools/b.c", 'f("encoder.layers.out.%s");\n')
        self.complains(tensors, "tools/b.c:1: the tensor's name 'layers.out'")

    def test_number_read_by_the_locale(self):
        self.write("masks/base/number.c", "x = strtod_l(text, end, plain());\n")
        self.write("tools/a.c", "x = strtod(text, &end);\n")
        self.write("gen/a.c", "/* strtod(text) */\n\nx = number_read(text) + strtod(text, &end);\n")
        self.complains(decimal_point, "gen/a.c:3: strtod()")

    def test_old_word(self):
        self.write("low/b.c", "\nint my_seat;\nint seat_belt;\n")
        self.complains(words, "low/b.c:2: 'my_seat'")

    def test_old_word_elsewhere(self):
        self.write("top/b.h", "int my_seat;\n")
        self.assertEqual(list(words.complaints()), [])

    def test_old_word_in_a_file_name(self):
        self.write("low/seat_map.c", "\n")
        self.complains(words, "low/seat_map.c")

    def test_arrow_upward(self):
        self.write("low/b.c", '#include "high/a.h"\n')
        self.complains(arrows, "low/b.c: includes high/a.h")

    def test_arrow_to_another_header(self):
        self.write("high/b.c", '#include "top/two.h"\n')
        self.complains(arrows, "top/two.h")

    def test_arrow_to_a_room_above(self):
        self.write("low/roof/b.c", '#include "low/floor/a.h"\n#include "low/a.h"\n#include "low/roof/c.h"\n')
        self.assertEqual(list(arrows.complaints()), [])
        self.write("low/floor/b.c", '#include "low/roof/a.h"\n')
        self.complains(arrows, "low/floor/b.c: includes low/roof/a.h")

    def test_arrow_by_a_relative_path(self):
        self.write("low/roof/a.h", "int a;\n")
        self.write("low/roof/b.c", '#include "a.h"\n')
        self.assertEqual(list(arrows.complaints()), [])
        self.write("low/floor/b.c", '#include "../roof/a.h"\n')
        self.complains(arrows, "low/floor/b.c: includes low/roof/a.h")
        self.write("low/floor/b.c", "\n")
        self.write("low/b.c", '#include "roof/a.h"\n')
        self.complains(arrows, "low/b.c: includes low/roof/a.h")

    def test_arrow_from_a_parent_to_its_room(self):
        self.write("low/b.h", '#include "low/floor/a.h"\n')
        self.complains(arrows, "low/b.h: includes low/floor/a.h")

    def test_arrow_from_a_header_to_its_room(self):
        page = PAGE.replace("`low/many/` | x | low |", "`low/many/` | x | low/many/few |\n| `low/many/few/` | x | low |")
        self.write("HACKING.md", page)
        self.write("low/many/b.c", '#include "low/many/few/a.h"\n')
        self.assertEqual(list(arrows.complaints()), [])
        self.write("low/many/b.h", '#include "low/many/few/a.h"\n')
        self.complains(arrows, "low/many/b.h: includes low/many/few/a.h")
        self.write("HACKING.md", page.replace("few/` | x | low |", "few/` | x | itself |"))
        self.assertEqual(list(arrows.complaints()), [])

    def test_room_without_a_row(self):
        self.write("low/cellar/b.c", "\n")
        self.complains(arrows, "low/cellar/b.c: includes anything")

    def test_rows_in_a_circle(self):
        for row, wrong, found in (("`low/floor/` | x | low", "`low/floor/` | x | low, low/roof", "low/floor -> low/roof -> low/floor"),
                                  ("`low/many/` | x | low", "`low/many/` | x | itself, low/many", None),
                                  ("`low/` | x | itself", "`low/` | x | itself, high", "low -> high -> low")):
            self.write("HACKING.md", PAGE.replace(row, wrong, 1))
            if found:
                self.complains(arrows, f"HACKING.md: these rows form a circle: {found}")
            else:
                self.assertEqual(list(arrows.complaints()), [])

    def test_row_of_an_inner_folder(self):
        self.write("HACKING.md", PAGE.replace("| `top/`", "| `low/many/` | x | low, high |\n| `top/`", 1))
        self.write("low/many/b.c", '#include "high/a.h"\n#include "low/a.h"\n')
        self.assertEqual(list(arrows.complaints()), [])
        self.write("low/many/b.c", '#include "top/one.h"\n')
        self.complains(arrows, "low/many/b.c: includes top/one.h")

    def test_loader_reaches_the_planner(self):
        self.write("runtime/meson.build", "loader_sources = files(\n  'a.c',\n  'room/b.c')\nothers = files('c.c')\n"
                   "x = shared_library('maskc-runtime', 'room/d.c', link_whole: y)\n")
        self.write("runtime/a.c", '#include "runtime/room/b.h"\n')
        self.write("runtime/c.c", '#include "gen/plan/plan.h"\n#include <jansson.h>\n')
        self.write("runtime/room/b.c", '#include "b.h"\n/* #include "gen/plan/plan.h" */\n#include <stdio.h>\n')
        self.write("gen/plan/plan.h", "#include <jansson.h>\n")
        for source in ("runtime/a.c", "runtime/room/b.c", "runtime/room/d.c"):
            self.write("runtime/room/b.h", "\n")
            self.write("runtime/room/d.c", "\n")
            self.assertEqual(list(loader.complaints()), [])
            header = "runtime/room/d.c" if source.endswith("d.c") else "runtime/room/b.h"
            self.write(header, '#include "gen/plan/plan.h"\n')
            self.complains(loader, "libmaskc-runtime includes gen/plan/plan.h: runtime/")
            self.write(header, "#include <jansson.h>\n")
            self.complains(loader, "libmaskc-runtime includes jansson.h: runtime/")
        self.write("runtime/meson.build", "sources = files('a.c')\n")
        self.complains(loader, "found no loader_sources")

    def test_clauses_and_idioms(self):
        self.write("low/b.c", '/* What it does. */\nint a; /* ---- Of a row */\nint what; // The sum.\nchar *x = "/* What */";\n')
        self.write("top/b.py", '"""How it works."""\nX = 1  # Whose seat\nY = "# What"\n# The seat.\n# What follows.\n')
        self.write("top/run", "#!/bin/sh\n# Of the seat\necho '# What'\n")
        self.write("top/meson.build", "# Who sits\nx = '# What'\n")
        self.write("top/b.md", "# What is this\n\nRun by" + " turns, that is" + " none of these.\n")
        self.write("low/help.h", '"that is' + ' none", "is told' + ' apart"\n')
        clauses, idioms = prose.found()
        self.assertEqual([place for place, _ in clauses], ["low/b.c:1", "low/b.c:2", "top/b.py:1", "top/b.py:2", "top/meson.build:1", "top/run:2"])
        self.assertEqual([place for place, _ in idioms], ["low/help.h:1", "top/b.md:3"])
        with unittest.mock.patch.multiple(prose, OPENINGS_LIMIT=6, IDIOMS_LIMIT=2):
            self.assertEqual(list(prose.complaints()), [])
        with unittest.mock.patch.multiple(prose, OPENINGS_LIMIT=5, IDIOMS_LIMIT=2):
            self.complains(prose, "6 comments open with a clause, at most 5")
        with unittest.mock.patch.multiple(prose, OPENINGS_LIMIT=6, IDIOMS_LIMIT=1):
            self.complains(prose, "2 odd idioms, at most 1")

    def test_system_header(self):
        self.write("top/b.h", "#include <stdio.h>\n")
        self.complains(arrows, "<stdio.h>")

    def test_exception_that_is_gone(self):
        self.write("tools/style/exceptions.txt", "include | low/a.c | high/a.h\nfunction | low/a.c:good | 70\n")
        self.complains(arrows, "take the line out")
        self.complains(sizes, "take the line out")
        sizes.shrink()
        self.complains(arrows, "take the line out")
        self.assertEqual(list(sizes.complaints()), [])

    def test_long_function(self):
        self.write("low/b.c", function(60))
        self.assertEqual(list(sizes.complaints()), [])
        self.write("low/b.c", function(61))
        self.complains(sizes, "low/b.c:f: 61 lines, at most 60")
        self.write("tools/style/exceptions.txt", "function | low/b.c:f | 61\n")
        self.assertEqual(list(sizes.complaints()), [])
        self.write("low/b.c", function(62))
        self.complains(sizes, "62 lines, at most 61")

    def test_functions_together(self):
        for name, long, text in (("lines, median: 11, at most 10", 100, function(11)), ("nine of ten: 21, at most 20", 20, function(21)),
                                 ("6 parameters: 21, at most 20", 21, function(5, 7))):
            for k in range(100):
                self.write(f"low/many/f{k}.c", text if k < long else function(10))
            self.complains(sizes, name)
        for k in range(100):
            self.write(f"low/many/f{k}.c", function(10, 6))
        self.assertEqual(list(sizes.complaints()), [])

    def test_long_file(self):
        self.write("low/b.h", "int x;\n" * 351)
        self.complains(sizes, "low/b.h: 351 lines, at most 350")

    def test_many_parameters(self):
        self.write("low/b.c", function(9, 8))
        self.assertEqual(list(sizes.complaints()), [])
        self.write("low/b.c", function(9, 9))
        self.complains(sizes, "low/b.c:f: 9 parameters, at most 8")

    def test_many_files_in_a_folder(self):
        for k in range(25):
            for folder in ("tools/many/room", "tools/known", "low/many"):
                self.write(f"{folder}/{k}.txt", "x")
        for path in ("tools/known/x", "low/many/x", "tools/many/x.c", "tools/many/room/deep/x.c"):
            self.write(path, "\n")
        self.assertEqual(list(sizes.complaints()), [])
        self.write("tools/many/room/README.md", "x")
        self.complains(sizes, "tools/many/room: 26 files, at most 25")
        self.write("tools/style/exceptions.txt", "folder | tools/many/room | 26\n")
        self.assertEqual(list(sizes.complaints()), [])
        self.write("tools/many/room/x.py", "x")
        self.complains(sizes, "tools/many/room: 27 files, at most 26")

    def test_folder_within_its_limit(self):
        self.write("tools/style/exceptions.txt", "folder | tools/many | 30\n")
        self.complains(sizes, "folder tools/many is within its limit or gone: take the line out")
        sizes.shrink()
        self.assertEqual(list(sizes.complaints()), [])

    def test_entry_of_a_template(self):
        self.assertEqual(list(sizes.functions("ENTRY(pass)(ARGS a)\n{\n}\n")), [("pass", 3, 1)])
        self.assertEqual(list(sizes.functions("static void f(int (*g)(int, int),\n    int b)\n{\n}\n")), [("f", 4, 2)])


if __name__ == "__main__":
    cmocka_count.run_cases()
