# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of a program and closes with cmocka's lines, so that tools/count_tests adds them up."""
import sys
import unittest


def run_cases(modules=()):
    """Runs the cases of the program, or of these modules. Ends the program: 0 where nothing failed."""
    result = unittest.main(module=None if modules else "__main__", argv=[sys.argv[0], *modules], exit=False).result
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    ran = [test for test, _ in result.failures + result.errors + result.skipped if isinstance(test, unittest.TestCase)]  # else a whole class
    print(f"[  PASSED  ] {result.testsRun - len(ran)} test(s).")
    print(f"[  SKIPPED ] {skipped} test(s).")
    print(f"[  FAILED  ] {bad} test(s).")
    sys.exit(bad != 0)
