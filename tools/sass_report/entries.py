# SPDX-License-Identifier: Apache-2.0
"""Main loops, and how many score entries a turn of one has.

A product of 16 x 8 entries over the head dimension D is ceil(D / 16) HMMA.16816, so that a way through a loop
with depth T (sum of 16 per HMMA.16816, 8 per HMMA.1688) has T / (16 ceil(D / 16)) fragments times products.
Each entry of a fragment takes one exp2 of softmax, 4 MUFU.EX2 of the warp for 16 x 8 entries. The number of
products is the smallest whose fragments come out whole and no more than MUFU.EX2 allows; where a loop has no
exp2 it is 1 in the phases of the resident backward kernel, else what the kernel's table says.
"""
import dataclasses

import classes
import loops as flow

FRAGMENT = 16 * 8     # entries
EXP2_OF_FRAGMENT = 4  # MUFU.EX2 of a warp
MOST_PRODUCTS = 8

# Products of a head's matrices that a kernel needs: forward QK, PV; dQ QK, dO V, dS K; dK and dV these
# without dS K and with P dO, dS Q; all of the backward five.
PRODUCTS = {"attention_forward": 2, "attention_dq": 3, "attention_dkv": 4, "attention_resident_forward": 2,
            "attention_resident_backward": 5, "flash_fwd": 2, "flash_bwd": 5,
            "attention_short_forward": 2, "attention_short_backward": 5}  # the resident family's in older kernel files
PHASED = ("attention_resident_backward", "attention_short_backward")  # several main loops, one after another
TILED = ("attention_forward", "attention_dq", "attention_dkv")  # copy columns in their main loops, but with HGMMA


@dataclasses.dataclass
class Turn:
    """One turn of a main loop by a warp: the instructions of a full group, in order."""
    address: int     # of the loop's first instruction, bytes
    code: list       # of a whole group: all rows see all columns
    partial: int     # slots of a group of which some entries are hidden
    longest: int     # slots of the longest way: with a new maximum, or a row's first group
    products: int
    entries: int
    body: list       # (first, end) of the instructions of its blocks
    repeats: int = 1  # how often the kernel runs the loop over the same entries

    @property
    def slots(self):
        return len(self.code)


def is_hopper(code):
    """Products of whole warpgroups, for which another warp copies columns."""
    return any(i.base == "HGMMA" for i in code)


def is_tiled(kernel):
    return family_of(kernel.name) in TILED and not is_hopper(kernel.code)


def family_of(name):
    return next((key for key in PRODUCTS if key in name), name)


# ---- loops ----

def has(code, blocks, loop, test):
    return sum(map(test, flow.instructions(code, blocks, loop.body)))


def with_products(code, blocks, loop):
    return has(code, blocks, loop, classes.is_product)


def marked(code, blocks, loop, tiled):
    """It has products, and what a turn over a group has beside them: copies of the next one, or exp2."""
    return with_products(code, blocks, loop) and has(
        code, blocks, loop, (lambda i: i.base == "LDGSTS") if tiled else classes.is_exp2)


def innermost(loops, chosen):
    return [x for x in chosen if not any(y in chosen for y in flow.inner_loops(loops, x))]


def bare_loops(code, blocks, loops, turns):
    """Loops with products outside of `turns`, each with the loops around it that have no exp2 either."""
    free = [x for x in loops if with_products(code, blocks, x) and not has(code, blocks, x, classes.is_exp2)
            and not any(x.body <= t.body for t in turns)]
    return [x for x in free if x.parent not in free]


def main_loops(code, blocks, loops, tiled):
    """The innermost loops that are marked; in kernels of several phases also those without exp2."""
    turns = innermost(loops, [x for x in loops if marked(code, blocks, x, tiled)])
    if not tiled:
        turns += bare_loops(code, blocks, loops, turns)
    return sorted(turns, key=lambda loop: blocks[loop.header].first)


# ---- ways ----

# Criteria for the choice of a path through the code, after its products, copies and barriers: the signs of instructions that few
# groups need (the exp2 of a new maximum, a row's own fragments), of floating-point instructions (masking takes some; tiled kernels
# have a copy of the loop without), and of its length.
WHOLE, PARTIAL, LONGEST = (-1, -1, 1), (-1, 0, 1), (0, 0, 1)


def value_of(code, signs):
    def value(block):
        inside = code[block.first:block.end]
        wanted = [sum(map(classes.depth, inside)), sum(i.base == "LDGSTS" for i in inside),
                  sum(i.base == "BAR" for i in inside)]
        others = (sum(classes.is_exp2(i) or i.base == "LDSM" for i in inside),
                  sum(classes.class_of(i) == "float" for i in inside), len(inside))
        return (*wanted, *(sign * x for sign, x in zip(signs, others)))
    return value


def way(code, blocks, loop, loops, signs):
    found = flow.best_way(code, blocks, loop, loops, value_of(code, signs))
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


def exp2_of(code):
    return sum(map(classes.is_exp2, code))


def entries_of(code, name, head_dim):
    """(products, entries) of a way."""
    family = family_of(name)
    nominal = 1 if family in PHASED else PRODUCTS.get(family, 1)
    products, found = fragments(sum(map(classes.depth, code)), head_dim, exp2_of(code), nominal)
    return products, found * FRAGMENT


def set_repeats(turns, name):
    """The last loop of a phased kernel runs for dV and again for dK. Where both have loops of their own, each has two versions,
    of which the longer one counts."""
    if family_of(name) not in PHASED or not turns:
        return
    missing = PRODUCTS[family_of(name)] - sum(t.products for t in turns)
    turns[-1].repeats += max(0, missing) // max(1, turns[-1].products)
    for a, b in zip(turns, turns[1:]):
        if missing < 0 and a.repeats and a.products == b.products:
            (a if a.slots < b.slots else b).repeats = 0
            missing += a.products


def turn_of(kernel, blocks, loop, loops, head_dim):
    """A loop as a Turn; a way is one of all its entries only if it has their exp2."""
    code = kernel.code
    longest = way(code, blocks, loop, loops, LONGEST)
    products, found = entries_of(longest, kernel.name, head_dim)
    least = EXP2_OF_FRAGMENT * found // FRAGMENT if exp2_of(longest) else 0

    def chosen(signs):
        made = way(code, blocks, loop, loops, signs)
        return made if exp2_of(made) >= least else longest

    partial = chosen(PARTIAL)
    return Turn(code[blocks[loop.header].first].address, chosen(WHOLE) if family_of(kernel.name) in TILED else partial, len(partial),
                len(longest), products, found, [(blocks[k].first, blocks[k].end) for k in sorted(loop.body)])


def turns_of(kernel, head_dim):
    """The main loops of a kernel, each as a Turn."""
    blocks = flow.blocks_of(kernel.code)
    loops = flow.loops_of(kernel.code, blocks)
    found = main_loops(kernel.code, blocks, loops, is_tiled(kernel))
    made = [turn_of(kernel, blocks, loop, loops, head_dim) for loop in found]
    set_repeats(made, kernel.name)
    return [t for t in made if t.code]
