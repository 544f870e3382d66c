# SPDX-License-Identifier: Apache-2.0
"""The reference of the peers comparison: float64 attention over the same inputs, one head at a time,
its gradients written out by hand so that no contender's autograd is its own reference.

The measure and the tolerances are the ones of maskc: norm(a - b) / max(norm(b), 0.1 sqrt(size));
f32 1e-5; 16-bit types 1.5 times the error of the plain way (scores and sums in f32, P and dS
rounded to the type before they are multiplied, outputs rounded).
"""
import math

import torch

NAMES = ("out", "dq", "dk", "dv")
SAMPLE_ABOVE = 1 << 24  # batch * heads * n * n entries: above it only the first and last head


def measure(a, b):
    """a: a contender's, any dtype; b: float64. Not-a-numbers give infinity."""
    a = a.detach().to(device=b.device, dtype=torch.float64)
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return math.inf
    return ((a - b).norm() / max(b.norm().item(), 0.1 * math.sqrt(b.numel()))).item()


def attend_head(q, k, v, grad, mask, scale, rounded):
    """One head [N, D] in the dtype of q: O, dQ, dK, dV. mask: bool [N, N] or None."""
    score = scale * (q @ k.T)
    if mask is not None:
        score = score.masked_fill(~mask, -math.inf)
    top = score.amax(1, keepdim=True)
    top = torch.where(top.isinf(), 0, top)  # a query without a key: exp of its scores is 0
    p = (score - top).exp()
    total = p.sum(1, keepdim=True)
    p = p / torch.where(total == 0, 1, total)
    out = rounded(p) @ v
    dp = grad @ v.T
    ds = rounded(p * (dp - (p * dp).sum(1, keepdim=True)))
    return out, scale * (ds @ k), scale * (ds.T @ q), rounded(p).T @ grad


def attend(case, table, dtype, rounded, sequences):
    """All heads that are checked: four tensors [len(sequences), len(heads), N, D] in `dtype`."""
    results = [[] for _ in NAMES]
    for b in sequences:
        for h in checked_heads(case):
            q, k, v, grad = (t[b, h].to(dtype) for t in (case.q, case.k, case.v, case.grad))
            mask = None if table is None else table[h % table.shape[0]]
            for to, r in zip(results, attend_head(q, k, v, grad, mask, case.scale, rounded)):
                to.append(r)
    heads = len(checked_heads(case))
    return [torch.stack(r).unflatten(0, (len(sequences), heads)) for r in results]


def checked_heads(case):
    if case.batch * case.heads * case.n * case.n <= SAMPLE_ABOVE or case.heads < 3:
        return list(range(case.heads))
    return [0, case.heads - 1]


class Reference:
    """The truth for one case and one mask; table None is dense attention. sequences: those of the batch that are
    compared, all by default."""

    def __init__(self, case, table, sequences=None):
        self.heads = checked_heads(case)
        self.sequences = list(range(case.batch)) if sequences is None else sequences
        self.truth = attend(case, table, torch.float64, lambda x: x, self.sequences)
        if case.dtype == torch.float32:
            self.tolerance = dict.fromkeys(NAMES, 1e-5)
        else:
            plain = attend(case, table, torch.float32, lambda x: x.to(case.dtype).float(), self.sequences)
            self.tolerance = {name: 1.5 * measure(p.to(case.dtype), t)
                              for name, p, t in zip(NAMES, plain, self.truth)}

    def errors(self, results):
        """results: out alone, or out, dq, dk, dv; [B, H, N, D]. {name: error}."""
        return {name: measure(r[self.sequences][:, self.heads], t)
                for name, r, t in zip(NAMES, results, self.truth)}
