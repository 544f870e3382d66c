#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpirun_test.py MASKBERT [--long] [--only NAME]: maskbert on ranks that mpirun starts.

Same bits for 1, 2 and 4 ranks, resumed with another number of them, in pre-training, with learned masks and in fine-tuning;
what ends when one rank fails, and what it says. --long has each fault 20 times, and more of them. Exit code 77 without MPI."""
import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/train"), str(ROOT / "tests/train/objective")]
import finetune_toy  # noqa: E402
from pretrain_toy import children_seconds, run_tests, same  # noqa: E402
from rank_toy import SECONDS, RankToy  # noqa: E402


def evaluations(toy, run):
    return [{k: v for k, v in x.items() if k != "elapsed_s"} for x in toy.log(run) if "eval" in x]


FEWER = "ONEDNN_MAX_CPU_ISA"  # AVX2, of which oneDNN generates fewer kernels: that takes a quarter of a short run


# ---- the same bits ----

BITS = ["--steps", 8, "--save-every", 3, "--keep", 9, "--eval-every", 4, "--mask", "longformer(3,1)", "--threads", 1]
FOUR = ["--accumulate", 4]


def cut(toy, run, step):
    """The run as it was after that step."""
    for path in toy.states(run):
        if int(path.name[5:17]) > step:
            path.unlink()


def numbers_of_ranks(toy):
    """One process without a launcher, two ranks, and four that share the moments; each goes on from another's state."""
    toy.train("alone", *BITS, *FOUR)
    toy.ranks(2, *toy.command("of2", *BITS))
    toy.ranks(4, *toy.command("of4", *BITS, "--zero"))
    for run, ranks in (("of2", 2), ("of4", 4)):
        assert all(x["ranks"] == ranks for x in toy.log(run) if "lr" in x)
        same(toy, "alone", run)
        assert evaluations(toy, "alone") == evaluations(toy, run)
    cut(toy, "of2", 3)
    toy.ranks(2, *toy.command("of2", *BITS, "--resume", "--zero"))
    same(toy, "alone", "of2")
    cut(toy, "of4", 3)
    toy.train("of4", *BITS, *FOUR, "--resume")
    same(toy, "alone", "of4")
    toy.remove("alone", "of2", "of4")


def three_ranks(toy):
    """They have the batches of one, not its bits. --zero changes no bit, here of LAMB, which needs whole parameters."""
    steps = ["--steps", 4, "--save-every", 3, "--optimizer", "lamb", "--threads", 1]
    toy.train("alone", *steps, *FOUR)
    for run, options in (("plain", []), ("zero", ["--zero"])):
        toy.ranks(3, *toy.command(run, *steps, *options))
    same(toy, "plain", "zero")
    for (a, _), (b, _) in zip(toy.losses("alone").values(), toy.losses("plain").values()):
        assert abs(a - b) <= 1e-5 * a, (a, b)
    toy.remove("alone", "plain", "zero")


def half_precision(toy, steps):
    """bf16, by the machine's own products: within 1e-3; --long: over 100 steps."""
    few = os.environ.pop(FEWER, None)
    options = ["--steps", steps, "--save-every", 0, "--dtype", "bf16", "--threads", 1]
    toy.train("alone", *options, *FOUR)
    toy.ranks(2, *toy.command("of2", *options))
    for (a, _), (b, _) in zip(toy.losses("alone").values(), toy.losses("of2").values()):
        assert abs(a - b) <= 1e-3 * a, (a, b)
    toy.remove("alone", "of2")
    os.environ.update({FEWER: few} if few else {})


def resumed(toy):
    """From 2 ranks to 4 and back, with a mask that is learned and settled; a launcher of one process has the parts of several."""
    steps = ["--steps", 8, "--save-every", 3, "--keep", 9, "--learn-mask", "dam-u", "--lambda", 1e-4, "--settle", 3, "--threads", 1]
    toy.ranks(1, *toy.command("one", *steps))
    toy.ranks(2, *toy.command("run", *steps))
    same(toy, "one", "run")
    for ranks, step in ((4, 3), (2, 6)):
        cut(toy, "run", step)
        toy.ranks(ranks, *toy.command("run", *steps, "--resume"))
        same(toy, "one", "run")
    for name in ("alpha.safetensors", "mask.mask"):
        assert (toy.work / "one" / name).read_bytes() == (toy.work / "run" / name).read_bytes(), name
    toy.remove("one", "run")


