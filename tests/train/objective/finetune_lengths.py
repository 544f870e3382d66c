# SPDX-License-Identifier: Apache-2.0
"""How long texts and windows are: training, evaluation and RUN agree. What finetune_test.py asks of it."""
import json
import os
import pathlib
import shutil
import struct

from finetune_toy import answers, arguments


def configure(path, **keys):
    """Sets keys of a JSON file."""
    path = pathlib.Path(path)
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **keys}))


def read_mask(path):
    """(n, set of (i, j) that are on, by layer and head) of a mask.npy."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    shape = eval(data[10:begin])["shape"]  # noqa: S307, a dictionary that maskbert wrote
    n = shape[-1]
    masks = [data[k:k + n * n] for k in range(begin, len(data), n * n)]
    return n, [{(k // n, k % n) for k in range(n * n) if mask[k]} for mask in masks]


def write_mask(path, n):
    """A dense one."""
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': ({n}, {n}), }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\1" * n * n)


def first_step(toy, run):
    """Tokens of the first step, of a batch of 16."""
    return next(x["tokens"] for x in toy.log(run) if x.get("step") == 1)


def same_figures(toy, task, run, *output):
    """`eval` without options prints the summary. Its messages."""
    summary = json.loads((toy.work / run / "summary.json").read_text())
    made = toy.ok("eval", run, "--task", task, "--data", task, "--json", *output)
    assert json.loads(made.stdout)["metrics"] == summary["runs"][0]["metrics"], (made.stdout, summary)
    return made.stderr


def limits_of_folders(toy):
    """A folder of sentence-transformers without tokenizer_config.json: its max_seq_length is the limit in training, too, and RUN keeps
    --max-length in both files, beside more positions."""
    folder = toy.work / "sentences"
    shutil.copytree(toy.work / "trained", folder, ignore=shutil.ignore_patterns("tokenizer_config.json", "state", "*.jsonl", "run.json"))
    assert not (folder / "tokenizer_config.json").exists()
    (folder / "modules.json").write_text("[]")
    (folder / "sentencepiece.bpe.model").write_bytes(b"not read beside vocab.txt")
    configure(folder / "sentence_bert_config.json", max_seq_length=6, tokenizer_args={"model_max_length": 6})
    command = [x if x != "trained" else "sentences" for x in arguments("text", "run", "--steps", 1)]
    toy.ok(*command)
    assert first_step(toy, "run") <= 16 * 6, toy.log("run")
    assert "texts are cut to 6 tokens" in same_figures(toy, "text", "run")
    toy.remove("run")
    toy.ok(*command, "--max-length", 5, "--positions", 48)
    assert first_step(toy, "run") <= 16 * 5, toy.log("run")
    assert "texts are cut to 5 tokens" in same_figures(toy, "text", "run")
    read = {name: json.loads((toy.work / "run" / name).read_text()) for name in ("config.json", "tokenizer_config.json", "sentence_bert_config.json")}
    assert read["config.json"]["max_position_embeddings"] == 48 and read["tokenizer_config.json"] == {"model_max_length": 5}, read
    assert read["sentence_bert_config.json"] == {"max_seq_length": 5, "tokenizer_args": {"model_max_length": 5}}, read
    assert (toy.work / "run/sentencepiece.bpe.model").exists()
    toy.remove("run", "sentences")


def short_masks(toy):
    """A stored mask that is shorter than the positions limits texts in training, too, and stays as short. Random entries are of the part
    that texts use."""
    folder = toy.work / "short"
    shutil.copytree(toy.work / "trained", folder)
    configure(folder / "config.json", maskc={"mask": "mask.npy"})
    command = [x if x != "trained" else "short" for x in arguments("text", "run", "--steps", 1)]
    for n, options in ((6, ("--drop", "diagonal")), (20, ("--drop", "random:8", "--max-length", 6))):
        write_mask(folder / "mask.npy", n)
        toy.ok(*command, *options)
        assert "texts are cut to 6 tokens" in same_figures(toy, "text", "run")
        length, masks = read_mask(toy.work / "run/mask.npy")
        assert length == n and len(masks) == (1 if n == 6 else 2)
        for mask in masks:
            gone = {(i, j) for i in range(n) for j in range(n)} - mask
            assert gone == {(k, k) for k in range(n)} if n == 6 else len(gone) == 8 and max(map(max, gone)) < 6, gone
        toy.remove("run")
    toy.refused("--max-length 21: the model's mask has 20 tokens", *command, "--max-length", 21)
    toy.remove("short")


def windows(toy):
    """RUN keeps the windows of its training: `eval` and `answer` read long texts by them. A tokenizer's limit makes windows shorter."""
    toy.ok(*arguments("squad1", "run", "--epochs", 1, "--max-length", 24, "--stride", 6))
    same_figures(toy, "squad1", "run", "--predictions", "p.json")
    said = list(json.loads((toy.work / "p.json").read_text()).values())
    assert said == answers(toy, "squad1", "run")
    config = json.loads((toy.work / "run/config.json").read_text())
    assert config["maskc_windows"] == {"max_length": 24, "stride": 6}, config
    configure(toy.work / "run/config.json", maskc_windows=None)
    whole, shorter = answers(toy, "squad1", "run"), answers(toy, "squad1", "run", "--max-length", 24)
    assert len({tuple(x) for x in (said, whole, shorter)}) == 3, "length and stride have no effect here"
    configure(toy.work / "run/tokenizer_config.json", model_max_length=24)
    assert answers(toy, "squad1", "run") == shorter
    os.remove(toy.work / "p.json")
    toy.remove("run")
