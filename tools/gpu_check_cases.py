# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu-check goes through: masks, lengths, head dimensions and variants of the kernels."""
import shutil

GALLERY = ("star", "logsparse", "strided", "fixed", "longformer", "bigbird", "fairseq-fixed",
           "blockbert-2", "blockbert-3", "dam-s-example", "dense", "causal")
TIMED = ("star", "distance(1,2,4,7,12)|global(0,-1)-diagonal(0)", "longformer(64,2)", "fixed(45,1)",
         "logsparse", "strided(45)", "bigbird(1,2,2)", "blockbert-2", "blockbert-3")
TIMED_SHORT = GALLERY[:-2]  # at n=128 the masks' own parameters
BLOCKS = ("blockbert-2", "blockbert-3")
# stage: masks by length, what other lengths have last. `time` has the whole gallery beside the long masks.
TIMED_AT = {
    "time": {128: GALLERY, 1024: BLOCKS, None: tuple(dict.fromkeys(TIMED + GALLERY))},
    "peers": {128: TIMED_SHORT, 1024: BLOCKS, None: TIMED},
}
TIMED_LENGTHS = (128, 512, 1024, 2048)
HEAD_DIMS = (16, 32, 40, 72, 80, 96, 128, 200, 256)


# Whole variants of the kernels: mask, n, dtype, head dimension, options, and what the plan for sm_90a then holds.
TALL, CUT, RESUMED = ({"BLOCK_ROWS": 128}, {"CUT_ROWS": 1}, {"SHARED_ROWS": 1})
DROPOUT, SPARSEGEN = ("--dropout",), ("--transform", "sparsegen=-4")
SHARED_KEYS = ("--kv-heads", "1")
ROW_PASS = "rows(5,2047)|columns(7)|diagonal(0)"
VARIANTS = (
    ("dense", 1000, "bf16", 128, (), TALL),
    ("causal", 1000, "bf16", 128, (), TALL),
    ("window(128)", 1000, "bf16", 128, (), TALL),
    ("longformer", 1000, "bf16", 128, (), {"BLOCK_ROWS": 64}),
    ("dense", 1000, "bf16", 256, (), TALL),
    ("causal", 1000, "bf16", 256, (), TALL),
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
)
# Of these, under the sanitizer: tall, cut, with dropout, with sparsegen, f16, shared keys, other numbers of keys.
SANITIZED = (1, 8, 9, 11, 14, 17, 18)


def of_verify(run, verify_one):
    """{name: what verifies it}."""
    masks = run.o.masks or GALLERY
    cases = {}

    def add(mask, n, dtype, *rest, **more):
        name = " ".join([mask, f"n={n}", dtype, *(f"D={r}" for r in rest),
                         *(f"{k}={' '.join(map(str, v))}" for k, v in more.items())])
        cases[name] = lambda: verify_one(run, mask, n, dtype, *rest, **more)

    for n in run.o.length or (128, 512, 1000):
        for mask in masks:
            for dtype in ("f32", "bf16", "f16"):
                add(mask, n, dtype)
    short = min(run.o.length or (128,))
    for head_dim in HEAD_DIMS:
        add_head_dim(add, masks[0], short, head_dim, ("bf16", "f16", "f32", "tf32"))
    for options in (("--dropout",), ("--transform", "sparsegen=-4"), ("--soft", "bias"), ("--soft", "scale"), SHARED_KEYS):
        for mask in masks[:4]:
            add(mask, short, "bf16", options=options)
    for mask in masks[:4]:
        add(mask, short, "tf32")
    chosen = [v for v in VARIANTS if wanted(run.o, v)]
    for mask, n, dtype, head_dim, options, _ in chosen:
        add(mask, n, dtype, head_dim, **with_options(options))
    tool = shutil.which("compute-sanitizer")
    if tool and run.o.device == "cuda":
        add_sanitized(add, masks, short, tool)
        add_sanitized_variants(add, [v for k, v in enumerate(VARIANTS) if k in SANITIZED and v in chosen], tool)
    return cases


def add_head_dim(add, mask, short, head_dim, dtypes, **more):
    """Whole heads on chip where they fit, and streamed; floats stream at any length."""
    add(mask, short, "bf16", head_dim, **more)
    for dtype in dtypes:
        add(mask, 4 * short, dtype, head_dim, **more)


def wanted(o, variant):
    return (not o.masks or variant[0] in o.masks) and (not o.length or variant[1] in o.length)


def with_options(options):
    return {"options": options} if options else {}


def sanitizers(tool):
    return [(tool, "--tool", check, "--error-exitcode", "9") for check in ("memcheck", "racecheck")]


def add_sanitized_variants(add, variants, tool):
    for under in sanitizers(tool):
        for mask, n, dtype, head_dim, options, _ in variants:
            add(mask, n, dtype, head_dim, **with_options(options), under=under)


def add_sanitized(add, masks, short, tool):
    """Every mask with heads on chip and streamed, every head dimension, each soft mask; the float kernels once."""
    for under in sanitizers(tool):
        for mask in masks:
            add(mask, short, "bf16", under=under)
            add(mask, 4 * short, "bf16", under=under)
        for head_dim in HEAD_DIMS:
            add_head_dim(add, masks[0], short, head_dim, ("bf16",), under=under)
        for kind in ("bias", "scale"):
            add(masks[0], short, "bf16", options=("--soft", kind), under=under)
        for dtype in ("f32", "tf32"):
            add(masks[0], short, dtype, under=under)
