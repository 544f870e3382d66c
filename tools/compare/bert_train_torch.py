# SPDX-License-Identifier: Apache-2.0
"""BERT's pre-training in torch as a well-made trainer has it: bf16 by autocast over f32 weights, query, key and value
in one product, masked rows gathered before the decoder, fused AdamW. In float64 it is the reference of
tools/bert-peers --train.
"""
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

import bert_peers_torch as ways

PARTS = ("query", "key", "value")
PART_TOKENS = 2048  # of the reference


class Batch:
    """`sequences` of one length: pairs of two halves, 15 % of the tokens masked. table: bool [n, n] or None."""

    def __init__(self, sequences, length, vocabulary, table):
        g = torch.Generator().manual_seed(1)
        self.sequences, self.length, self.table = sequences, length, table
        self.ids = torch.randint(5, vocabulary, (sequences, length), generator=g)
        masked = round(0.15 * length)
        columns = torch.rand(sequences, length, generator=g).argsort(1)[:, :masked].sort(1).values
        self.rows = (columns + length * torch.arange(sequences)[:, None]).flatten()
        self.labels = self.ids.flatten()[self.rows]
        self.ids.view(-1)[self.rows] = 4  # [MASK]
        self.first_parts = [length // 2] * sequences
        self.types = (torch.arange(length) >= length // 2).long().expand(sequences, length).contiguous()
        self.next = torch.randint(0, 2, (sequences,), generator=g)
        self.tokens = sequences * length

    def inputs(self):
        return self.ids, self.types, self.rows, self.labels, self.next

    def part(self, first, end):
        """Sequences first .. end by themselves."""
        inside = (self.rows >= first * self.length) & (self.rows < end * self.length)
        return (self.ids[first:end], self.types[first:end], self.rows[inside] - first * self.length,
                self.labels[inside], self.next[first:end])


# Attention of q, k, v [B, H, n, d] with dropout p.

def sdpa(table):
    return lambda q, k, v, p: F.scaled_dot_product_attention(q, k, v, attn_mask=table, dropout_p=p)


def plain(table):
    bias = None if table is None else torch.zeros(table.shape).masked_fill(~table, -math.inf)
    by_dtype = {t: bias if bias is None else bias.to(t) for t in (torch.bfloat16, torch.float32, torch.float64)}

    def attend(q, k, v, p):
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if bias is not None:
            s = s + by_dtype[s.dtype]
        return F.dropout(torch.softmax(s, -1), p, p > 0) @ v
    return attend


def flex(table):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    n = len(table)
    mask = create_block_mask(lambda b, h, i, j: table[i, j], None, None, n, n, device="cpu", BLOCK_SIZE=64)

    def attend(q, k, v, p):
        if p:
            raise RuntimeError("FlexAttention has no dropout")
        return flex_attention(q, k, v, block_mask=mask)
    return attend


def masked_loss(states, rows, labels, head, reduction="mean"):
    """The loss of the masked words, at least in f32; head computes logits of these rows only."""
    logits = head(states.reshape(-1, states.shape[-1])[rows])
    return F.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), labels, reduction=reduction)


