# SPDX-License-Identifier: Apache-2.0
"""The machine and the sources of a run: GPU, driver, versions, revision, and how many workers fit."""
import hashlib
import importlib.metadata
import os
import platform
import subprocess

from gpu_check import expected
from gpu_check.programs import Fatal

FIELDS = ("name", "driver_version", "memory.free", "compute_cap")  # of nvidia-smi
GIB_PER_WORKER = 2  # of the GPU's memory: a context and the tensors of one case
SOURCES = ("masks", "gen", "runtime", "templates", "model", "tools/maskc", "tools/reference", "tools/maskbert", "tools/compare",
           "tools/gpu_check", "tools/scale_model", "tests/python")
METHOD = ("tools/peers", "tools/gpu-check")


def output_of(*words, **more):
    """Output of a program, or an empty text where it fails."""
    try:
        made = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    except OSError:
        return ""
    return made.stdout.strip() if made.returncode == 0 else ""


def gpu():
    """{"device", "driver", "free_mib", "capability"} of the first GPU that CUDA's programs see. They number GPUs as nvidia-smi does from here on."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # CUDA's own order is by speed
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = [] if seen is None else ["-i", seen.split(",")[0].strip()]
    if first[1:] in ([""], ["-1"]):
        raise Fatal(3, f"no GPU: CUDA_VISIBLE_DEVICES is '{seen}'")
    try:
        made = subprocess.run(["nvidia-smi", *first, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=False)
    except OSError:
        raise Fatal(3, "no GPU: nvidia-smi is missing") from None
    if made.returncode or not made.stdout.strip():
        raise Fatal(3, "no GPU: nvidia-smi lists none")
    words = [w.strip() for w in made.stdout.splitlines()[0].split(",")] + ["", "", ""]
    return {"device": words[0], "driver": words[1], "free_mib": int(words[2]) if words[2].isdigit() else None,
            "capability": words[3]}


def cores():
    return len(os.sched_getaffinity(0))


def workers(wanted, cpu_cores, free_mib=None):
    """Cases at a time: --jobs, else a share of the cores; never more than the memory of the GPU holds."""
    most = max(1, free_mib // 1024 // GIB_PER_WORKER) if free_mib else cpu_cores + 2
    return wanted or max(1, min(max(2, int(expected.SHARE * cpu_cores)), most))


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def revision(root, given=None):
    """Commit of the sources, with -dirty where files differ from it; a copy without git needs --revision."""
    if given:
        return given
    commit = output_of("git", "-C", str(root), "rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    changed = output_of("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return commit + ("-dirty" if changed else "")


def header(root, found, given_revision):
    """Fields of the results' header."""
    return {"driver": found.get("driver", ""), "torch": version("torch"), "python": platform.python_version(),
            "cores": cores(), "revision": revision(root, given_revision)}


def sources(root):
    """A digest of everything that decides a result: kernels, the reference, the way of measuring."""
    digest = hashlib.sha256()
    found = [path for folder in SOURCES for path in (root / folder).rglob("*")
             if path.suffix in (".c", ".h", ".cu", ".py", ".cpp")]
    for path in sorted(found) + [root / name for name in METHOD]:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
