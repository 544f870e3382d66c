# SPDX-License-Identifier: Apache-2.0
"""Options and help of gpu-check."""
import argparse
import pathlib

from gpu_check import expected, stages

ROOT = pathlib.Path(__file__).resolve().parents[2]
DESCRIPTION = """Checks and measures maskc on this machine's GPU in one call: builds with gcc, compares every gallery mask and
shape with float64 on the device, times the kernels against PyTorch's, and keeps all results in one JSON and one
Markdown file.
"""
EPILOG = """
stages, in this order:
  verify        compile and compare with float64: gallery masks, dtypes, lengths, head dims, transforms, dropout, biases,
                shared keys, variants of the kernels
  harness       with --harness DIR: kernels of cuda_hopper beside those of a harness, interleaved (needs torch and an H100)
  time          ours against our dense kernel, cuDNN, FlashAttention-2 (torch's SDPA) and FlexAttention: CUDA graphs in one
                process, samples interleaved, with the floors of memory (a copy) and of the executed area (mma.sync)
                measured in the same run (needs torch)
  python        tests/python on CUDA tensors (needs torch 2.10)
  maskbert      whole models: hidden states against those of the CPU (without oneDNN: of the emulated device), then
                milliseconds and the share of attention in bf16, dense and with longformer(64,2) (needs libutf8proc)
  train         training on the device: gradients in f32 and bf16 and ten steps beside the CPU's, then tokens a second, share of the
                peak, launches and memory of a step of BERT-base beside torch's (transformers' BERT, compiled layers)
  calibrate     maskc calibrate --device cuda: later predictions use the measured rates
  sanitize      kernels under compute-sanitizer: memcheck and racecheck; failed calls of the driver are counted apart
  maskbert-f32  the models in f32
  peers         tools/peers over the gallery: eager attention, torch with a dense mask, FlexAttention of four block sizes

budget: --budget seconds for the whole call. A case starts only if its expected time is left, and is stopped at the end.
The next call goes on with the cases that are left, also where this one was killed. --dry-run prints the plan by the
times of an H100, without a GPU, a build or a compiler.

results: DIR/DEVICE-DATE.json and .md, written whole after every case. A later call on the same day, device, sources, driver
and torch reuses a result, of the stage harness while its folder is the same; --fresh begins anew. A case without a result (a program that is missing, crashed or was stopped) is tried
again by a later call. A stage that this machine cannot run is named and left out.

a machine without jansson, xxhash, utf8proc and oneDNN: on one that has Debian's or Ubuntu's packages,
  tools/gpu-check --make-sysroot sysroot
then copy the folder too and give --sysroot sysroot.

exit codes: 0 done (cases may be left), 1 a kernel is wrong, or no CUDA graph takes its launch, or a case came to no
result, 2 bad input or usage, 3 no GPU, compiler or library, or a stage was left out.
"""


def positive(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return value


def names(known):
    def parse(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        return text.split(",")
    return parse


def new_parser():
    p = argparse.ArgumentParser(prog="gpu-check", description=DESCRIPTION, epilog=EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stages", type=names(list(stages.STAGES)), metavar="NAME,NAME", help="default: all")
    p.add_argument("--budget", type=positive, default=expected.BUDGET, metavar="S",
                   help=f"seconds for the whole call, the build included (default {expected.BUDGET})")
    p.add_argument("--harness", type=pathlib.Path, metavar="DIR",
                   help="a built harness: `host`, cubins; host UTIL @FORWARD+DQ+DKV T:MASK:N:BATCH:HEADS prints times")
    p.add_argument("--jobs", type=positive, metavar="N",
                   help="cases at a time (default: three quarters of the CPU cores, as far as the GPU's memory allows)")
    p.add_argument("--masks", nargs="+", metavar="MASK", help="only these")
    p.add_argument("-n", "--length", type=lambda t: [positive(w) for w in t.split(",")],
                   metavar="N,N", help="only these lengths")
    p.add_argument("--device", choices=("cuda", "emulated"), default="cuda",
                   help="emulated: the stages verify, maskbert and train without a GPU, a few cases by default")
    p.add_argument("--dry-run", action="store_true", help="print the plan and its expected seconds, and do nothing else")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build-gpu", metavar="DIR",
                   help="default build-gpu; made with gcc if missing")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/results", metavar="DIR",
                   help="default tests/results")
    p.add_argument("--revision", metavar="TEXT", help="of the sources, where this copy has no git (default: git's)")
    p.add_argument("--sysroot", type=pathlib.Path, metavar="DIR", help="libraries unpacked there")
    p.add_argument("--make-sysroot", type=pathlib.Path, metavar="DIR",
                   help="download and unpack them there, and do nothing else")
    p.add_argument("--fresh", action="store_true", help="forget today's earlier results")
    return p
