# SPDX-License-Identifier: Apache-2.0
"""Expected seconds of each case, for the order of work and for --dry-run. All are for one NVIDIA H100 80GB HBM3 with 16
CPU cores. `plan` prints the source of each figure.
"""
from gpu_check import timing_cases as known

CORES, WORKERS = 16, 12  # cores of that H100 machine; workers of the measured run
BUDGET = 300
SHARE = 0.75  # of the CPU cores: each worker also keeps the driver's threads busy

VERIFIED_CASES, VERIFIED_SECONDS = 215, 68  # measured, with WORKERS workers
TIMED_SECONDS = 57  # measured: all rows of tests/results' first H100 run in one process
TIMED_ROWS, FLEX_ROWS = 98, 16  # rows in TIMED_SECONDS without and with FlexAttention
START_SECONDS, FLEX_SECONDS = 8.0, 1.75  # parts of TIMED_SECONDS: torch and rates; compiling one case of FlexAttention
ROW_SECONDS = (TIMED_SECONDS - START_SECONDS - FLEX_ROWS * FLEX_SECONDS) / TIMED_ROWS

# case: (seconds on the H100, source of the figure)
SECONDS = {
    "build": (20, "estimate: 51 s of processor time with gcc, on 16 cores, and meson's setup"),
    "verify": (VERIFIED_SECONDS * WORKERS / VERIFIED_CASES, "measured: 215 cases in 68 s with 12 workers"),
    "time start": (START_SECONDS, "measured: in the 57 s of the stage"),
    "time kernels": (8, "estimate: 35 kernels at the price of verify"),
    "time row": (ROW_SECONDS, "measured: 114 rows of one process in 57 s"),
    "time flex": (FLEX_SECONDS, "measured: in the 57 s of the stage"),
    "harness run": (3, "estimate: 25 problems in 10 s, and the mask's tables"),
    "maskbert verify": (8, "estimate"),
    "maskbert time": (6, "estimate: two masks at 2 s each, measured, and two loads"),
    "train verify": (5, "estimate: a small model, three to five runs"),
    "train time": (8, "estimate: 30 steps in 2 s, a model of 440 MB and its state written"),
    "train torch": (14, "estimate: imports, one compiled layer, 35 steps"),
    "calibrate": (40, "estimate: 180 probes"),
    "sanitize": (12, "estimate: three times verify"),
    "peers mask": (12, "estimate: FlexAttention is compiled for each block size"),
    "python": (30, "estimate: the longest of these tests on CPU tensors"),
}
EMULATED = 6.0  # seconds of any case on the emulated device, two at a time on two cores


def of(case, device):
    if device == "emulated":
        return EMULATED
    return SECONDS[case if case in SECONDS else case.split()[0]][0]


def source(case):
    return SECONDS[case][1]


def of_timing(case):
    """One case of the stage time."""
    flex = known.count(case, known.FLEX)
    return ROW_SECONDS * len(case.contenders) + FLEX_SECONDS * flex
