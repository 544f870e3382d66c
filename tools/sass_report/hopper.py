# SPDX-License-Identifier: Apache-2.0
"""Counted launches of cuda_hopper beside its prototypes: issue slots of all warps by entry that the products compute, and
bytes that bulk loads bring to shared memory by tile of 64 x 32 entries."""
import classes
import entries
import report

TILE = 64 * 32  # entries
SHAPES = {512: "wide", 640: "four", 160: "narrow", 384: "wide", 256: "narrow"}  # threads of a block; 384 at D > 64: deep
ALIKE = {"attention_forward": "forward", "attention_dq": "dQ", "attention_dkv": "dK dV"}

# Prototypes by (mask, n, D) and (kernel, threads): slots an entry, bytes a tile. 12 heads, one sequence, bf16, two processors.
PROTOTYPES = {
    ("dense", 2048, 64): {
        ("attention_forward", 512): (0.2498, 2944), ("attention_forward", 640): (0.3094, 2176),
        ("attention_forward", 160): (0.3322, 8320), ("attention_dq", 384): (0.2503, 4480),
        ("attention_dq", 256): (0.2873, 8576), ("attention_dkv", 384): (0.3179, 4480), ("attention_dkv", 256): (0.3769, 8704)},
    ("dense", 2048, 128): {
        ("attention_forward", 384): (0.2855, 8448), ("attention_dq", 384): (0.4082, 8960), ("attention_dkv", 384): (0.5115, 8832)},
    ("window(256)", 2048, 64): {
        ("attention_forward", 512): (0.3043, 3492), ("attention_forward", 640): (0.3626, 3232), ("attention_forward", 160): (0.3727, 8735),
        ("attention_dq", 384): (0.3292, 5521), ("attention_dq", 256): (0.3479, 9713),
        ("attention_dkv", 384): (0.3861, 5206), ("attention_dkv", 256): (0.4266, 9480)},
    ("window(64)|columns(0,1)", 2048, 64): {
        ("attention_forward", 160): (0.4740, 8510), ("attention_dq", 256): (0.5125, 10624), ("attention_dkv", 256): (0.5350, 10752)},
    ("longformer-cls(64,2)", 2048, 64): {
        ("attention_forward", 512): (0.3635, 4196), ("attention_forward", 640): (0.4650, 4580),
        ("attention_forward", 160): (0.4597, 8498), ("attention_dq", 384): (0.4492, 6778),
        ("attention_dq", 256): (0.4953, 10200), ("attention_dkv", 384): (0.4997, 6233), ("attention_dkv", 256): (0.5655, 9605)},
}


def computed(record, kernel, head_dim):
    """Entries that a launch computes, by its products over ceil(D / 16) steps of 16: its own, and those of padding."""
    depth = sum(n * classes.depth(i) for i, n in zip(kernel.code, record["counts"]) if n)
    whole = 16 * -(-head_dim // 16)
    return entries.FRAGMENT * depth / (whole * entries.PRODUCTS[kernel.name])


def figures(record, kernel, head_dim, mask):
    """Figures of a counted launch of cuda_hopper, or None. mask: its source and length."""
    if kernel.name not in ALIKE or not entries.is_hopper(kernel.code):
        return None
    made = computed(record, kernel, head_dim)
    known = PROTOTYPES.get((mask.get("source"), mask.get("length"), head_dim), {}).get((kernel.name, record["threads"]))
    shape = "deep" if head_dim > 64 else SHAPES.get(record["threads"], "-")
    return {"shape": shape, "slots": sum(record["counts"]) / made, "bytes": record.get("copied", 0) / (made / TILE), "prototype": known}


def exp2_beside_products(code):
    """MUFU.EX2 between each wait for S and the next wait for all products. 0: softmax begins when P V has ended."""
    made, count = [], None
    for i in code:
        if i.name.startswith("WARPGROUP.DEPBAR"):
            made += [] if count is None else [count]
            count = None if i.operands.endswith("0x0") else 0
        elif count is not None and classes.is_exp2(i):
            count += 1
    return made


def row(kernel, found):
    known = found["prototype"] or (None, None)
    slots, size = found["slots"], found["bytes"]
    return [ALIKE[kernel["kernel"]], str(kernel["head_dim"]), found["shape"], f"{slots:.4f}", report.number(known[0], 4),
            f"{slots / known[0]:.2f}" if known[0] else "-", f"{size:.0f}", report.number(known[1]),
            f"{size / known[1]:.2f}" if known[1] else "-"]


def print_table(kernels):
    """Prints the counted launches of cuda_hopper; nothing where there is none."""
    rows = [row(k, k["launch"]["hopper"]) for k in kernels if k.get("launch", {}).get("hopper")]
    if rows:
        head = ("kernel", "D", "shape", "slots an entry", "prototype", "ratio", "bytes a tile", "prototype", "ratio")
        report.print_table(head, rows, 3)
        print()
