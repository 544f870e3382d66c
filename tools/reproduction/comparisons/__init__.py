# SPDX-License-Identifier: Apache-2.0
"""The papers' comparisons on tasks: glue-like, sparsegen, pruning, blockbert. Each is a table of variants x tasks x seeds whose cells
are runs of `maskbert finetune`, cached one by one."""
