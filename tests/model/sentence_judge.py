#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert embed against sentence-transformers itself: usage sentence_judge.py MASKBERT MODEL-FOLDER.
Sentence vectors within 1e-5: of the folder, of a copy that the installed version saves, and of one with a default prompt and
truncate_dim. Exit code 77 (skipped) where sentence-transformers is not installed."""
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


def compare(maskbert, folder, work, name, *options, **named):
    theirs = SentenceTransformer(folder, device="cpu").encode(LINES, convert_to_numpy=True, **named)
    out = os.path.join(work, "x.npy")
    subprocess.run([maskbert, "embed", folder, "-o", out, *options], input="\n".join(LINES) + "\n", text=True, check=True)
    ours = numpy.load(out)
    error = abs(ours - theirs).max() if ours.shape == theirs.shape else float("nan")
    ok = error <= 1e-5  # NaN fails
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {len(LINES)} sentences: {error:.2e}, at most 1e-5")
    return ok


def main():
    maskbert, folder = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as work:
        saved = os.path.join(work, "saved")
        model = SentenceTransformer(folder, device="cpu")
        model.save(saved)
        ok = compare(maskbert, folder, work, "as given") and compare(maskbert, saved, work, "saved anew")
        model.prompts = {"query": "query: ", "passage": "passage: "}
        model.default_prompt_name = "query"
        model.truncate_dim = 24
        model.save(saved)
        ok = ok and compare(maskbert, saved, work, "default prompt")
        ok = ok and compare(maskbert, saved, work, "passage", "--prompt-name", "passage", prompt_name="passage")
        ok = ok and compare(maskbert, saved, work, "own prompt", "--prompt", "find: ", "--normalize", prompt="find: ", normalize_embeddings=True)
    sys.exit(0 if ok else 1)


main()
