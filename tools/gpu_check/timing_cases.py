# SPDX-License-Identifier: Apache-2.0
"""Problems that the stage time measures: masks, lengths and contenders. The first five rows of PROBLEMS have 65536
tokens (32768 at D = 128), the f32 row 16384.
"""
import dataclasses

HEADS, TOKENS = 12, 65536
PASSES = ("forward", "both")  # both: forward and backward
OURS, FLEX = "ours", "flex-128"
DAM = "distance(1,2,4,7,12)|global(0,-1)-diagonal(0)"
DENSE_BF16 = (("sdpa-cudnn", "dense"), ("sdpa-flash", "dense"))
CAUSAL_BF16 = (*DENSE_BF16, ("sdpa-cudnn", "causal"))


@dataclasses.dataclass(frozen=True)
class Problem:
    length: int
    batch: int
    head_dim: int
    dtype: str
    masks: tuple  # of our kernels
    torch: tuple  # (contender, mask) of torch's kernels
    flex: tuple = ()  # masks that FlexAttention computes too
    only: tuple = ()  # masks that --masks names: its results stand beside those of all

    @property
    def name(self):
        return " ".join([f"n={self.length} B={self.batch} D={self.head_dim} {self.dtype}", *self.only])


PROBLEMS = (
    Problem(2048, 32, 64, "bf16", ("dense", "longformer(64,2)", "star", DAM, "fixed(45,1)", "bigbird(1,2,2)", "strided(45)",
                                   "logsparse", "causal", "blockbert-2", "window(256)"), CAUSAL_BF16,
            ("longformer(64,2)", DAM, "fixed(45,1)", "causal", "blockbert-2", "window(256)")),
    Problem(8192, 8, 64, "bf16", ("dense", "longformer(64,2)", "star", "causal", "window(256)", "blocks(32)"), CAUSAL_BF16,
            ("longformer(64,2)", "causal", "window(256)", "blocks(32)")),
    Problem(512, 128, 64, "bf16", ("dense", "longformer(64,2)", "star", "dam-s-example", "blockbert-2"), CAUSAL_BF16),
    Problem(128, 512, 64, "bf16", ("dense", "longformer", "star", "dam-s-example", "blockbert-2", "fixed", "strided", "causal"),
            DENSE_BF16),
    Problem(2048, 16, 128, "bf16", ("dense", "longformer(64,2)", "causal"), DENSE_BF16),
    Problem(2048, 8, 64, "f32", ("dense", "longformer(64,2)", "star"), (("sdpa-efficient", "dense"),)),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem and pass; its contenders are measured in one interleaved run."""
    problem: Problem
    direction: str
    contenders: tuple  # (contender, mask)
    kind: str = ""  # "flex" where FlexAttention takes part

    @property
    def name(self):
        return " ".join(filter(None, [self.problem.name, self.direction, self.kind]))

    def described(self):
        """JSON for the process that measures."""
        p = self.problem
        return {"name": self.name, "length": p.length, "batch": p.batch, "head_dim": p.head_dim, "dtype": p.dtype,
                "heads": HEADS, "pass": self.direction, "contenders": [list(c) for c in self.contenders]}


def of_problem(problem):
    for direction in PASSES:
        yield Case(problem, direction, (*((OURS, m) for m in problem.masks), *problem.torch))
    for direction in PASSES if problem.flex else ():
        yield Case(problem, direction, tuple((c, m) for m in problem.flex for c in (OURS, FLEX)), "flex")


def narrowed(problem, masks):
    """The problem with only these masks, beside our dense kernel, the yardstick. FlexAttention computes all of them."""
    return dataclasses.replace(problem, masks=tuple(dict.fromkeys(("dense", *masks))),
                               flex=tuple(masks) if problem.dtype == "bf16" else (), only=tuple(masks))


def at_length(length):
    """Problems of this length, or one with 65536 tokens."""
    return [p for p in PROBLEMS if p.length == length] or [
        Problem(length, max(1, TOKENS // length), 64, "bf16", ("dense", "star", "causal"), CAUSAL_BF16)]


def cases(masks=None, lengths=None):
    problems = [p for n in lengths for p in at_length(n)] if lengths else PROBLEMS
    return [case for p in problems for case in of_problem(narrowed(p, masks) if masks else p)]


def kernels_of(some):
    """[(mask, length, batch, head_dim, dtype)]: kernels of ours, and masks whose table a contender needs."""
    return list(dict.fromkeys((mask, c.problem.length, c.problem.batch, c.problem.head_dim, c.problem.dtype)
                              for c in some for _, mask in c.contenders))


def count(case, kind):
    return sum((contender == FLEX) == (kind == FLEX) for contender, _ in case.contenders)
