# SPDX-License-Identifier: Apache-2.0
"""The papers' claims that can be checked here, and a verdict on each: agrees, does not agree, or cannot be said.

A difference of losses, seed by seed, counts if it is more than three times its standard deviation, which the seeds of the dense
rows give. Pairs with a mask on the plateau are not counted."""
import statistics

import learned
import rows
import table

AGREES, DIFFERS, OPEN = "agrees", "does not agree", "cannot be said"
TIMES = 3  # the deviation is known from few seeds
# Sparsity with the diagonal and without, of Tables 3 and 4 of SparseBERT.
PAPER_SPARSITY = {"strided": (70.4, 71.2), "fixed": (72.7, 73.4), "longformer": (88.7, 89.5), "logsparse": (89.8, 90.6), "bigbird": (93.2, 93.9),
                  "star": (96.1, 96.9)}
PAPER_DAM = {"dam-s-1e-4": 91.2, "dam-s-1e-3": 91.6, "dam-s-1e-2": 91.7, "dam-s-1e-1": 93.5, "dam-u-1e-1": 85.8}


class Results:
    """The measurements that verdicts are based on."""

    def __init__(self, gathered, dense):
        self.table = {e["mask"]: e for e in gathered["entries"]}
        self.noise, self.runs, self.theorem, self.unigram = (gathered[name] for name in ("noise", "runs", "theorem", "unigram"))
        self.longer, self.dense = gathered.get("longer"), dense

    def pair(self, a, b):
        """(loss of a - loss of b, the difference that counts). None if one is missing or on the plateau, or if chance is not known."""
        a, b = self.table.get(a), self.table.get(b)
        if not a or not b or a["plateau"] or b["plateau"] or self.noise is None:
            return None
        found = table.paired(a, b)
        return (statistics.mean(found), TIMES * self.noise / len(found)**0.5) if found else None

    def off_plateau(self, kind):
        """Runs that learned a mask, if the dense model from which they started is off the plateau. A run that ended on the plateau counts:
        its mask caused that."""
        return {} if self.dense["plateau"] else {name: r for name, r in sorted(self.runs.items()) if name.startswith(kind)}

    def P(self):
        return [r["P"] for r in self.off_plateau("p-").values()]


def verdict(good, bad):
    """The verdict for so many pairs that speak for the claim and against it."""
    return OPEN if not good + bad else AGREES if not bad else DIFFERS


def compare(results, pairs):
    """Counts of the pairs (a, b) in which a's loss is below b's, above it, or within chance; then the differences."""
    found = [d for d in (results.pair(a, b) for a, b in pairs) if d]
    below, above = sum(d < -limit for d, limit in found), sum(d > limit for d, limit in found)
    return below, above, len(found) - below - above, found


def unless_lost(results, names, judged):
    """Learned masks on the plateau are not counted, like any row there, but with one of them the claim cannot agree."""
    lost = [n for n in names if n in results.table and results.table[n]["plateau"]]
    said = f"; {', '.join(lost)} ended on the plateau and {'is' if len(lost) == 1 else 'are'} not counted" if lost else ""
    return said, OPEN if lost and judged == AGREES else judged


def told(found):
    below, above, same, pairs = found
    if not pairs:
        return "no pair measured off the plateau with a known spread"
    mean = statistics.mean(d for d, _ in pairs)
    return f"lower in {below}, higher in {above}, within chance in {same} of {len(pairs)} (mean difference {mean:+.4f} nats)"


def uncounted(results, pairs):
    """pairs: {name: (a, b)}. Text that names the pairs with a mask on the plateau."""
    names = [str(name) for name, pair in pairs.items() if any(m in results.table and results.table[m]["plateau"] for m in pair)]
    return f"; not counted, because a mask is on the plateau: {', '.join(names)}" if names else ""


# ---- each claim: results -> (measurement as text, verdict)
def theorem_holds(r):
    if not r.theorem:
        return "not run", OPEN
    return "the construction through our kernels, every head output exact (`tools/reproduce theorem`)", AGREES if r.theorem["holds"] else DIFFERS


def sparsities(r):
    wrong, right = [], 0
    for name, pair in PAPER_SPARSITY.items():
        for label, paper in zip((name, f"{name} - diagonal(0)"), pair):
            if label in r.table:
                ours = r.table[label]["sparsity"]
                right += abs(ours - paper) <= 0.0501
                wrong += [] if abs(ours - paper) <= 0.0501 else [f"{label} {ours:.2f} (paper {paper})"]
    return f"{right} of {right + len(wrong)} equal the paper's after rounding" + (": " + ", ".join(wrong) if wrong else ""), verdict(right, len(wrong))


