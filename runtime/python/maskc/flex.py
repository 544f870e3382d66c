# SPDX-License-Identifier: Apache-2.0
"""from_flex(): what FlexAttention calls a mask, token by token."""
from ._library import Error
from .arguments import optional_count
from .runs import MOST_ARRAY, Builder, rows_together

MOST_TOKENS = 1 << 15
DEPENDS = "depends on the batch: one mask for all sequences is expected"


def head_rows(mod, sequences, h, rows, keys):
    """numpy bool [rows, keys] of a mask_mod, which must be the same for every sequence. `sequences` is their number, 1 where
    it is not known: then a mask_mod that reads the batch index is refused. h: None where it must not matter."""
    import torch

    from .flex_calls import Read, entries
    try:
        return entries(mod, None, h, rows, keys).numpy()
    except Read as e:
        if e.name == "head":
            raise
    if sequences < 2:
        raise Error(2, f"the mask_mod {DEPENDS} (it reads the batch index)")
    first = entries(mod, 0, h, rows, keys)
    for b in range(1, sequences):
        if not torch.equal(entries(mod, b, h, rows, keys), first):
            raise Error(2, f"the mask_mod {DEPENDS}, and sequences 0 and {b} differ")
    return first.numpy()


def each_head(heads, runs_of):
    """runs_of([None]) where the mask does not depend on the head, else runs_of(all heads)."""
    from .flex_calls import Read
    try:
        return runs_of([None])
    except Read:
        if not heads:
            raise Error(2, "heads: the mask_mod reads the head index, so their number is needed") from None
        return runs_of(range(heads))


def mod_runs(mod, n, heads):
    """Makes runs from a mask_mod, evaluated in pieces."""
    import torch
    keys = torch.arange(n, device="cpu")

    def runs_of(numbers):
        build = Builder()
        for h in numbers:
            for begin in range(0, n, rows_together(n)):
                build.add(head_rows(mod, 1, h, keys[begin:begin + rows_together(n)], keys))
        return build.finish((1, len(numbers), n, n))
    return each_head(heads, runs_of)


def check_batch(indices, counts):
    """Those of one sequence, as numpy, [H, rows of blocks, ..]: what is listed, in any order, must be the same for all."""
    listed = [[[sorted(row[:count]) for row, count in zip(rows, number)] for rows, number in zip(heads, numbers)]
              for heads, numbers in zip(indices.tolist(), counts.tolist())]
    if any(other != listed[0] for other in listed[1:]):
        raise Error(2, f"the BlockMask {DEPENDS}")
    return listed[0]


def block_keys(columns, size, n, device):
    """The tokens of some blocks."""
    import torch
    keys = (torch.tensor(columns, dtype=torch.int64, device=device)[:, None] * size + torch.arange(size, device=device)).flatten()
    return keys[keys < n]


def check_block_mask(mask, n, heads):
    """The length."""
    q_length, kv_length = mask.seq_lengths
    if q_length != kv_length:
        raise Error(2, f"the BlockMask has {q_length} queries and {kv_length} keys: as many keys as queries are expected")
    if n and n > q_length:
        raise Error(2, f"n: {n}, but the BlockMask has {q_length}")
    if heads and mask.kv_indices.shape[1] not in (1, heads):
        raise Error(2, f"heads: {heads}, but the BlockMask has {mask.kv_indices.shape[1]}")
    return n or q_length


def block_rows(mask, h, r, blocks, n):
    """numpy bool [rows, n] of a row of blocks: (partial & mask_mod) | full. mask_mod is only asked for partial blocks.
    blocks: (partial, full), columns of both."""
    import numpy
    import torch
    (height, width), device = mask.BLOCK_SIZE, mask.kv_indices.device
    rows = torch.arange(r * height, min(n, (r + 1) * height), device=device)
    bits, keys = numpy.zeros((len(rows), n), bool), block_keys(blocks[0], width, n, device)
    if len(keys):
        bits[:, keys.cpu().numpy()] = head_rows(mask.mask_mod, mask.kv_indices.shape[0], h, rows, keys)
    bits[:, block_keys(blocks[1], width, n, "cpu").numpy()] = True
    return bits


def block_runs(mask, n, heads):
    """Makes runs from a BlockMask, by token. A BlockMask of a single head is evaluated for every
    head: FlexAttention shares its blocks, and calls mask_mod with the head."""
    n = check_block_mask(mask, n, heads)
    partial = check_batch(mask.kv_indices, mask.kv_num_blocks)
    full = [[[]] * len(head) for head in partial]
    if mask.full_kv_num_blocks is not None:
        full = check_batch(mask.full_kv_indices, mask.full_kv_num_blocks)
    count = (n + mask.BLOCK_SIZE[0] - 1) // mask.BLOCK_SIZE[0]

    def runs_of(numbers):
        build = Builder()
        for k, h in enumerate(numbers):
            of = k if len(partial) > 1 else 0
            for r in range(count):
                build.add(block_rows(mask, h, r, (partial[of][r], full[of][r]), n))
        return build.finish((1, len(numbers), n, n))
    return runs_of(range(len(partial))) if len(partial) > 1 else each_head(heads, runs_of)


def flex_runs(mask, n=None, heads=None):
    """Runs of a mask_mod or BlockMask: of all heads, or of one if all have the same mask."""
    import torch

    from .masks import is_block_mask, is_mask_mod
    if not is_block_mask(mask) and not is_mask_mod(mask):
        raise TypeError(f"mask: {type(mask).__name__}; a mask_mod or a BlockMask of FlexAttention is expected")
    n, heads = optional_count("n", n), optional_count("heads", heads)
    with torch.no_grad():
        if is_block_mask(mask):
            return block_runs(mask, n, heads)
        if not n:
            raise Error(2, "n: a mask_mod has no length of its own, give one")
        if n > MOST_TOKENS:
            raise Error(2, f"n: {n} is more than {MOST_TOKENS}, which a mask_mod is asked for; give the mask as text")
        return mod_runs(mask, n, heads)


def from_flex(mask, n: int | None = None, heads: int | None = None):
    """The mask of FlexAttention, exactly, for compile(): a numpy bool array [H, n, n]; beyond 4096 tokens maskc.Runs, of which
    numpy.asarray makes one.

    mask: a mask_mod(b, h, q_idx, kv_idx), which needs n, and heads where it reads the head; or a BlockMask, read token by
    token: (partial & mask_mod) | full. n crops a BlockMask. A mask_mod that reads the batch index is refused; in a BlockMask
    of B sequences all of them are compared, and equal ones are accepted.
    """
    import numpy
    runs = flex_runs(mask, n, heads)
    if runs.shape[-1] > MOST_ARRAY:
        return runs
    bits = numpy.asarray(runs)[0]
    return bits if not heads or len(bits) != 1 else numpy.broadcast_to(bits, (heads, *bits.shape[1:]))
