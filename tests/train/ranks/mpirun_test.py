#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpirun_test.py MASKBERT [--long] [--only NAME]: maskbert on ranks that mpirun starts.

Same bits for 1, 2 and 4 ranks, resumed with another number of them, in pre-training, with learned masks and in fine-tuning;
what ends when one rank fails, and what it says. --long has each fault 20 times. Exit code 77 without MPI."""
import argparse
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "objective"))
import finetune_toy  # noqa: E402
from pretrain_toy import Toy, run_tests, same  # noqa: E402

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
# Of one rank: its exit code in a file, more options, a limit of what it writes.
WRAPPER = """#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" != "$ODD_RANK" ] || set -- "$@" $ODD_OPTIONS
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || [ -z "$MOST_BLOCKS" ] || ulimit -f "$MOST_BLOCKS"
echo $$ > pid.$OMPI_COMM_WORLD_RANK
exec "$@"
"""
SECONDS = 30


class RankToy(Toy):
    def __init__(self, maskbert, work):
        super().__init__(maskbert, work)
        path = self.work / "wrapper"
        path.write_text(WRAPPER)
        path.chmod(0o755)

    def start(self, ranks, *command, wrapped=False, **env):
        """mpirun as a process, with pipes."""
        wrapper = ["./wrapper"] if wrapped else []
        return subprocess.Popen([*MPIRUN, "-n", str(ranks), *wrapper, self.maskbert, *map(str, command)], cwd=self.work, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1", **env})

    def ranks(self, ranks, *command, **more):
        child = self.start(ranks, *command, **more)
        out, err = child.communicate(timeout=300)
        assert child.returncode == 0, f"{command}: {child.returncode}: {err}"
        return out, err

    def ends(self, ranks, says, *command, code=1, **more):
        """All ranks end in time with that code; one line of maskbert's says why."""
        child = self.start(ranks, *command, wrapped=True, **more)
        self.ended(child, says, code)

    def ended(self, child, says, *codes):
        begin = time.time()
        err = child.communicate(timeout=SECONDS)[1]
        assert time.time() - begin < SECONDS and child.returncode in codes, (child.returncode, err)
        said = [x for x in err.splitlines() if x.startswith("maskbert: ") and not any(w in x for w in (" left", "unigram entropy", "held-out"))]
        assert len(said) == 1 and says in said[0], err
        pids = [int(p.read_text()) for p in self.work.glob("pid.*")]
        assert len(pids) > 1
        assert not any(alive(p) for p in pids), pids
        self.forget()

    def pid(self, rank):
        path = self.work / f"pid.{rank}"
        while not path.exists() or not path.read_text().endswith("\n"):
            time.sleep(0.01)
        return int(path.read_text())

    def forget(self):
        for path in self.work.glob("pid.*"):
            path.unlink()

    def saved(self, run):
        """Waits for a first state."""
        folder = self.work / run / "state"
        while not folder.exists() or not [p for p in folder.iterdir() if p.name.endswith("safetensors")]:
            time.sleep(0.01)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def evaluations(toy, run):
    return [{k: v for k, v in x.items() if k != "elapsed_s"} for x in toy.log(run) if "eval" in x]


# ---- the same bits ----

BITS = ["--steps", 10, "--save-every", 3, "--keep", 9, "--eval-every", 5, "--mask", "longformer(3,1)", "--threads", 1]


def numbers_of_ranks(toy):
    """Three ranks have the batches of one, not its bits."""
    for ranks in (1, 2, 4):
        toy.ranks(ranks, *toy.command(f"of{ranks}", *BITS))
        assert all(x["ranks"] == ranks for x in toy.log(f"of{ranks}") if "lr" in x)
    for run in ("of2", "of4"):
        same(toy, "of1", run)
        assert evaluations(toy, "of1") == evaluations(toy, run)
    toy.train("alone", *BITS, "--accumulate", 4)
    same(toy, "of1", "alone")
    toy.ranks(3, *toy.command("of3", *BITS))
    for (a, _), (b, _) in zip(toy.losses("of1").values(), toy.losses("of3").values()):
        assert abs(a - b) <= 1e-5 * a, (a, b)
    toy.remove("of1", "of2", "of3", "of4", "alone")


def half_precision(toy):
    """bf16: 100 steps within 1e-3."""
    steps = ["--steps", 100, "--save-every", 0, "--dtype", "bf16", "--threads", 1]
    for ranks in (1, 2):
        toy.ranks(ranks, *toy.command(f"of{ranks}", *steps))
    for (a, _), (b, _) in zip(toy.losses("of1").values(), toy.losses("of2").values()):
        assert abs(a - b) <= 1e-3 * a, (a, b)
    toy.remove("of1", "of2")


