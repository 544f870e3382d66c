#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""graphs_command_test.py MASKBERT: `maskbert pretrain` on the emulated device, which records launches and replays them. Does a
run have the same bits with --no-graphs, whatever changes on its way, and does it submit fewer launches? Exit code 77 where nothing
can be trained."""
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pretrain_toy import Toy, run_tests, same  # noqa: E402

ON = ["--device", "emulated", "--threads", 1]


def launches(toy, run):
    return [x["launches"] for x in toy.log(run) if "lr" in x]


def both(toy, *options):
    """The number of samples, and the launches of each step with graphs, and without."""
    made = toy.train("graphs", *options, *ON)
    toy.train("plain", *options, *ON, "--no-graphs")
    same(toy, "graphs", "plain")
    return int(re.search("([0-9]+) samples", made.stderr)[1]), launches(toy, "graphs"), launches(toy, "plain")


def epochs(toy):
    """Two epochs, whose samples have other numbers for dropout, of different lengths, with evaluations: the second replays what the first recorded."""
    half = (toy.work / "text.txt").read_text().split("\n\n")[::2]
    (toy.work / "half.txt").write_text("\n\n".join(half) + "\n")
    toy.ok("prep", "half.txt", "--vocab", "model", "--length", 32, "--held-out", 0.1, "--dupe", 1, "-o", "small")
    (toy.work / "half.txt").unlink()
    samples, with_graphs, without = both(toy, "--data", "small", "--steps", 18, "--batch", 8, "--eval-every", 8)
    assert 9 * 8 < samples < 14 * 8, samples
    assert max(with_graphs[9:]) == min(with_graphs) < 0.2 * min(without), (with_graphs, without)
    toy.remove("graphs", "plain", "small")


def parts(toy):
    """Parts of a batch, whose gradients are added in a tree; and a run that goes on."""
    options = ["--accumulate", 8, "--save-every", 3, "--keep", 9, "--optimizer", "lamb"]
    both(toy, "--steps", 5, *options)
    toy.states("graphs")[-1].unlink()
    toy.train("graphs", "--steps", 5, *options, *ON, "--resume")
    same(toy, "graphs", "plain")
    toy.remove("graphs", "plain")


def learned_mask(toy):
    """A bias of each step, and kernels for the mask that the run settles on."""
    both(toy, "--steps", 6, "--learn-mask", "dam-s", "--lambda", 1e-4, "--settle", 3, "--recompute", "layer")
    for name in ("alpha.safetensors", "mask.mask"):
        assert (toy.work / "graphs" / name).read_bytes() == (toy.work / "plain" / name).read_bytes(), name
    toy.remove("graphs", "plain")


def main():
    return run_tests(Toy, os.path.abspath(sys.argv[1]), {t.__name__: t for t in (epochs, parts, learned_mask)}, probe=ON)


if __name__ == "__main__":
    sys.exit(main())
