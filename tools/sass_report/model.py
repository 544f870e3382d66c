# SPDX-License-Identifier: Apache-2.0
"""A trace-driven model of one streaming multiprocessor: warps in order, each on one of four partitions that
issue an instruction a cycle; pipes that are busy for some cycles after each; stall counts and scoreboards as
the control codes in the machine code say. A model, not a measurement. All times are cycles."""
import dataclasses
import itertools

import classes
import cubin

PARTITIONS = 4
REGISTERS = 65536  # of a processor, 32 bits each
REGISTER_UNIT = 256  # of a warp
MOST_WARPS, MOST_BLOCKS = 64, 32


@dataclasses.dataclass(frozen=True)
class Machine:
    """Cycles between two instructions of a partition on the same pipe, and a processor's shared memory."""
    name: str
    shared_bytes: int
    tensor: float  # HMMA.16816 by mma.sync
    peak: float    # the same at the documented peak
    float: float
    alu: float = 2
    mufu: float = 8
    uniform: float = 2


MACHINES = {"sm_80": Machine("A100", 164 * 1024, tensor=8, peak=8, float=2),
            "sm_90": Machine("H100", 228 * 1024, tensor=6.4, peak=4, float=1)}

# Cycles from issue to the release of the scoreboard.
LATENCY = {"LDSM": 24, "LDS": 22, "SHFL": 22, "REDUX": 22, "MUFU": 16, "F2I": 16, "I2F": 16, "LDG": 36, "LDC": 26, "S2R": 20,
           "S2UR": 20, "LDL": 30}
OTHER_LATENCY = 10
L2_LATENCY = 240    # of an async copy
BRANCH = 8          # before the first instruction behind a jump
BARRIER = 6         # from the last warp's arrival
OPERANDS_READ = 6   # to the release of the operands' scoreboard; behind the memory queue
OPERANDS_QUEUED = 4
QUEUE = 40          # cycles of work that the memory pipe takes ahead
STAGGER = 37        # between the starts of resident blocks

FLOAT_PIPE = ("FFMA", "FMUL", "FADD", "IMAD", "FFMA32I")
MUFU_PIPE = ("MUFU", "F2I", "I2F", "FRND")
MEMORY_PIPE = ("LDSM", "LDS", "STS", "STSM", "SHFL", "REDUX", "LDGSTS", "LDG", "STG", "LDL", "STL", "RED", "ATOM", "ATOMG",
               "LDC", "LDGDEPBAR", "S2R", "S2UR")
NO_PIPE = ("BRA", "BSSY", "BSYNC", "WARPSYNC", "EXIT", "CALL", "RET", "BREAK", "NOP", "BAR", "DEPBAR", "ENDCOLLECTIVE",
           "YIELD", "BMOV")
COPY_CYCLES = 5  # of the memory pipe: four of data, one of addresses
MEMORY_BYTES = 128  # of the memory pipe in a cycle


# ---- what fits ----

