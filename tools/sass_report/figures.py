# SPDX-License-Identifier: Apache-2.0
"""The figures of a kernel: of each main loop, of all of them together, and of a launch that was counted."""
import pathlib
import struct
import tempfile

import classes
import entries
import model
from disassembly import Fatal, disassemble

TURNS = 12  # of a main loop that a warp runs in the model: more change a share by less than a point
WARPGROUP = 128  # threads
RUNS_AS = {"sm_80": ("sm_80", "sm_90"), "sm_90": ("sm_90",)}  # target: machines


def disassembled(launches):
    """{(target, name): Kernel}; each cubin is looked at once."""
    made, seen = {}, set()
    with tempfile.TemporaryDirectory(prefix="sass-") as folder:
        path = pathlib.Path(folder) / "kernel.cubin"
        for x in launches:
            if id(x.image) not in seen:
                seen.add(id(x.image))
                path.write_bytes(x.image)
                found = disassemble(path)
            if x.name not in found:
                raise Fatal(2, f"{x.source}: {x.name} has no code")
            x.target = x.target or found[x.name].target
            made[x.target, x.name] = found[x.name]
    return made


def machines_for(target):
    """Machines of the model for its code. An H100 does not load code of sm_80, but what it is given for the same
    source is much like it."""
    return [model.MACHINES[name] for name in RUNS_AS.get(target.rstrip("a"), ())]


