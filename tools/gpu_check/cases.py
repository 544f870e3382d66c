# SPDX-License-Identifier: Apache-2.0
"""Kernels that the stages verify and sanitize compile: masks, lengths, head dimensions and variants."""
import dataclasses

GALLERY = ("star", "logsparse", "strided", "fixed", "longformer", "bigbird", "fairseq-fixed",
           "blockbert-2", "blockbert-3", "dam-s-example", "dense", "causal")
# The emulation is slow: these by default, and these head dimensions always.
EMULATED_MASKS, EMULATED_LENGTHS, EMULATED_HEAD_DIMS = ("star", "longformer"), (32,), (40, 128)
LENGTHS = (128, 512, 1000)
DTYPES = ("f32", "bf16", "f16")
HEAD_DIMS = (16, 32, 40, 72, 80, 96, 128, 200, 256)
ANY_LENGTH, OTHER_LENGTHS = "window(64)|global(0)", (1, 2, 65, 3000, 4096, 8192)
DROPOUT, SPARSEGEN = ("--dropout",), ("--transform", "sparsegen=-4")
SHARED_KEYS = ("--kv-heads", "1")
OPTIONS = (DROPOUT, SPARSEGEN, ("--soft", "bias"), ("--soft", "scale"), SHARED_KEYS)

# Whole variants of cuda_tiled and cuda_simt: mask, n, dtype, head dimension, options, and what the plan for sm_90a then holds.
TALL, CUT, RESUMED = ({"BLOCK_ROWS": 128}, {"CUT_ROWS": 1}, {"SHARED_ROWS": 1})
ROW_PASS = "rows(5,2047)|columns(7)|diagonal(0)"
TILED = ("--family", "cuda_tiled")


def tiled(rows):
    """Rows of halves, with the family that they are for: an H100 has another for most of them."""
    return tuple((*r[:4], (*TILED, *r[4]), r[5]) if r[2] in ("bf16", "f16") else r for r in rows)


VARIANTS = tiled((
    ("dense", 1000, "bf16", 128, (), TALL),
    ("causal", 1000, "bf16", 128, (), TALL),
    ("window(256)", 1000, "bf16", 128, (), TALL),
    ("longformer", 1000, "bf16", 128, (), {"BLOCK_ROWS": 64}),
    ("dense", 1000, "bf16", 256, (), TALL),
    ("causal", 1000, "bf16", 64, ("--forward-only",), TALL),  # warps of 32 rows
    ("longformer", 1000, "bf16", 256, (), {"BLOCK_ROWS": 64}),
    ("strided(45)", 2048, "bf16", 64, (), RESUMED),
    (ROW_PASS, 2048, "bf16", 64, (), CUT),
    ("star", 512, "bf16", 64, DROPOUT, {"DROPOUT": 1}),
    ("star", 512, "f32", 64, DROPOUT, {"DROPOUT": 1}),
    ("longformer", 512, "bf16", 64, SPARSEGEN, {"TRANSFORM": "ABI_SPARSEGEN"}),
    ("longformer", 512, "f32", 64, SPARSEGEN, {"TRANSFORM": "ABI_SPARSEGEN"}),
    ("longformer", 512, "tf32", 64, SPARSEGEN, {"TRANSFORM": "ABI_SPARSEGEN"}),
    ("bigbird", 512, "f16", 64, DROPOUT, {"DTYPE": "ABI_F16"}),
    ("star", 512, "bf16", 64, ("--soft", "bias"), {"BIAS": 1}),
    ("star", 512, "bf16", 64, ("--soft", "scale"), {"BIAS": 2}),
    ("longformer", 512, "bf16", 64, SHARED_KEYS, {"GROUPED": 1}),
    ("longformer", 512, "f32", 64, (*SHARED_KEYS, "--kv-length", "700", "--align", "end"), {"GROUPED": 1, "RECTANGULAR": 1}),
    ("strided(45)", 1900, "f16", 64, (*SHARED_KEYS, "--kv-length", "2048"), {"GROUPED": 1, "RECTANGULAR": 1}),
))
# cuda_hopper's, the shapes of all passes first: mask, n, dtype, head dimension, options, and the header's numbers.
HOPPER, CAPABILITY = ("--family", "cuda_hopper"), "9.0"  # of the GPU that it runs on
WIDE, DEEP, NARROW = ({"FORWARD_WARPGROUPS": 3, "QUERY_WARPGROUPS": 2, "KEY_WARPGROUPS": 2},
                      {"FORWARD_WARPGROUPS": 2, "QUERY_SLOTS": 2, "KEY_SLOTS": 2},
                      {"FORWARD_WARPGROUPS": 1, "QUERY_WARPGROUPS": 1, "KEY_WARPGROUPS": 1})
