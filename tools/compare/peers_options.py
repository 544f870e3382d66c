# SPDX-License-Identifier: Apache-2.0
"""Options of tools/peers: its help, defaults, and what is refused. Nothing here needs torch."""
import argparse
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DESCRIPTION = """Compares maskc's kernels with what PyTorch offers: scaled_dot_product_attention without and with
the mask, compiled FlexAttention, and eager attention, on the same tensors, with the same threads, in
one process, interleaved. Every contender is first held to a float64 reference, forward and backward;
one that is wrong is reported and not timed.
"""

# Distances as DAM learns them, up to 1..509; those that a shorter sequence lacks are left out.
SCATTERED = (3, 17, 31, 44, 58, 73, 89, 102, 121, 137, 158, 187, 223, 251, 286, 325, 371, 418, 463,
             509)
DEFAULT_MASKS = ("star", "dam-near", "longformer(64,2)", "fixed(45,1)", "logsparse", "strided(45)",
                 "bigbird(1,2,2)", "dam-scattered")

EPILOG = """
masks: whatever maskc takes (a gallery name, an expression, a file), and two made-up DAM masks,
  dam-near       {near}
  dam-scattered  {scattered}
  (at n=512). Default: {defaults}.

needs: python3 with torch (tried with 2.15) and numpy; FlexAttention on the CPU also a C++
compiler (CXX, or g++), Python's headers and AVX2; --plot needs matplotlib. For instance
  python3 -m venv /tmp/peers && /tmp/peers/bin/pip install torch numpy && /tmp/peers/bin/python tools/peers

method: a sample is one call after an untimed call of the same contender; contenders take turns; the
median of --repeat samples. "sdpa+mask" has an additive mask in the type of Q, FlexAttention
a mask_mod that reads a table [n, n]; on CUDA it is autotuned. "both" is forward and backward together, by autograd, with outputs allocated
by each contender; "backward" has its forward done before. "dense" computes no mask: the bar for being sparse at all; "vs best" is against the
fastest other contender that computes the mask, "vs own" against our own kernel without one. Error: norm(a-b)/max(norm(b), 0.1 sqrt(size)); tolerance
f32 1e-5, 16-bit types 1.5 x the plain way's error; PyTorch's may be up to 8 x that and still be timed
("loose"). Above 2^24 scores the first and the last head are held to it. Pin the process for steady
figures: taskset -c 0,1 tools/peers --threads 2.

exit codes: 0 done, 1 a maskc kernel is wrong or failed, 2 bad input or usage, 3 torch, a library or a
GPU is missing.
"""


class Fatal(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def expression(label, n):
    """Returns the mask expression for a label."""
    if label == "dam-near":
        return "distance(1,2,4,7,12)|global(0,-1)-diagonal(0)"
    if label == "dam-scattered":
        distances = ",".join(str(d) for d in SCATTERED if d < n)
        return f"distance({distances})|global(0,-1)-diagonal(0)" if distances else "global(0,-1)"
    return label


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return value


def list_of(read, choices=None):
    def parse(text):
        values = [read(word) for word in text.split(",")]
        for value in values:
            if choices and value not in choices:
                raise argparse.ArgumentTypeError(f"'{value}' is none of {', '.join(choices)}")
        return values
    return parse


def new_parser():
    epilog = EPILOG.format(near=expression("dam-near", 512),
                           scattered=expression("dam-scattered", 512),
                           defaults=", ".join(DEFAULT_MASKS))
    p = argparse.ArgumentParser(prog="peers", description=DESCRIPTION, epilog=epilog,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--masks", nargs="+", metavar="MASK")
    p.add_argument("-n", "--length", type=list_of(positive), metavar="N,N",
                   help="lengths (default 512,2048; with --models 2048,8192)")
    p.add_argument("--dtype", type=list_of(str, ("f32", "bf16", "f16")), metavar="T,T",
                   help="f32, bf16, f16 (default: f32,bf16; with --models and --between f32)")
    p.add_argument("--pass", dest="passes", type=list_of(str, ("forward", "backward", "both")),
                   metavar="P,P", default=["forward", "both"],
                   help="forward, backward, both (default: forward,both)")
    p.add_argument("--heads", type=positive, default=12, help="of one-head masks (default 12)")
    p.add_argument("--head-dim", type=positive, default=64, metavar="D", help="default 64")
    p.add_argument("--batch", type=positive, default=1, metavar="B", help="sequences (default 1)")
    p.add_argument("--layout", choices=("bnhd", "bhnd"), default="bnhd",
                   help="of the tensors in memory (default bnhd, as a model's projections write)")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
                   help="CPU threads of every contender (default: all)")
    p.add_argument("--repeat", type=positive, default=15, metavar="N", help="samples (default 15)")
    p.add_argument("--limit", type=float, default=20, metavar="S",
                   help="seconds for the samples of one row, at least 5 each (default 20)")
    p.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                   help="cpu: time on the CPU, for --threads 1 where other work shares the machine, as "
                        "the wall clock then favours short calls (default wall)")
    p.add_argument("--statistic", choices=("median", "p10"), default="median",
                   help="in the table; p10 where other work shares the machine (default median)")
    p.add_argument("--flex-blocks", type=list_of(positive), default=[128, 64, 32, 16], metavar="N,N",
                   help="block sizes of FlexAttention, the best is shown (default 128,64,32,16)")
    p.add_argument("--contenders", metavar="NAME,NAME", type=lambda text: text.split(","),
                   help="only these: ours, ours-dense, sdpa, sdpa+mask, eager, flex-128, ... "
                        "(default: all)")
    p.add_argument("--package", default=ROOT / "build/runtime/python", type=pathlib.Path, metavar="FOLDER",
                   help="that has the Python package (default build/runtime/python; where that is not, the installed one)")
    p.add_argument("--overhead", action="store_true",
                   help="print what a call costs over the same call in C, on a tiny problem, and end")
    p.add_argument("--between", action="store_true",
                   help="time attention (inference) between two of torch's matrix products and alone, beside torch's own and addcmul, "
                        "and end (default masks: dense, longformer(64,2), star)")
    p.add_argument("--models", nargs="?", const="modernbert,bert-longformer", metavar="NAME,NAME",
                   help="time whole models of transformers, random weights: modernbert with its own windows, bert-longformer "
                        "(default: both); forward is inference, both a training step, and end")
    p.add_argument("--layers", type=positive, default=3, metavar="N", help="of --models (default 3)")
    p.add_argument("--maskc", dest="program", default=ROOT / "build/tools/maskc/maskc",
                   type=pathlib.Path, metavar="FILE", help="default build/tools/maskc/maskc")
    p.add_argument("--wide", action="store_true", help="print the times of all contenders, lines of any length")
    p.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write all figures")
    p.add_argument("--plot", metavar="FILE.{svg,png}", type=pathlib.Path, help="draw the times")
    return p


