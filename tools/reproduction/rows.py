# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: which masks are compared, in the order in which time is spent on them."""
import dataclasses

DESIGNED = ("strided", "fixed", "longformer", "logsparse", "bigbird", "star")
BLOCKS = ("blockbert-2", "blockbert-3")
LAMBDAS = ("1e-4", "1e-3", "1e-2", "1e-1")
LEARNED = tuple(f"dam-s-{x}" for x in LAMBDAS) + ("dam-u-1e-1",)
P_SEEDS = 3
THRESHOLDS = (80, 85, 90, 95)
PROGRESSIVE = (10, 20, 30, 40, 50, 60, 70, 80, 90)
SHARES = (0.9, 0.7, 0.5)
FILM = "dam-s-1e-3"  # whose masks are kept over the steps


@dataclasses.dataclass(frozen=True)
class Row:
    """One mask, with which BERT settles. of: the row whose mask this one goes by (random of its count, or without the diagonal)."""
    name: str
    group: str
    source: str = ""
    diagonal: bool = True
    seed: int = 0
    needs: str = ""

    @property
    def label(self):
        return self.name if self.diagonal else f"{self.name} - diagonal(0)"

    @property
    def key(self):
        text = self.name + ("" if self.diagonal else "-off") + (f"-seed{self.seed}" if self.seed else "")
        return "".join(c if c.isalnum() or c in "-." else "_" for c in text)


def without(rows):
    """The same without the diagonal."""
    return [dataclasses.replace(r, diagonal=False) for r in rows]


def dense_rows(seeds):
    rows = []
    for seed in seeds:
        rows += [Row("dense", "dense", "dense", seed=seed), Row("dense", "dense", "dense", False, seed),
                 Row("dense - 128 random", "dense", "drop", seed=seed)]
    return rows


def pruned(percent):
    return [Row(f"P pruned {percent} %", "pruned", f"keep:{percent}", needs="p-0"),
            Row(f"random {percent} %", "pruned", f"random:{percent}")]


def snapped(share):
    return [Row(f"P snapped {share}", "snapped", f"snap:{share}", needs="p-0"),
            Row(f"P threshold {share}", "snapped", f"equal:{share}", needs="p-0")]


def settled(share):
    """By the command itself, from the weights that P was learned with."""
    return [Row(f"P settled, {kind} {share}", "settled", f"settle:{kind}:{share}", needs="p-0") for kind in ("snap", "threshold")]


def all_rows():
    """Dense first, as its seeds say how large chance is, and no key at all, which says what attention is worth; then each kind of mask with the diagonal, then without it; then curves."""
    designed = [Row(name, "designed", name) for name in DESIGNED + BLOCKS]
    learned = [Row(name, "learned", f"run:{name}", needs=name) for name in LEARNED]
    random = [Row(f"random as {name}", "random", f"like:{name}", needs=name) for name in LEARNED]
    stages = [r for percent in THRESHOLDS for r in pruned(percent)]
    snaps = [r for share in SHARES for r in snapped(share)]
    by_command = [r for share in SHARES for r in settled(share)]
    curve = [r for percent in PROGRESSIVE if percent not in THRESHOLDS for r in pruned(percent)]
    return (dense_rows((0, 1)) + [Row("none", "dense", "none")] + designed + learned + stages + snaps + by_command + without(designed) + without(learned) + dense_rows((2,)) + random + curve +
            without(stages) + without(snaps) + without(random) + without(curve))
