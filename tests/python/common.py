# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package: this python's packages, the device of --device, errors, and attention by its
definition."""
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import cmocka_count  # noqa: E402

import maskc  # noqa: E402
from maskc import _library  # noqa: E402


def has(name):
    return importlib.util.find_spec(name) is not None


def has_operator():
    """torch 2.10 or later, and a package that was built with one."""
    if not has("torch") or not _library.op_library_path():
        return False
    import torch
    return tuple(int(x) for x in torch.__version__.split(".")[:2]) >= (2, 10)


def has_gpu():
    """A GPU that torch can use."""
    if not has_operator():
        return False
    import torch
    return torch.cuda.is_available()


def asked_device():
    """The word after --device, which is removed from sys.argv; "cpu" without it."""
    if "--device" not in sys.argv:
        return "cpu"
    at = sys.argv.index("--device")
    device = "".join(sys.argv[at + 1:at + 2])
    if device.partition(":")[0] not in ("cpu", "cuda"):
        print(f"--device: {device!r}; cpu, cuda or cuda:N is expected", file=sys.stderr)
        sys.exit(2)
    del sys.argv[at:at + 2]
    return device


def work_on(device):
    """Tensors are made there from now on, and kernels compiled for it. Ends the program if there is no such GPU."""
    if device == "cpu":
        return
    if not has_gpu():
        print(f"skipped: --device {device}: no GPU, or no torch 2.10 that can use it")
        sys.exit(77)
    import torch
    torch.cuda.init()
    torch.set_default_device(device)
    compile_any = maskc.compile
    maskc.compile = lambda *arguments, **named: compile_any(*arguments, **({"target": device} | named))


DEVICE = asked_device()
KIND = DEVICE.partition(":")[0]
work_on(DEVICE)


def cpu_only(why):
    """Skips a test or a class of tests on other devices."""
    return unittest.skipIf(KIND != "cpu", f"--device {DEVICE}: {why}")


def active_keys(kernel, layer=0):
    """The kernel's mask, bool [H, n, n] on the device."""
    import torch
    return torch.from_numpy(kernel.mask[layer].copy()).to(DEVICE)


needs_numpy = unittest.skipUnless(has("numpy"), "this Python has no numpy")
operates = has("numpy") and has_operator()  # masks of arrays need numpy
needs_torch = unittest.skipUnless(operates, "this Python lacks torch 2.10 or numpy, or the package was built without the operator")
needs_transformers = unittest.skipUnless(operates and has("transformers"), "this Python lacks transformers, torch 2.10 or numpy")


class Case(unittest.TestCase):
    def refused(self, words, call, *arguments, kind=maskc.Error, **named):
        """call raises maskc.Error with one line that has the words."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        text = str(caught.exception)
        self.assertIn(words, text)
        self.assertNotIn("\n", text)


class Transformers5(Case):
    """Tests of models on the CPU by transformers 5 or later."""
    @classmethod
    def setUpClass(cls):
        import transformers
        if KIND != "cpu":
            raise unittest.SkipTest("does not depend on the device")
        if int(transformers.__version__.split(".")[0]) < 5:
            raise unittest.SkipTest("transformers 5 has the attention interface in these models")


def error(a, b):
    """The contract's measure; b is float64."""
    a, b = a.detach().cpu().double(), b.detach().cpu().double()
    e = ((a - b).norm() / max(b.norm().item(), 0.1 * max(b.numel(), 1) ** 0.5)).item()
    return float("inf") if e != e else e


def attend(q, k, v, active, scale, rounded=lambda t: t, bias=None, kind="add"):
    """(O, LSE, P, probabilities that meet V) of [.., N, D] by the definition; active is bool [.., N, N]."""
    import torch
    s = scale * q @ k.transpose(-1, -2)
    s = s + bias if bias is not None and kind == "add" else s
    s = s.masked_fill(~active, -torch.inf)
    lse = s.logsumexp(-1)
    p = torch.exp(s - lse[..., None]).masked_fill(~active, 0)
    met = rounded(p * bias if bias is not None and kind == "scale" else p)
    return met @ v, lse, p, met


def gradients(q, k, v, active, scale, grad, rounded=lambda t: t, bias=None, kind="add"):
    """[O, dQ, dK, dV, dX] by the definition, X's over the first dimension summed."""
    out, _, p, met = attend(q, k, v, active, scale, rounded, bias, kind)
    out = rounded(out)
    dv = met.transpose(-1, -2) @ grad
    dmet = grad @ v.transpose(-1, -2)
    dp = dmet * bias if bias is not None and kind == "scale" else dmet
    ds = p * (dp - (grad * out).sum(-1, keepdim=True))
    dx = (ds if kind == "add" else (p * dmet)).sum(0)
    ds = rounded(ds)
    return [out, rounded(scale * ds @ k), rounded(scale * ds.transpose(-1, -2) @ q), rounded(dv), dx]
