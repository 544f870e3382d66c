# SPDX-License-Identifier: Apache-2.0
"""Shapes of BERT: parameters, and the operations of a step as model/train/flops.c counts them."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Bert:
    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int = 30522
    positions: int = 512

    @property
    def inner(self):
        return 4 * self.hidden

    def layer_parameters(self):
        h, i = self.hidden, self.inner
        return 4 * (h * h + h) + 2 * h * i + i + h + 4 * h

    def parameters(self):
        """Encoder, pooler, both heads of pre-training; the decoder is the table of words."""
        h = self.hidden
        tables = (self.vocabulary + self.positions + 2) * h + 2 * h
        heads = h * h + h + h * h + h + 2 * h + self.vocabulary + 2 * h + 2
        return tables + self.layers * self.layer_parameters() + heads


BASE = Bert("BERT-base", 12, 768, 12)
LARGE = Bert("BERT-large", 24, 1024, 16)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Sequences of one backward pass on one GPU; `active`: pairs that attention computes in each head of a sequence."""
    sequences: int
    length: int
    mask: str
    active: int

    @property
    def tokens(self):
        return self.sequences * self.length

    @property
    def masked(self):
        return self.sequences * round(0.15 * self.length)


def longformer_active(n, window, globals_):
    """Pairs of longformer(window, globals_), whose global tokens lie more than a window from the ends and from each other."""
    band = n * (2 * window + 1) - window * (window + 1)
    return band + 2 * globals_ * (n - 2 * window - 1) - globals_ * (globals_ - 1)


def batch_of(mask, length, tokens):
    """mask: dense or longformer, which is longformer(5,2) at 128 tokens and longformer(64,2) beyond."""
    active = length * length if mask == "dense" else longformer_active(length, 5 if length <= 128 else 64, 2)
    return Batch(max(1, tokens // length), length, mask, active)


def step_flops(model, batch):
    """Returns the FLOPs of forward and backward: multiply and add count as two, the backward pass as twice the forward one."""
    h = model.hidden
    layer = batch.tokens * (4 * h * h + 2 * h * model.inner) + 2 * batch.sequences * batch.active * h
    heads = batch.masked * (h * h + h * model.vocabulary) + batch.sequences * h * h
    return 6 * (model.layers * layer + heads)