def cut(toy, run, step):
    """The run as it was after that step."""
    for path in toy.states(run):
        if int(path.name[5:17]) > step:
            path.unlink()


def resumed(toy):
    """From 2 ranks to 4, and to one process without a launcher, with a mask that is learned and settled."""
    steps = ["--steps", 10, "--save-every", 3, "--keep", 9, "--learn-mask", "dam-u", "--lambda", 1e-4, "--settle", 3, "--threads", 1]
    toy.ranks(1, *toy.command("one", *steps))
    toy.ranks(2, *toy.command("run", *steps))
    same(toy, "one", "run")
    for ranks, step in ((4, 3), (2, 6)):
        cut(toy, "run", step)
        toy.ranks(ranks, *toy.command("run", *steps, "--resume"))
        same(toy, "one", "run")
    cut(toy, "run", 3)
    toy.train("run", *steps, "--resume")
    same(toy, "one", "run")
    for name in ("alpha.safetensors", "mask.mask"):
        assert (toy.work / "one" / name).read_bytes() == (toy.work / "run" / name).read_bytes(), name
    toy.remove("one", "run")


def shared_moments(toy):
    """--zero changes no bit, goes on without, and without goes on with it."""
    for optimizer, ranks in (("adamw", 2), ("lamb", 3)):
        steps = ["--steps", 6, "--save-every", 3, "--keep", 9, "--optimizer", optimizer, "--threads", 1]
        toy.ranks(ranks, *toy.command("plain", *steps))
        toy.ranks(ranks, *toy.command("zero", *steps, "--zero"))
        same(toy, "plain", "zero")
        if ranks == 2:
            cut(toy, "plain", 3)
            toy.ranks(4, *toy.command("plain", *steps, "--resume", "--zero"))
            same(toy, "plain", "zero")
            cut(toy, "zero", 3)
            toy.train("zero", *steps, "--resume")
            same(toy, "plain", "zero")
        toy.remove("plain", "zero")


def fine_tuned(toy):
    """Of two ranks the same model, best epoch and scores; seeds one after another."""
    folder = toy.work / "task"
    folder.mkdir()
    for part in finetune_toy.COUNTS:
        finetune_toy.text(random.Random(part), folder, part)
    command = ["finetune", "model", "--task", "text", "--data", "task", "--epochs", 1, "--seeds", 2, "--batch", 16, "--threads", 1, "-o"]
    for ranks in (1, 2):
        toy.ranks(ranks, *command, f"of{ranks}")
    for seed in ("seed-0", "seed-1"):
        same(toy, f"of1/{seed}", f"of2/{seed}")
        assert evaluations(toy, f"of1/{seed}") == evaluations(toy, f"of2/{seed}")
    toy.remove("of1", "of2", "task")


# ---- what ends ----

LONG = ["--steps", 1000000, "--save-every", 20, "--threads", 1]


def resumes(toy, run):
    return (toy.work / run / "log.jsonl").read_text().count('"resume"')


def goes_on(toy, run, *options):
    """The last state is whole: one process goes on from it, and is interrupted."""
    before = resumes(toy, run)
    child = subprocess.Popen([toy.maskbert, *map(str, toy.command(run, *options, "--resume"))], cwd=toy.work, text=True, stderr=subprocess.PIPE)
    while child.poll() is None and resumes(toy, run) == before:
        time.sleep(0.01)
    child.terminate()
    said = child.communicate()[1]
    assert child.returncode in (0, 4) and "damaged" not in said, said
    assert not list((toy.work / run).rglob("*.part"))


def killed(toy, turns):
    for turn in range(turns):
        child = toy.start(2, *toy.command("run", *LONG), wrapped=True)
        toy.saved("run")
        os.kill(toy.pid(turn % 2), signal.SIGKILL)
        toy.ended(child, f"rank {turn % 2} is gone", 1, 137)
        goes_on(toy, "run", *LONG)
        toy.remove("run")


def hanging(toy, turns):
    for turn in range(turns):
        child = toy.start(2, *toy.command("run", *LONG), wrapped=True)
        toy.saved("run")
        os.kill(toy.pid(1 - turn % 2), signal.SIGSTOP)
        toy.ended(child, f"rank {1 - turn % 2} does not answer", 1)
        goes_on(toy, "run", *LONG)
        toy.remove("run")


def full_disk(toy, turns):
    """Rank 0 can write all of a state but its end."""
    steps = ["--steps", 4, "--save-every", 2, "--keep", 9, "--threads", 1]
    toy.ranks(2, *toy.command("begun", *steps))
    blocks = toy.states("begun")[0].stat().st_size // 1024
    cut(toy, "begun", 2)
    for _ in range(turns):
        shutil.copytree(toy.work / "begun", toy.work / "run")
        toy.ends(2, "rank 0: ", *toy.command("run", *steps, "--resume"), MOST_BLOCKS=str(blocks))
        assert [p.name for p in toy.states("run")] == ["step-000000000002.safetensors"]
        goes_on(toy, "run", *steps)
        toy.remove("run")
    toy.remove("begun")


