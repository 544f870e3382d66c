# SPDX-License-Identifier: Apache-2.0
"""Where runs of maskbert pretrain end, by a length or killed or signalled: what pretrain_test.py asks of them."""
import ctypes
import json
import pathlib
import random
import signal
import subprocess
import time

from pretrain_toy import follows_the_clock, same

LIBC = ctypes.CDLL(None)


def lengths(toy):
    """--tokens is steps by the mean length; --minutes ends by the clock."""
    says = json.loads(toy.train("run", "--tokens", 1000, "--json").stdout)
    last = [x for x in toy.log("run") if "lr" in x][-1]
    assert 800 <= last["tokens"] <= 1300, last
    assert says["tokens"] == last["tokens"] and says["step"] == last["step"] and not says["interrupted"], says
    toy.remove("run")
    begin = time.time()
    toy.train("run", "--minutes", 0.02)
    log = [x for x in toy.log("run") if "lr" in x]
    saved = [x for x in toy.log("run") if x.get("event") == "save"]
    assert time.time() - begin >= 1.2 and saved[-1]["elapsed_s"] >= 1.2, saved
    assert saved[-1]["step"] == log[-1]["step"]
    follows_the_clock(log, 1.2, 1e-3)
    toy.remove("run")
    toy.train("run", "--minutes", 0.005, "--warmup", 3, "--save-every", 1, "--eval-every", 100000)  # its time often ends within a save
    log = [x for x in toy.log("run") if "lr" in x]
    assert [x["step"] for x in toy.log("run") if "eval" in x] == [log[-1]["step"]]
    assert all(abs(x["lr"] - 1e-3 * x["step"] / 3) < 1e-12 for x in log[:3]), log[:3]  # a warm-up in steps stays one
    toy.remove("run")


def kills(toy, bits, times):
    toy.train("whole", *bits, "--steps", 40)
    begin = time.time()
    toy.train("timed", *bits, "--steps", 40)
    takes = time.time() - begin
    draw = random.Random(5)
    for k in range(times):
        command = [toy.maskbert, *map(str, toy.command("killed", *bits, "--steps", 40, "--threads", 1 + k % 3))]
        toy.kill_three_times(command, "killed", lambda: draw.uniform(0.05, 0.8) * takes)
        toy.train("killed", *bits, "--steps", 40, "--resume")
        same(toy, "whole", "killed")
        left = [p.name for p in (toy.work / "killed").rglob("*.part")] + [p.name for p in toy.work.glob("*.maskbert-part")]
        assert not left, left
        toy.remove("killed")
    toy.remove("whole", "timed")


def began(toy):
    """Waits until the run has done a step."""
    log = toy.work / "run/log.jsonl"
    while not log.exists() or not log.stat().st_size:
        time.sleep(0.01)


def send(toy, number, handler, steps=150):
    """A run that gets the signal after its first step, which it inherits as ignored or not."""
    command = [toy.maskbert, *map(str, toy.command("run", "--steps", steps))]
    child = subprocess.Popen(command, cwd=toy.work, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(number, handler))
    began(toy)
    child.send_signal(number)
    return child.communicate()[1], child.returncode


def signals(toy):
    """SIGTERM, SIGINT and SIGHUP save and exit 4. Under nohup, SIGHUP is ignored."""
    toy.train("whole", "--steps", 150)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        says, code = send(toy, number, signal.SIG_DFL)
        assert code == 4 and "--resume goes on" in says, (code, says)
        assert [x["event"] for x in toy.log("run") if "event" in x] == ["save", "stop"]
        toy.train("run", "--steps", 150, "--resume")
        same(toy, "whole", "run")
        toy.remove("run")
    says, code = send(toy, signal.SIGHUP, signal.SIG_IGN)
    assert code == 0, (code, says)
    same(toy, "whole", "run")
    toy.remove("whole", "run")


def lost_reader(toy):
    """A run goes on when the reader of its progress goes away."""
    child = subprocess.Popen([toy.maskbert, *map(str, toy.command("run", "--steps", 30, "--eval-every", 5))], cwd=toy.work, stderr=subprocess.PIPE)
    child.stderr.close()
    assert child.wait() == 0 and toy.log("run")[-1]["step"] == 30, child.returncode
    toy.remove("run")


def signal_storm(toy):
    """Signals that hit every thread of a step, again and again, break nothing: while oneDNN multiplies, no thread can
    take a handler's frame. The step is saved, and goes on to the same bits."""
    toy.ok("init", "--size", "1x256x4", "--vocab", "vocab.txt", "--positions", 40, "-o", "wide")
    command = ["pretrain", "wide", "--data", "data", "--batch", 160, "--accumulate", 10, "--steps", 3, "--threads", 2, "-o"]
    toy.ok(*command, "whole")
    child = subprocess.Popen([toy.maskbert, *map(str, command), "run"], cwd=toy.work, stderr=subprocess.PIPE, text=True)
    began(toy)
    sent = 0
    while child.poll() is None:
        threads = [int(path.name) for path in pathlib.Path(f"/proc/{child.pid}/task").glob("[0-9]*")]
        sent += sum(LIBC.tgkill(child.pid, thread, signal.SIGTERM) == 0 for thread in threads * 100)
    says = child.communicate()[1]
    assert child.returncode == 4 and sent > 1000, (child.returncode, sent, says)
    toy.ok(*command, "run", "--resume")
    same(toy, "whole", "run")
    toy.remove("whole", "run", "wide")
