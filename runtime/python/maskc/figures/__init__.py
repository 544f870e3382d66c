# SPDX-License-Identifier: Apache-2.0
"""Figures for papers from JSON, by matplotlib. python3 -m maskc.figures --help lists the kinds with their JSON and an example of each.

    from maskc import figures
    figures.draw("lines", {"x": {"label": "density (%)"}, "y": {"label": "accuracy (%)"},
                           "series": [{"name": "pruned", "points": [[10, 71, 0.8], [50, 79.5, 0.5]]}]}, "pruned.pdf", columns=1)
"""
from .command import draw
from .data import Bad
from .kinds import KINDS

__all__ = ["Bad", "KINDS", "draw"]
