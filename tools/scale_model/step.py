# SPDX-License-Identifier: Apache-2.0
"""A training step on one GPU as a list of launches: bf16 activations, f32 gradients of weights, dropout, erf GELU by a row kernel,
products with a bias epilogue, and AdamW that writes the bf16 copies. Each launch has counted FLOPs and bytes. Every array of a row kernel
passes through DRAM."""
import dataclasses
import math

import attention
import bert


@dataclasses.dataclass(frozen=True)
class Launch:
    where: str        # layer, embeddings, heads, optimizer
    name: str
    kind: str         # product, attention, row, optimizer
    flops: float = 0
    bytes: float = 0
    shape: tuple = () # of a product: rows, columns, depth
    seconds: float = 0
    count: int = 1    # launches of that name in one place


def product(where, name, rows, columns, depth, out=2):
    moved = 2 * (rows * depth + depth * columns) + out * rows * columns
    return Launch(where, name, "product", 2.0 * rows * columns * depth, moved, (rows, columns, depth))


def linear(where, name, tokens, inputs, outputs):
    """Forward, input gradient, weight gradient, which adds to an f32 array."""
    return (product(where, name, tokens, outputs, inputs), product(where, f"{name} dX", tokens, inputs, outputs),
            product(where, f"{name} dW", outputs, inputs, tokens, 8))


def row(where, name, elements, each, count=1):
    """each: bytes read and written for an element; sums over rows end in a second, small launch."""
    return Launch(where, name, "row", 0, elements * each, count=count)


def layer_launches(model, b, forward, backward):
    h, i, t = model.hidden, model.inner, b.tokens
    pairs = 4.0 * b.sequences * b.active * h
    merges = 1 if b.mask == "longformer" else 0  # of global rows that several blocks share
    products = (linear("layer", "query, key, value", t, h, 3 * h) + linear("layer", "attention output", t, h, h) +
                linear("layer", "feed forward, inner", t, h, i) + linear("layer", "feed forward, outer", t, i, h))
    rows = (row("layer", "dropout, add, LayerNorm", 2 * t * h, 6, 2), row("layer", "GELU", t * i, 4),
            row("layer", "LayerNorm and dropout, backward", 2 * t * h, 8, 4), row("layer", "GELU, backward", t * i, 6, 2),
            row("layer", "query, key, value bias", 3 * t * h, 2, 2))
    kernels = (Launch("layer", "attention", "attention", pairs, 8 * t * h, seconds=forward, count=1 + merges),
               Launch("layer", "attention, backward", "attention", 2 * pairs, 16 * t * h, seconds=backward, count=2 + merges))
    return [*products, *rows, *kernels]


def other_launches(model, b):
    h, t, m, s, v = model.hidden, b.tokens, b.masked, b.sequences, model.vocabulary
    p = model.parameters()
    return [row("embeddings", "sum, LayerNorm, dropout", t * h, 8), row("embeddings", "backward, LayerNorm", t * h, 6, 2),
            row("embeddings", "sorted segments", t * h, 2, 3), row("embeddings", "tables written", (v + model.positions + 2) * h, 4, 0),
            *linear("heads", "transform", m, h, h), *linear("heads", "decoder", m, h, v), *linear("heads", "pooler", s, h, h),
            row("heads", "masked rows gathered, scattered", m * h, 8, 2), row("heads", "GELU, LayerNorm, and backward", m * h, 24, 6),
            row("heads", "cross-entropy", m * v, 4), row("heads", "decoder bias", m * v, 2, 2),
            row("heads", "pooler, next sentence, losses", s * h, 20, 8),
            Launch("optimizer", "gradients cleared", "optimizer", 0, 4.0 * p), Launch("optimizer", "norm", "optimizer", 0, 4.0 * p, count=2),
            Launch("optimizer", "AdamW, bf16 copies", "optimizer", 0, 30.0 * p)]


def tile_waves(gpu, shape):
    """(waves, depth of each): tiles over processors. The depth of a product with few tiles is split among processors."""
    rows, columns, depth = shape
    tiles = math.ceil(rows / gpu.tile[0]) * math.ceil(columns / gpu.tile[1])
    best = None
    for split in (1, 2, 3, 4, 6, 8, 12, 16):
        each = depth / split
        if each < 256 and split > 1:
            break
        made = (math.ceil(tiles * split / gpu.processors), each)
        if best is None or made[0] * made[1] < best[0] * best[1] * (1 - 1e-9):
            best = made
    return best


def launch_seconds(gpu, x):
    """Without the time from launch to launch."""
    if x.kind == "attention":
        return x.seconds
    if x.kind != "product":
        return x.bytes / gpu.dram
    waves, depth = tile_waves(gpu, x.shape)
    tile = 2.0 * gpu.tile[0] * gpu.tile[1] * depth / (gpu.product / gpu.processors)
    return max(waves * tile, x.bytes / gpu.dram) + gpu.fill


@dataclasses.dataclass(frozen=True)
class Step:
    """On one GPU. forward_backward: s of a micro-batch; optimizer: s of a step."""
    model: bert.Bert
    batch: bert.Batch
    rows: list        # of dicts, a launch by its place
    forward_backward: float
    optimizer: float
    flops: float

    @property
    def seconds(self):
        return self.forward_backward + self.optimizer


def step_of(gpu, model, b, times=None):
    forward, backward = attention.seconds(b.mask, b.length, b.tokens, model.heads, times)
    launches = [(x, model.layers) for x in layer_launches(model, b, forward, backward)] + [(x, 1) for x in other_launches(model, b)]
    rows = []
    for x, times_ in launches:
        alone = launch_seconds(gpu, x)
        rows.append({"where": x.where, "name": x.name, "kind": x.kind, "launches": x.count * times_, "flops": x.flops * times_,
                     "bytes": x.bytes * times_, "seconds": alone * times_, "gaps": gpu.launch * x.count * times_})
    total = {k: sum(r["seconds"] + r["gaps"] for r in rows if (r["kind"] == "optimizer") == k) for k in (False, True)}
    return Step(model, b, rows, total[False], total[True], bert.step_flops(model, b))


def losses_of(gpu, step):
    """Seconds by cause: the counted FLOPs at peak rate, and what a step spends beyond that."""
    parts = {"counted FLOPs at peak": step.flops / gpu.peak, "products below peak": 0.0, "attention": 0.0, "row kernels": 0.0,
             "optimizer": 0.0, "from launch to launch": 0.0}
    names = {"product": "products below peak", "attention": "attention", "row": "row kernels", "optimizer": "optimizer"}
    for r in step.rows:
        parts[names[r["kind"]]] += r["seconds"] - (r["flops"] / gpu.peak if r["kind"] in ("product", "attention") else 0)
        parts["from launch to launch"] += r["gaps"]
    return parts


def product_rate_for(gpu, model, b, share):
    """FLOP/s of large products with which a step has that share of the peak; None: not even with products at the peak."""
    def reached(rate):
        made = step_of(dataclasses.replace(gpu, product=rate), model, b)
        return made.flops / gpu.peak / made.seconds

    low, high = gpu.peak / 10, gpu.peak
    if reached(high) < share:
        return None
    while high - low > 1e9:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) >= share else (middle, high)
    return high
