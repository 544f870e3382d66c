# SPDX-License-Identifier: Apache-2.0
"""--whole-word against Google's rule in plain Python. create_pretraining_data.py tries the words of a sample in random order: a word
is left out where it would make more masked pieces than the number wanted, and the search ends at that number. So a choice is one
that it can make exactly if it is made of whole words, has at most the number wanted, and every word that was left out is larger than
what is missing."""
import json
import struct

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, ".", "the", "see", "eat", *"abcdefghijklmnopqrstuvwxyz", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz")]


def read_whole_numbers(path, name):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    kind = {"I32": "i", "U32": "I", "I64": "q"}[entry["dtype"]]
    return [x[0] for x in struct.iter_unpack("<" + kind, data[8 + size + begin:8 + size + end])]


def samples(path):
    """The tokens of each sequence as they were, and the places that are masked."""
    ids, lengths, places, labels, offsets = (read_whole_numbers(path, "batch." + name) for name in
                                             ("input_ids", "lengths", "masked_positions", "masked_labels", "masked_offsets"))
    width = len(ids) // len(lengths)
    for k, length in enumerate(lengths):
        tokens = ids[k * width:k * width + length]
        mine = range(offsets[k], offsets[k + 1])
        for m in mine:
            tokens[places[m]] = labels[m]
        yield tokens, {places[m] for m in mine}


def words_of(tokens):
    """Places of each word. A part may begin within a word: what is left of it is a word here."""
    words = []
    for k, token in enumerate(tokens):
        if PIECES[token] in ("[CLS]", "[SEP]"):
            continue
        if PIECES[token].startswith("##") and PIECES[tokens[k - 1]] not in ("[CLS]", "[SEP]"):
            words[-1].append(k)
        else:
            words.append([k])
    return words


def follows_rule(tokens, masked, share):
    wanted = max(1, round(len(tokens) * share))
    missing = wanted - len(masked)
    words = words_of(tokens)
    taken = [w for w in words if masked.issuperset(w)]
    return sum(map(len, taken)) == len(masked) and missing >= 0 and (missing == 0 or all(len(w) > missing for w in words if w not in taken))


def whole_words(toy):
    """All pieces of a word, or none; the option is part of the run."""
    (toy.work / "pieces.txt").write_text("\n".join(PIECES) + "\n")
    toy.ok("init", "--size", "1x32x2", "--vocab", "pieces.txt", "--positions", 40, "-o", "pieces")
    toy.ok("prep", "text.txt", "--vocab", "pieces", "--length", 40, "--held-out", 0.1, "-o", "pieces-data")
    share, step = 0.3, ["--steps", 1, "--batch", 64, "--mlm-probability", 0.3]
    command = ["pretrain", "pieces", "--data", "pieces-data", *step]
    toy.ok(*command, "--whole-word", "-o", "whole", "--save-gradients", "whole.safetensors", "--eval-every", 1)
    toy.ok(*command, "-o", "parts", "--save-gradients", "parts.safetensors")
    whole, parts = (list(samples(toy.work / f"{name}.safetensors")) for name in ("whole", "parts"))
    assert len(whole) == 64 and [t for t, _ in whole] == [t for t, _ in parts]
    for tokens, masked in whole:
        assert follows_rule(tokens, masked, share), (tokens, masked)
    assert sum(len(w) > 2 and m.issuperset(w) for t, m in whole for w in words_of(t)) > 64, "few words of several pieces"
    assert not any(follows_rule(t, m, share) for t, m in parts), "single pieces pass for words"
    assert json.loads((toy.work / "whole/run.json").read_text())["whole_word"] and "whole_word" not in json.loads((toy.work / "parts/run.json").read_text())
    toy.refused("--whole-word: the run has true", *command, "-o", "whole", "--resume")
    judged = [json.loads(toy.ok("eval", "whole", "--data", "pieces-data", "--mlm-probability", share, *more, "--json").stdout)["mlm"] for more in ((), ("--whole-word",))]
    last = [x for x in toy.log("whole") if "eval" in x][-1]["mlm"]
    assert abs(judged[1] - last) < 1e-12 < abs(judged[0] - last), (judged, last)
    toy.remove("pieces", "pieces-data", "whole", "parts")
    for name in ("pieces.txt", "whole.safetensors", "parts.safetensors"):
        (toy.work / name).unlink()