class Model(nn.Module):
    """The loss of a batch. `dropout` may be set between steps."""

    def __init__(self, tensors, config, attend, dtype=torch.float32):
        super().__init__()
        take, size = ways.Take(tensors, dtype), config["hidden_size"]
        eps, e = config.get("layer_norm_eps", 1e-12), "embeddings."
        self.attend, self.heads, self.size, self.dropout = attend, config["num_attention_heads"], size, 0.0
        self.words = take.tensor(e + "word_embeddings.weight")
        self.positions = take.tensor(e + "position_embeddings.weight")
        self.types = take.tensor(e + "token_type_embeddings.weight")
        self.norm = take.norm(e + "LayerNorm", size, eps)
        self.layers = nn.ModuleList(ways.Layer(take, k, size, config["intermediate_size"], eps)
                                    for k in range(config["num_hidden_layers"]))
        self.pooler = take(["pooler.dense"], size, size)
        self.next = take(["cls.seq_relationship"], size, 2)
        self.transform = take(["cls.predictions.transform.dense"], size, size)
        self.words_norm = take.norm("cls.predictions.transform.LayerNorm", size, eps)
        self.words_bias = take.tensor("cls.predictions.bias")
        self.requires_grad_(True)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.dropout > 0)

    def layer(self, layer, x):
        b, n, _ = x.shape
        q, k, v = layer.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        o = self.attend(q, k, v, self.dropout).transpose(1, 2).reshape(b, n, self.size)
        x = layer.norms[0](self.drop(layer.output(o)) + x)
        return layer.norms[1](self.drop(layer.outer(F.gelu(layer.inner(x)))) + x)

    def forward(self, ids, types, rows, labels, following):
        """The sums of the words' and of the next sentences' losses."""
        x = F.embedding(ids, self.words) + self.positions[:ids.shape[1]] + F.embedding(types, self.types)
        x = self.drop(self.norm(x))
        for layer in self.layers:
            x = self.layer(layer, x)
        pairs = self.next(torch.tanh(self.pooler(x[:, 0])))
        return (masked_loss(x, rows, labels, self.head, "sum"),
                F.cross_entropy(pairs.to(torch.promote_types(pairs.dtype, torch.float32)), following, reduction="sum"))

    def head(self, x):
        """Logits of the words."""
        return F.linear(self.words_norm(F.gelu(self.transform(x))), self.words, self.words_bias)

    def gradients(self):
        """{name in the file: gradient}"""
        found = {"embeddings.word_embeddings.weight": self.words, "embeddings.position_embeddings.weight": self.positions,
                 "embeddings.token_type_embeddings.weight": self.types, "cls.predictions.bias": self.words_bias}
        modules = {"embeddings.LayerNorm": self.norm, "pooler.dense": self.pooler, "cls.seq_relationship": self.next,
                   "cls.predictions.transform.dense": self.transform,
                   "cls.predictions.transform.LayerNorm": self.words_norm}
        for k, layer in enumerate(self.layers):
            p = f"encoder.layer.{k}."
            modules |= {p + "attention.output.dense": layer.output, p + "intermediate.dense": layer.inner,
                        p + "output.dense": layer.outer, p + "attention.output.LayerNorm": layer.norms[0],
                        p + "output.LayerNorm": layer.norms[1]}
        found |= {f"{name}.{kind}": getattr(m, kind) for name, m in modules.items() for kind in ("weight", "bias")}
        found = {name: x.grad for name, x in found.items()}
        for k, layer in enumerate(self.layers):
            for kind in "weight", "bias":
                for part, x in zip(PARTS, getattr(layer.qkv, kind).grad.chunk(3)):
                    found[f"encoder.layer.{k}.attention.self.{part}.{kind}"] = x
        return {name: x.numpy() for name, x in found.items()}


def autocast(half):
    return torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext()


def reference(weights, config, batch, half):
    """(loss, {name: gradient}) in float64, or of autocast over f32; PART_TOKENS at a time, as scores are large."""
    model = Model(weights, config, plain(batch.table), torch.float32 if half else torch.float64)
    loss, step = 0.0, max(1, PART_TOKENS // batch.length)
    for k in range(0, batch.sequences, step):
        with autocast(half):
            words, following = model(*batch.part(k, k + step))
        part = words / len(batch.rows) + following / batch.sequences
        part.backward()
        loss += part.item()
    return loss, model.gradients()


class Trainer:
    """Steps over one batch."""

    def __init__(self, weights, config, batch, attend, compiled):
        self.model, self.batch = Model(weights, config, attend(batch.table)), batch
        self.run = torch.compile(self.model, dynamic=False) if compiled else self.model
        matrices = [x for x in self.model.parameters() if x.dim() > 1]
        others = [x for x in self.model.parameters() if x.dim() == 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": others, "weight_decay": 0.0}], lr=1e-4, eps=1e-6, weight_decay=0.01,
            fused=True)

    def backward(self):
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(True):
            words, following = self.run(*self.batch.inputs())
            loss = words / len(self.batch.rows) + following / self.batch.sequences
        loss.backward()
        return loss

    def gradients(self):
        self.model.dropout = 0.0
        return self.backward().item(), self.model.gradients()

    def step(self, dropout):
        self.model.dropout = dropout
        self.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
