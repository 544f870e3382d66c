# SPDX-License-Identifier: Apache-2.0
"""Batches of masked words, and torch's loss and gradients of them."""
import re

import numpy
import torch
from families import WORDS


def make_batch(folder, longest, rng):
    """Sequences with masked tokens; some inputs are padding's, as masking may draw it."""
    batch = []
    for k, n in enumerate((1, 17, 33, longest)):
        ids = [int(x) for x in rng.integers(0, len(WORDS), n)]
        if n == 33:
            ids[4] = ids[20] = 1
        masked = [(int(i), int(rng.integers(len(WORDS)))) for i in sorted(rng.choice(n, (n + 3) // 4, replace=False))]
        batch.append((ids, masked))
    with open(folder / "batch.txt", "w") as f:
        for k, (ids, masked) in enumerate(batch):
            f.write(" ".join(map(str, [k, -1, len(ids), len(ids), *ids, len(masked), *(x for m in masked for x in m)])) + "\n")
    return batch


def loss_of(model, batch):
    total = sum(torch.nn.functional.cross_entropy(model(torch.tensor([ids])).logits[0][[i for i, _ in masked]].to(torch.float64),
                                                  torch.tensor([y for _, y in masked]), reduction="sum") for ids, masked in batch)
    return total / sum(len(m) for _, m in batch)


def gradients_of(model, batch):
    model.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    return float(loss.detach()), {n: p.grad.double().numpy() for n, p in model.named_parameters(remove_duplicate=False) if p.grad is not None}


def layer_of(name):
    found = re.search(r"layers?\.(\d+)\.", name)
    return found.group(1) if found else "none"


def norm(x):
    return float(numpy.sqrt((x.astype(float) ** 2).sum()))


def spelled(gradients):
    """The decoder's bias is the head's."""
    return {n.replace("lm_head.decoder.bias", "lm_head.bias"): g for n, g in gradients.items()}
