#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train_torch.py CASE: seconds and memory of a step of transformers' BertForMaskedLM in torch: autocast bf16, each layer compiled,
masked rows gathered before the head, fused AdamW, gradients clipped. Attention is SDPA, or FlexAttention where the mask is a longformer. CASE is JSON: size, batch, n,
mask, attention_dropout, steps, vocabulary, device. Prints one JSON object.
"""
import json
import pathlib
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2] / "compare")  # in place of this folder, whose names are common
import torch  # noqa: E402
import transformers  # noqa: E402
from bert_train_torch import masked_loss  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402

WARM = 5  # steps that are not timed: compilation, the allocator


def longformer(mask):
    """(window, number of global tokens) or None."""
    found = re.fullmatch(r"longformer\((\d+),(\d+)\)", mask)
    return (int(found[1]), int(found[2])) if found else None


def use_flex(n, window, globals_, device):
    """Registers FlexAttention over the mask under a name of transformers. The gallery draws global tokens; here as many lie
    evenly."""
    is_global = torch.zeros(n, dtype=torch.bool, device=device)
    is_global[[(k + 1) * n // (globals_ + 1) for k in range(globals_)]] = True

    def allowed(b, h, i, j):
        return ((i - j).abs() <= window) | is_global[i] | is_global[j]
    block_mask = flex.create_block_mask(allowed, None, None, n, n, device=device)

    def attend(module, query, key, value, attention_mask, scaling=None, **named):
        out = flex.flex_attention(query, key, value, block_mask=block_mask, scale=scaling)
        return out.transpose(1, 2).contiguous(), None
    transformers.AttentionInterface.register("flex_mask", attend)
    transformers.AttentionMaskInterface.register("flex_mask", lambda *a, **named: None)
    return "flex_mask"


def model_of(case, device):
    layers, hidden, heads = (12, 768, 12) if case["size"] == "base" else map(int, case["size"].split("x"))
    shape = longformer(case["mask"])
    attention = use_flex(case["n"], *shape, device) if shape else "sdpa"
    config = transformers.BertConfig(
        vocab_size=case["vocabulary"], hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden,
        max_position_embeddings=case["n"], attention_probs_dropout_prob=case["attention_dropout"], attn_implementation=attention)
    model = transformers.BertForMaskedLM(config).to(device).train()
    if device == "cuda":
        for layer in model.bert.encoder.layer:
            layer.compile()
    return model, "FlexAttention" if shape else "SDPA"


def batch_of(case, device):
    ids = torch.randint(5, case["vocabulary"], (case["batch"], case["n"]), device=device)
    masked = torch.rand(ids.shape, device=device) < 0.15
    masked[0, 0] = True
    rows = masked.flatten().nonzero().flatten()
    return ids, rows, ids.flatten()[rows]


def stepper(case, device):
    """A function that makes a step, and the name of attention."""
    model, attention = model_of(case, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids, rows, labels = batch_of(case, device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = masked_loss(model.bert(input_ids=ids).last_hidden_state, rows, labels, model.cls)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return step, attention


def main():
    case = json.loads(sys.argv[1])
    device = "cuda" if case["device"] == "cuda" else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    torch.manual_seed(1)
    step, attention = stepper(case, device)
    seconds = []
    for _ in range(WARM + case["steps"]):
        begin = time.perf_counter()
        step()
        wait()
        seconds.append(time.perf_counter() - begin)
    memory = torch.cuda.max_memory_allocated() if device == "cuda" else None
    print(json.dumps({"step_s": statistics.median(seconds[WARM:]), "memory_bytes": memory, "attention": attention}))


if __name__ == "__main__":
    main()