# Options without an effect, by mode; "": none of the modes.
UNUSED = {
    "overhead": ("between", "models", "masks", "length", "dtype", "passes", "heads", "head_dim", "batch", "layout", "repeat", "limit", "clock",
                 "statistic", "flex_blocks", "contenders", "layers", "wide", "json", "plot"),
    "models": ("between", "masks", "heads", "head_dim", "layout", "statistic", "flex_blocks", "wide", "plot"),
    "between": ("passes", "layout", "flex_blocks", "contenders", "layers", "wide", "plot"),
    "": ("layers",)}


def refuse_unused(p, o):
    """Refuses options that the mode would ignore."""
    mode = next((m for m in UNUSED if m and getattr(o, m)), "")
    words = {a.dest: a.option_strings[-1] for a in p._actions}
    for name in UNUSED[mode]:
        if getattr(o, name) != p.get_default(name):
            raise Fatal(2, f"{words[name]}: has no effect with --{mode}" if mode else f"{words[name]}: needs --models")


def fill_options(o):
    o.length = o.length or ([2048, 8192] if o.models else [512, 2048])
    o.dtype = o.dtype or (["f32"] if o.models or o.between else ["f32", "bf16"])
    o.masks = o.masks or (["dense", "longformer(64,2)", "star"] if o.between else list(DEFAULT_MASKS))


def check_models(o):
    import peers_models
    for name in o.models.split(","):
        if name not in peers_models.MODELS:
            raise Fatal(2, f"--models: '{name}' is none of {', '.join(peers_models.MODELS)}")
    if "backward" in o.passes or o.device != "cpu":
        raise Fatal(2, "--models: times forward and both, on the CPU")
    for name in o.contenders or ():
        if name not in peers_models.WAYS:
            raise Fatal(2, f"--contenders: '{name}' is none of {', '.join(peers_models.WAYS)}")
    if o.contenders and not {"sdpa", "flex"} & set(o.contenders):
        raise Fatal(2, "--contenders: --models compares maskc with sdpa, flex or both")
    if o.contenders and "sdpa" not in o.contenders and "both" in o.passes:
        raise Fatal(2, "--contenders: flex has no backward pass on CPUs; add sdpa, or give --pass forward")
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise Fatal(3, "--models needs transformers: pip install transformers") from None
    return peers_models


def check_options(o):
    fill_options(o)
    if o.clock == "cpu" and (o.threads != 1 or o.device != "cpu"):
        raise Fatal(2, "--clock cpu: needs --threads 1 and --device cpu")
    if o.between and o.device != "cpu":
        raise Fatal(2, "--between: on the CPU only")
    for path in filter(None, (o.json, o.plot)):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise Fatal(2, f"{path}: cannot be written")
    if o.plot and o.plot.suffix not in (".svg", ".png"):
        raise Fatal(2, f"{o.plot}: --plot writes .svg or .png")
    if o.plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise Fatal(3, "--plot needs matplotlib: pip install matplotlib") from None
