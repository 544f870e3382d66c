#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention on an icosahedral mesh, as weather models have it: each node sees the nodes within K steps.

    python3 mesh.py                                  # 10,242 nodes, 8 steps: orders, predicted and measured
    python3 mesh.py --subdivide 6 --rivals gather,blocks
    python3 mesh.py --grid                           # a 64 x 64 grid with windows of 7 x 7 instead

Nodes are numbered as subdivision makes them, old ones first. `maskc order` finds an order through their coordinates. Without torch only
the forward pass is measured; with it both, and --rivals are torch's ways to compute the same: flex, blocks, gather, sparse, dense.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy

import maskc
import mesh_rivals


def subdivide(times):
    """An icosahedron's vertices [n, 3] on the unit sphere, and edges [e, 2], after so many subdivisions; old vertices first."""
    g = (1 + 5 ** 0.5) / 2
    vertices = numpy.array([(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g), (0, -1, -g), (0, 1, -g),
                            (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)]) / (1 + g * g) ** 0.5
    faces = numpy.array([(0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4), (11, 10, 2), (10, 7, 6), (7, 1, 8),
                         (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7), (9, 8, 1)])
    for _ in range(times):
        ends = numpy.sort(numpy.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), 1)
        edges, which = numpy.unique(ends, axis=0, return_inverse=True)
        middle = vertices[edges].mean(1)
        a, b, c = len(vertices) + which.reshape(3, -1)
        vertices = numpy.concatenate([vertices, middle / numpy.linalg.norm(middle, axis=1, keepdims=True)])
        x, y, z = faces.T
        faces = numpy.concatenate([numpy.stack(f, 1) for f in ((x, a, c), (y, b, a), (z, c, b), (a, b, c))])
    ends = numpy.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return vertices, numpy.unique(numpy.sort(ends, 1), axis=0)


def save_graph(path, n, edges):
    """Writes the adjacency matrix in the format of scipy.sparse.save_npz."""
    both = numpy.concatenate([edges, edges[:, ::-1]])
    numpy.savez(path, format=b"coo", shape=numpy.array([n, n]), row=both[:, 0], col=both[:, 1], data=numpy.ones(len(both), bool))


def program(*words):
    return maskc.kernel.run_program(*(str(w) for w in words))


def neighbours(kernel_mask_path, n, folder):
    """CSR of the mask: rows [n + 1] and keys, read from what `maskc make` writes."""
    program("make", *kernel_mask_path, "-o", folder / "mask.npy")
    mask = numpy.load(folder / "mask.npy", mmap_mode="r").reshape(n, n)
    keys = [numpy.flatnonzero(row) for row in mask]
    return numpy.concatenate(([0], numpy.cumsum([len(k) for k in keys]))), numpy.concatenate(keys)


class Problem:
    """A mask, its orders, and one kernel for each."""

    def __init__(self, options, folder):
        self.heads, self.width = options.heads, options.head_dim
        self.kernels, self.predicted, self.orders = {}, {}, {}
        common = ["--heads", self.heads, "--head-dim", self.width]
        if options.grid:
            self.n, self.mask, orders = 4096, ["neighborhood(64,64,7,7)", "-n", 4096], {"plain": None}
        else:
            points, edges = subdivide(options.subdivide)
            self.n, self.mask = len(points), [folder / "mesh.npz", "--hops", options.hops]
            save_graph(folder / "mesh.npz", self.n, edges)
            numpy.save(folder / "xyz.npy", points)
            orders = {"plain": None, "shuffled": numpy.random.default_rng(0).permutation(self.n), "ordered": "best"}
        for name, order in orders.items():
            words = self.order_words(name, order, folder, [*common, "--threads", options.threads])
            plan = json.loads(program("plan", *self.mask, *common, "--threads", options.threads, *words, "--json"))
            self.predicted[name] = [sum(m["predicted_s"] for m in plan["masks"] if m["pass"] == p) for p in ("forward", "backward")]
            program("compile", *self.mask, *common, *words, "-o", folder / f"{name}.mkb")
            self.kernels[name] = maskc.load(folder / f"{name}.mkb")
        self.rows, self.keys = neighbours(self.mask, self.n, folder)

    def order_words(self, name, order, folder, options):
        if order is None:
            return []
        path = folder / f"{name}.npy"
        if isinstance(order, str):
            made = json.loads(program("order", *self.mask, *options, "--coordinates", folder / "xyz.npy", "--method", order, "--json", "-o", path))
            print("maskc order:", ", ".join(f"{c['method']} {c['predicted_s'] * 1e3:.1f} ms" for c in made["candidates"]))
        else:
            numpy.save(path, order)
        self.orders[name] = numpy.load(path)
        return ["--order", path]


def measure(ways, repeats):
    """Medians of (forward, backward) of each way; rounds are interleaved. A way that fails says why."""
    samples, failed = {name: ([], []) for name in ways}, {}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            if name in failed:
                continue
            try:
                seconds = way()
            except Exception as e:  # noqa: BLE001: a rival that this torch cannot run is a row of the table
                failed[name] = f"{type(e).__name__}: {str(e).splitlines()[0][:100]}"
                continue
            for kept, value in zip(samples[name], seconds):
                if turn and value is not None:  # the first round warms up
                    kept.append(value)
    return {name: tuple(statistics.median(s) if s else None for s in samples[name]) for name in ways if name not in failed}, failed


def milliseconds(value):
    return "-" if value is None else f"{value * 1e3:.1f}"


def show(problem, times, failed):
    best = times.get("maskc, ordered") or times["maskc, plain"]
    print(f"{'':24}{'forward ms':>12}{'backward ms':>13}{'predicted':>18}{'x ours, forward':>17}{'both':>8}")
    for name, (forward, backward) in times.items():
        predicted = problem.predicted.get(name.removeprefix("maskc, "))
        told = " + ".join(f"{p * 1e3:.1f}" for p in predicted) if predicted else ""
        both = f"{(forward + backward) / sum(best):.1f}" if backward is not None and best[1] is not None else "-"
        print(f"{name:24}{milliseconds(forward):>12}{milliseconds(backward):>13}{told:>18}{forward / best[0]:>17.1f}{both:>8}")
    for name, why in failed.items():
        print(f"{name:24}{why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--subdivide", type=int, default=5)
    parser.add_argument("--hops", type=int, default=8)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rivals", default="")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: processor time, of one thread, for a machine that others use")
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads != 1:
        parser.error("--clock cpu goes with --threads 1")
    mesh_rivals.use_clock(options.clock)
    with tempfile.TemporaryDirectory() as folder:
        problem = Problem(options, pathlib.Path(folder))
        print(f"{problem.n} tokens, {len(problem.keys)} entries, {options.heads} heads of {options.head_dim}, f32, {options.threads} threads, {options.clock} time")
        random = numpy.random.default_rng(1)
        arrays = [random.standard_normal((1, options.heads, problem.n, options.head_dim), numpy.float32) for _ in range(4)]
        ways = mesh_rivals.ways(problem, arrays, [r for r in options.rivals.split(",") if r], options.threads)
        times, failed = measure(ways, options.repeats)
        show(problem, times, failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
