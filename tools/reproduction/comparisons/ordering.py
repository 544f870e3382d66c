# SPDX-License-Identifier: Apache-2.0
"""Compares results with the papers' ordering, by one rule.

A is above B on a task if the difference of their means is more than TIMES standard errors. The squared standard error is the variance over seeds
(pooled over the rows of the task that have several) times (1/seeds of A + 1/seeds of B), plus the variance of a share over the dev examples of A and
B (p (1 - p) / examples each). Where no row has several seeds, the variance over seeds is
unknown and left out, so limits are too small. Smaller differences are chance. A claim that A is better agrees if A is above B at least once and never
below; a claim that A is not worse agrees if A is never below, so chance counts for it. One case below makes either "does not agree"; with chance alone it
cannot be said whether A is better. Mean differences are A minus B. A task counts if the first row is above the majority by that rule: if nothing was
learned, masks do not matter."""
import statistics

AGREES, DIFFERS, OPEN = "agrees", "does not agree", "cannot be said"
TIMES = 2
SHARES = ("accuracy", "f1", "exact_match")  # means over examples; for other metrics only the seeds give the spread


def pooled(gathered, task):
    """Variance over seeds, pooled over rows; None if no row has two seeds."""
    found = [list(row[task]["each"].values()) for row in gathered.values() if len(row[task]["each"]) > 1]
    freedom = sum(len(f) - 1 for f in found)
    return sum((len(f) - 1) * statistics.variance(f) for f in found) / freedom if freedom else None


def sampling(e):
    """Variance, in percent squared, of a share of the dev examples."""
    share = min(1.0, max(0.0, e["mean"] / 100))
    return 1e4 * share * (1 - share) / e["dev"] if e["metric"] in SHARES and e["dev"] else None


def difference(gathered, a, b, task):
    """(A - B in percent, the difference that counts), or None if one is missing or chance is not known."""
    if a not in gathered or b not in gathered:
        return None
    a, b = gathered[a][task], gathered[b][task]
    if a["mean"] is None or b["mean"] is None:
        return None
    over_seeds, of_dev = pooled(gathered, task), sampling(a) is not None
    if over_seeds is None and not of_dev:
        return None
    variance = (over_seeds or 0) * (1 / a["seeds"] + 1 / b["seeds"]) + (sampling(a) + sampling(b) if of_dev else 0)
    return a["mean"] - b["mean"], TIMES * variance ** 0.5


def learned(gathered, task, majority):
    """True if the first row of the table is above the majority, in percent, or if that is not known."""
    e = next(iter(gathered.values()))[task]
    if e["mean"] is None or majority is None or e["metric"] not in SHARES:
        return e["mean"] is not None
    return e["mean"] - majority > TIMES * ((pooled(gathered, task) or 0) / e["seeds"] + (sampling(e) or 0)) ** 0.5


def compare(gathered, tasks, pairs):
    """Counts over pairs and tasks of A above B, below B and within chance; the mean difference."""
    found = [d for a, b in pairs for task in tasks if (d := difference(gathered, a, b, task)) is not None]
    above, below = sum(d > limit for d, limit in found), sum(d < -limit for d, limit in found)
    return {"above": above, "below": below, "chance": len(found) - above - below, "of": len(found),
            "mean": statistics.mean(d for d, _ in found) if found else None}


def judge(paper, claim, gathered, tasks, pairs, expects):
    """A claim about pairs (A, B). expects: above (A above B), or not below (A is not below B)."""
    got = compare(gathered, tasks, pairs)
    if not got["of"]:
        return {"paper": paper, "claim": claim, "measured": "nothing to judge", "verdict": OPEN, **got}
    good, bad = got["above"], got["below"]
    if expects == "not below":
        good += got["chance"]
    said = f"above in {got['above']}, below in {got['below']}, within chance in {got['chance']} of {got['of']} (mean difference {got['mean']:+.1f})"
    return {"paper": paper, "claim": claim, "measured": said, "verdict": OPEN if not good + bad else AGREES if not bad else DIFFERS, **got}


def number(paper, claim, said, holds):
    """A claim about numbers without a spread over seeds; holds None: undecided."""
    return {"paper": paper, "claim": claim, "measured": said, "verdict": OPEN if holds is None else AGREES if holds else DIFFERS}


def lines(verdicts):
    """Rows of the table of verdicts."""
    return [["paper", "claim", "measured", "verdict"], *([v["paper"], v["claim"], v["measured"], f"**{v['verdict']}**"] for v in verdicts)]
