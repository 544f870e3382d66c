# SPDX-License-Identifier: Apache-2.0
"""The build for a GPU machine: programs and the Python package with gcc, no tests; libraries from an unpacked folder."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from gpu_check.programs import Fatal

# With --sysroot, pkg-config would also find this machine's cairo.
SETUP = ("--buildtype=release", "-Dcmocka=disabled", "-Dcairo=disabled", "-Dmicrohttpd=disabled")
CUDA = "/usr/local/cuda/bin"  # compute-sanitizer, where the toolkit is not in PATH
FOLDERS = ("tools/maskc/", "tools/maskbert/", "runtime/python/")
PACKAGES = ("libjansson-dev", "libjansson4", "libxxhash-dev", "libxxhash0")
# Debian 12 and Ubuntu 24.04 have different ones; those that are missing are left out.
MASKBERT_PACKAGES = ("libutf8proc-dev", "libutf8proc2", "libutf8proc3", "libdnnl-dev", "libdnnl2", "libdnnl3.1", "libdnnl3.4",
                     "libdnnl3", "ocl-icd-libopencl1")


def known_packages(names):
    made = subprocess.run(["apt-cache", "show", "--no-all-versions", *names], capture_output=True, text=True, check=False)
    return [w for w in names if f"Package: {w}\n" in made.stdout]


def make_sysroot(folder):
    """Unpacks the packages that the libraries need, without installing them."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Fatal(3, "--make-sysroot needs apt-get and dpkg")
    folder.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(["apt-get", "download", *PACKAGES, *known_packages(MASKBERT_PACKAGES)], cwd=folder,
                         capture_output=True, text=True, check=False)
    if run.returncode:
        raise Fatal(3, f"apt-get download failed: {run.stderr.strip().splitlines()[-1]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package.name, "."], cwd=folder, check=True)
        package.unlink()
    print(f"{folder}: copy it to the GPU machine, and call tools/gpu-check --sysroot {folder.name} there")


def environment(sysroot):
    """Environment of every program that is started. NVRTC of pip's packages is found by VIRTUAL_ENV."""
    made = {"VIRTUAL_ENV": sys.prefix} | os.environ
    made["PATH"] = f"{made.get('PATH', os.defpath)}:{CUDA}"
    if not sysroot:
        return made
    if not (sysroot / "usr/include").is_dir():
        raise Fatal(2, f"{sysroot}: it has no usr/include; make it with --make-sysroot")
    root = sysroot.resolve()
    lib = str(root / "usr/lib/x86_64-linux-gnu")
    return made | {"PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_PATH": f"{lib}/pkgconfig",
                   "CPATH": str(root / "usr/include"), "LIBRARY_PATH": lib,
                   "LD_LIBRARY_PATH": f"{lib}:{made.get('LD_LIBRARY_PATH', '')}"}


def run(words, variables):
    try:
        made = subprocess.run([str(w) for w in words], env=variables | {"CC": "gcc", "CXX": "g++"}, capture_output=True,
                              text=True, check=False)
    except OSError as e:
        raise Fatal(3, f"{words[0]}: {e.strerror}; install it") from None
    if made.returncode:
        tail = "\n".join((made.stdout + made.stderr).strip().splitlines()[-20:])
        raise Fatal(3, f"{words[0]} failed:\n{tail}")


def targets(folder):
    """Programs and package of a configured build folder; an empty list, which means all, where meson names none."""
    try:
        listed = json.loads((folder / "meson-info/intro-targets.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    names = [os.path.relpath(name, folder.resolve()) for t in listed for name in t["filename"]]
    return [name for name in names if name.startswith(FOLDERS)]


def build(folder, root, variables):
    """Configures the folder if it is new, with the torch of this Python, and builds on all cores."""
    folder = pathlib.Path(folder)
    if not (folder / "build.ninja").exists():
        run(["meson", "setup", folder, root, *SETUP, f"-Dtorch_python={sys.executable}"], variables)
    run(["ninja", "-C", folder, *targets(folder)], variables)
