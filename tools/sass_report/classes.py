# SPDX-License-Identifier: Apache-2.0
"""Classifies machine instructions by kind of work, and counts the bytes of shared memory that they move."""
import collections

TENSOR = ("HMMA", "IMMA", "DMMA", "HGMMA", "WGMMA")
FLOAT = ("FFMA", "FMUL", "FADD", "FMNMX", "FMNMX3", "FSEL", "FSETP", "FSET", "FCHK", "FSWZADD", "FFMA32I", "FADD2",
         "FFMA2", "FMUL2")
CONVERT = ("F2F", "F2FP", "F2I", "F2IP", "I2F", "I2FP", "FRND", "HADD2", "HFMA2", "HMUL2", "HMNMX2", "HSET2", "HSETP2")
COPY = ("LDGSTS", "LDGDEPBAR", "ARRIVES", "UTMALDG", "UBLKCP", "UBLKPF")
GLOBAL = ("LDG", "STG", "LD", "ST", "RED", "REDG", "ATOM", "ATOMG", "CCTL", "UTMASTG")
CONSTANT = ("LDC", "ULDC", "LDCU")
SHUFFLE = ("SHFL", "REDUX", "VOTE", "VOTEU", "MATCH", "R2UR")
BARRIER = ("BAR", "DEPBAR", "SYNCS", "MEMBAR", "ERRBAR", "FENCE", "WARPGROUP", "UCGABAR_ARV", "UCGABAR_WAIT")
CONTROL = ("BRA", "BSSY", "BSYNC", "WARPSYNC", "EXIT", "CALL", "RET", "BREAK", "BRX", "NOP", "YIELD", "BMOV", "NANOSLEEP",
           "JMP", "ENDCOLLECTIVE", "PLOP3")

# In the order of the report's columns.
CLASSES = {"tensor": TENSOR, "float": FLOAT, "mufu": ("MUFU",), "convert": CONVERT, "ldsm": ("LDSM",), "lds": ("LDS",),
           "sts": ("STS", "STSM", "ATOMS"), "copy": COPY, "global": GLOBAL, "local": ("LDL", "STL"), "shuffle": SHUFFLE,
           "barrier": BARRIER, "constant": CONSTANT, "integer": (), "control": CONTROL, "idle": ()}
OF_BASE = {base: name for name, bases in CLASSES.items() for base in bases}

WARP = 32
WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}  # bytes of a lane; else 4
MATRIX = 128  # bytes of an 8 x 8 matrix of halves


def class_of(i):
    """`idle` issues and does nothing: padding that the assembler puts in front of async copies."""
    if i.never:
        return "idle"
    if i.base == "HFMA2" and "MMA" in i.parts:
        return "integer"  # a move
    return OF_BASE.get(i.base, "integer")


def count(code):
    """{class: instructions}"""
    found = collections.Counter(class_of(i) for i in code)
    return {name: found[name] for name in CLASSES}


def is_exp2(i):
    return i.name.startswith("MUFU.EX2")


def depth(i):
    """Returns the depth of products of 16 x 8 entries: 16 head dimensions for HMMA.16816, 8 for HMMA.1688; HGMMA.64xNx16 is N / 8
    products of depth 16 in each warp of a warpgroup."""
    if i.base == "HGMMA":
        return 2 * int(next(p for p in i.parts if p.startswith("64x")).split("x")[1])
    if i.base != "HMMA":
        return 0
    return 16 if "16816" in i.parts else 8


def is_product(i):
    return depth(i) > 0


def width(i):
    """Bytes of a lane."""
    return next((WIDTHS[p] for p in i.parts if p in WIDTHS), 4)


def shared_bytes(i):
    """Bytes of shared memory that a warp reads or writes."""
    if i.never:
        return 0
    if i.base in ("LDSM", "STSM"):
        return MATRIX * (int(i.parts[-1]) if i.parts[-1] in "124" else 1)
    return WARP * width(i) if i.base in ("LDS", "STS", "LDGSTS") else 0
