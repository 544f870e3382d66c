#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_ranks_test.py MASKBERT NCCL: `maskbert pretrain` on ranks of the emulated device, which meet without MPI and sum by a mock
of NCCL (fake_nccl.c). Do 1, 2 and 4 ranks have the same bits, with --zero, and resumed with another number of them? Does each
fault end all ranks with one line that names the rank? Exit code 77 where nothing can be trained."""
import concurrent.futures
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pretrain_toy import Toy, children_seconds, run_tests, same  # noqa: E402

ON = ["--device", "emulated", "--threads", 1]
BITS = ["--steps", 3, "--save-every", 2, "--keep", 9, *ON]
LONG = ["--steps", 1000000, "--save-every", 1, *ON]
MEET = ["--rendezvous", "meet"]
SECONDS = 30


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


class GpuToy(Toy):
    nccl = None

    def start(self, ranks, *command, odd=(), **env):
        """Processes as torchrun starts them, with pipes; the last one has other options where `odd` names some."""
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MASKC_NCCL": self.nccl, "FAKE_NCCL_FOLDER": str(self.work), "WORLD_SIZE": str(ranks), **env}
        return [subprocess.Popen([self.maskbert, *map(str, command), *(odd if k == ranks - 1 else ())], cwd=self.work, text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**env, "RANK": str(k), "LOCAL_RANK": str(k)})
                for k in range(ranks)]

    def ranks(self, ranks, *command, **env):
        for child in self.start(ranks, *command, **env):
            said = child.communicate(timeout=100)[1]
            assert child.returncode == 0, f"{command}: {child.returncode}: {said}"

    def ended(self, children, says, code=1, lost=None, seconds=SECONDS):
        """All ranks but the lost one end in time; one line says why."""
        begin, lines = time.time(), []
        for k, child in enumerate(children):
            if k == lost:
                continue
            said = child.communicate(timeout=seconds)[1]
            assert child.returncode == code, (k, child.returncode, said)
            lines += [x for x in said.splitlines() if x.startswith("maskbert: ") and not re.search(", .* left|unigram entropy", x)]
        assert time.time() - begin < seconds
        assert len(lines) == 1 and says in lines[0], lines
        for path in self.work.glob("fake-nccl-*"):
            path.unlink()
        assert not (self.work / "meet").exists()

    def saved(self, run, children):
        """Waits for a first state."""
        folder = self.work / run / "state"
        while not folder.exists() or not [p for p in folder.iterdir() if p.name.endswith("safetensors")]:
            for child in children:
                assert child.poll() is None, (child.returncode, child.stderr.read())
            time.sleep(0.02)


def numbers_of_ranks(toy):
    """One process, two ranks, four that share the moments; and from two to four by another meeting place."""
    toy.train("alone", *BITS, "--accumulate", 4)
    toy.ranks(2, *toy.command("of2", *BITS, *MEET))
    toy.ranks(4, *toy.command("of4", *BITS, *MEET, "--zero"))
    for run, ranks in (("of2", 2), ("of4", 4)):
        assert [x["ranks"] for x in toy.log(run) if "lr" in x] == 3 * [ranks]
        same(toy, "alone", run)
    toy.states("of2")[-1].unlink()
    srun = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "PMIX_RANK": "0"}  # that started torchrun
    toy.ranks(4, *toy.command("of2", *BITS, "--resume"), MASTER_ADDR="localhost", MASTER_PORT=str(free_port()), TORCHELASTIC_RUN_ID="none", **srun)
    same(toy, "alone", "of2")
    toy.remove("alone", "of2", "of4")


def other_numbers(toy):
    """Three ranks, whose sums are NCCL's own: the same bits again, and with LAMB the same whether the moments are shared. One rank
    with a rendezvous has the bits of one without."""
    steps = ["--steps", 2, "--optimizer", "lamb", *ON]
    for run, options in (("a", []), ("b", []), ("zero", ["--zero"])):
        toy.ranks(3, *toy.command(run, *steps, *MEET, *options))
        same(toy, "a", run)
    toy.train("alone", *steps, "--accumulate", 4)
    toy.ranks(1, *toy.command("one", *steps, *MEET))
    same(toy, "alone", "one")
    for (x, _), (y, _) in zip(toy.losses("alone").values(), toy.losses("a").values()):
        assert abs(x - y) <= 1e-5 * x, (x, y)
    toy.remove("a", "b", "zero", "alone", "one")


def learned_mask(toy):
    steps = ["--steps", 2, "--learn-mask", "dam-u", "--lambda", 1e-4, *ON]
    toy.train("alone", *steps, "--accumulate", 4)
    toy.ranks(2, *toy.command("of2", *steps, *MEET))
    same(toy, "alone", "of2")
    for name in ("alpha.safetensors", "mask.mask"):
        assert (toy.work / "alone" / name).read_bytes() == (toy.work / "of2" / name).read_bytes(), name
    toy.remove("alone", "of2")


def killed(toy):
    """A rank that is killed; its loss is noticed at once."""
    for lost in (0, 1):
        children = toy.start(2, *toy.command("run", *LONG, *MEET))
        toy.saved("run", children)
        children[lost].kill()
        toy.ended(children, f"rank {lost} is gone", lost=lost)
        children[lost].communicate()
        toy.remove("run")


def hanging(toy):
    children = toy.start(2, *toy.command("run", *LONG, *MEET))
    toy.saved("run", children)
    children[1].send_signal(signal.SIGSTOP)
    toy.ended(children, "rank 1 does not answer", lost=1)
    children[1].kill()
    children[1].communicate()
    toy.remove("run")


def failing(toy):
    """A call of NCCL fails on rank 1, in a sum that goes on beside the backward pass; rank 0 waits for it in vain, and names it."""
    toy.ended(toy.start(2, *toy.command("run", *LONG, *MEET), FAKE_NCCL_FAIL="1:12:ncclSend"), "rank 1: NCCL: ncclSend", seconds=2 * SECONDS)
    assert [x["step"] for x in toy.log("run") if "lr" in x], "it ended before the first step"
    toy.remove("run")


def failing_at_start(toy):
    """The same in the sum that connects the ranks."""
    toy.ended(toy.start(2, *toy.command("run", *LONG, *MEET), FAKE_NCCL_FAIL="1:1:ncclRecv"), "rank 1: NCCL: ncclRecv", seconds=2 * SECONDS)


def interrupted(toy):
    children = toy.start(2, *toy.command("run", *LONG, *MEET))
    toy.saved("run", children)
    children[1].terminate()
    for child in children:
        said = child.communicate(timeout=SECONDS)[1]
        assert child.returncode == 4, said
    toy.remove("run")


def refused(toy):
    toy.ended(toy.start(2, *toy.command("run", *LONG, *MEET), odd=["--seed", "5"]), "rank 1: --seed is 5, on rank 0 0")
    toy.ended(toy.start(2, *toy.command("run", *LONG, *MEET), odd=["--ranks", "4"]), "rank 1: --ranks 4: there are 2")
    toy.ended(toy.start(1, *toy.command("run", *LONG, *MEET), MASKC_NCCL="nowhere"), "no NCCL", code=3)
    for says, options, env in (("--rendezvous FILE", ["--device", "cuda"], {"MASTER_ADDR": ""}), ("tcp://HOST:PORT", [*ON, "--rendezvous", "tcp://x"], {}),
                               ("ranks on CPUs meet by MPI", MEET, {})):
        child = toy.start(2, *toy.command("run", "--steps", 1, *options), **env)[0]
        said = child.communicate(timeout=SECONDS)[1]
        assert child.returncode == 2 and says in said and said.count("\n") == 1, (child.returncode, said)


def main():
    maskbert, GpuToy.nccl = map(os.path.abspath, sys.argv[1:3])
    apart, pool = [], concurrent.futures.ThreadPoolExecutor(3)  # these wait for most of their time

    def begin(toy):
        for name, test in (("hang", hanging), ("fail", failing), ("start", failing_at_start)):
            made = type(toy).__new__(type(toy))
            made.maskbert, made.work = toy.maskbert, toy.work / name
            made.work.mkdir()
            for path in ("model", "data"):
                (made.work / path).symlink_to(toy.work / path)
            apart.append(pool.submit(test, made))

    def end(toy):
        for each in apart:
            each.result()
        subprocess.run(["rm", "-r", *(toy.work / name for name in ("hang", "fail", "start"))], check=True)

    tests = {"begin": begin, **{t.__name__: t for t in (numbers_of_ranks, other_numbers, learned_mask, killed, interrupted, refused)}, "end": end}
    result = run_tests(GpuToy, maskbert, tests, {"hang", "fail", "start"}, ON)
    print(f"{children_seconds():.1f} s of processor time")
    return result


if __name__ == "__main__":
    sys.exit(main())
