# SPDX-License-Identifier: Apache-2.0
"""Programs that cases start: their output, the reason of a failure, and their end when time is up."""
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

LEAST_LIMIT = 90.0  # seconds that every case may need, however short it should be
PATIENCE = 10  # a case is stopped after this multiple of its expected time
GRACE = 5.0  # seconds between an interrupt and a kill


class Fatal(Exception):
    """Ends the command with this exit code and one line."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class OutOfTime(Exception):
    """The budget of the whole call is spent: the case is left for the next call."""


def reason_in(text):
    """First line of an error text; last line of a Python traceback."""
    lines = text.strip().splitlines() or [""]
    return lines[-1 if any(x.startswith("Traceback") for x in lines) else 0]


def ended_by(code):
    """The signal behind a negative exit code."""
    if code >= 0:
        return ""
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def send(child, number):
    """Signals a child and everything that it started."""
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def interrupt(child):
    """Ends a child. tools/peers writes its results when interrupted."""
    send(child, signal.SIGINT)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        send(child, signal.SIGKILL)
        child.wait()


def text_of(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


class Call:
    """One call of gpu-check: its options, results, deadline, and the programs that are running."""

    def __init__(self, options, environment, kept, deadline):
        self.o, self.environment, self.kept, self.deadline = options, environment, kept, deadline
        build = pathlib.Path(options.build)
        self.maskc = build / "tools/maskc/maskc"
        self.maskbert = build / "tools/maskbert/maskbert"
        self.package = build / "runtime/python"
        self.running, self.lock = set(), threading.Lock()
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a job in the background, whose programs would ignore it too
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def left(self):
        return self.deadline - time.monotonic()

    def attempt(self, seconds):
        """Starts programs for a case that is expected to need `seconds`."""
        return Attempt(self, time.monotonic() + max(LEAST_LIMIT, PATIENCE * seconds))

    def start(self, words, environment=None, **more):
        child = subprocess.Popen([str(w) for w in words], env=self.environment | (environment or {}),
                                 start_new_session=True, **more)
        with self.lock:
            self.running.add(child)
        return child

    def forget(self, child):
        with self.lock:
            self.running.discard(child)

    def end_all(self):
        with self.lock:
            for child in self.running:
                send(child, signal.SIGKILL)


class Attempt:
    """One try of a case, in a thread of its own."""

    def __init__(self, call, stop_at):
        self.call, self.o, self.kept = call, call.o, call.kept
        self.maskc, self.maskbert, self.package = call.maskc, call.maskbert, call.package
        self.began, self.stop_at = time.monotonic(), min(stop_at, call.deadline)
        self.stopped = False

    def command(self, *words, environment=None, partial=False):
        """(exit code, stdout, reason of a failure). Raises OutOfTime at the end of the budget, unless partial output is
        of use; `stopped` is then set. Output goes to files: a pipe would stay open for what the program left behind."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                child = self.call.start(words, environment, stdout=out, stderr=err)
            except OSError as e:
                return 127, "", f"{words[0]}: {e.strerror}"
            try:
                child.wait(max(0.0, self.stop_at - time.monotonic()))
                return child.returncode, text_of(out), reason_in(text_of(err)) or ended_by(child.returncode)
            except subprocess.TimeoutExpired:
                self.cut(child, partial)
                return 124, text_of(out), f"stopped after {time.monotonic() - self.began:.0f} s"
            finally:
                self.call.forget(child)

    def cut(self, child, partial):
        interrupt(child)
        self.stopped = self.call.left() <= 0
        if self.stopped and not partial:
            raise OutOfTime
