# SPDX-License-Identifier: Apache-2.0
"""Helpers of every module here: errors that end the command, files that are whole or absent, maskc and maskbert."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess


class Fatal(Exception):
    """Ends the command: a line, and the exit code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class OutOfTime(Exception):
    """A program was stopped because the time is up; what it saved stays."""


def write_whole(path, data):
    """bytes, or text."""
    path = pathlib.Path(path)
    aside = path.with_name(path.name + ".part")
    aside.write_bytes(data if isinstance(data, bytes) else data.encode())
    os.replace(aside, path)


def write_json(path, value):
    write_whole(path, json.dumps(value, indent=1) + "\n")


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise Fatal(2, f"{path}: {e}; what this command wrote is expected, or no file") from None


def die_with_parent():
    """In the child: nothing goes on in DIR when this command is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(command, **more):
    return subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, preexec_fn=die_with_parent, **more)


class Programs:
    """maskc and maskbert of a build folder."""

    def __init__(self, build, names=("maskc", "maskbert")):
        self.paths = {name: pathlib.Path(build).resolve() / "tools" / name / name for name in names}
        for path in self.paths.values():
            if not os.access(path, os.X_OK):
                raise Fatal(3, f"{path}: no such program; build maskc (tools/quickstart) or give --build")
        self.help = {}

    def run(self, name, *arguments, stdin=None, seconds=None):
        """Returns the program's output. Fatal with its own line where it failed, OutOfTime after this many seconds."""
        return run([self.paths[name], *arguments], stdin, seconds)

    def json(self, name, *arguments, seconds=None):
        return json.loads(self.run(name, *arguments, "--json", seconds=seconds))

    def takes(self, name, command, option):
        """Does COMMAND's help name this option? (A command that is not there has no help.)"""
        if (name, command) not in self.help:
            done = subprocess.run([str(self.paths[name]), command, "--help"], capture_output=True, check=False)
            self.help[name, command] = done.stdout.decode(errors="replace") if done.returncode == 0 else ""
        return option in self.help[name, command]


def run(command, stdin=None, seconds=None):
    with start(command, stdin=stdin, stdout=subprocess.PIPE) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.terminate()  # a run saves its state first
            child.communicate()
            raise OutOfTime from None
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise Fatal(child.returncode if child.returncode in (1, 2, 3, 4) else 3, error_of(command, err, child.returncode))
    return out.decode()


def error_of(command, err, code):
    """The program's own line, which is the last that begins with its name: others tell, or point at a column."""
    name, lines = pathlib.Path(command[0]).name, err.decode(errors="replace").strip().splitlines()
    own = [line for line in lines if line.startswith(f"{name}: ")]
    said = own[-1] if own else f"{name}: {lines[-1]}" if lines else f"{name}: ended with {code}"
    return f"{said} ({' '.join([name, *map(str, command[1:])])})"
