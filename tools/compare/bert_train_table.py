# SPDX-License-Identifier: Apache-2.0
"""Cases and table of tools/bert-peers --train. Nothing here needs torch."""
import dataclasses

import peers_report as report

MODELS = {"mini": "mini", "small": "small", "tiny": "tiny"}  # as maskbert init has them
POSITIONS = {"mini": 2048, "small": 2048, "tiny": 64}
DROPOUTS = (0.1, 0.0)  # of hidden states and of attention
LONG_MASK = "longformer(64,2)"


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    mask: str | None
    batch: int
    length: int

    def name(self):
        return f"{self.model} {self.batch} x {self.length} {self.mask or 'dense'}"


CASES = [Case(model, *case) for model in ("mini", "small")
         for case in ((None, 32, 128), (None, 8, 512), (LONG_MASK, 2, 2048))]
QUICK_CASES = [Case("tiny", None, 3, 16), Case("tiny", "longformer(8,2)", 2, 64)]

CONTENDERS = ("ours", "eager sdpa", "eager plain", "compiled sdpa", "compiled plain", "flex")
COLUMNS = ("case", "dropout", *CONTENDERS, "vs eager", "vs compiled", "vs best", "verified")
SHORT = ("case", "dropout", "ours", "vs eager", "vs compiled", "vs best", "verified")  # without --wide


WIDTHS = {"dropout": 7, **{c: max(10, len(c)) for c in CONTENDERS}, "vs eager": 8, "vs compiled": 11, "vs best": 8, "verified": 8}


def line(cells, cases, wide=False):
    shown = [k for k, name in enumerate(COLUMNS) if wide or name in SHORT]
    widths = WIDTHS | {"case": max(len(c.name()) for c in cases)}
    rows = report.terminal.Rows([widths[COLUMNS[k]] for k in shown], [0, len(shown) - 1])
    return rows.line([cells[k] for k in shown])


def row_of(case, cell, o):
    """The table's line of one case and dropout: tokens a second, and by how much ours is faster."""
    statistic = f"{'cpu_' if o.clock == 'cpu' else ''}{o.statistic}_s"
    rate = {r["contender"]: r["tokens"] / r[statistic] for r in cell if r.get(statistic)}

    def ratio(prefixes):
        others = [x for name, x in rate.items() if name.startswith(prefixes)]
        return f"{rate['ours'] / max(others):.2f} x" if others and "ours" in rate else "-"

    return [case.name(), f"{cell[0]['dropout']:g}", *(f"{rate[c]:.0f}" if c in rate else "-" for c in CONTENDERS),
            ratio("eager"), ratio("compiled"), ratio(("eager", "compiled", "flex")), report.verdict(cell)]