def fine_tuned(toy):
    """Two ranks find the same model, best epoch and scores as one; seeds run one after another."""
    (toy.work / "task").mkdir()
    for part in finetune_toy.COUNTS:
        finetune_toy.text(random.Random(part), toy.work / "task", part)
    command = ["finetune", "model", "--task", "text", "--data", "task", "--epochs", 1, "--seeds", 2, "--batch", 16, "--threads", 1, "-o"]
    toy.ok(*command, "alone", *FOUR)
    toy.ranks(2, *command, "of2")
    for seed in ("seed-0", "seed-1"):
        same(toy, f"alone/{seed}", f"of2/{seed}")
        assert evaluations(toy, f"alone/{seed}") == evaluations(toy, f"of2/{seed}")
    odd = spoilt_templates(toy, "splat(0)")  # rank 1 would predict otherwise, and take other steps for the best
    command[8:10] = ["--eval-every", 4, "--lr", 1e-2]
    toy.ranks(2, *command, "odd", wrapped=True, ODD_RANK="1", ODD_TEMPLATES=str(odd))
    toy.forget()
    toy.remove("alone", "of2", "odd", "task", odd.name)


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
        toy.saved("run", child)
        os.kill(toy.pid(turn % 2), signal.SIGKILL)
        toy.ended(child, f"rank {turn % 2} is gone", 1, 137)
        goes_on(toy, "run", *LONG)
        toy.remove("run")


def hanging(toy, turns):
    for turn in range(turns):
        child = toy.start(2, *toy.command("run", *LONG), wrapped=True)
        toy.saved("run", child)
        os.kill(toy.pid(1 - turn % 2), signal.SIGSTOP)
        toy.ended(child, f"rank {1 - turn % 2} does not answer", 1)
        goes_on(toy, "run", *LONG)
        toy.remove("run")


def full_disk(toy, turns):
    """Rank 0 can write all of a state but its end."""
    steps = ["--steps", 4, "--save-every", 2, "--keep", 9, "--threads", 1]
    toy.train("begun", *steps, *FOUR)
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
    cases = [("--seed 5", "rank 1: --seed is 5, on rank 0 0"), ("--data other", "rank 1: --data"), ("--lr -1", "rank 1: --lr -1")]
    for options, says in cases * turns if turns > 1 else cases[:2]:
        toy.ends(2, says, *toy.command("run", *LONG), ODD_RANK="1", ODD_OPTIONS=options)
    shutil.rmtree(toy.work / "other")


def spoilt_templates(toy, wrong='splat(__builtin_nanf(""))'):
    """A folder of the CPU's templates with a softmax that is wrong, or makes NaN."""
    folder = toy.work / "spoilt"
    shutil.copytree(ROOT / "templates", folder)
    path, right = folder / "cpu/softmax.h", "pick_or_zero(some, one / pick(some, l, one))"
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    return folder


def not_finite(toy, turns):
    """NaN on one rank, whose kernels are wrong: all end, the line names it, and nothing has moved."""
    folder = spoilt_templates(toy)
    for turn in range(turns):
        odd = str(1 - turn % 2)
        toy.ends(2, f"rank {odd}: step 1", *toy.command("run", *LONG), ODD_RANK=odd, ODD_TEMPLATES=str(folder))
        log = toy.log("run")
        assert any(x.get("event") == "nan" for x in log) and [x["step"] for x in log if "lr" in x] == [1], log
        assert not (toy.work / "run/state").exists()
        toy.remove("run")
    shutil.rmtree(folder)


def interrupted(toy):
    """A signal to one of the ranks: all save and end with 4."""
    child = toy.start(2, *toy.command("run", *LONG), wrapped=True)
    toy.saved("run", child)
    os.kill(toy.pid(1), signal.SIGTERM)
    said = child.communicate(timeout=SECONDS)[1]
    assert child.returncode == 4 and "--resume goes on" in said, said
    toy.forget()
    toy.remove("run")


def started(toy, options, env):
    """Two processes with such variables, as a launcher without MPI starts them."""
    return [subprocess.Popen([toy.maskbert, *map(str, toy.command("run", *o))], cwd=toy.work, text=True, stderr=subprocess.PIPE,
                             env={**os.environ, **{n: str(v[k]) for n, v in env.items()}}) for k, o in enumerate(options)]


