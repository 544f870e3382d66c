#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert embed against sentence-transformers itself: usage sentence_judge.py MASKBERT MODEL-FOLDER.
Sentence vectors within 1e-5. Exit code 77 (skipped) where sentence-transformers is not installed."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    from sentence_transformers import SentenceTransformer
except ImportError as e:
    print(f"skipped: no sentence-transformers ({e})")
    sys.exit(77)

LINES = ["A man is eating food.", "The girl carries a baby.", "a", "naïve café — 中文 emoji 🙂", "  blanks \t here  ",
         *(" ".join(["sparse attention"] * k) for k in (2, 3, 30, 60, 120)),
         " ".join(f"number {k}" for k in range(400))]  # beyond max_seq_length
LINES = [line.replace("\t", " ") for line in LINES]  # a tab makes a pair for maskbert


def main():
    maskbert, folder = sys.argv[1:3]
    theirs = SentenceTransformer(folder, device="cpu").encode(LINES, convert_to_numpy=True)
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "x.npy")
        subprocess.run([maskbert, "embed", folder, "-o", out], input="\n".join(LINES) + "\n", text=True, check=True)
        ours = numpy.load(out)
    error = abs(ours - theirs).max()
    ok = ours.shape == theirs.shape and error <= 1e-5  # NaN fails
    print(f"{'ok  ' if ok else 'FAIL'} {len(LINES)} sentences: {error:.2e}, at most 1e-5")
    sys.exit(0 if ok else 1)


main()
