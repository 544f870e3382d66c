# SPDX-License-Identifier: Apache-2.0
"""BERT's encoder in torch as a well-made engine has it: query, key and value in one product, weights in
the dtype of the run, attention in each of torch's ways. In float64 it is the reference of
tools/bert-peers.
"""
import json
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

from peers_contenders import additive

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read_weights(folder):
    """{name without "bert.": tensor} of model.safetensors; integers are left out."""
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    found = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] in TYPES:
            begin, end = t["data_offsets"]
            flat = torch.frombuffer(data, dtype=torch.uint8, count=end - begin, offset=8 + size + begin)
            found[name.removeprefix("bert.")] = flat.view(TYPES[t["dtype"]]).view(t["shape"])
    return found


def read_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        return json.load(f)


class Batch:
    """Sequences in the forms that the ways of running them want. table: bool [n, n] or None."""

    def __init__(self, numbers, table):
        self.numbers, self.table = numbers, table
        self.counts = [len(x) for x in numbers]
        self.longest, self.tokens = max(self.counts), sum(self.counts)
        self.packed_ids = torch.cat(numbers)
        self.positions = torch.cat([torch.arange(c) for c in self.counts])
        self.mixed = min(self.counts) < self.longest
        rows = [torch.arange(c) + k * self.longest for k, c in enumerate(self.counts)]
        self.slot = torch.cat(rows)  # of a packed token in the padded batch
        size = len(numbers) * self.longest
        self.source = torch.zeros(size, dtype=torch.long)  # the reverse; padding reads token 0
        self.source[self.slot] = torch.arange(self.tokens)
        self.real = torch.zeros(size, dtype=torch.bool)
        self.real[self.slot] = True
        self.real = self.real.view(len(numbers), 1, 1, self.longest)

    def active(self):
        """bool, broadcast to [B, H, n, n]; None: everything."""
        if self.table is None and not self.mixed:
            return None
        seen = torch.ones(1, 1, 1, 1, dtype=torch.bool)
        if self.table is not None:
            seen = self.table[None, None, :self.longest, :self.longest]
        return (seen & self.real if self.mixed else seen).expand(
            len(self.numbers) if self.mixed else 1, 1, self.longest, self.longest)


# Attention of q, k, v [B, H, n, d]; each is made for one batch.

def plain(batch, dtype):
    active = batch.active()

    def attend(q, k, v):
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if active is not None:
            s = s.masked_fill(~active, -math.inf)
        return torch.softmax(s, -1) @ v
    return attend


def sdpa(batch, dtype):
    active, bias = batch.active(), None
    if active is not None:
        bias = additive(active, dtype)
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def flex(block):
    def make(batch, dtype):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        n, table = batch.longest, batch.table
        mask = create_block_mask(lambda b, h, i, j: table[i, j], None, None, n, n, device="cpu", BLOCK_SIZE=block)
        return lambda q, k, v: flex_attention(q, k, v, block_mask=mask)
    return make


class Layer(nn.Module):
    def __init__(self, take, k, size, inner, eps):
        super().__init__()
        p = f"encoder.layer.{k}."
        parts = [p + "attention.self." + x for x in ("query", "key", "value")]
        self.qkv = take(parts, size, 3 * size)
        self.output = take([p + "attention.output.dense"], size, size)
        self.inner = take([p + "intermediate.dense"], size, inner)
        self.outer = take([p + "output.dense"], inner, size)
        self.norms = nn.ModuleList(take.norm(p + x + ".LayerNorm", size, eps)
                                   for x in ("attention.output", "output"))

    def rest(self, x, o):
        x = self.norms[0](self.output(o) + x)
        return self.norms[1](self.outer(F.gelu(self.inner(x))) + x)


class Take:
    """Modules made of the file's tensors."""

    def __init__(self, tensors, dtype):
        self.tensors, self.dtype = tensors, dtype

    def tensor(self, name):
        return nn.Parameter(self.tensors[name].to(self.dtype), requires_grad=False)

    def __call__(self, names, inside, out):
        m = nn.Linear(inside, out, dtype=self.dtype, device="meta")
        for kind in "weight", "bias":
            whole = torch.cat([self.tensors[f"{n}.{kind}"] for n in names])
            setattr(m, kind, nn.Parameter(whole.to(self.dtype), requires_grad=False))
        return m

    def norm(self, name, size, eps):
        m = nn.LayerNorm(size, eps, dtype=self.dtype, device="meta")
        m.weight, m.bias = self.tensor(name + ".weight"), self.tensor(name + ".bias")
        return m


class Encoder(nn.Module):
    """One way over one batch. packed: products see real tokens alone, in a loop over sequences
    ("loop") or with padding around attention ("gather"); else all is padded ("pad"). Returns packed rows."""

    def __init__(self, tensors, config, dtype, batch, attend, form):
        super().__init__()
        take, size = Take(tensors, dtype), config["hidden_size"]
        eps = config.get("layer_norm_eps", 1e-12)
        self.batch, self.form, self.heads, self.size = batch, form, config["num_attention_heads"], size
        self.attends = [attend(b, dtype) for b in self.parts()]
        e = "embeddings."
        self.words = take.tensor(e + "word_embeddings.weight")
        self.positions = take.tensor(e + "position_embeddings.weight")
        self.kind = nn.Parameter(take.tensor(e + "token_type_embeddings.weight")[0], requires_grad=False)
        self.norm = take.norm(e + "LayerNorm", size, eps)
        self.layers = nn.ModuleList(Layer(take, k, size, config["intermediate_size"], eps)
                                    for k in range(config["num_hidden_layers"]))

    def parts(self):
        b = self.batch
        return [Batch([x], b.table) for x in b.numbers] if self.form == "loop" else [b]

    def attend_padded(self, qkv, n, attend):
        q, k, v = qkv.view(-1, n, 3, self.heads, self.size // self.heads).permute(2, 0, 3, 1, 4)
        return attend(q, k, v).transpose(1, 2).reshape(-1, self.size)

    def attention(self, qkv):
        if self.form == "loop":
            pieces = torch.split(qkv, self.batch.counts)
            return torch.cat([self.attend_padded(x, len(x), attend)
                              for x, attend in zip(pieces, self.attends)])
        if self.form == "gather":
            return self.attend_padded(qkv[self.batch.source], self.batch.longest, self.attends[0])[self.batch.slot]
        return self.attend_padded(qkv, self.batch.longest, self.attends[0])

    def forward(self, ids, at):
        x = self.norm(self.words[ids] + self.positions[at] + self.kind)
        for layer in self.layers:
            x = layer.rest(x, self.attention(layer.qkv(x)))
        return x[self.batch.slot] if self.form == "pad" and self.batch.mixed else x

    def inputs(self):
        b = self.batch
        if self.form != "pad":
            return b.packed_ids, b.positions
        size = len(b.numbers) * b.longest
        ids = torch.zeros(size, dtype=torch.long)
        ids[b.slot] = b.packed_ids
        return ids, torch.arange(b.longest).repeat(len(b.numbers))
