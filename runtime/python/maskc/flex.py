# SPDX-License-Identifier: Apache-2.0
"""from_flex(): what FlexAttention calls a mask, as bits."""
from ._library import Error

PROBE_BATCH = 3  # sequences that a mask_mod is asked for
MOST_TOKENS = 1 << 15


def probe(mod, b, h, rows, n, device):
    """bool [n rows, n]: mask_mod of one sequence and head."""
    import torch
    keys = torch.arange(n, device=device)
    one = torch.tensor
    made = mod(one(b, device=device), one(h, device=device), rows[:, None], keys[None, :])
    made = torch.as_tensor(made, device=device)
    if made.dtype != torch.bool:
        raise Error(2, f"mask_mod gives {made.dtype}; bool is expected")
    return made.expand(len(rows), n)


def head_bits(mod, h, n, device):
    """bool [n, n]; rows are asked for in pieces of few MB."""
    import torch
    pieces = []
    for begin in range(0, n, max(1, (1 << 24) // n)):
        rows = torch.arange(begin, min(n, begin + max(1, (1 << 24) // n)), device=device)
        first = probe(mod, 0, h, rows, n, device)
        for b in range(1, PROBE_BATCH):
            try:
                other = probe(mod, b, h, rows, n, device)
            except IndexError:
                raise Error(2, "the mask_mod depends on the batch: one mask for all sequences is expected") from None
            if not torch.equal(first, other):
                raise Error(2, "the mask_mod depends on the batch: one mask for all sequences is expected")
        pieces.append(first)
    return torch.cat(pieces)


def mod_bits(mod, n, heads, device):
    import torch
    return torch.stack([head_bits(mod, h, n, device) for h in range(heads)])


def listed(num_blocks, indices, columns):
    """bool [B, H, rows, columns]: the blocks that a BlockMask lists."""
    import torch
    counts = torch.arange(indices.shape[-1], device=indices.device) < num_blocks[..., None]
    dense = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.bool, device=indices.device)
    dense.scatter_(-1, torch.where(counts, indices, columns).long(), True)
    return dense[..., :columns]


def check_batch(dense):
    import torch
    if dense.shape[0] > 1 and not all(torch.equal(dense[0], other) for other in dense[1:]):
        raise Error(2, "the BlockMask depends on the batch: one mask for all sequences is expected")
    return dense[0]


def block_bits(mask, n):
    """(partial & mask_mod) | full, by token, [H, n, n]."""
    import torch
    rows, columns = mask.BLOCK_SIZE
    q_length, kv_length = mask.seq_lengths
    if q_length != kv_length:
        raise Error(2, f"the BlockMask has {q_length} queries and {kv_length} keys: as many keys as queries are expected")
    n = n or q_length
    if n > q_length:
        raise Error(2, f"n: {n}, but the BlockMask has {q_length}")
    across = mask.kv_indices.shape[-1]
    partial = check_batch(listed(mask.kv_num_blocks, mask.kv_indices, across))
    full = torch.zeros_like(partial)
    if mask.full_kv_num_blocks is not None:
        full = check_batch(listed(mask.full_kv_num_blocks, mask.full_kv_indices, across))

    def tokens(blocks):
        return blocks.repeat_interleave(rows, -2).repeat_interleave(columns, -1)[:, :n, :n]
    return (tokens(partial) & mod_bits(mask.mask_mod, n, len(partial), partial.device)) | tokens(full)


def from_flex(mask, n: int | None = None, heads: int | None = None):
    """The mask of FlexAttention, exactly, as a numpy bool array [H, n, n] for compile().

    mask: a mask_mod(b, h, q_idx, kv_idx), which needs n, and heads where it depends on the head; or a BlockMask, read
    token by token: (partial & mask_mod) | full. One that depends on the batch is refused. n crops a BlockMask.
    """
    import torch

    from .masks import is_block_mask
    with torch.no_grad():
        if is_block_mask(mask):
            bits = block_bits(mask, n)
            if heads and bits.shape[0] == 1:
                bits = mod_like(mask, bits, heads, n)
        else:
            if not n:
                raise Error(2, "n: a mask_mod has no length of its own, give one")
            if n > MOST_TOKENS:
                raise Error(2, f"n: {n} is more than {MOST_TOKENS}, which a mask_mod is asked for; give the mask as text")
            bits = mod_bits(mask, n, heads or 1, torch.device("cpu"))
    return bits.cpu().numpy()


def mod_like(mask, bits, heads, n):
    return bits.expand(heads, *bits.shape[1:])
