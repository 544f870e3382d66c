#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [--figures | --prose | --shrink]: the checks of tools/lint except the formatter's; exits with 1 on a complaint.
--figures prints sizes of functions and files instead, --prose each comment and idiom that prose.py counts, --shrink lowers the
limits in exceptions.txt to the current sizes."""
import sys

sys.dont_write_bytecode = True
import arrows  # noqa: E402
import decimal_point  # noqa: E402
import loader  # noqa: E402
import prose  # noqa: E402
import sizes  # noqa: E402
import tensors  # noqa: E402
import words  # noqa: E402


def main():
    if sys.argv[1:] == ["--figures"]:
        print("\n".join(sizes.figures()))
        return 0
    if sys.argv[1:] == ["--prose"]:
        print("\n".join(prose.listing()))
        return 0
    if sys.argv[1:] == ["--shrink"]:
        sizes.shrink()
        return 0
    found = [line for check in (words, arrows, loader, sizes, tensors, decimal_point, prose) for line in check.complaints()]
    for line in found:
        print(line)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