def other_options(toy, turns):
    toy.ok("prep", "text.txt", "--vocab", "model", "--length", 32, "--seed", 9, "-o", "other")
    for _ in range(turns):
        for options, says in (("--seed 5", "rank 1: --seed is 5, on rank 0 0"), ("--lr -1", "rank 1: --lr -1"), ("--data other", "rank 1: --data")):
            toy.ends(2, says, *toy.command("run", *LONG), ODD_RANK="1", ODD_OPTIONS=options)
    shutil.rmtree(toy.work / "other")


def not_finite(toy, turns):
    """On all ranks; ranks_test has it on one."""
    for _ in range(turns):
        toy.ends(2, "rank 0: step", *toy.command("run", *LONG, "--lr", 1e38, "--clip", 0, "--warmup", 0))
        assert any(x.get("event") == "nan" for x in toy.log("run"))
        toy.remove("run")


def interrupted(toy):
    """A signal to one of the ranks: all save and end with 4."""
    child = toy.start(2, *toy.command("run", *LONG), wrapped=True)
    toy.saved("run")
    os.kill(toy.pid(1), signal.SIGTERM)
    said = child.communicate(timeout=SECONDS)[1]
    assert child.returncode == 4 and "--resume goes on" in said, said
    toy.forget()
    toy.remove("run")


def started(toy, options, env):
    """Two processes with such variables, as a launcher without MPI starts them."""
    return [subprocess.Popen([toy.maskbert, *map(str, toy.command("run", *o))], cwd=toy.work, text=True, stderr=subprocess.PIPE,
                             env={**os.environ, **{n: str(v[k]) for n, v in env.items()}}) for k, o in enumerate(options)]


def other_launchers(toy):
    """The variables of torchrun and of Slurm: mpirun takes over, and all processes have one fate."""
    steps = ["--steps", 3, "--threads", 1]
    toy.ranks(2, *toy.command("of2", *steps))
    torch = {"RANK": "01", "WORLD_SIZE": "22", "LOCAL_WORLD_SIZE": "22", "MASTER_ADDR": ["localhost"] * 2, "MASTER_PORT": [os.getpid()] * 2}
    slurm = {"SLURM_PROCID": "01", "SLURM_STEP_NUM_TASKS": "22", "SLURM_JOB_ID": [os.getpid()] * 2}
    for env in (torch, slurm):
        assert [(c.communicate(timeout=SECONDS)[1], c.returncode)[1] for c in started(toy, [steps, steps], env)] == [0, 0]
        same(toy, "of2", "run")
        assert toy.log("run")[0]["ranks"] == 2
        toy.remove("run")
    children = started(toy, [steps, [*steps, "--seed", 5]], torch)
    said = [c.communicate(timeout=SECONDS)[1] for c in children]
    assert [c.returncode for c in children] == [1, 1] and "rank 1: another command" in said[0] and not said[1], said
    for lost in (0, 1):
        children = started(toy, [LONG, LONG], torch)
        toy.saved("run")
        children[lost].kill()
        said = [c.communicate(timeout=SECONDS)[1] for c in children]
        assert children[1 - lost].returncode == 1 and f"rank {lost} is gone" in said[1 - lost], said
        toy.remove("run")
    toy.remove("of2")


def refused(toy):
    """What is wrong for all ranks is said once, as for one process."""
    for says, code, options in (("nowhere", 2, ["--data", "nowhere"]), ("--ranks 3: there are 2", 2, ["--ranks", 3])):
        toy.ends(2, says, *toy.command("run", *LONG, *options), code=code)
    (toy.work / "run").mkdir()
    toy.ends(2, "is there already", *toy.command("run", *LONG), code=2)
    (toy.work / "run").rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maskbert", type=os.path.abspath)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only")
    o = parser.parse_args()
    if not shutil.which("mpirun") or not (pathlib.Path(o.maskbert).parent / "maskbert-mpi.so").exists():
        print("there is no MPI\n[  SKIPPED ] 1 test(s).")
        return 77
    turns = 20 if o.long else 1
    tests = {t.__name__: t for t in (numbers_of_ranks, half_precision, resumed, shared_moments, fine_tuned, interrupted, other_launchers, refused)}
    tests.update({t.__name__: lambda toy, t=t: t(toy, turns) for t in (killed, hanging, full_disk, other_options, not_finite)})
    result = run_tests(RankToy, o.maskbert, {n: t for n, t in tests.items() if o.only in (None, n)}, {"wrapper"})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.1f} s of processor time")
    return result


if __name__ == "__main__":
    sys.exit(main())
