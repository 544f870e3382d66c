# SPDX-License-Identifier: Apache-2.0
"""Reads maskc's plan of a kernel: the share of the matrix that it executes and its predicted time. Beside the
measured time these tell a slow kernel from a wrong prediction. Nothing here needs torch.
"""
import json
import subprocess

# Products of n x n x D of a pass; a backward that recomputes the scores cannot do with fewer.
PRODUCTS = {"forward": 2, "backward": 5, "both": 7}
PASSES = {"forward": ("forward",), "backward": ("backward",), "both": ("forward", "backward")}


def command(program, mask, case, direction):
    """case: length, dtype, head_dim, heads (0: the mask has them), batch, device, threads."""
    target = "cuda" if case["device"] == "cuda" else "cpu"
    return [str(program), "plan", mask, "-n", str(case["length"]), "--dtype", case["dtype"], "--head-dim",
            str(case["head_dim"]), "--batch", str(case["batch"]), "--target", target, "--json",
            *(["--heads", str(case["heads"])] if case["heads"] else []),
            *(["--threads", str(case["threads"])] if target == "cpu" else []),
            *(["--forward-only"] if direction == "forward" else [])]


def executed(plan, direction):
    """The share of all heads' n x n that is executed, by the products of each pass."""
    total = weight = 0.0
    for m in plan["masks"]:
        if m["pass"] in PASSES[direction]:
            products = PRODUCTS[m["pass"]] * len(m["at"])
            total += products * m["executed_fraction"]
            weight += products
    return total / weight if weight else None


def figures(plan, direction):
    return {"executed_fraction": executed(plan, direction), "machine": plan["machine"],
            "predicted_s": sum(plan[name]["predicted_s"] for name in PASSES[direction]),
            "lowerings": sorted({m["lowering"] for m in plan["masks"] if m["pass"] in PASSES[direction]})}


def read(program, mask, case, direction, environment=None):
    """The figures of a row, or {} where maskc cannot plan it: the time of a row does not depend on them."""
    made = subprocess.run(command(program, mask, case, direction), capture_output=True, text=True, check=False,
                          env=environment)
    try:
        return figures(json.loads(made.stdout), direction) if made.returncode == 0 else {}
    except (ValueError, KeyError, TypeError):
        return {}


def area_floor(case, direction, fraction, flops_per_s):
    """Seconds that the executed products need at a measured rate; only for the types of tensor cores."""
    if not fraction or not flops_per_s or case["dtype"] == "f32":
        return None
    flops = 2 * PRODUCTS[direction] * case["length"] ** 2 * case["head_dim"] * case["batch"] * case["all_heads"]
    return flops * fraction / flops_per_s