SHORTER_KEYS = ("--kv-length", "700", "--align", "end")
HOPPER_VARIANTS = (
    ("dense", 2048, "bf16", 64, (), WIDE),
    ("window(64)", 1000, "bf16", 64, (), NARROW),
    ("longformer", 1000, "bf16", 64, (), {}),
    ("dense", 2048, "bf16", 128, (), DEEP),
    ("window(100)", 2048, "bf16", 64, (), {"FORWARD_WARPGROUPS": 4}),
    ("causal", 1000, "f16", 64, (), {"DTYPE": "ABI_F16"}),
    ("longformer", 1000, "f16", 128, (), DEEP),
    ("longformer", 1000, "bf16", 96, (), {"HEAD_DIM": 96}),
    ("dense", 1000, "bf16", 64, DROPOUT, {"DROPOUT": 1}),
    ("longformer", 1000, "bf16", 64, DROPOUT, {"DROPOUT": 1}),
    ("bigbird", 1000, "bf16", 128, DROPOUT, {"DROPOUT": 1}),
    ("longformer", 1000, "bf16", 64, SHARED_KEYS, {"GROUPED": 1}),
    ("dense", 1000, "f16", 96, SHARED_KEYS, {"GROUPED": 1}),
    ("causal", 1000, "bf16", 64, SHORTER_KEYS, {"RECTANGULAR": 1}),
    ("longformer", 1000, "bf16", 128, (*SHARED_KEYS, *SHORTER_KEYS), {"GROUPED": 1, "RECTANGULAR": 1}),
    ("longformer-cls(64,2)", 8192, "bf16", 64, (), {"CUT_ROWS": 1}),
    ("star", 1000, "bf16", 64, (), {}),
    ("bigbird", 512, "bf16", 64, (), {}),
    ("blockbert-2", 1000, "bf16", 64, (), {}),
    ("dam-s-example", 1000, "f16", 64, (), {}),
    ("strided", 512, "bf16", 40, (), {"HEAD_DIM": 40}),
    ("longformer", 100, "bf16", 64, (), {}),
)
# VARIANTS under the sanitizer: tall, cut, with dropout, with sparsegen, f16, shared keys, other numbers of keys.
SANITIZED = (1, 8, 9, 11, 14, 17, 18)


@dataclasses.dataclass(frozen=True)
class Kernel:
    mask: str
    length: int
    dtype: str
    head_dim: int = 64
    options: tuple = ()

    @property
    def name(self):
        return " ".join([self.mask, f"n={self.length}", self.dtype, f"D={self.head_dim}", *self.options])

    @property
    def heads(self):
        return 12 if self.mask.startswith(("blockbert", "dam-s")) else 3

    def compile_options(self):
        return [self.mask, "-n", self.length, "--heads", self.heads, "--dtype", self.dtype,
                "--head-dim", self.head_dim, *self.options]


def chosen_masks(o):
    return tuple(o.masks or (EMULATED_MASKS if o.device == "emulated" else GALLERY))


def chosen_lengths(o, default=LENGTHS):
    return tuple(o.length or (EMULATED_LENGTHS if o.device == "emulated" else default))


def wanted(o, kernel):
    """True unless --masks or -n exclude it; the emulated device runs no variant unless asked."""
    narrow = o.device == "emulated"
    return ((kernel.mask in o.masks if o.masks else not narrow) and
            (kernel.length in o.length if o.length else not narrow))


def of_head_dim(mask, short, head_dim, dtypes):
    """The resident family where heads fit in shared memory, and longer masks of all dtypes."""
    return [Kernel(mask, short, "bf16", head_dim), *(Kernel(mask, 4 * short, d, head_dim) for d in dtypes)]


def hopper(o):
    """Kernels of cuda_hopper, where the GPU is known to run them or the plan is for an H100."""
    there = o.device == "cuda" and getattr(o, "capability", CAPABILITY) == CAPABILITY
    made = [Kernel(*v[:4], (*HOPPER, *v[4])) for v in HOPPER_VARIANTS] if there else []
    return [k for k in made if wanted(o, k)]


def variants(o):
    return [k for k in (Kernel(*v[:5]) for v in VARIANTS) if wanted(o, k)]


def verified(o):
    """Kernels of the stage verify: those of cuda_hopper, then the most common first; no kernel twice."""
    masks, lengths = chosen_masks(o), chosen_lengths(o)
    short = min(chosen_lengths(o, (128,)))
    made = hopper(o) + [Kernel(m, n, d) for n in lengths for m in masks for d in DTYPES]
    some = masks[:1 if o.device == "emulated" else 4]
    made += [Kernel(m, short, "bf16", options=x) for x in OPTIONS for m in some]
    made += [Kernel(m, short, "tf32") for m in some] + variants(o)
    for head_dim in EMULATED_HEAD_DIMS if o.device == "emulated" else HEAD_DIMS:
        made += of_head_dim(masks[0], short, head_dim, ("bf16", "f16", "f32", "tf32"))
    made += [k for k in (Kernel(ANY_LENGTH, n, d) for n in OTHER_LENGTHS for d in DTYPES) if wanted(o, k)]
    return list(dict.fromkeys(made))


def sanitized(o):
    """Kernels of the stage sanitize: one of each kind first, then every mask in the resident and the tiled family,
    every head dimension and each kind of soft mask."""
    masks, short = chosen_masks(o), min(chosen_lengths(o, (128,)))
    first = [Kernel(m, short, "bf16") for m in masks[-2:] + masks[:3]] + [Kernel(masks[0], short, "f32")]
    first += [k for n, k in enumerate(Kernel(*v[:5]) for v in VARIANTS) if n in SANITIZED and wanted(o, k)]
    first += [Kernel(masks[0], short, "bf16", options=("--soft", kind)) for kind in ("bias", "scale")]
    rest = [Kernel(m, n, "bf16") for m in masks for n in (short, 4 * short)]
    rest += [k for d in HEAD_DIMS for k in of_head_dim(masks[0], short, d, ("bf16",))]
    return list(dict.fromkeys([*first, *rest, Kernel(masks[0], short, "tf32")]))
