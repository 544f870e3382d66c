# SPDX-License-Identifier: Apache-2.0
"""from_flex(): what FlexAttention calls a mask, token by token."""
from ._library import Error
from .runs import MOST_ARRAY, Builder, rows_together

PROBE_BATCH = 3  # sequences that a mask_mod is asked for, where it looks at their number
MOST_TOKENS = 1 << 15
DEPENDS = "depends on the batch: one mask for all sequences is expected"


def ask(mod, b, h, rows, keys):
    """bool [rows, keys]: mask_mod of one sequence and head."""
    import torch
    made = torch.as_tensor(mod(b, torch.tensor(h, device=keys.device), rows[:, None], keys[None, :]))
    if made.dtype != torch.bool:
        raise Error(2, f"mask_mod gives {made.dtype}; bool is expected")
    return made.expand(len(rows), len(keys))


def ask_without_batch(mod, h, rows, keys):
    """The same where mask_mod does not look at the sequence's number, else None: that number has no value on the device meta."""
    import torch
    try:
        made = ask(mod, torch.empty((), dtype=torch.int64, device="meta"), h, rows, keys)
    except Error:
        raise
    except Exception:  # pylint: disable=broad-exception-caught
        return None  # whatever it did with it; a mask_mod that is wrong itself fails again
    return made if made.device == keys.device else None


def head_rows(mod, h, rows, keys):
    """numpy bool [rows, keys] of mask_mod, which must be the same for every sequence."""
    import torch
    first = ask_without_batch(mod, h, rows, keys)
    if first is None:
        made = []
        for b in range(PROBE_BATCH):
            try:
                made.append(ask(mod, torch.tensor(b, device=keys.device), h, rows, keys))
            except IndexError:
                if not b:
                    raise
                raise Error(2, f"the mask_mod {DEPENDS}") from None
        first = made[0]
        if not all(torch.equal(first, other) for other in made[1:]):
            raise Error(2, f"the mask_mod {DEPENDS}")
    return first.cpu().numpy()


def mod_runs(mod, n, heads):
    """Of a mask_mod, asked for in pieces."""
    import torch
    build, keys = Builder(), torch.arange(n)
    for h in range(heads):
        for begin in range(0, n, rows_together(n)):
            build.add(head_rows(mod, h, keys[begin:begin + rows_together(n)], keys))
    return build.finish((1, heads, n, n))


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


def block_runs(mask, n):
    """(partial & mask_mod) | full, by token. mask_mod is asked for the blocks that are partial alone."""
    import numpy
    import torch
    (height, width), (q_length, kv_length) = mask.BLOCK_SIZE, mask.seq_lengths
    if q_length != kv_length:
        raise Error(2, f"the BlockMask has {q_length} queries and {kv_length} keys: as many keys as queries are expected")
    n = n or q_length
    if n > q_length:
        raise Error(2, f"n: {n}, but the BlockMask has {q_length}")
    partial, device, build = check_batch(mask.kv_indices, mask.kv_num_blocks), mask.kv_indices.device, Builder()
    full = [[[]] * len(head) for head in partial]
    if mask.full_kv_num_blocks is not None:
        full = check_batch(mask.full_kv_indices, mask.full_kv_num_blocks)
    for h, (partials, fulls) in enumerate(zip(partial, full)):
        for r in range((n + height - 1) // height):
            rows = torch.arange(r * height, min(n, (r + 1) * height), device=device)
            bits = numpy.zeros((len(rows), n), bool)
            keys = block_keys(partials[r], width, n, device)
            if len(keys):
                bits[:, keys.cpu().numpy()] = head_rows(mask.mask_mod, h, rows, keys)
            bits[:, block_keys(fulls[r], width, n, "cpu").numpy()] = True
            build.add(bits)
    return build.finish((1, len(partial), n, n))


def flex_runs(mask, n=None, heads=None):
    """Runs of a mask_mod or BlockMask."""
    import torch

    from .masks import is_block_mask
    with torch.no_grad():
        if is_block_mask(mask):
            return block_runs(mask, n)
        if not n:
            raise Error(2, "n: a mask_mod has no length of its own, give one")
        if n > MOST_TOKENS:
            raise Error(2, f"n: {n} is more than {MOST_TOKENS}, which a mask_mod is asked for; give the mask as text")
        return mod_runs(mask, n, heads or 1)


def from_flex(mask, n: int | None = None, heads: int | None = None):
    """The mask of FlexAttention, exactly, for compile(): a numpy bool array [H, n, n]; beyond 4096 tokens maskc.Runs, of which
    numpy.asarray makes one.

    mask: a mask_mod(b, h, q_idx, kv_idx), which needs n, and heads where it depends on the head; or a BlockMask, read
    token by token: (partial & mask_mod) | full. One that depends on the batch is refused. n crops a BlockMask.
    """
    import numpy
    runs = flex_runs(mask, n, heads)
    if runs.shape[-1] > MOST_ARRAY:
        return runs
    bits = numpy.asarray(runs)[0]
    return bits if not heads or len(bits) != 1 else numpy.broadcast_to(bits, (heads, *bits.shape[1:]))
