# SPDX-License-Identifier: Apache-2.0
"""A plain BERT in torch for the tests: any mask, softmax or sparsegen, every head. Clarity before speed."""
import json
import math

import numpy
import torch
import torch.nn.functional as F

from bert_folder import SPECIAL, make_folder, read_safetensors, write_safetensors  # noqa: F401


class Bert:
    """dtype float64 is the oracle; bfloat16 is what others do, every tensor in that type."""
    bias = None  # [layers or 1, heads, >= n, >= n]: added to the scores

    def __init__(self, folder, dtype=torch.float64):
        with open(folder + "/config.json") as f:
            self.c = json.load(f)
        self.dtype, self.t = dtype, {}
        for name, x in read_safetensors(folder + "/model.safetensors").items():
            if x.dtype != numpy.int64:
                self.t[name.removeprefix("bert.")] = torch.tensor(x).to(dtype)

    def linear(self, name, x):
        return F.linear(x, self.t[name + ".weight"], self.t[name + ".bias"])

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.t[name + ".weight"], self.t[name + ".bias"],
                            self.c.get("layer_norm_eps", 1e-12))

    def act(self, x):
        kind = self.c.get("hidden_act", "gelu")
        return {"gelu": F.gelu, "gelu_new": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu,
                "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}[kind](x)

    @staticmethod
    def probabilities(s, active, sparsegen):
        """s: [heads, n, n]; rows without an active key are zero."""
        if sparsegen is None:
            some = active.any(-1, keepdim=True)
            return torch.softmax(s.masked_fill(~active & some, -math.inf), -1) * some
        s = s.masked_fill(~active, -math.inf)
        z, _ = torch.sort(s / (1 - sparsegen), -1, descending=True)
        z = torch.where(torch.isinf(z), torch.full_like(z, -1e9), z)
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        total = torch.cumsum(z, -1)
        support = (1 + k * z > total) & (z > -1e8)
        size = support.sum(-1, keepdim=True)
        tau = (total.gather(-1, (size - 1).clamp(min=0)) - 1) / size.clamp(min=1)
        return torch.where(active, (s / (1 - sparsegen) - tau).clamp(min=0), torch.zeros_like(s))

    def hidden(self, ids, types, mask=None, sparsegen=None, keep=None, drop=None):
        """One sequence: [n, H]. mask: bool [layers or 1, heads or 1, >= n, >= n]. keep: list that gets P.
        drop.hidden(x, site) and drop.attention(p, layer): dropout."""
        dropped = drop.hidden if drop else lambda x, site: x
        n, c, t = len(ids), self.c, self.t
        words = F.embedding(torch.tensor(ids), t["embeddings.word_embeddings.weight"], padding_idx=c.get("pad_token_id", 0))
        x = (words + t["embeddings.position_embeddings.weight"][:n]
             + t["embeddings.token_type_embeddings.weight"][types])
        x = dropped(self.norm("embeddings.LayerNorm", x), 0)
        heads = c["num_attention_heads"]
        split = lambda y: y.view(n, heads, -1).transpose(0, 1)
        for k in range(c["num_hidden_layers"]):
            p = f"encoder.layer.{k}."
            q, key, v = (split(self.linear(p + "attention.self." + part, x))
                         for part in ("query", "key", "value"))
            active = torch.ones(1, n, n, dtype=torch.bool)
            if mask is not None:
                active = torch.tensor(mask[min(k, len(mask) - 1)][:, :n, :n])
            scores = q @ key.transpose(1, 2) / math.sqrt(q.shape[-1])
            if self.bias is not None:
                scores = scores + self.bias[min(k, len(self.bias) - 1)][:, :n, :n]
            prob = self.probabilities(scores, active, sparsegen)
            if keep is not None:
                keep.append(prob)
            if drop:
                prob = drop.attention(prob, k)
            o = (prob @ v).transpose(0, 1).reshape(n, -1)
            o = dropped(self.linear(p + "attention.output.dense", o), 1 + 2 * k)
            x = self.norm(p + "attention.output.LayerNorm", o + x)
            y = self.linear(p + "output.dense", self.act(self.linear(p + "intermediate.dense", x)))
            x = self.norm(p + "output.LayerNorm", dropped(y, 2 + 2 * k) + x)
        return x

    def pooled(self, x):
        return torch.tanh(self.linear("pooler.dense", x[0]))

    def words(self, x):
        y = self.norm("cls.predictions.transform.LayerNorm",
                      self.act(self.linear("cls.predictions.transform.dense", x)))
        own = self.t.get("cls.predictions.decoder.weight", self.t["embeddings.word_embeddings.weight"])
        return F.linear(y, own, self.t["cls.predictions.bias"])
