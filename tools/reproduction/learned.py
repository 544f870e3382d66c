# SPDX-License-Identifier: Apache-2.0
"""The runs that learn a mask, and what they learned: alpha and P by where an entry stands."""
import math
import statistics

import arrays
import rows

NAMES = tuple(f"p-{k}" for k in range(rows.P_SEEDS)) + rows.LEARNED

# c, what a mask's change of 1 adds to a score. Alpha learns by c dX + lambda, so the papers' lambdas keep their ratio to the c of their code.
SCALE, PAPER_SCALE = 10, 10000


def options(name, seed):
    """(kind of training, options of maskbert pretrain, seed) of a run."""
    if name.startswith("p-"):
        return "p", ["--learn-mask", "p", "--mask-scale", f"{SCALE:g}"], seed + int(name[2:])
    kind, price = name[:5], float(name[6:]) * SCALE / PAPER_SCALE
    return "dam", ["--learn-mask", kind, "--mask-scale", f"{SCALE:g}", "--lambda", f"{price:g}"], seed


def distance_of(shape, head, i, j):
    """Where alpha of the entry (i, j) lies; None where the border is forced on."""
    if len(shape) == 3:
        return (head * shape[1] + i) * shape[2] + j
    n = shape[1] + 2
    return None if min(i, j) == 0 or max(i, j) == n - 1 else head * shape[1] + abs(i - j)


def entries(shape, alpha, n):
    """(head, i, j, P) of every entry; 1 on a forced border."""
    for head in range(shape[0]):
        for i in range(n):
            for j in range(n):
                at = distance_of(shape, head, i, j)
                yield head, i, j, 1.0 if at is None else 1 / (1 + math.exp(-alpha[at]))


def place(i, j, n):
    """The kinds of places that SparseBERT tells apart (Figure 2)."""
    if min(i, j) == 0 or max(i, j) == n - 1:
        return "special"
    return {0: "diagonal", 1: "distance 1", 2: "distance 2"}.get(abs(i - j), "rest")


def measure(run, settings):
    """Means of P by place and by distance (inside the border), the spread of P, and which distances a head keeps."""
    shape, alpha = arrays.read_safetensors(run / "alpha.safetensors", "alpha")
    n, heads = settings.length, settings.heads
    places, distances = {}, [[0.0, 0] for _ in range(n)]
    kept, inside = [[0] * n for _ in range(heads)], [0] * n
    for head, i, j, p in entries(shape, alpha, n):
        kind = place(i, j, n)
        sums = places.setdefault(kind, [0.0, 0.0, 0])
        sums[0], sums[1], sums[2] = sums[0] + p, sums[1] + p * p, sums[2] + 1
        if kind != "special":
            distances[abs(i - j)][0] += p
            distances[abs(i - j)][1] += 1
            inside[abs(i - j)] += head == 0
            kept[head][abs(i - j)] += p > 0.5
    return {"P": {kind: {"mean": s / count, "deviation": math.sqrt(max(0, q / count - (s / count)**2)), "entries": count}
                  for kind, (s, q, count) in places.items()},
            "P_by_distance": [s / count if count else None for s, count in distances],
            "kept": [[count / total for count, total in zip(head, inside) if total] for head in kept],
            "kept_distances": [[d for d, (count, total) in enumerate(zip(head, inside)) if total and 2 * count > total] for head in kept]}


def mean_over_heads(run, settings):
    """P averaged over the heads, as rows."""
    shape, alpha = arrays.read_safetensors(run / "alpha.safetensors", "alpha")
    n = settings.length
    total = [[0.0] * n for _ in range(n)]
    for _, i, j, p in entries(shape, alpha, n):
        total[i][j] += p / shape[0]
    return total


def off_diagonal_mean(P):
    """Mean of all entries except the diagonal's, from the result of measure()."""
    others = [v for kind, v in P.items() if kind != "diagonal"]
    return sum(v["mean"] * v["entries"] for v in others) / sum(v["entries"] for v in others)


def groups(distances):
    """Number of groups of consecutive kept distances."""
    return sum(1 for k, d in enumerate(distances) if k == 0 or d != distances[k - 1] + 1)


def mean_and_deviation(values):
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