def place_against(r, places, below):
    """Mean of P at these places against the mean of all but the diagonal (for the diagonal) or of the rest, over the seeds."""
    seeds = r.P()
    if not seeds:
        return "no P learned off the plateau", OPEN
    def difference(P):
        ours = sum(P[k]["mean"] * P[k]["entries"] for k in places) / sum(P[k]["entries"] for k in places)
        return ours - (learned.off_diagonal_mean(P) if places == ("diagonal",) else P["rest"]["mean"])
    found = [difference(P) for P in seeds]
    mean, deviation = learned.mean_and_deviation(found)
    said = f"{mean:+.5f}" + (f" +- {deviation:.5f}" if deviation is not None else "") + f" over {len(found)} seed{'s' * (len(found) > 1)}"
    if deviation is None or abs(mean) <= 2 * deviation / len(found)**0.5:
        return said, OPEN
    return said, AGREES if (mean < 0) == below else DIFFERS


def diagonal_least(r):
    said, judged = place_against(r, ("diagonal",), True)
    return f"P of the diagonal minus P of all else: {said}", judged


def neighbours_most(r):
    said, judged = place_against(r, ("distance 1", "distance 2"), False)
    return f"P at distances 1 and 2 minus P of the rest: {said}", judged


def special_important(r):
    said, judged = place_against(r, ("special",), False)
    return f"P of the first and last row and column minus P of the rest: {said}", judged


def diagonal_needless(r):
    found = compare(r, [("dense - diagonal(0)", "dense")])
    return "without the diagonal, compared with dense: " + told(found), OPEN if not found[3] else DIFFERS if found[1] else AGREES


def random_needed(r):
    found = compare(r, [("dense - 128 random", "dense")])
    return "without 128 random entries of each head against dense: " + told(found), verdict(found[1], found[0])


def designed_without(r):
    found = compare(r, [(f"{name} - diagonal(0)", name) for name in rows.DESIGNED])
    return told(found), OPEN if not found[3] else DIFFERS if found[1] else AGREES


def pruning_beats_random(r):
    pairs = {f"{p} %": (f"P pruned {p} %", f"random {p} %") for p in sorted({*rows.PROGRESSIVE, *rows.THRESHOLDS})}
    found = compare(r, pairs.values())
    return "loss of P pruned against random, 10 to 95 %: " + told(found) + uncounted(r, pairs), verdict(found[0], found[1])


def nearest(r, sparsity, names):
    known = [n for n in names if n in r.table]
    return min(known, key=lambda n: abs(r.table[n]["sparsity"] - sparsity), default=None)


def learned_beats_designed(r):
    pairs = [(n, nearest(r, r.table[n]["sparsity"], rows.DESIGNED)) for n in rows.LEARNED if n in r.table]
    found = compare(r, pairs)
    lost, judged = unless_lost(r, rows.LEARNED, verdict(found[0], found[1]))
    return "learned against the designed mask of the nearest sparsity: " + told(found) + lost, judged


def one_stage(r):
    names = [f"P pruned {p} %" for p in rows.THRESHOLDS]
    pairs = [(n, nearest(r, r.table[n]["sparsity"], names)) for n in rows.LEARNED if n in r.table]
    found = compare(r, pairs)
    lost, judged = unless_lost(r, rows.LEARNED, verdict(found[0], found[1]))
    return "DAM against P pruned to the nearest sparsity: " + told(found) + lost, judged


def price_sets_sparsity(r):
    ours = [r.table[name]["sparsity"] for x in rows.LAMBDAS if (name := f"dam-s-{x}") in r.table and name in r.off_plateau("dam-s")]
    if len(ours) < 2:
        return "fewer than two learned off the plateau", OPEN
    said = "DAM_s, lambda 1e-4 to 1e-1: " + ", ".join(f"{x:.1f} %" for x in ours) + " (paper 91.2, 91.6, 91.7, 93.5)"
    return said, AGREES if all(a <= b for a, b in zip(ours, ours[1:])) and ours[-1] > ours[0] else DIFFERS


def reached_sparsity(r):
    known = [n for n in rows.LEARNED if n in r.table and n in r.off_plateau("dam")]
    off = [abs(r.table[n]["sparsity"] - PAPER_DAM[n]) for n in known]
    said = "; ".join(f"{n} {r.table[n]['sparsity']:.1f} (paper {PAPER_DAM[n]})" for n in known)
    return said or "nothing learned off the plateau", OPEN if not known else AGREES if max(off) <= 2 else DIFFERS


def dam_diagonal_off(r):
    """In most heads the diagonal is off, and distance 1 is on."""
    known = [n for n in rows.LEARNED if n in r.off_plateau("dam")]
    if not known:
        return "nothing learned off the plateau", OPEN
    off, near = ([sum((head[d] > 0.5) == on for head in r.runs[n]["kept"]) for n in known] for d, on in ((0, False), (1, True)))
    said = f"of 12 heads, run by run: diagonal off {', '.join(map(str, off))}; distance 1 on {', '.join(map(str, near))}"
    return said, AGREES if min(off) > 6 and min(near) > 6 else DIFFERS