def resident_blocks(machine, launch):
    """Blocks of a launch on a processor at a time."""
    warps = -(-launch.threads // classes.WARP)
    of_warp = -(-launch.registers * classes.WARP // REGISTER_UNIT) * REGISTER_UNIT
    by_registers = REGISTERS // of_warp // PARTITIONS * PARTITIONS // warps
    by_shared = machine.shared_bytes // (launch.shared_bytes + cubin.RESERVED_BYTES)
    return min(by_registers, by_shared, MOST_WARPS // warps, MOST_BLOCKS)


# ---- instructions ----

def pipe_of(i):
    if classes.is_product(i):
        return "tensor"
    for name, bases in (("mufu", MUFU_PIPE), ("float", FLOAT_PIPE), ("memory", MEMORY_PIPE), ("", NO_PIPE)):
        if i.base in bases:
            return name
    return "uniform" if i.base.startswith("U") or i.base in ("R2UR", "VOTEU") else "alu"


def memory_cycles(i):
    """Cycles of the processor's single pipe to shared memory and L1."""
    if i.base == "LDGSTS":
        return COPY_CYCLES
    if i.base in ("SHFL", "REDUX"):
        return 1
    if i.base in ("LDG", "STG", "RED", "ATOM", "ATOMG", "LDL", "STL"):
        return classes.WARP * classes.width(i) // MEMORY_BYTES or 1
    return -(-classes.shared_bytes(i) // MEMORY_BYTES)


@dataclasses.dataclass(slots=True)
class Work:
    """An instruction as the model sees it."""
    index: int
    pipe: str
    busy: float    # cycles of its pipe
    memory: int    # cycles of the memory pipe
    latency: int
    stall: int
    wait: tuple    # scoreboards
    write: int     # scoreboard or 7
    read: int
    kind: str      # "barrier", "copy", "commit", "arrive" or nothing


KINDS = {"BAR": "barrier", "LDGSTS": "copy", "LDGDEPBAR": "commit", "DEPBAR": "arrive"}


def work_of(i, machine):
    pipe = "" if i.never else pipe_of(i)
    busy = getattr(machine, pipe) if pipe not in ("", "memory") else 0
    if pipe == "tensor":
        busy = (machine.peak if i.base == "HGMMA" else busy) * classes.depth(i) / 16
    return Work(i.index, pipe, busy, 0 if i.never else memory_cycles(i), LATENCY.get(i.base, OTHER_LATENCY),
                max(1, i.stall), tuple(k for k in range(6) if i.wait >> k & 1), i.write_barrier, i.read_barrier,
                "" if i.never else KINDS.get(i.base, ""))


# ---- the processor ----

class Warp:
    """Where a warp is in its trace, and when it may go on."""
    __slots__ = ("trace", "at", "next", "free", "block", "pipes", "copies", "copied", "waits", "done")

    def __init__(self, trace, block, pipes):
        self.trace, self.block, self.pipes = trace, block, pipes
        self.at, self.next = 0, block.number * STAGGER
        self.free = [0.0] * 8      # scoreboards; 7 is none
        self.copies = self.copied = 0.0
        self.waits = self.done = False


class Block:
    def __init__(self, number):
        self.number, self.warps, self.arrived = number, [], 0

    def release(self, now):
        """All that are left stand at the barrier."""
        left = [w for w in self.warps if not w.done]
        if left and self.arrived == len(left):
            self.arrived = 0
            for w in left:
                w.waits, w.next = False, max(w.next, now + BARRIER)


class Processor:
    def __init__(self, traces, blocks):
        self.memory = 0.0  # when its queue is empty
        self.partitions = [[] for _ in range(PARTITIONS)]
        self.pipes = [dict.fromkeys(("tensor", "float", "alu", "mufu", "uniform"), 0.0) for _ in range(PARTITIONS)]
        count = itertools.count()
        for number in range(blocks):
            block = Block(number)
            for trace in traces:
                k = next(count) % PARTITIONS
                block.warps.append(Warp(trace, block, self.pipes[k]))
                self.partitions[k].append(block.warps[-1])

    def ready(self, w, now):
        """When the warp's next instruction may issue."""
        if w.next > now:
            return w.next
        i = w.trace[w.at]
        at = now
        for k in i.wait:
            if w.free[k] > at:
                at = w.free[k]
        if i.kind == "arrive" and w.copied > at:
            at = w.copied
        if i.pipe == "memory":
            return max(at, int(self.memory) - QUEUE)
        return max(at, int(w.pipes[i.pipe])) if i.pipe else at

    def issue(self, w, now):
        i = w.trace[w.at]
        if i.busy:
            w.pipes[i.pipe] = max(w.pipes[i.pipe], now) + i.busy  # a part of a cycle is not lost
        ends = now + i.latency
        if i.memory:
            self.memory = max(self.memory, now) + i.memory
            ends = self.memory + i.latency
        w.free[i.write] = max(w.free[i.write], ends)
        reads = max(self.memory, now) + OPERANDS_QUEUED if i.pipe == "memory" else now + OPERANDS_READ
        w.free[i.read] = max(w.free[i.read], reads)
        w.at += 1
        jumps = w.at < len(w.trace) and w.trace[w.at].index != i.index + 1
        w.next = now + max(i.stall, BRANCH if jumps else 0)
        self.special(w, i, now)

    def special(self, w, i, now):
        if i.kind == "copy":
            w.copies = max(w.copies, self.memory + L2_LATENCY)
        elif i.kind == "commit":
            w.copied = w.copies
        elif i.kind == "barrier":
            w.waits = True
            w.block.arrived += 1
            w.block.release(now)
        if w.at == len(w.trace):
            if w.waits:
                w.block.arrived -= 1
            w.done, w.waits = True, False
            w.block.release(now)

    def cycle(self, warps, now):
        """Issues on one partition: the time of the next try. The warp that issued last is asked first."""
        soon = float("inf")
        for n, w in enumerate(warps):
            if w.done or w.waits:
                continue
            at = self.ready(w, now)
            if at <= now:
                self.issue(w, now)
                warps[:] = warps[n:] + warps[:n]
                return now + 1
            soon = min(soon, at)
        return soon

    def run(self):
        """Cycles until all warps are done."""
        now = 0
        while True:
            soon = min(self.cycle(warps, now) for warps in self.partitions)
            if soon == float("inf"):
                return now + 1
            now = max(now + 1, int(soon))


def simulate(traces, machine, blocks):
    """{"cycles", "issue": share of issue slots taken, "tensor": share of the tensor peak} of `blocks` resident
    blocks whose warps run `traces`, lists of instructions."""
    known = {i.index: work_of(i, machine) for trace in traces for i in trace}
    works = [[known[i.index] for i in trace] for trace in traces]
    cycles = Processor(works, blocks).run()
    slots = blocks * sum(map(len, traces))
    depth = blocks * sum(classes.depth(i) for trace in traces for i in trace)
    return {"cycles": cycles, "issue": slots / PARTITIONS / cycles,
            "tensor": depth / 16 * machine.peak / PARTITIONS / cycles}


def bound(code, machine):
    """Share of the tensor peak at most, by each resource alone: issue, pipes, the memory pipe."""
    need = dict.fromkeys(("tensor", "float", "alu", "mufu", "uniform"), 0.0)
    for i in (work_of(x, machine) for x in code):
        if i.busy:
            need[i.pipe] += i.busy
    need["issue"] = len(code)
    need["memory"] = PARTITIONS * sum(0 if i.never else memory_cycles(i) for i in code)
    best = sum(map(classes.depth, code)) / 16 * machine.peak
    worst = max(need, key=need.get)
    return best / need[worst], worst
