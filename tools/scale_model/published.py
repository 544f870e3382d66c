# SPDX-License-Identifier: Apache-2.0
"""Published measurements, beside the model."""
import pathlib

import attention
import bert
import machine
import scale
import step as steps

TRAINING = pathlib.Path(__file__).resolve().parents[2] / "tests/results/h100-b84ec2a/training-step.txt"
TOKENS = 16384


def torch_rows(text=None):
    """[(kernels, mask, n, s)]: measured steps of BERT-base in torch, eager."""
    made = []
    for line in (text or TRAINING.read_text(encoding="utf-8")).splitlines():
        words = line.split()
        made.append((words[1], words[2], int(words[3][2:]), float(words[6]) * 1e-3))
    return made


def attention_of(kernels, mask, n):
    """s of 12 layers. longformer(64,2) sees all at 128 tokens, and has dense's time there."""
    name = {"sdpa": "dense", "maskc": "longformer" if "longformer" in mask else "dense (ours)"}[kernels]
    if name == "longformer" and n == 128:
        name = "dense (ours)"
    return bert.BASE.layers * sum(attention.seconds(name, n, TOKENS, bert.BASE.heads))


def torch_check():
    """Takes all work but attention to cost the same in every row, the mean of measured time less attention, and predicts each row by it."""
    rows = torch_rows()
    rest = sum(s - attention_of(k, m, n) for k, m, n, s in rows) / len(rows)
    return rest, [{"kernels": k, "mask": m, "n": n, "measured": s, "predicted": rest + attention_of(k, m, n)} for k, m, n, s in rows]


# NVIDIA DeepLearningExamples, PyTorch BERT-large, A100 80 GB, mixed precision, 128 tokens, global batch 65536 sequences: gradients in
# 16 bits, summed after the last micro-batch; LAMB.
SEQUENCES, NVIDIA_ONE, NVIDIA_EIGHT, NVIDIA_NODES = 65536, 580.0, 4591.0, (32, 30.4)
LAMB_BYTES = 46  # of a parameter: norms need the update once more


def nvidia_check():
    p = bert.LARGE.parameters()
    optimizer = LAMB_BYTES * p / machine.A100.dram
    compute = SEQUENCES / NVIDIA_EIGHT * 8  # s of all sequences on one GPU

    def seconds(gpus):
        return compute / gpus + optimizer + scale.sum_seconds(machine.DGX_A100, gpus, 2 * p)

    nodes, measured = NVIDIA_NODES
    return {"nodes": nodes, "measured": measured, "predicted": seconds(8) / seconds(8 * nodes)}


def nvidia_step():
    """BERT-large, 64 sequences of 128 tokens, on an A100 by the same launches; attention of an H100 by the ratio of copies."""
    b = bert.batch_of("dense", 128, 64 * 128)
    made = steps.step_of(machine.A100, bert.LARGE, b)
    slower = machine.H100.dram / machine.A100.dram
    seconds = made.forward_backward + (slower - 1) * sum(r["seconds"] for r in made.rows if r["kind"] == "attention")
    return {"measured": NVIDIA_ONE, "predicted": b.sequences / seconds}
