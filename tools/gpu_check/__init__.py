# SPDX-License-Identifier: Apache-2.0
"""Modules of tools/gpu-check. `work` runs cases in parallel within the budget, `stages` lists them, `expected` holds
their seconds, `plan` prints them, `results` and `report` keep what was found. The other modules hold one stage each.
"""
