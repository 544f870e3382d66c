#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""theorem_test.py MASKC: is attention without the diagonal a contextual mapping for more than two tokens, computed by our kernels
(tools/reproduction/theorem.py)? And is what would be wrong noticed: another mask, a soft scale, an output that is off by one or NaN?"""
import math
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/reproduction"), str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402
import theorem  # noqa: E402
from programs import Programs  # noqa: E402

PROGRAMS = Programs(pathlib.Path(sys.argv[1]).resolve().parents[2], ["maskc"])
SMALL = theorem.Case(3, 3)


def check(**more):
    lines = []
    return theorem.check(PROGRAMS, print_line=lines.append, **more), lines


class TheoremTest(unittest.TestCase):
    def test_it_holds_for_three_to_five_tokens_and_fails_for_two(self):
        holds, lines = check(cases=(SMALL, theorem.Case(4, 4), theorem.Case(5, 5)))
        self.assertTrue(holds, lines)
        self.assertEqual(sum(": a contextual mapping" in line for line in lines), 3, lines)
        self.assertIn("no contextual mapping", lines[-3])
        self.assertIn("n=2 fails as it must", lines[-2])

    def test_with_a_diagonal_or_without_another_one_it_does_not_hold(self):
        for mask in ("dense", "dense - diagonal(1)", "none", "dense - diagonal(0) | diagonal(0) & rows(1)"):
            holds, lines = check(mask=mask, cases=(SMALL,))
            self.assertFalse(holds, (mask, lines))

    def test_soft_heads_are_no_hard_ones(self):
        self.assertFalse(check(scale=1, cases=(SMALL,))[0])


class CheckerTest(unittest.TestCase):
    def test_one_wrong_output_is_counted(self):
        for wrong in (lambda x: x + 1, lambda x: math.nan):
            calls = []
            def heads(queries, keys, wrong=wrong, calls=calls):
                out = theorem.exact_heads(queries, keys)
                calls.append(1)
                if len(calls) == 2:
                    out[3][1] = (out[3][1][0], wrong(out[3][1][1]))
                return out
            checker = theorem.Checker(heads)
            checker.run(SMALL)
            self.assertEqual((checker.wrong, checker.compared), (1, 5 * 6 * 3 * 2))

    def test_the_closed_forms_of_the_paper(self):
        """Closed forms of the three shifted values, and of the final ones, for sorted sequences."""
        case = theorem.Case(3, 5)
        selected, final, delta = theorem.Checker(theorem.exact_heads).run(case)
        self.assertEqual(delta, 4 * (125 + 5 + 1))
        g, seen = case.grid, 0
        for (a, b, c), row, last in zip(case.sequences, selected, final):
            if a < b < c:
                one = a + g * (c - b)
                two = b + g * (a - c) + g * g * (c - b)
                three = c + g * (b - a) + g * g * (a + b - 2 * c) + g**3 * (c - b)
                self.assertEqual(row, [one, two, three])
                top = delta * delta * three
                self.assertEqual(last, [one + delta * (two + three) + top, two + delta * (one + three) + top, three + 2 * delta * two + top])
                seen += 1
        self.assertEqual(seen, 10)

    def test_each_fault_is_named(self):
        selected, final, _ = theorem.Checker(theorem.exact_heads).run(SMALL)
        self.assertEqual(theorem.faults(SMALL, selected, final), [])
        equal = [[row[0]] * 3 for row in final]
        self.assertIn("tokens of a sequence have equal values", theorem.faults(SMALL, selected, equal))
        self.assertIn("shifted values do not rise within (0, delta^-n)", theorem.faults(SMALL, [row[::-1] for row in selected], final))
        case = theorem.Case(2, 3)
        found = theorem.faults(case, *theorem.Checker(theorem.exact_heads).run(case)[:2])
        self.assertTrue(found)

    def test_the_kernel_is_the_float32_one_with_the_given_mask(self):
        with tempfile.TemporaryDirectory() as folder:
            kernels = theorem.Kernels(PROGRAMS, theorem.MASK, 1000, folder)
            kernels.compile(3)
            self.assertEqual(kernels.heads([[(1.0, -1.0)] * 3], [[5, 7, 9]]), [[(9, 7), (9, 5), (7, 5)]])


cmocka_count.run_cases()
