# SPDX-License-Identifier: Apache-2.0
"""Cases of a stage, run in parallel within the budget. A case that has a result is not run again, a case starts only if
its expected time is left, and each result is kept at once: a call that was killed goes on where it stopped.
"""
import collections
import concurrent.futures
import dataclasses
import sys
import time
from typing import Callable

from gpu_check.programs import OutOfTime


@dataclasses.dataclass
class Item:
    """One case."""
    name: str
    seconds: float  # expected, from its start to its end
    do: Callable = None  # of an Attempt; returns the result
    alone: bool = False  # it measures time: no other case runs beside it
    key: str = ""  # more than the name that decides the result: one with another key is made anew


@dataclasses.dataclass
class Stage:
    name: str
    items: list
    workers: int = 1
    start: float = 0.0  # expected seconds before the first case
    missing: Callable = None  # of a Call; the reason why this machine cannot run the stage, or ""
    together: Callable = None  # of a Call, the Stage and its open items: runs all in one process


def is_dead(result):
    """True if a case ended without a result, as its program is missing, crashed or was stopped. It is tried again."""
    return bool(result.get("dead"))


def dead(reason):
    return {"ok": False, "dead": True, "said": reason}


def open_items(done, items):
    """Items without a result; those that died before come last, so that they delay no other."""
    return [i for i in items if i.name not in done] + [i for i in items if is_dead(done.get(i.name, {}))]


def attempt(call, item):
    """The result of an item; None where the budget ended first. An error here costs this item and no other."""
    began = time.monotonic()
    try:
        result = item.do(call.attempt(item.seconds))
    except OutOfTime:
        return None
    except Exception as e:  # a fault of one case must not cost the results of the others
        result = dead(f"{type(e).__name__}: {e}")
    return result | {"seconds": round(time.monotonic() - began, 2)}


def progress(stage, count, total, name=""):
    """One line on a terminal, overwritten by the next."""
    if sys.stderr.isatty():
        text = f"{stage} {count}/{total}: {name}" if name else ""
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class Pool:
    """Runs items with so many workers."""

    def __init__(self, call, stage, items, workers):
        self.call, self.stage, self.workers = call, stage, workers
        self.waiting, self.total, self.left = collections.deque(items), len(items), []

    def next_item(self):
        """The next item that fits into the time left, or None."""
        while self.waiting:
            item = self.waiting.popleft()
            if item.seconds <= self.call.left():
                return item
            self.left.append(item.name)
        return None

    def keep(self, item, result):
        """A partial result is kept, and its item is left."""
        cut = result is None or result.pop("cut", False)
        if cut:
            self.left.append(item.name)
        if result is not None and (not cut or result.get("results")):
            self.call.kept.put(self.stage.name, item.name, result)

    def run(self):
        """Names of the items that are left."""
        running = {}
        with concurrent.futures.ThreadPoolExecutor(self.workers) as threads:
            try:
                while True:
                    while len(running) < self.workers and (item := self.next_item()):
                        running[threads.submit(attempt, self.call, item)] = item
                        progress(self.stage.name, self.total - len(self.waiting), self.total, item.name)
                    if not running:
                        return self.left
                    done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        self.keep(running.pop(future), future.result())
            except BaseException:
                self.call.end_all()
                raise


def run_stage(call, stage):
    """Names of the items that are left, in the order of the stage."""
    todo = open_items(call.kept.stage(stage.name), stage.items)
    if stage.together:
        left = stage.together(call, stage, todo) if todo else []
    else:
        left = Pool(call, stage, [i for i in todo if not i.alone], stage.workers).run()
        left += Pool(call, stage, [i for i in todo if i.alone], 1).run()
    progress(stage.name, 0, 0)
    return [i.name for i in stage.items if i.name in set(left)]


def summary(stage, results, left):
    """One line about a stage."""
    known = [results[i.name] for i in stage.items if i.name in results]
    died = sum(map(is_dead, known))
    bad = sum(not r.get("ok", True) for r in known) - died
    text = f"{stage.name}: {len(known)} of {len(stage.items)} cases, {bad} wrong"
    text += f", {died} without a result: a later call tries them again" if died else ""
    return text + (f", {len(left)} left: call again to go on" if left else "")