# An mpirun that must not inherit the variables of another launcher's processes.
STRICT = """#!/bin/sh
env | grep -E "^(PMI|SLURM_PROCID)" && exit 9
PATH="${PATH#*:}" exec mpirun "$@"
"""


def other_launchers(toy):
    """The variables of torchrun and of Slurm: mpirun takes over, and all processes have one fate."""
    strict = toy.work / "bin/mpirun"
    strict.parent.mkdir()
    strict.write_text(STRICT)
    strict.chmod(0o755)
    steps = ["--steps", 3, "--threads", 1]
    toy.train("alone", *steps, *FOUR)
    torch = {"RANK": "01", "WORLD_SIZE": "22", "LOCAL_WORLD_SIZE": "22", "MASTER_ADDR": ["localhost", "127.0.0.1"], "MASTER_PORT": [os.getpid()] * 2}
    slurm = {"SLURM_PROCID": "01", "SLURM_STEP_NUM_TASKS": "22", "SLURM_JOB_ID": [os.getpid()] * 2}
    around = {"TORCHELASTIC_RUN_ID": ["none"] * 2, "PMIX_RANK": "00", "PMIX_NAMESPACE": ["slurm.pmix.1.0"] * 2, "SLURM_PROCID": "00",
              "SLURM_STEP_NUM_TASKS": "33", "SLURM_STEP_NUM_NODES": "33",  # of an srun that started torchrun
              "PATH": [f"{strict.parent}:{os.environ['PATH']}"] * 2}
    for env in ({**torch, **around}, slurm):
        assert [(c.communicate(timeout=SECONDS)[1], c.returncode)[1] for c in started(toy, [steps, steps], env)] == [0, 0]
        same(toy, "alone", "run")
        assert toy.log("run")[0]["ranks"] == 2
        toy.remove("run")
    children = started(toy, [steps, [*steps, "--seed", 5]], torch)
    said = [c.communicate(timeout=SECONDS)[1] for c in children]
    assert [c.returncode for c in children] == [1, 1] and "rank 1: another command" in said[0] and not said[1], said
    for lost in (0, 1):
        children = started(toy, [LONG, LONG], torch)
        toy.saved("run", *children)
        children[lost].kill()
        said = [c.communicate(timeout=SECONDS)[1] for c in children]
        assert children[1 - lost].returncode == 1 and f"rank {lost} is gone" in said[1 - lost], said
        toy.remove("run")
    toy.remove("alone", "bin")


def refused(toy):
    """An error that all ranks meet is reported once, as by one process."""
    for says, code, options in (("nowhere", 2, ["--data", "nowhere"]), ("--ranks 3: there are 2", 2, ["--ranks", 3])):
        toy.ends(2, says, *toy.command("run", *LONG, *options), code=code)
    toy.ends(2, "is there already", *toy.command("data", *LONG), code=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maskbert", type=os.path.abspath)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only")
    o = parser.parse_args()
    if not shutil.which("mpirun") or not (pathlib.Path(o.maskbert).parent / "maskbert-mpi.so").exists():
        print("there is no MPI\n[  SKIPPED ] 1 test(s).")
        return 77
    os.environ[FEWER] = "AVX2"
    turns, pool = 20 if o.long else 1, concurrent.futures.ThreadPoolExecutor(1)
    tests = {t.__name__: t for t in (numbers_of_ranks, three_ranks, resumed, fine_tuned, interrupted, other_launchers, refused)}
    tests["half_precision"] = lambda toy: half_precision(toy, 100 if o.long else 20)
    tests.update({t.__name__: lambda toy, t=t: t(toy, turns) for t in (killed, full_disk, other_options, not_finite)})
    apart = []  # hanging() waits for most of its time
    tests = {"hanging_begins": lambda toy: apart.append(pool.submit(hanging, toy.apart("hang"), turns)), **tests,
             "hanging": lambda toy: (apart[0].result(), shutil.rmtree(toy.work / "hang"))}
    result = run_tests(RankToy, o.maskbert, {n: t for n, t in tests.items() if not o.only or n.startswith(o.only)}, {"wrapper", "hang"})
    print(f"{children_seconds():.1f} s of processor time")
    return result


if __name__ == "__main__":
    sys.exit(main())