def blocks_density(r):
    ours = {n: 100 - r.table[n]["sparsity"] for n in rows.BLOCKS if n in r.table}
    right = sum(abs(v - 100 / int(n[-1])) < 1 for n, v in ours.items())  # 3 does not divide 128
    return ", ".join(f"{n}: {v:.2f} % of the entries" for n, v in ours.items()) or "not measured", verdict(right, len(ours) - right)


def blocks_close(r):
    """The paper has perplexities of 3.56 to 3.71 against 3.58 and 3.60: up to 3.6 % more."""
    found = [(n, r.table[n]["mlm"] - r.table["dense"]["mlm"]) for n in rows.BLOCKS if n in r.table and "dense" in r.table and not r.table[n]["plateau"]]
    said = ", ".join(f"{n}: perplexity {100 * (2.718281828459045**d - 1):+.1f} %" for n, d in found)
    return said or "not measured off the plateau", verdict(*(sum((d < 0.036) == good for _, d in found) for good in (True, False)))


def snap_beats_threshold(r):
    found = compare(r, [(f"P snapped {x}", f"P threshold {x}") for x in rows.SHARES])
    return "snap against threshold of P within the same predicted time: " + told(found), verdict(found[0], found[1])


def settled_snap_beats_threshold(r):
    pairs = [[f"P settled, {kind} {x}" for kind in ("snap", "threshold")] for x in rows.SHARES]
    found = compare(r, pairs)
    each = "; ".join(f"{x} of dense's time: {r.table[a]['mlm']:.4f} against {r.table[b]['mlm']:.4f}" for x, (a, b) in zip(rows.SHARES, pairs) if a in r.table and b in r.table)
    return (each + ": " if each else "") + told(found) + uncounted(r, dict(zip(rows.SHARES, pairs))), verdict(found[0], found[1])


def learned_step_is_no_slower(r):
    """Judges the speed of a whole training step, at lengths where the mask is wide."""
    if not r.longer:
        return "not measured", OPEN
    ratios = [x["ratio"] for x in r.longer["lengths"]]
    said = ", ".join(f"n = {x['length']}: {x['ratio']:.2f} of dense's step" for x in r.longer["lengths"])
    return f"{r.longer['mask']}, {said}", verdict(*(sum((x <= 1) == good for x in ratios) for good in (True, False)))


CLAIMS = (
    ("SparseBERT 3.2", "Attention without the diagonal is a contextual mapping for n > 2", theorem_holds),
    ("SparseBERT Tables 3, 4", "Sparsity of the six designed masks, with the diagonal and without", sparsities),
    ("SparseBERT 3.1.2, Figure 2", "The diagonal is the least important", diagonal_least),
    ("SparseBERT 3.1.2, Figure 2", "Neighbours are the most important", neighbours_most),
    ("SparseBERT 3.1.2, Figure 2", "The first and the last token are important", special_important),
    ("SparseBERT 3.3, Table 1", "Dropping the diagonal does no harm", diagonal_needless),
    ("SparseBERT 3.3, Table 1", "Dropping as many random entries does harm", random_needed),
    ("SparseBERT 3.4, Figure 3", "Pruning by P is better than at random at every sparsity", pruning_beats_random),
    ("SparseBERT Table 3", "Learned masks are better than designed ones", learned_beats_designed),
    ("SparseBERT Table 3", "Sparsity rises with lambda", price_sets_sparsity),
    ("SparseBERT Table 3", "The sparsity that is reached (within 2 points)", reached_sparsity),
    ("SparseBERT Figures 5, 6", "Learned masks leave the diagonal off and neighbours on in most heads", dam_diagonal_off),
    ("SparseBERT Table 4", "Designed masks are not worse without the diagonal", designed_without),
    ("SparseBERT 4.3.2, Figure 7", "One stage (DAM) is better than two (P, then a threshold)", one_stage),
    ("BlockBERT 3", "k blocks keep 1/k of the entries", blocks_density),
    ("BlockBERT Table 3", "Perplexity with blocks is within 3.6 % of dense", blocks_close),
    ("maskc, of its own", "Snap loses less than a threshold in the same predicted time, in the dense model", snap_beats_threshold),
    ("maskc, of its own", "Snap loses less than a threshold in the same predicted time, in the model that P was learned with", settled_snap_beats_threshold),
    ("maskc, of its own", "A training step under a learned dam-s mask takes at most a dense step's time", learned_step_is_no_slower),
)


def judge(results):
    return [{"paper": paper, "claim": claim, "measured": said, "verdict": judged}
            for paper, claim, check in CLAIMS for said, judged in [check(results)]]