def modelled(launch, traces):
    """{machine: its figures}"""
    made = {}
    for machine in machines_for(launch.target):
        blocks = model.resident_blocks(machine, launch)
        if not blocks or not all(traces):
            continue
        share, by = model.bound([i for t in traces for i in t], machine)
        run = {"tensor": None} if entries.is_hopper(traces[0]) else model.simulate(traces, machine, blocks)
        made[machine.name] = {"warps": blocks * -(-launch.threads // classes.WARP), "blocks": blocks, "bound": share,
                              "bound_by": by} | run
    return made


def per(number, of):
    return number / of if of else None


def loop_figures(turn):
    tensor = sum(map(classes.depth, turn.code)) / 16
    return {"address": turn.address, "body": turn.body, "products": turn.products, "repeats": turn.repeats, "entries": turn.entries,
            "slots": turn.slots, "slots_partial": turn.partial, "slots_longest": turn.longest, "tensor": tensor,
            "classes": classes.count(turn.code), "slots_per_tensor": per(turn.slots, tensor),
            "slots_per_entry": per(turn.slots, turn.entries), "partial_per_entry": per(turn.partial, turn.entries),
            "exp2_per_entry": per(classes.WARP * sum(map(classes.is_exp2, turn.code)), turn.entries),
            "shared_bytes_per_entry": per(sum(map(classes.shared_bytes, turn.code)), turn.entries)}


SUMMED = ("slots_per_entry", "partial_per_entry", "exp2_per_entry", "shared_bytes_per_entry")


def together(loops):
    """Loops one after another over the same entries: sums per entry, and shares of the time that they take."""
    made = {key: sum(x["repeats"] * x[key] for x in loops) for key in SUMMED}
    tensor = sum(x["repeats"] * x["tensor"] / x["entries"] for x in loops)
    made |= {"products": sum(x["repeats"] * x["products"] for x in loops),
             "slots_per_tensor": per(made["slots_per_entry"], tensor), "machines": {}}
    for name in loops[0]["machines"]:
        each = [(x["repeats"] * x["tensor"] / x["entries"], x["machines"][name]) for x in loops]
        made["machines"][name] = {"warps": each[0][1]["warps"]} | {
            key: tensor / sum(t / m[key] for t, m in each) for key in ("bound", "tensor")}
    return made


def summary(kernel, loops):
    """Summarises all main loops: in sequence in phased kernels, else each for other groups."""
    if not loops or not all(x["entries"] for x in loops):
        return None
    if entries.family_of(kernel) in entries.PHASED:
        return together(loops)
    needed = entries.PRODUCTS.get(entries.family_of(kernel))  # others are of few items: the exact delta of cuda_hopper's dQ
    loops = [x for x in loops if x["products"] == needed] or loops
    best = min(loops, key=lambda x: x["slots_per_entry"])
    return best | {"partial_per_entry": max(x["partial_per_entry"] for x in loops)}


def working_warps(launch, kernel):
    """Warps of a block that run main loops; with HGMMA one more warp, or a last warpgroup, copies."""
    if entries.is_hopper(kernel.code):
        return (launch.threads - 1) // WARPGROUP * WARPGROUP // classes.WARP
    return -(-launch.threads // classes.WARP)


def kernel_figures(launch, kernel, turns=TURNS):
    warps = working_warps(launch, kernel)
    made = {"kernel": launch.name, "target": launch.target, "dtype": launch.dtype, "head_dim": launch.head_dim,
            "source": launch.source, "registers": launch.registers, "threads": launch.threads,
            "shared_bytes": launch.shared_bytes, "instructions": len(kernel.code), "loops": []}
    for turn in entries.turns_of(kernel, launch.head_dim):
        made["loops"].append(loop_figures(turn) | {"machines": modelled(launch, [turn.code * turns] * warps)})
    made["summary"] = summary(launch.name, made["loops"])
    return made


# ---- launches that an emulator counted ----

def counted(code, counts, active):
    """Figures of instructions that were issued `counts` times over `active` entries (or None)."""
    found = dict.fromkeys(classes.CLASSES, 0)
    for i, n in zip(code, counts):
        found[classes.class_of(i)] += n

    def total(of):
        return sum(n * of(i) for i, n in zip(code, counts) if n)

    slots, tensor = sum(counts), total(classes.depth) / 16
    return {"slots": slots, "entries": active, "tensor": tensor, "classes": found,
            "slots_per_tensor": per(slots, tensor), "slots_per_entry": per(slots, active),
            "exp2_per_entry": per(classes.WARP * total(classes.is_exp2), active),
            "shared_bytes_per_entry": per(total(classes.shared_bytes), active)}


def loop_counted(loop, code, counts):
    """Instructions that a launch issued in a main loop, divided by the entries that it computed there."""
    inside = [k for first, end in loop["body"] for k in range(first, end)]
    made = counted([code[k] for k in inside], [counts[k] for k in inside], None)
    turns = per(made["tensor"], loop["tensor"])
    area = turns * loop["entries"] if loop["entries"] else None
    return counted([code[k] for k in inside], [counts[k] for k in inside], area) | {"address": loop["address"]}


def launch_figures(record, kernel, active, loops):
    """Figures of a line of MASKC_SASS_COUNTS; `active` entries that the launch processes, or None."""
    counts = record["counts"]
    if len(counts) != len(kernel.code):
        raise Fatal(2, f"counts of {kernel.name}: {len(counts)} instructions, its code has {len(kernel.code)}")
    return counted(kernel.code, counts, active) | {
        "blocks": record.get("blocks"), "loops": [loop_counted(x, kernel.code, counts) for x in loops]}


def traces_of(data, kernel):
    """Executed instructions of each warp of a block, from MASKC_SASS_TRACE."""
    warps = {}
    for (word,) in struct.iter_unpack("<I", data[:len(data) // 4 * 4]):
        warps.setdefault(word >> 24, []).append(word & 0xffffff)
    if not warps or max(map(max, warps.values())) >= len(kernel.code):
        raise Fatal(2, f"the trace is not of {kernel.name}")
    return [[kernel.code[k] for k in warps[w]] for w in sorted(warps)]


def trace_figures(launch, traces):
    slots = sum(map(len, traces))
    tensor = sum(classes.depth(i) for t in traces for i in t) / 16
    return {"slots": slots, "tensor": tensor, "slots_per_tensor": per(slots, tensor),
            "machines": modelled(launch, traces)}
