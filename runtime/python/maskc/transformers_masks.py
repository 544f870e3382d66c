# SPDX-License-Identifier: Apache-2.0
"""from_transformers(): the masks that configurations of transformers state."""
import random

from ._library import Error
from .runs import from_blocks

MOST_BITS = 1 << 24  # of an array

# model_type of families with sliding windows. Their models ask transformers.masking_utils for these masks and no others.
ENCODERS = {"modernbert", "embedding_gemma2_text", "openai_privacy_filter", "ultrabert"}
ALIKE = {"ministral3", "mistral", "mixtral", "openai_privacy_filter", "phi3", "phimoe", "qwen3_moe", "starcoder2"}  # layer_types is not read
DECODERS = (ALIKE - ENCODERS) | {
    "afmoe", "cohere2", "cohere2_moe", "cwm", "dots1", "exaone4", "exaone_moe", "gemma2", "gemma3_text", "gpt_oss", "granite_swa",
    "granitemoe_swa", "mellum", "ministral", "modernbert-decoder", "olmo3", "qwen2", "qwen2_moe", "qwen3", "smollm3", "vaultgemma"}
INSTEAD = "use attn_implementation='maskc', by which the model itself states it, or give the mask as text"


def layer_lines(texts):
    """In the mask language, a line for each layer; one expression where all are alike."""
    if len(set(texts)) == 1:
        return texts[0]
    return "\n".join([f"layers {len(texts)}"] + [f"layer {k}: {text}" for k, text in enumerate(texts)]) + "\n"


def longformer(config, n, global_tokens, seed):
    """Windows of attention_window, half on each side; globals only where asked, as the model does not fix them."""
    windows = config.attention_window
    windows = [windows] * config.num_hidden_layers if isinstance(windows, int) else windows
    extra = f" | global({','.join(map(str, global_tokens))})" if global_tokens else ""
    return layer_lines([f"window({w // 2}){extra}" for w in windows])


def big_bird_row(i, blocks, count, draw):
    """Blocks that block row i sees."""
    if i in (0, blocks - 1):
        return set(range(blocks))
    near = {0, blocks - 1, i - 1, i, i + 1}
    left = [j for j in range(1, blocks - 1) if j not in near]
    return near | set(draw.sample(left, min(count, len(left))))


def big_bird(config, n, global_tokens, seed):
    """bool [L, H, n, n], or Runs where that is large: first and last block global, three blocks around, random ones drawn from
    the seed."""
    import numpy
    n = n or config.max_position_embeddings
    size = config.block_size
    if n % size:
        raise Error(2, f"n: {n} is not a multiple of BigBird's block_size {size}")
    if config.attention_type != "block_sparse":
        return "dense"
    draw, blocks = random.Random(seed), n // size
    bits = numpy.zeros((config.num_hidden_layers, config.num_attention_heads, blocks, blocks), bool)
    for layer in bits:
        for head in layer:
            for i in range(blocks):
                head[i, sorted(big_bird_row(i, blocks, config.num_random_blocks, draw))] = True
    if bits.size * size * size > MOST_BITS:
        return from_blocks(bits, size)
    return bits.repeat(size, -1).repeat(size, -2)


def varies(config):
    """True if the configuration has a window for each layer, and none for the model."""
    return "sliding_window" in (getattr(config, "per_layer_attributes", None) or ())


def check_windows(config):
    """Refuses configurations that do not state the model's mask."""
    kind = config.model_type
    if kind not in ENCODERS | DECODERS:
        raise Error(2, f"from_transformers: the masks of {kind} are not known: {INSTEAD}")
    if varies(config):
        raise Error(2, f"from_transformers: windows that per_layer_config states are not supported: {INSTEAD}")
    if getattr(config, "use_bidirectional_attention", None) and kind == "gemma2":
        raise Error(2, f"from_transformers: use_bidirectional_attention of gemma2 differs by attention implementation: {INSTEAD}")
    if getattr(config, "is_causal", True) is False and kind in DECODERS and version() < 5:
        raise Error(2, f"from_transformers: is_causal=False before transformers 5 is not supported: {INSTEAD}")


def version():
    import transformers
    return int(transformers.__version__.split(".", 1)[0])


def layer_masks(config):
    """{a layer's type: its mask}, as transformers.masking_utils makes it. Windows without a direction include their edge."""
    window = config.sliding_window
    if config.model_type in ENCODERS or not getattr(config, "is_causal", True):
        return {"sliding_attention": f"window({window})", "full_attention": "dense"}
    if config.model_type == "gemma3_text" and config.use_bidirectional_attention:
        return {"sliding_attention": f"window({window - 1})", "full_attention": "dense"}
    return {"sliding_attention": f"causal & window({window - 1})", "full_attention": "causal"}


def windowed(config, n, global_tokens, seed):
    """Layers of sliding windows: of encoders on both sides, else backwards."""
    check_windows(config)
    types = None if config.model_type in ALIKE else getattr(config, "layer_types", None)
    known = layer_masks(config)
    types = types or ["sliding_attention"] * config.num_hidden_layers
    for name in types:
        if name not in known:
            raise Error(2, f"from_transformers: layers of type {name} are not known: {INSTEAD}")
    return layer_lines([known[name] for name in types])


def from_transformers(config, n: "int | None" = None, global_tokens=(), seed: int = 1):
    """The mask of a model's configuration, for compile() and apply(): text, or for BigBird a bool array [L, H, n, n]; maskc.Runs
    where that has more than 2^24 entries.

    Longformer: its windows; global_tokens are made global where given. BigBird: its structure at length n
    (max_position_embeddings where None) with random blocks drawn from the seed; transformers draws its own, and in
    evaluation counts some keys several times, which no mask does. ModernBERT and other families with sliding windows whose
    masks are known: local and global layers. Other models are refused.
    """
    kind = getattr(config, "model_type", None)
    if kind == "longformer":
        return longformer(config, n, global_tokens, seed)
    if kind == "big_bird":
        return big_bird(config, n, global_tokens, seed)
    if varies(config) or getattr(config, "sliding_window", None):
        return windowed(config, n, global_tokens, seed)
    raise Error(2, f"from_transformers: {kind or type(config).__name__} states no mask; Longformer, BigBird, ModernBERT and models with a sliding window do")
