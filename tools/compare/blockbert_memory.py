#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables 1 and 2 of BlockBERT (Qiu et al. 2020) beside what `maskbert memory` says of the same shapes:

    python3 tools/compare/blockbert_memory.py [--maskbert PROGRAM] [--measure DIR]

Three columns: the paper's (V100, fp16, fairseq), ours if scores were stored, ours. BERT-base, MLM alone, bf16,
b sequences of N tokens with b N = 4096. GB are GiB, as the paper's model of 0.21 GB in fp16 shows. No weights are needed.
--measure takes a model with 2048 positions, runs its steps, and fits what was measured.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

TOKENS, LAYERS, HEADS = 4096, 12, 12
LENGTHS = (128, 256, 512, 1024, 2048)
# Values that torch 2.15 keeps of a score on a CPU under bf16 autocast, as saved_tensors_hooks show: the probability, dropout's
# factor, the dropped probability. (The paper's fit means 13 bytes.)
STORED_BYTES = 2 + 2 + 2
MASKS = {1: "dense", 2: "blockbert-2", 3: "blockbert-3"}
# Table 1: activations without scores (O(N) a sequence), and scores (O(N^2)); Table 2: all memory.
PAPER_ACTIVATIONS = {(512, 1): (4.83, 3.66), (512, 2): (4.84, 1.83), (512, 3): (4.87, 1.22),
                     (1024, 1): (4.83, 7.32), (1024, 2): (4.84, 3.66), (1024, 3): (4.87, 2.44)}
PAPER_TOTAL = {(512, 1): 9.73, (512, 2): 7.91, (512, 3): 7.32, (1024, 1): 13.39, (1024, 2): 9.73, (1024, 3): 8.55}
GIB = 1 << 30


def write_config(folder, positions):
    config = {"architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 30522, "hidden_size": 768,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 3072,
              "max_position_embeddings": positions, "type_vocab_size": 2, "hidden_act": "gelu"}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def ask(program, folder, length, mask, *more):
    line = [program, "memory", folder, "--batch", str(TOKENS // length), "-n", str(length), "--mask", mask,
            "--dtype", "bf16", "--threads", "2", "--json", *more]
    run = subprocess.run(line, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr.strip())
    return json.loads(run.stdout)


def worked_in(memory):
    return (memory["activations"] + memory["attention"]) / GIB


def stored(length, blocks):
    """Scores of all heads and layers: a row of blocks has N / blocks columns."""
    return TOKENS * length / blocks * HEADS * LAYERS * STORED_BYTES / GIB


def fit(values):
    """Least squares of {N: y}: (slope, constant)."""
    mean_x, mean_y = (sum(v) / len(values) for v in (values, values.values()))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in values.items()) / sum((x - mean_x) ** 2 for x in values)
    return slope, mean_y - slope * mean_x


def print_tables(ours):
    print("Table 1: activations of BERT-base, GB\n")
    print("| N | b | blocks | paper, rest | paper, scores | if scores were stored, rest | if stored, scores | ours |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (n, blocks), (linear, square) in PAPER_ACTIVATIONS.items():
        here = worked_in(ours[n, blocks])
        print(f"| {n} | {TOKENS // n} | {blocks} | {linear:.2f} | {square:.2f} | {here:.2f} | {stored(n, blocks):.2f} | {here:.2f} |")
    print("\nTable 2: all memory, GB\n")
    print("| N | blocks | paper | if scores were stored | ours |")
    print("| --- | --- | --- | --- | --- |")
    for (n, blocks), total in PAPER_TOTAL.items():
        here = ours[n, blocks]["total"] / GIB
        print(f"| {n} | {blocks} | {total:.2f} | {here + stored(n, blocks):.2f} | {here:.2f} |")


def print_fit(name, values, blocks):
    slope, constant = fit(values)
    row = " | ".join(f"{values[n]:.3f}" for n in LENGTHS)
    print(f"| {name} | {blocks} | {row} | {slope * 1e5:.2f}e-5 N + {constant:.3f} |")


def print_fits(ours):
    print("\nActivations at b N = 4096, GB, and the line through them (the paper's: 715e-5 N / blocks + 4.83)\n")
    print("| | blocks | " + " | ".join(f"N = {n}" for n in LENGTHS) + " | fit |")
    print("| --- | --- |" + " --- |" * len(LENGTHS) + " --- |")
    for blocks in MASKS:
        here = {n: worked_in(ours[n, blocks]) for n in LENGTHS}
        print_fit("if scores were stored", {n: here[n] + stored(n, blocks) for n in LENGTHS}, blocks)
        print_fit("ours", here, blocks)


def print_measured(program, folder):
    print(f"\nActivations of {os.path.basename(os.path.normpath(folder))} at b N = 4096, GB, and the line through them\n")
    print("| | blocks | " + " | ".join(f"N = {n}" for n in LENGTHS) + " | fit |")
    print("| --- | --- |" + " --- |" * len(LENGTHS) + " --- |")
    for blocks, mask in (1, "dense"), (2, "blocks(2)"), (3, "blocks(3)"):
        found = {n: ask(program, folder, n, mask, "--measure") for n in LENGTHS}
        for side in "predicted", "measured":
            print_fit(side, {n: worked_in(found[n][side]) for n in LENGTHS}, blocks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maskbert", default="build/tools/maskbert/maskbert")
    parser.add_argument("--measure", metavar="DIR")
    o = parser.parse_args()
    ours = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in LENGTHS:
            write_config(folder, n)
            for blocks, mask in MASKS.items():
                ours[n, blocks] = ask(o.maskbert, folder, n, mask)["predicted"]
    print_tables(ours)
    print_fits(ours)
    if o.measure:
        print_measured(o.maskbert, o.measure)


if __name__ == "__main__":
    main()
