#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of transformers, another mask, and what that costs and gives: in cells (# %%) for a notebook, or as a script that writes two
pictures, mask.png and, where matplotlib is, times.png.

usage: faster_model.py [--quick] [FOLDER]        # FOLDER for the pictures, . by default

needs: python3 with maskc, torch 2.10 or later and transformers.
"""
# %% A model: here with random weights, so that nothing is fetched
import copy
import pathlib
import statistics
import sys
import time

import torch
import transformers

import maskc

quick = "--quick" in sys.argv
folder = pathlib.Path(next((word for word in sys.argv[1:] if not word.startswith("-")), "."))
lengths, width, layers = ([128, 256], 64, 2) if quick else ([512, 1024, 2048], 384, 4)
torch.manual_seed(1)
config = transformers.BertConfig(vocab_size=1000, hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 32,
                                 intermediate_size=4 * width, max_position_embeddings=lengths[-1])
model = transformers.AutoModel.from_config(config, attn_implementation="sdpa").eval()

# %% The same model, exactly, through maskc: all tokens see all tokens
exact = transformers.AutoModel.from_config(copy.deepcopy(config), attn_implementation="maskc").eval()  # models keep the config they get
exact.load_state_dict(model.state_dict())
ids = torch.randint(1000, (1, lengths[0]))
with torch.no_grad():
    a, b = (m(input_ids=ids).last_hidden_state for m in (model, exact))
print(f"maskc and SDPA on the model's own mask differ by {(a - b).abs().max():.1e}")
assert torch.allclose(a, b, atol=1e-4)

# %% Another mask: this changes the model, so it is trained, or tuned, with it
mask = "window(32) | global(0)"
picture = maskc.show(mask, n=lengths[0])
picture.save(folder / "mask.png")
print(picture)
sparse = maskc.apply(exact, mask)


# %% Time of a forward pass, interleaved
def seconds(m, n):
    begin = time.perf_counter()
    with torch.no_grad():
        m(input_ids=torch.randint(1000, (1, n)))
    return time.perf_counter() - begin


times = {"SDPA, all tokens": [], f"maskc, {mask}": []}
for n in lengths:
    samples = {name: [] for name in times}
    for turn in range(4):
        for name, m in zip(times, (model, sparse)):
            samples[name].append(seconds(m, n))
    for name, taken in samples.items():
        times[name].append(1e3 * statistics.median(taken[1:]))  # the first call compiles
print(f"{'n':>6}  " + "  ".join(f"{name:>28}" for name in times) + "   (ms)")
for k, n in enumerate(lengths):
    print(f"{n:6}  " + "  ".join(f"{taken[k]:28.1f}" for taken in times.values()))

# %% A training step goes the same way
sparse.train()
optimizer = torch.optim.AdamW(sparse.parameters(), 1e-4)
loss = sparse(input_ids=ids).last_hidden_state.square().mean()
loss.backward()
optimizer.step()
print(f"a training step: loss {loss.item():.3f}, {sum(p.grad is not None for p in sparse.parameters())} gradients")

# %% The times, drawn
try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("no matplotlib: no times.png")
else:
    for name, taken in times.items():
        pyplot.plot(lengths, taken, marker="o", label=name)
    pyplot.xlabel("tokens"), pyplot.ylabel("ms, forward"), pyplot.ylim(bottom=0), pyplot.legend()
    pyplot.savefig(folder / "times.png", dpi=120)
