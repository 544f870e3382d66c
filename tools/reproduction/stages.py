# SPDX-License-Identifier: Apache-2.0
"""Stages with results on the disk. A stage is done when its result stands; it is written aside and renamed, so that a call
that was killed at any moment is simply repeated."""
import fcntl
import os
import sys
import time

from programs import Fatal, OutOfTime, read_json, write_json


class Clock:
    """The time of this call."""

    def __init__(self, minutes, now=time.monotonic):
        self.now, self.began, self.seconds = now, now(), minutes * 60

    def left(self):
        return self.began + self.seconds - self.now()

    def spent(self):
        return self.now() - self.began


class Stages:
    def __init__(self, folder, clock, say=None, threads=0):
        """threads: of this call, noted in each result; 0: all."""
        self.folder, self.clock, self.threads = folder / "results", clock, threads
        self.say = say or (lambda text: print(text, file=sys.stderr, flush=True))
        self.left_out = {}  # stage: why
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = open(folder / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.lock.close()
            raise Fatal(2, f"{folder}: another call is at work there") from None

    def path(self, name):
        return self.folder / f"{name}.json"

    def done(self, name):
        return read_json(self.path(name)) if self.path(name).exists() else None

    def leave_out(self, name, why):
        self.left_out[name] = why

    def do(self, name, action, needs=0.0, optional=False):
        """The result of a stage, from before or made now; None where there is no time for the seconds that it needs, and where
        an optional one comes to nothing (a program ended with 1: a loss that is not finite, a share that cannot be reached)."""
        result = self.done(name)
        if result is not None:
            return result
        if self.clock.left() < needs:
            return self.leave_out(name, "no time was left")
        left, began = self.clock.left(), self.clock.now()
        self.say(f"[{max(0, left) / 60:5.1f} min left] {name}")
        try:
            result = action()
        except OutOfTime:
            return self.leave_out(name, "the time was up")
        except Fatal as e:
            if e.code != 1 or not optional:
                raise
            return self.leave_out(name, str(e))
        result |= {"took_s": round(self.clock.now() - began, 3), "threads": self.threads}
        write_json(self.path(name), result)
        return result


def remove_asides(folder):
    """Removes incomplete files of a killed call."""
    for path in folder.rglob("*.part"):
        if path.is_file():
            os.unlink(path)
