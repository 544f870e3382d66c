# SPDX-License-Identifier: Apache-2.0
"""The tables of tools/sass."""
import classes
from common import terminal

DIGITS = {"slots_per_tensor": 1, "slots_per_entry": 2, "partial_per_entry": 2, "exp2_per_entry": 2,
          "shared_bytes_per_entry": 1}
HEAD = ("kernel", "target", "D", "part", "slots", "entries", "products", "per HMMA", "per entry", "partial", "exp2", "bytes", "regs",
        "KB", "A100 warps", "bound", "model", "H100 warps", "bound", "model")
LEFT = 4  # columns that are set to the left
SHORT_NAMES = {"flash_fwd": "FlashAttention-2 forward", "flash_bwd": "FlashAttention-2 backward"}

NOTES = """
part: the address of a main loop, `loops` all of them over the same entries, `launch` a counted launch over the mask's
active entries, `run` what it issued in a loop over the entries computed there, `trace` a replayed block. slots: issue slots (warp instructions) of one turn over a whole group; entries: (query, key) pairs of it; products: of
matrices over the head dimension. per HMMA, per entry: slots; partial: per entry where some are hidden; exp2: per entry;
bytes: of shared memory that LDSM, LDS, STS and copies move, per entry. KB: shared memory of a block. warps: of a processor at a time; bound: share of the
tensor peak at most, by the busiest resource alone; model: share by the model of one processor, not a measurement."""


def number(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def name_of(kernel):
    return next((short for key, short in SHORT_NAMES.items() if key in kernel["kernel"]), kernel["kernel"])


def machine_cells(machines):
    cells = []
    for name in ("A100", "H100"):
        m = machines.get(name)
        cells += [str(m["warps"]), percent(m.get("bound")), percent(m["tensor"])] if m else ["-"] * 3
    return cells


def row(kernel, part, figures):
    slots = [number(figures.get(key)) for key in ("slots", "entries", "products")]
    rates = [number(figures.get(key), digits) for key, digits in DIGITS.items()]
    return [name_of(kernel), kernel["target"], str(kernel["head_dim"]), part, *slots, *rates, str(kernel["registers"]),
            number(kernel["shared_bytes"] / 1024), *machine_cells(figures.get("machines", {}))]


def parts_of(kernel):
    """(part, figures) in the order of the table."""
    for x in kernel["loops"]:
        yield f"{x['address']:05x}" + (f" x {x['repeats']}" if x["repeats"] > 1 else ""), x
    if len(kernel["loops"]) > 1 and kernel["summary"] and "address" not in kernel["summary"]:
        yield "loops", kernel["summary"]
    launch = kernel.get("launch", {})
    for x in launch.get("loops", ()):
        yield f"{x['address']:05x} run", x
    for key in ("launch", "trace"):
        if kernel.get(key):
            yield key, kernel[key]


def print_table(head, rows, left=LEFT):
    print(terminal.table(head, rows, left))


def print_figures(kernels):
    rows = [row(k, part, x) for k in kernels for part, x in parts_of(k)]
    print_table(HEAD, rows)


def print_classes(kernels):
    """Slots of each class of instruction."""
    found = [(k, part, x["classes"]) for k in kernels for part, x in parts_of(k) if x.get("classes")]
    shown = [c for c in classes.CLASSES if any(x[c] for _, _, x in found)]
    rows = [[name_of(k), k["target"], part, *(str(x[c]) for c in shown)] for k, part, x in found]
    print_table(("kernel", "target", "part", *shown), rows, 3)


def print_report(kernels):
    print_figures(kernels)
    print()
    print_classes(kernels)
    for k in kernels:
        if not k["loops"]:
            print(f"\n{k['kernel']} ({k['target']}): no loop with tensor instructions")
    print(terminal.fold(NOTES, hang=0))
