#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masks that are learned against torch in float64: usage learn_oracle.py MASKBERT MASKC.
Noise is what Philox gives for (seed, step); alpha's gradient, in each kind and with each option, and all other gradients are
autograd's, given alpha and noise from --save-gradients; ten steps follow AdamW in float64.
Exit code 77 (skipped) where there is no torch."""
import itertools
import os
import sys
import tempfile

sys.dont_write_bytecode = True
import gradient_oracle as oracle  # noqa: E402
import command_oracle as command  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from bert import read_safetensors  # noqa: E402

STREAM_NOISE = 22
STEPS = 10
run_numbers = itertools.count()


class Kind:
    """A way to learn: the options of ours, and what they mean."""

    def __init__(self, kind, *options, c=10, tau=1, lam=None, seed=0):
        self.kind, self.options, self.c, self.tau, self.seed = kind, options, c, tau, seed
        self.lam = lam if lam is not None else 0 if kind == "p" else 1e-8 * c
        self.code, self.layers = "--dam-code" in options, "--per-layer" in options
        self.symmetric = kind == "p" or "--symmetric" in options
        self.relaxed, self.leaks = "--soft-sample" in options, "--leak" in options
        self.halves = "--bi-level" in options
        self.name = " ".join((kind, *map(str, options)))

    def command(self):
        return ["--learn-mask", self.kind, *self.options]

    def shape(self, layers, heads, n):
        """Returns the shape of an array with one number for each unit of the mask."""
        head = (heads, n, n) if self.kind != "dam-s" else (heads, n if self.code else n - 2)
        return ((layers,) if self.layers else ()) + head

    def expand(self, m, n):
        """[layers or 1, heads, n, n] of a number a unit."""
        m = m if self.layers else m[None]
        if self.kind != "dam-s":
            return m
        i, j = numpy.ogrid[:n, :n]
        distance = torch.tensor(abs(i - j))
        if self.code:
            return m[..., distance]
        inside = torch.tensor((i > 0) & (j > 0) & (i < n - 1) & (j < n - 1))
        return torch.where(inside, m[..., distance.clamp(max=n - 3)], torch.ones((), dtype=m.dtype))

    def free(self, alpha):
        """The parameters that are free."""
        return numpy.triu(alpha) if self.symmetric else alpha

    def whole(self, alpha):
        if not self.symmetric:
            return alpha
        return torch.triu(alpha) + torch.triu(alpha, 1).transpose(-1, -2)

    def set(self, model, case, alpha, noise, n):
        """The model's bias and mask as functions of alpha; the price."""
        logit = self.whole(alpha)
        if self.code:
            logit = logit[..., 0] - logit[..., 1]
        case.bits = None
        if self.kind == "p":
            model.bias = self.expand(self.c / 2 * torch.tanh(logit / 2), n).to(model.dtype)
            return self.lam * self.expand(torch.sigmoid(logit), n).sum()
        x = logit + torch.tensor(noise.astype(numpy.float64))
        y = torch.sigmoid(x / self.tau)
        m = self.expand(y if self.relaxed else (x > 0).double() + y - y.detach(), n)
        model.bias = (-self.c * (1 - m)).to(model.dtype)
        if not self.relaxed and not self.leaks:
            case.bits = (m > 0.5).numpy()
        return self.lam * m.sum()

    def gradients(self, toy, model, tensors, alpha):
        """alpha: what is free, a leaf. Losses, gradients of the model, of alpha as ours has it."""
        noise, n = tensors.get("batch.noise"), toy.case.config["max_position_embeddings"]
        alpha.grad = None
        price = self.set(model, toy.case, alpha, noise, n)
        price.backward(retain_graph=True)
        batch = command.batch_of(tensors)
        if self.halves:
            mlm, pairs, gradients, g = self.halved(toy, model, batch, alpha, noise)
        else:
            mlm, pairs, gradients = model.gradients(batch, toy.case)
            g = alpha.grad.numpy().copy()
        return mlm, pairs, gradients, g + numpy.triu(g, 1).swapaxes(-1, -2) if self.symmetric else g

    def halved(self, toy, model, batch, alpha, noise):
        """--bi-level: weights learn from the first half of the batch, the larger one, alpha from the second; each from the mean of its own."""
        half, samples = len(batch) - len(batch) // 2, toy.case.samples
        toy.case.samples = samples and samples[half:]
        second = model.gradients(batch[half:], toy.case)
        g = alpha.grad.numpy().copy()
        self.set(model, toy.case, alpha, noise, toy.case.config["max_position_embeddings"])
        toy.case.samples = samples and samples[:half]
        first = model.gradients(batch[:half], toy.case)
        toy.case.samples = samples
        masked = [sum(len(m) for *_, m in part) for part in (batch[:half], batch[half:])]
        mlm = (first[0] * masked[0] + second[0] * masked[1]) / sum(masked)
        pairs = (first[1] * half + second[1] * (len(batch) - half)) / len(batch)
        return mlm, pairs, first[2], g


