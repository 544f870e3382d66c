# SPDX-License-Identifier: Apache-2.0
"""The contenders: each a way to compute masked attention on tensors [B, H, N, D]. One row of CONTENDERS
(or one block size of FlexAttention) is one contender: build(case) -> attend(q, k, v), raising
Unavailable with a reason where this machine or PyTorch cannot. What depends on the mask alone (a
compiled kernel, a block mask) is built there and never timed; its time is reported beside.
"""
import functools
import logging
import math

import torch
import torch.nn.functional as F

DTYPE_NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


class Unavailable(Exception):
    """Why a contender cannot take part."""


class Case:
    """One problem: inputs [B, H, N, D] (views of [B, N, H, D] unless heads_first), and the mask, a
    bool table [1 or H, N, N] on the device."""

    def __init__(self, table, text, options, n, dtype, seed=1):
        self.table, self.text, self.n, self.dtype = table, text, n, dtype
        self.batch, self.head_dim = options.batch, options.head_dim
        self.heads = options.heads if table.shape[0] == 1 else table.shape[0]
        self.device, self.threads = options.device, options.threads
        self.scale = 1 / math.sqrt(self.head_dim)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.heads_first = options.layout == "bhnd"
        self.inputs = [self.new_inputs()]
        self.q, self.k, self.v, self.grad = self.inputs[0]

    def sets(self, count):
        """So many sets of inputs, the same for every contender."""
        while len(self.inputs) < count:
            self.inputs.append(self.new_inputs())
        return self.inputs[:count]

    def new_inputs(self):
        shape = (self.batch, self.n, self.heads, self.head_dim)
        all_four = torch.randn(4, *shape, generator=self.generator, device=self.device).to(self.dtype)
        all_four = all_four.transpose(2, 3)
        if self.heads_first:
            all_four = all_four.contiguous()
        return all_four.unbind(0)

    def described(self):
        """For peers_plan."""
        return {"length": self.n, "dtype": DTYPE_NAMES[self.dtype], "head_dim": self.head_dim, "batch": self.batch,
                "heads": self.heads if self.table.shape[0] == 1 else 0, "all_heads": self.heads,
                "device": self.device, "threads": self.threads}

    @property
    def bytes(self):
        return 8 * self.q.numel() * self.q.element_size()  # inputs, outputs and gradients

    def moved(self, direction):
        """Bytes that a pass cannot help reading and writing. Forward: Q, K, V and O; backward: those,
        dO and three gradients; and LSE in both."""
        tensors, statistics = {"forward": (4, 1), "backward": (8, 1), "both": (12, 2)}[direction]
        return (tensors * self.q.numel() * self.q.element_size() +
                statistics * 4 * self.batch * self.heads * self.n)


def build_own(mask=None):
    """Our own kernel, compiled for this machine; for `mask` in place of the case's."""
    def build(case, training):
        import maskc
        one_head = mask or case.table.shape[0] == 1
        kernel = maskc.compile(mask or case.text, n=case.n, dtype=DTYPE_NAMES[case.dtype], head_dim=case.head_dim,
                               device=case.device, target="cuda" if case.device == "cuda" else "cpu",
                               heads=case.heads if one_head else None, forward_only=not training)

        def attend(q, k, v):
            return maskc.attention(q, k, v, kernel)
        attend.load_s = kernel.load_s
        return attend
    return build


def build_sdpa(case, training):
    return F.scaled_dot_product_attention


def additive(table, dtype):
    """0 where the mask is on, else -inf: PyTorch makes this of a bool mask anew in each call."""
    return torch.zeros(table.shape, dtype=dtype, device=table.device).masked_fill_(~table, -math.inf)


def build_sdpa_masked(case, training):
    bias = additive(case.table[None], case.dtype)
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def build_sdpa_backend(backend, causal=False):
    """Dense or causal attention by one fused kernel of CUDA."""
    def build(case, training):
        if case.device != "cuda":
            raise Unavailable("CUDA only")
        from torch.nn.attention import SDPBackend, sdpa_kernel
        chosen = getattr(SDPBackend, backend)

        def attend(q, k, v):
            with sdpa_kernel(chosen):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return attend
    return build


def build_eager(case, training):
    """As models without a fused kernel do it: additive mask, softmax, three kernels."""
    bias = additive(case.table, case.dtype)

    def attend(q, k, v):
        return (q @ k.transpose(-2, -1) * case.scale + bias).softmax(-1) @ v
    return attend


def table_mod(table):
    """One code object for all masks: torch.compile guards the table's shape, not its content, so
    that a kernel is compiled once per (n, block size, pass) and not once per mask."""
    shared = table.shape[0] == 1
    flat = table[0] if shared else table

    def shared_mod(b, h, q, kv):
        return flat[q, kv]

    def headed_mod(b, h, q, kv):
        return flat[h, q, kv]
    return shared_mod if shared else headed_mod


def build_flex(block, tuned=True):
    """tuned: torch.compile tries several tilings, which needs minutes."""
    def build(case, training):
        from torch.nn.attention.flex_attention import create_block_mask
        if training and case.device == "cpu":
            raise Unavailable("PyTorch has no FlexAttention backward on CPU")
        heads = None if case.table.shape[0] == 1 else case.heads
        mask = create_block_mask(table_mod(case.table), None, heads, case.n, case.n,
                                 device=case.device, BLOCK_SIZE=block)
        kernel_options = block_options(block) if case.device == "cuda" else None
        compiled = compiled_flex(case.device, tuned)
        return lambda q, k, v: compiled(q, k, v, block_mask=mask, kernel_options=kernel_options)
    return build


def block_options(block):
    """Triton's tiles must divide the block. From 128 up they are left to PyTorch."""
    if block >= 128:
        return None
    names = ("fwd_BLOCK_M", "fwd_BLOCK_N", "bwd_BLOCK_M1", "bwd_BLOCK_N1", "bwd_BLOCK_M2",
             "bwd_BLOCK_N2")
    return dict.fromkeys(names, block)


@functools.cache
def compiled_flex(device, tuned):
    """One compiled function per process: torch keeps its variants."""
    from torch.nn.attention.flex_attention import flex_attention
    import torch._dynamo
    # It warns of a CUDA toolkit without a GPU, which is no news on a CPU.
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    # Past the limit torch would silently fall back to eager.
    torch._dynamo.config.recompile_limit = 1024
    torch._dynamo.config.accumulated_recompile_limit = 4096
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    mode = "max-autotune-no-cudagraphs" if device == "cuda" and tuned else None
    return torch.compile(flex_attention, dynamic=False, fullgraph=True, mode=mode)


OURS = ("ours", "ours-dense")

# name: (build, whether it computes the mask). Without the mask it is an anchor, checked as dense.
CONTENDERS = {
    "ours": (build_own(), True),
    "ours-dense": (build_own("dense"), False),
    "sdpa": (build_sdpa, False),
    "sdpa+mask": (build_sdpa_masked, True),
    "eager": (build_eager, True),
}
CUDA_CONTENDERS = {
    "sdpa-flash": (build_sdpa_backend("FLASH_ATTENTION"), False),
    "sdpa-cudnn": (build_sdpa_backend("CUDNN_ATTENTION"), False),
}


def contenders_for(device, blocks):
    """{name: (build, masked)} in the order in which they are run."""
    flex = {f"flex-{block}": (build_flex(block), True) for block in blocks}
    return CONTENDERS | (CUDA_CONTENDERS if device == "cuda" else {}) | flex
