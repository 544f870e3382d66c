# SPDX-License-Identifier: Apache-2.0
"""Seconds of attention on an H100, from what was measured there: bf16, D = 64, 12 heads, 65536 tokens."""
import pathlib

TIMING = pathlib.Path(__file__).resolve().parents[2] / "tests/results/h100-b84ec2a/timing.txt"
TOKENS, HEADS = 65536, 12
# By mask and length: whose kernels, and what the file calls the mask.
ROWS = {"dense": ("cudnn", lambda n: "dense"), "longformer": ("ours", lambda n: "longformer" if n <= 128 else "longformer(64,2)"),
        "dense (ours)": ("ours", lambda n: "dense")}


def measured(text=None):
    """{(whose, mask, n): {"fwd": s, "both": s}} of bf16 at D = 64."""
    made = {}
    for line in (text or TIMING.read_text(encoding="utf-8")).splitlines():
        words = line.split()
        if len(words) > 8 and words[4:6] == ["D=64", "bfloat16"]:
            made.setdefault((words[0], words[1], int(words[2][2:])), {})[words[6]] = float(words[7]) * 1e-3
    return made


def between(lengths, n):
    """The measured lengths around n, and how far n lies between them; cost by token is taken to be linear in n there."""
    if n in lengths:
        return n, n, 0.0
    low, high = max((x for x in lengths if x < n), default=None), min((x for x in lengths if x > n), default=None)
    if low is None or high is None:
        raise ValueError(f"n = {n}: measured are {', '.join(map(str, sorted(lengths)))}")
    return low, high, (n - low) / (high - low)


def seconds(mask, n, tokens, heads, times=None):
    """(forward, backward) of one layer."""
    times = times or measured()
    whose, name = ROWS[mask]
    lengths = {x[2] for x in times if x[0] == whose and x[1] == name(x[2])}
    low, high, share = between(lengths, n)
    a, b = (times[whose, name(x), x] for x in (low, high))
    scale = tokens / TOKENS * heads / HEADS
    forward, both = ((a[k] + share * (b[k] - a[k])) * scale for k in ("fwd", "both"))
    return forward, both - forward
