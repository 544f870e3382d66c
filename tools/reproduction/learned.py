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


def sigmoids(values):
    return [1 / (1 + math.exp(-v)) for v in values]


def entries(shape, alpha, n):
    """P of each head's entries, row after row; 1 on a forced border, where there is no alpha."""
    size = len(alpha) // shape[0]
    for head in range(shape[0]):
        P = sigmoids(alpha[head * size:(head + 1) * size])
        if len(shape) == 2:  # by distance, inside the border
            inner = [[1.0, *P[i:0:-1], *P[:n - 2 - i], 1.0] for i in range(n - 2)]
            P = [p for row in ([1.0] * n, *inner, [1.0] * n) for p in row]
        yield P


def inside(P, n):
    """The entries without the first and the last query and key."""
    return [p for i in range(1, n - 1) for p in P[i * n + 1:(i + 1) * n - 1]]


def border(P, n):
    return P[:n] + P[(n - 1) * n:] + P[n:(n - 1) * n:n] + P[2 * n - 1:(n - 1) * n:n]


def at_distance(P, n, distance):
    """The entries (i, j) with |i - j| = distance."""
    return P[distance:(n - distance) * n:n + 1] + (P[distance * n::n + 1] if distance else [])


def place(distance):
    """The kinds of places inside the border that SparseBERT tells apart (Figure 2)."""
    return {0: "diagonal", 1: "distance 1", 2: "distance 2"}.get(distance, "rest")


def statistics_of(count, total, squares):
    return {"mean": total / count, "deviation": math.sqrt(max(0, squares / count - (total / count)**2)), "entries": count}


def measure(run, settings):
    """Means of P by place and by distance (inside the border), the spread of P, and which distances a head keeps."""
    shape, alpha = arrays.read_safetensors(run / "alpha.safetensors", "alpha")
    n, inner = settings.length, settings.length - 2
    places, means, kept = {}, [[] for _ in range(inner)], []
    for P in entries(shape, alpha, n):
        within = inside(P, n)
        values = {d: at_distance(within, inner, d) for d in range(inner)}
        for kind, found in (("special", border(P, n)), *((place(d), found) for d, found in values.items())):
            places[kind] = [a + b for a, b in zip(places.get(kind, (0, 0, 0)), (len(found), sum(found), sum(p * p for p in found)))]
        for d, found in values.items():
            means[d].append(sum(found) / len(found))
        kept.append([sum(p > 0.5 for p in found) / len(found) for found in values.values()])
    return {"P": {kind: statistics_of(*sums) for kind, sums in places.items()},
            "P_by_distance": [statistics.fmean(of_heads) for of_heads in means] + [None] * 2,
            "kept": kept,
            "kept_distances": [[d for d, share in enumerate(head) if 2 * share > 1] for head in kept]}


def mean_over_heads(run, settings):
    """P averaged over the heads, as rows."""
    shape, alpha = arrays.read_safetensors(run / "alpha.safetensors", "alpha")
    n = settings.length
    total = [sum(of_heads) / shape[0] for of_heads in zip(*entries(shape, alpha, n))]
    return [total[i * n:(i + 1) * n] for i in range(n)]


def off_diagonal_mean(P):
    """Mean of all entries except the diagonal's, from the result of measure()."""
    others = [v for kind, v in P.items() if kind != "diagonal"]
    return sum(v["mean"] * v["entries"] for v in others) / sum(v["entries"] for v in others)


def groups(distances):
    """Number of groups of consecutive kept distances."""
    return sum(1 for k, d in enumerate(distances) if k == 0 or d != distances[k - 1] + 1)


def mean_and_deviation(values):
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
