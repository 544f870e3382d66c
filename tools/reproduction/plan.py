# SPDX-License-Identifier: Apache-2.0
"""The time, split over the stages beforehand: how many steps each run takes at the speed that was measured first."""
import dataclasses

SHARES = {"dense": 0.35, "p": 0.21, "dam": 0.175}  # of the time for training; what is left is for the rows
START = 0.45  # of the dense run's steps: with window(2) as the mask
LONGER = 150  # steps of the dense run take as long as the steps with longer sequences
RESERVE = 0.04  # of the time: the table, the pictures, the page
LEAST = {"dense": 20, "p": 10, "dam": 10, "row": 40}  # steps
SHORT = {"dense": 20, "p": 4, "dam": 4, "row": 4}  # of a call of less than five minutes


@dataclasses.dataclass
class Speed:
    """As measured: seconds a step, dense and where a mask is learned, and what a run takes beside its steps."""
    step: float
    learning: float
    row: float


@dataclasses.dataclass
class Plan:
    dense: int
    p: int
    dam: int
    row: int
    rows: int  # how many rows have time

    def seconds(self, speed, p_runs, dam_runs):
        """Total seconds of each kind of stage."""
        return {"dense": speed.row + self.dense * speed.step, "p": (speed.row + self.p * speed.learning) * p_runs,
                "dam": (speed.row + self.dam * speed.learning) * dam_runs,
                "rows": self.rows * (speed.row + self.row * speed.step)}


def start_steps(dense):
    """Number of the dense run's steps with window(2)."""
    return max(1, round(START * dense))


def split(seconds, speed, p_runs, dam_runs, rows, short=False):
    """seconds are left. Without learning its shares go to the others."""
    least = SHORT if short else LEAST
    time = seconds * (1 - RESERVE) - speed.row * (1 + p_runs + dam_runs)  # each starts, and is judged
    time -= LONGER * speed.step if dam_runs and not short else 0
    shares = {"dense": SHARES["dense"], "p": SHARES["p"] if p_runs else 0, "dam": SHARES["dam"] if dam_runs else 0}
    unused = SHARES["p"] + SHARES["dam"] - shares["p"] - shares["dam"]
    shares["dense"] += unused / 2
    dense = max(least["dense"], int(time * shares["dense"] / speed.step))
    p = max(least["p"], int(time * shares["p"] / (speed.learning * p_runs))) if p_runs else 0
    dam = max(least["dam"], int(time * shares["dam"] / (speed.learning * dam_runs))) if dam_runs else 0
    left = max(0, time) - dense * speed.step - (p * p_runs + dam * dam_runs) * speed.learning
    row = max(least["row"], int((left / max(1, rows) - speed.row) / speed.step))
    fit = min(rows, max(0, int(left / (speed.row + row * speed.step))))
    return Plan(dense, p, dam, row, fit)


def describe(plan, speed, p_runs, dam_runs, rows):
    """The plan in lines."""
    s = plan.seconds(speed, p_runs, dam_runs)
    def line(what, runs, steps, seconds):
        return f"  {what:34} {runs:3} x {steps:6} steps {seconds / 60:7.1f} min" if runs else f"  {what:34} left out"
    return [f"plan: {speed.step * 1e3:.0f} ms a step, {speed.learning * 1e3:.0f} ms where a mask is learned, {speed.row:.1f} s a run beside its steps",
            line("dense", 1, plan.dense, s["dense"]), line("P", p_runs, plan.p, s["p"]), line("dam-s, dam-u", dam_runs, plan.dam, s["dam"]),
            line(f"rows that have time, of {rows}", plan.rows, plan.row, s["rows"])]
