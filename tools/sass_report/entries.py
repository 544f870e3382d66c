# SPDX-License-Identifier: Apache-2.0
"""Main loops, and how many score entries a turn of one has.

A product of 16 x 8 entries over the head dimension D is ceil(D / 16) HMMA.16816, so that a way through a loop
with depth T (sum of 16 per HMMA.16816, 8 per HMMA.1688) has T / (16 ceil(D / 16)) fragments times products.
Each entry of a fragment takes one exp2 of softmax, 4 MUFU.EX2 of the warp for 16 x 8 entries. The number of
products is the smallest whose fragments come out whole and no more than MUFU.EX2 allows; where a loop has no
exp2 it is 1 in the phases of the short backward, else what the kernel's table says.
"""
import dataclasses

import classes
import loops as flow

FRAGMENT = 16 * 8     # entries
EXP2_OF_FRAGMENT = 4  # MUFU.EX2 of a warp
MOST_PRODUCTS = 8

# Products of a head's matrices that a kernel needs: forward QK, PV; dQ QK, dO V, dS K; dK and dV these
# without dS K and with P dO, dS Q; all of the backward five.
PRODUCTS = {"attention_forward": 2, "attention_dq": 3, "attention_dkv": 4, "attention_short_forward": 2,
            "attention_short_backward": 5, "flash_fwd": 2, "flash_bwd": 5}
PHASED = ("attention_short_backward",)  # several main loops, one after another


@dataclasses.dataclass
class Turn:
    """One turn of a main loop by a warp: the instructions of a full group, in order."""
    address: int     # of the loop's first instruction, bytes
    code: list
    shortest: int    # slots of the shortest way with as many products
    longest: int     # slots of the longest
    products: int = 0
    entries: int = 0
    repeats: int = 1  # how often the kernel runs the loop over the same entries

    @property
    def slots(self):
        return len(self.code)


def family_of(name):
    return next((key for key in PRODUCTS if key in name), name)


# ---- loops ----

def has(code, blocks, loop, test):
    return sum(map(test, flow.instructions(code, blocks, loop.body)))


def main_loops(code, blocks, loops):
    """The innermost loops with products; where one has no exp2 and the loop around it adds exp2 and no
    products (a loop over the head dimension), that one."""
    def products(loop):
        return has(code, blocks, loop, lambda i: i.base == "HMMA")

    cores = [x for x in loops if products(x) and not any(products(y) for y in flow.inner_loops(loops, x))]
    made = []
    for core in cores:
        while (core.parent and not has(code, blocks, core, classes.is_exp2) and products(core.parent) == products(core)
               and has(code, blocks, core.parent, classes.is_exp2)):
            core = core.parent
        made.append(core)
    return sorted(made, key=lambda loop: blocks[loop.header].first)


# ---- the way of a full group ----

def value_of(code, rare, length):
    """What a way is worth: products, copies and barriers; then little of what few groups need (the exp2 of a
    new maximum, the rows' own fragments); then its length, as `length` says."""
    def value(block):
        inside = code[block.first:block.end]
        wanted = [sum(map(classes.depth, inside)), sum(i.base == "LDGSTS" for i in inside),
                  sum(i.base == "BAR" for i in inside)]
        seldom = -sum(classes.is_exp2(i) or i.base == "LDSM" for i in inside)
        return (*wanted, rare * seldom, length * len(inside))
    return value


def way(code, blocks, loop, loops, rare, length):
    found = flow.best_way(code, blocks, loop, loops, value_of(code, rare, length))
    order = flow.unrolled(found, flow.inner_loops(loops, loop))
    return [i for k in order for i in code[blocks[k].first:blocks[k].end]]


# ---- entries ----

def fragments(depth, head_dim, exp2, nominal):
    """(products, fragments of 16 x 8 entries)."""
    whole = 16 * -(-head_dim // 16)
    tried = range(1, MOST_PRODUCTS + 1) if exp2 else [nominal]
    for products in tried:
        found, rest = divmod(depth, whole * products)
        if found and not rest and (not exp2 or EXP2_OF_FRAGMENT * found <= exp2):
            return products, found
    return 0, 0


def set_entries(turn, name, head_dim):
    family = family_of(name)
    nominal = 1 if family in PHASED else PRODUCTS.get(family, 1)
    depth, exp2 = sum(map(classes.depth, turn.code)), sum(map(classes.is_exp2, turn.code))
    turn.products, found = fragments(depth, head_dim, exp2, nominal)
    turn.entries = found * FRAGMENT


def set_repeats(turns, name):
    """The last loop of a phased kernel runs for dV and again for dK."""
    if family_of(name) in PHASED and turns:
        missing = PRODUCTS[family_of(name)] - sum(t.products for t in turns)
        turns[-1].repeats += max(0, missing) // max(1, turns[-1].products)


def turns_of(kernel, head_dim):
    """The main loops of a kernel, each as a Turn."""
    code, made = kernel.code, []
    blocks = flow.blocks_of(code)
    loops = flow.loops_of(code, blocks)
    for loop in main_loops(code, blocks, loops):
        full, shortest, longest = (way(code, blocks, loop, loops, *how) for how in ((1, 1), (1, -1), (0, 1)))
        if full:
            turn = Turn(code[blocks[loop.header].first].address, full, len(shortest), len(longest))
            set_entries(turn, kernel.name, head_dim)
            made.append(turn)
    set_repeats(made, kernel.name)
    return made
