# SPDX-License-Identifier: Apache-2.0
"""Timing of several contenders in turn (A B C D A B C D), so that a busy or slow machine is equally
busy and slow for each. On the CPU a sample is one call, after one untimed call that wakes the
contender's own thread pool and warms its caches; on CUDA it is one replay of a graph that walks over
buffers larger than the L2 cache.
"""
import math
import time

import torch

import peers_mma
from peers_report import summary

REST_S = 0.004       # between contenders: idle OpenMP pools spin for about a millisecond
WARM_CALLS = 2
FEWEST = 5           # samples, however slow
WARM_S = 0.3         # CUDA: clocks rise
CACHE_MULTIPLE = 3   # CUDA: the rotating buffers are this many times L2
MAX_BUFFERS = 32


class CpuClock:
    """`kind` cpu counts the process's time on a CPU: on a machine shared with other work the wall
    clock favours short calls, which fit between two interruptions."""

    def __init__(self, kind):
        self.now = time.process_time if kind == "cpu" else time.perf_counter
        self.note = f"one call a sample, {kind} clock"
        self.copy_rate = None
        self.mma = None

    def buffers(self, bytes_of_case):
        return 1

    def prepare(self, calls):
        """calls: one per buffer. Returns what sample() takes."""
        for _ in range(WARM_CALLS):
            calls[0]()
        return calls[0]

    def sample(self, call):
        time.sleep(REST_S)
        call()
        begin = self.now()
        call()
        return self.now() - begin


def copy_rate(size=1 << 30, repeat=9):
    """Bytes a second, read and written, of the device's own copy: the memory floor's measure."""
    a, b = (torch.empty(size, dtype=torch.uint8, device="cuda").zero_() for _ in range(2))
    times = []
    for _ in range(repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        b.copy_(a)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return 2 * size / summary(times)["median_s"]


class CudaClock:
    def __init__(self, warm_s=WARM_S):
        """warm_s: seconds of untimed calls of each contender; a process that keeps the GPU busy needs fewer."""
        self.warm_s = warm_s
        self.l2 = torch.cuda.get_device_properties("cuda").L2_cache_size
        self.copy_rate = copy_rate()
        self.mma = peers_mma.rate()
        self.note = f"a copy moves {self.copy_rate / 1e12:.2f} TB/s; {self.mma['flops_per_s'] / 1e12:.0f} TFLOP/s " \
                    f"by {self.mma['by']}; " \
                    "CUDA graphs over rotating buffers; a contender that cannot be captured is " \
                    "timed without a graph and marked *"

    def buffers(self, bytes_of_case):
        return max(2, min(MAX_BUFFERS, math.ceil(CACHE_MULTIPLE * self.l2 / bytes_of_case)))

    def warming(self, begin):
        """Rounds of untimed calls: at least two."""
        rounds = 0
        while rounds < WARM_CALLS or time.perf_counter() - begin < self.warm_s:
            rounds += 1
            yield rounds

    def prepare(self, calls):
        begin = time.perf_counter()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # capture wants a warm-up, and backward its forward's stream
            for _ in self.warming(begin):
                for call in calls:
                    call()
                torch.cuda.synchronize()
        torch.cuda.current_stream().wait_stream(side)
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                for call in calls:
                    call()
            return graph.replay, len(calls), True
        except RuntimeError:
            torch.cuda.synchronize()
            return lambda: [call() for call in calls], len(calls), False

    def sample(self, prepared):
        replay, calls, _ = prepared
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls


def clock_for(device, kind):
    return CudaClock() if device == "cuda" else CpuClock(kind)


def interleave(clock, contenders, repeat, limit):
    """contenders: {name: calls}. {name: summary}; `graph` False where one was wanted and failed.
    `repeat` rounds, fewer once `limit` seconds have passed, but FEWEST."""
    ready = {name: clock.prepare(calls) for name, calls in contenders.items()}
    samples = {name: [] for name in ready}
    begin = time.perf_counter()
    for k in range(repeat):
        if k >= FEWEST and time.perf_counter() - begin > limit:
            break
        for name, prepared in ready.items():
            samples[name].append(clock.sample(prepared))
    return {name: summary(s) | {"graph": ready[name][2] if isinstance(ready[name], tuple) else None}
            for name, s in samples.items()}
