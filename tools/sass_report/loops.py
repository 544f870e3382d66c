# SPDX-License-Identifier: Apache-2.0
"""Basic blocks, dominators, natural loops, and the way through a loop that a full group takes."""
import dataclasses
import re

LEAVES = ("EXIT", "RET")                       # nothing follows
JUMPS = ("BRA", "JMP")                         # to a label
ENDS = LEAVES + JUMPS + ("BSYNC", "BRX", "CALL", "BREAK")
REGISTER = r"(U?R\d+)"
STEP = re.compile(rf"{REGISTER}(?:\.reuse)?, \1(?:\.reuse)?, 0x([0-9a-f]+)\b")
LIMIT = re.compile(rf"(U?P\d), U?PT, {REGISTER}(?:\.reuse)?, 0x([0-9a-f]+)\b")
STEPPERS = ("IADD3", "UIADD3", "VIADD", "IADD")
TESTS = ("ISETP", "UISETP")
MOST_TRIPS = 1024


@dataclasses.dataclass(slots=True)
class Block:
    first: int  # instruction
    end: int    # one beyond the last
    to: tuple = ()


@dataclasses.dataclass(eq=False)
class Loop:
    header: int   # block
    body: set     # blocks
    tails: set    # those that go back to the header
    trips: int = 1
    parent: object = None


# ---- blocks ----

def is_jump(i):
    """A call of a label of the kernel itself that does not return is what ptxas makes of a branch."""
    return i.base in JUMPS or i.base == "CALL" and i.label.startswith(".L_x")


def is_conditional(i):
    return bool(i.guard) or bool(re.match(r"!?U?P\d|~?!?UR|UP", i.operands)) or ".DIV" in i.name


def leaders(code):
    first = {0}
    for i in code:
        if i.base in ENDS:
            first.add(i.index + 1)
        if i.goes_to >= 0:
            first.add(i.goes_to)
    return sorted(k for k in first if k < len(code))


def joins(code):
    """{index of a BSYNC: index that it goes to}: the label of the closest BSSY before it with its barrier."""
    made, open_at = {}, {}
    for i in code:
        if i.base == "BSSY":
            open_at[i.operands.split(",")[0].strip()] = i.goes_to
        elif i.base == "BSYNC":
            made[i.index] = open_at.get(i.operands.strip(), -1)
    return made


def goes_on(i):
    """Whether what stands after it may follow. A warp that is not divided never takes BRA.DIV."""
    return not (is_jump(i) or i.base in LEAVES) or is_conditional(i)


def targets(i, joined):
    if is_jump(i) and ".DIV" not in i.name:
        return [i.goes_to]
    if i.base == "BSYNC" and joined.get(i.index, -1) > i.index:
        return [joined[i.index]]
    return []


def blocks_of(code):
    first, joined = leaders(code), joins(code)
    blocks = [Block(a, b) for a, b in zip(first, first[1:] + [len(code)])]
    at = {b.first: k for k, b in enumerate(blocks)}
    for b in blocks:
        last = code[b.end - 1]
        to = targets(last, joined)
        if goes_on(last) and not (to and last.base == "BSYNC"):
            to.append(b.end)
        b.to = tuple(dict.fromkeys(at[t] for t in to if t in at))
    return blocks


# ---- loops ----

def reachable(blocks):
    """Blocks in reverse postorder."""
    order, seen, stack = [], {0}, [(0, iter(blocks[0].to))]
    while stack:
        k, rest = stack[-1]
        nxt = next((t for t in rest if t not in seen), None)
        if nxt is None:
            order.append(stack.pop()[0])
        else:
            seen.add(nxt)
            stack.append((nxt, iter(blocks[nxt].to)))
    return order[::-1]


def predecessors(blocks, order):
    made = {k: [] for k in order}
    for k in order:
        for t in blocks[k].to:
            made[t].append(k)
    return made


def dominators(blocks):
    """{block: set of blocks that every way to it goes through}."""
    order = reachable(blocks)
    before, dom, changed = predecessors(blocks, order), {0: {0}}, True
    while changed:
        changed = False
        for k in order[1:]:
            new = set.intersection(*(dom[p] for p in before[k] if p in dom)) | {k}
            changed |= new != dom.get(k)
            dom[k] = new
    return dom


