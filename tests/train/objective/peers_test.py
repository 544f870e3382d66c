#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers_test.py MASKBERT: is the order of tools/finetune-peers that of `maskbert finetune`? A batch of one: the tokens of each step
say which example it had, as no two are of one length."""
import io
import pathlib
import sys
import tempfile
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/train"), str(ROOT / "tools/compare/finetune")]
import pretrain_toy  # noqa: E402

try:
    import examples
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

COUNTS = (1, 5, 30)
FIRST = 3  # tokens of example 0: a letter between [CLS] and [SEP]


def write(folder, count):
    folder.mkdir()
    rows = [[" ".join("s" * (k + 1)), "odd" if k % 2 else "even"] for k in range(count)]
    for part in ("train", "dev"):
        examples.write(examples.Table(["text", "label"], rows if len(rows) > 1 else rows + [["s s s", "odd"]]), folder / f"{part}.tsv")


def same_order(toy):
    for count in COUNTS:
        write(toy.work / "table", count)
        lengths = [FIRST + k for k in range(count)] if count > 1 else [FIRST, FIRST + 2]
        for seed in (7, (1 << 40) + 3):
            steps = 2 * len(lengths) + 3  # into the third epoch
            toy.ok("finetune", "model", "--task", "text", "--data", "table", "-o", "run", "--batch", 1, "--steps", steps, "--seed", seed)
            tokens = [0] + [x["tokens"] for x in toy.log("run") if "lr" in x]
            found = [b - a for a, b in zip(tokens, tokens[1:])]
            assert found == [lengths[k] for k in examples.order(seed, len(lengths), steps)], (count, seed, found)
            toy.remove("run")
        toy.remove("table")


def joined_texts(_):
    table = examples.Table(["text", "label"], [["a b", "x"], ["c", "y"], ["d e", "x"], ["f", "x"], ["g h i j", "y"]])
    assert examples.join(table, 4).rows == [["a b d e", "x"], ["c g h i j", "y"]]


def a_json_is_checked_first(_):
    """mask_table.py says that it cannot be written before it computes anything, and leaves an earlier table as it is."""
    import mask_table
    with tempfile.TemporaryDirectory() as folder:
        old, new = (pathlib.Path(folder) / name for name in ("old.json", "new.json"))
        old.write_text("[1]", encoding="utf-8")
        for path, expected in (("/nonexistent/x.json", "--json /nonexistent/x.json: No such file"), (old, "/nonexistent/train.tsv: No such file"),
                               (new, "/nonexistent/train.tsv: No such file")):
            with unittest.mock.patch("sys.stderr", io.StringIO()) as said, \
                    unittest.mock.patch.object(sys, "argv", ["mask_table.py", "model", "--data", "/nonexistent", "--json", str(path)]):
                assert mask_table.main() == 2 and said.getvalue().startswith(f"mask_table: {expected}"), said.getvalue()
        assert old.read_text(encoding="utf-8") == "[1]" and not new.exists()


if __name__ == "__main__":
    sys.exit(pretrain_toy.run_tests(pretrain_toy.Toy, pathlib.Path(sys.argv[1]).resolve(),
                                    {t.__name__: t for t in (same_order, joined_texts, a_json_is_checked_first)}))