def check_noise(kind, tensors, step, c):
    noise = tensors["batch.noise"]
    shape = kind.shape(c["num_hidden_layers"], c["num_attention_heads"], c["max_position_embeddings"])
    assert noise.shape == shape, (noise.shape, shape)
    k = numpy.arange(noise.size)
    words = oracle.philox(kind.seed, k // 2, step, 0, STREAM_NOISE).astype(object)
    draw = numpy.where(k % 2, words[2] + words[3] * 2 ** 32, words[0] + words[1] * 2 ** 32)
    u = ((draw // 2048).astype(numpy.float64) + 0.5) * 2.0 ** -53
    truth = (numpy.log(u) - numpy.log1p(-u)).reshape(shape)
    if kind.symmetric:
        truth = numpy.triu(truth) + numpy.triu(truth, 1).swapaxes(-1, -2)
    oracle.report(kind.name + ": noise", abs(noise - truth).max(), 1e-5)


def check_gradients(toy, kind, *options, steps=3):
    """Weights stand still (--lr 0), so that those of the last step are known; alpha does not."""
    tensors, _, _ = toy.train(f"run-{next(run_numbers)}", "--steps", steps, "--lr", 0, "--schedule", "constant", "--mask-lr", 0.3, "--seed", kind.seed,
                                *kind.command(), "--dropout", 0, *options)
    c = toy.case.config
    toy.case.samples = [int(x) for x in tensors["batch.samples"]]
    assert tensors["batch.alpha"].shape == tensors["alpha"].shape == kind.shape(
        c["num_hidden_layers"], c["num_attention_heads"], c["max_position_embeddings"]) + ((2,) if kind.code else ())
    assert abs(tensors["batch.alpha"]).max() > 0.1
    if kind.kind != "p":
        check_noise(kind, tensors, steps, c)
    alpha = torch.tensor(kind.free(tensors["batch.alpha"].astype(numpy.float64)), requires_grad=True)
    mlm, pairs, truth, of_alpha = kind.gradients(toy, oracle.Model(toy.work + "/model"), tensors, alpha)
    mine = {n.removeprefix("bert."): x.astype(numpy.float64) for n, x in tensors.items() if n != "loss" and not n.startswith("batch.")}
    truth["alpha"] = of_alpha
    assert set(mine) == set(truth), set(mine) ^ set(truth)
    assert oracle.norm(of_alpha) > 0
    oracle.report(kind.name + ": loss", abs(float(tensors["loss"]) - mlm - pairs) / (mlm + pairs), 1e-6)
    oracle.report(kind.name + ": alpha", oracle.norm(mine["alpha"] - of_alpha) / oracle.norm(of_alpha), 1e-5)
    ratio, worst = oracle.worst(mine, truth)
    oracle.report(f"{kind.name}: {worst}, part of what is allowed", ratio, 1)


def check_bf16(toy, kind, steps=3):
    """Alpha's gradient in bf16 beside what torch's autocast makes of it, both held to float64 at the same alpha and noise."""
    tensors, _, _ = toy.train(f"run-{next(run_numbers)}", "--steps", steps, "--lr", 0, "--schedule", "constant", "--mask-lr", 0.3, *kind.command(), "--dropout", 0,
                              "--dtype", "bf16")
    toy.case.samples = [int(x) for x in tensors["batch.samples"]]
    start = kind.free(tensors["batch.alpha"].astype(numpy.float64))
    truth = kind.gradients(toy, oracle.Model(toy.work + "/model"), tensors, torch.tensor(start, requires_grad=True))[3]
    with torch.autocast("cpu", torch.bfloat16):
        theirs = kind.gradients(toy, oracle.Model(toy.work + "/model", torch.float32), tensors, torch.tensor(start, requires_grad=True))[3]
    ours, autocast = (oracle.norm(x - truth) / oracle.norm(truth) for x in (tensors["alpha"].astype(numpy.float64), theirs))
    oracle.report(f"{kind.name} bf16: alpha, error beside autocast's", ours / autocast, 1.5)
    oracle.report(f"{kind.name} bf16: alpha, error", ours, 0.02)


def check_steps(toy, kind):
    """Each batch comes from a run that ends with it."""
    toy.case.samples = None
    model, alpha = oracle.Model(toy.work + "/model"), None
    before = {n: x.detach().numpy().copy() for n, x in model.t.items()}
    worst = 0
    for k in range(1, STEPS + 1):
        tensors, log, weights = toy.train(f"{kind.kind}-{k}", "--steps", k, "--schedule", "constant", "--warmup", 0, "--lr", 1e-3, "--dropout", 0,
                                          *kind.command())
        if alpha is None:
            first = kind.free(tensors["batch.alpha"].astype(numpy.float64))
            alpha = torch.tensor(first, requires_grad=True)
            optimiser = torch.optim.AdamW([{"params": [x for n, x in model.t.items() if command.decays(n) == d], "weight_decay": 0.01 * d}
                                           for d in (True, False)] + [{"params": [alpha], "weight_decay": 0, "lr": 1e-2}], lr=1e-3)
        mlm, pairs, gradients, of_alpha = kind.gradients(toy, model, tensors, alpha)
        worst = max(worst, abs(log[-1]["loss"] - mlm - pairs) / (mlm + pairs))
        scale = min(1, 1 / numpy.sqrt(sum((x ** 2).sum() for x in gradients.values())))
        for n, x in model.t.items():
            x.grad = None if n not in gradients else torch.tensor(gradients[n] * scale)
        alpha.grad = torch.tensor(kind.free(of_alpha))
        optimiser.step()
    oracle.report(kind.name + ": loss of ten steps", worst, 1e-6)
    ours = kind.free(read_safetensors(f"{toy.work}/{kind.kind}-{STEPS}/alpha.safetensors")["alpha"].astype(numpy.float64))
    moved = alpha.detach().numpy() - first
    oracle.report(kind.name + ": alpha, error of the update", oracle.norm(ours - first - moved) / oracle.norm(moved), 1e-3)
    errors = {n: oracle.norm(weights[n] - x.detach().numpy()) / oracle.norm(x.detach().numpy() - before[n])
              for n, x in model.t.items() if oracle.norm(x.detach().numpy() - before[n]) > 0 and not n.endswith("key.bias")}
    n = max(errors, key=errors.get)
    oracle.report(f"{kind.name}: {n}, error of the update", errors[n], 1e-3)


KINDS = [
    Kind("p"),
    Kind("p", "--per-layer", "--lambda", 1e-3, lam=1e-3),
    Kind("p", "--mask-scale", 100, c=100),
    Kind("dam-u"),
    Kind("dam-u", "--lambda", 1e-4, lam=1e-4),
    Kind("dam-u", "--symmetric", "--lambda", 0, "--per-layer", lam=0, seed=2 ** 40 + 3),
    Kind("dam-u", "--soft-sample", "--tau", 0.5, tau=0.5),
    Kind("dam-u", "--leak", "--lambda", 0, lam=0),
    Kind("dam-s"),
    Kind("dam-s", "--per-layer", "--tau", "2..0.5", "--lambda", 1e-4, tau=0.5, lam=1e-4),
    Kind("dam-s", "--soft-sample"),
    Kind("dam-s", "--leak", "--lambda", 0, lam=0),
    Kind("dam-s", "--lambda", 0, lam=0),
    Kind("dam-s", "--dam-code"),
    Kind("dam-s", "--dam-code", "--lambda", 0, lam=0),
    Kind("dam-s", "--dam-code", "--per-layer", "--leak"),
    Kind("p", "--bi-level"),
    Kind("dam-u", "--bi-level", "--lambda", 1e-4, lam=1e-4),
    Kind("dam-s", "--bi-level"),
]


def main(maskbert, maskc):
    torch.set_num_threads(1)  # small models wait for threads longer than they compute
    with tempfile.TemporaryDirectory() as work:
        toy = command.Toy(maskbert, maskc, work, mask=None)
        for kind in KINDS:
            check_gradients(toy, kind)
        check_gradients(toy, Kind("dam-s", seed=7), "--accumulate", 4)
        check_gradients(toy, Kind("dam-u", "--bi-level", "--per-layer"), "--batch", 5, "--accumulate", 2)
        for kind in (Kind("p"), Kind("dam-u", "--lambda", 0, lam=0), Kind("dam-u", "--leak", "--lambda", 0, lam=0), Kind("dam-s", "--lambda", 0, lam=0),
                     Kind("dam-s", "--dam-code", "--lambda", 0, lam=0), Kind("dam-s", "--soft-sample", "--lambda", 0, lam=0)):
            check_bf16(toy, kind)
        for kind in (Kind("p"), Kind("dam-s")):
            check_steps(toy, kind)
    return oracle.failures > 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