def body_of(header, tail, before):
    body, stack = {header, tail}, [tail]
    while stack:
        k = stack.pop()
        for p in before[k] if k != header else ():
            if p not in body:
                body.add(p)
                stack.append(p)
    return body


def loops_of(code, blocks):
    """Natural loops, those with one header as one, inner ones after the ones around them."""
    dom = dominators(blocks)
    before, found = predecessors(blocks, list(dom)), {}
    for k in dom:
        for t in blocks[k].to:
            if t in dom[k]:
                loop = found.setdefault(t, Loop(t, set(), set()))
                loop.body |= body_of(t, k, before)
                loop.tails.add(k)
    loops = sorted(found.values(), key=lambda loop: -len(loop.body))
    for loop in loops:
        around = [x for x in loops if loop.header in x.body and x is not loop and len(x.body) > len(loop.body)]
        loop.parent = around[-1] if around else None
        loop.trips = trips_of(code, blocks, loop)
    return loops


def instructions(code, blocks, body):
    return [i for k in sorted(body) for i in code[blocks[k].first:blocks[k].end]]


def trips_of(code, blocks, loop):
    """Number of turns of a counted loop: its limit by its step, both constants; 1 where they are not. The
    counter is taken to begin below the step, as thread indices and zeros do."""
    inside = instructions(code, blocks, loop.body)
    steps = {m.group(1): int(m.group(2), 16) for i in inside if i.base in STEPPERS
             for m in [STEP.match(i.operands)] if m}
    found = {trips_at(inside, steps, code[blocks[tail].end - 1]) for tail in loop.tails}
    trips = found.pop()
    return 1 if found or trips > MOST_TRIPS else trips


def trips_at(inside, steps, last):
    """Those that the branch at a loop's tail says; its predicate is the one that was written last."""
    predicate = last.guard.lstrip("@!")
    tests = [i for i in inside if i.index < last.index and predicate and
             re.match(rf"{predicate}\b", i.operands)]
    test = LIMIT.match(tests[-1].operands) if tests and tests[-1].base in TESTS else None
    step = steps.get(test.group(2)) if test else 0
    return max(1, -(-int(test.group(3), 16) // step)) if step else 1


# ---- ways ----

def inner_loops(loops, loop):
    return [x for x in loops if x is not loop and x.header in loop.body and len(x.body) < len(loop.body)]


def times(inner, block):
    made = 1
    for x in inner:
        made *= x.trips if block in x.body else 1
    return made


def calls(code, block):
    """A slow way: a division's, or a shuffle's of a divided warp."""
    return any(i.base == "CALL" and not is_jump(i) for i in code[block.first:block.end])


def best_way(code, blocks, loop, loops, value):
    """Blocks from the header back to it, each inner loop's once; the way of the largest sum of value(block),
    a tuple of numbers. Slow ways are left out."""
    inner, best = inner_loops(loops, loop), {}  # block: (sum, blocks from it to the end)
    for k in reversed([k for k in reachable(blocks) if k in loop.body]):
        after = [((), ()) if t == loop.header else best[t] for t in blocks[k].to if t == loop.header or t in best]
        if not after or calls(code, blocks[k]):
            continue
        total, rest = max(after, key=lambda way: way[0])
        own = tuple(times(inner, k) * x for x in value(blocks[k]))
        best[k] = tuple(map(sum, zip(own, total))) if total else own, (k, *rest)
    return list(best.get(loop.header, ((), ()))[1])


def unrolled(way, inner):
    """The way with the blocks of inner loops repeated."""
    made, k = [], 0
    while k < len(way):
        around = next((x for x in inner if x.header == way[k]), None)
        if not around:
            made.append(way[k])
            k += 1
            continue
        n = next((n for n in range(k, len(way)) if way[n] not in around.body), len(way))
        made += unrolled(way[k:n], [x for x in inner if x is not around]) * around.trips
        k = n
    return made
