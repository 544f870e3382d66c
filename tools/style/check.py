#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [--figures | --shrink]: what tools/lint asks beside the formatter; 1 where something is wrong. --figures prints
sizes of functions and files instead, --shrink brings exceptions.txt down to today's sizes."""
import sys

sys.dont_write_bytecode = True
import arrows  # noqa: E402
import loader  # noqa: E402
import sizes  # noqa: E402
import tensors  # noqa: E402
import words  # noqa: E402


def main():
    if sys.argv[1:] == ["--figures"]:
        print("\n".join(sizes.figures()))
        return 0
    if sys.argv[1:] == ["--shrink"]:
        sizes.shrink()
        return 0
    found = [line for check in (words, arrows, loader, sizes, tensors) for line in check.complaints()]
    for line in found:
        print(line)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
