# SPDX-License-Identifier: Apache-2.0
"""Rows of the stage time in Markdown. No line of a table is longer than 100 characters; what is slower is bold."""
from peers_report import percentile

NEAR = 0.25  # relative error of a prediction that holds
LABEL = 20  # characters of a mask in a table
PASS_NAMES = {"forward": "fwd", "backward": "bwd", "both": "both"}
PRODUCTS = {"forward": 4, "both": 14, "backward": 10}  # times n * n * D: floating-point operations of a dense pass
RIVALS = {"sdpa-cudnn": "cuDNN", "sdpa-flash": "flash", "sdpa-efficient": "effic."}  # for cells
WORST = 6  # losses that the summary names


def label(mask):
    """A mask for a cell; long ones are cut, and named in full below the table."""
    text = mask if len(mask) <= LABEL else mask[:LABEL - 3] + "..."
    return text.replace("|", "/")


def seconds_of(row):
    return row.get("median_s") if row else None


def milliseconds(row):
    seconds = seconds_of(row)
    return f"{1e3 * seconds:.3f}" if seconds else "-"


def fastest(rows):
    return min(filter(seconds_of, rows), key=seconds_of, default=None)


def floor_of(row):
    """Neither memory traffic nor the products of the executed area can be faster."""
    return max(filter(None, (row.get("floor_s"), row.get("area_floor_s"))), default=None)


def ratio(over, under):
    return over / under if over and under else None


def factor(value):
    if value is None:
        return "-"
    return f"{value:.2f} x" if value >= 1 else f"**{value:.2f} x**"


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def table(head, rows):
    if not rows:
        return []
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *("| " + " | ".join(r) + " |" for r in rows), ""]


def problem_of(row):
    return row["length"], row["batch"], row["head_dim"], row["dtype"]


def is_flex(case):
    return any(r["contender"].startswith("flex-") for r in case)


def torch_rival(row, case):
    """Torch's fastest kernel that computes the mask; for masks that none computes, its fastest dense one."""
    rivals = [r for r in case if r["contender"].startswith("sdpa")]
    return fastest([r for r in rivals if r["mask"] == row["mask"]] or [r for r in rivals if r["mask"] == "dense"])


def ours_of(case):
    return [r for r in case if r["contender"] == "ours"]


def verdict(row):
    words = [row.get("verdict", "-")] if row.get("verdict") != "ok" else []
    return ", ".join(words + (["no graph"] if row.get("graph") is False else []))


# ---- comparisons ----

def rival_lines(cases):
    """Ours and torch's dense kernels, one row for each mask and pass."""
    rows = []
    for case in cases:
        dense = next((r for r in ours_of(case) if r["mask"] == "dense"), None)
        for row in ours_of(case):
            rival = torch_rival(row, case)
            rows.append([label(row["mask"]), PASS_NAMES[row["pass"]], milliseconds(row), milliseconds(dense),
                         f"{milliseconds(rival)} {RIVALS[rival['contender']]}" if rival else "-",
                         factor(ratio(seconds_of(rival), seconds_of(row))), percent(ratio(floor_of(row), seconds_of(row))),
                         percent(ratio(row.get("predicted_s"), seconds_of(row))), verdict(row)])
    return table(["mask", "pass", "ours", "dense", "torch", "vs torch", "floor", "predicted", ""], rows)


def flex_lines(cases):
    rows = []
    for case in cases:
        ours = {r["mask"]: r for r in ours_of(case)}
        for row in case:
            if row["contender"].startswith("flex-"):
                rows.append([label(row["mask"]), PASS_NAMES[row["pass"]], milliseconds(ours.get(row["mask"])), milliseconds(row),
                             factor(ratio(seconds_of(row), seconds_of(ours.get(row["mask"])))), verdict(row)])
    return table(["mask", "pass", "ours", "FlexAttention", "vs Flex", ""], rows)


def torch_lines(cases):
    """Torch's kernels with their rates."""
    rows = []
    for case in cases:
        for row in case:
            if row["contender"].startswith("sdpa"):
                flops = PRODUCTS[row["pass"]] * row["length"] ** 2 * row["head_dim"] * row["batch"] * row["heads"]
                rate = ratio(flops, seconds_of(row))
                rows.append([row["contender"], row["mask"], PASS_NAMES[row["pass"]], milliseconds(row),
                             f"{rate / 1e12:.0f}" if rate else "-", verdict(row)])
    return table(["kernel", "mask", "pass", "ms", "TFLOP/s as dense", ""], rows)


def failed_lines(cases):
    return [f"- **{r['contender']} {r['mask']}, {PASS_NAMES[r['pass']]}**: {r['reason']}"
            for case in cases for r in case if r.get("reason")]


def spaced(made):
    return [*made, ""] if made else []


def problem_lines(problem, cases):
    n, batch, head_dim, dtype = problem
    plain, flex = [c for c in cases if not is_flex(c)], [c for c in cases if is_flex(c)]
    cut = dict.fromkeys(r["mask"] for c in cases for r in c if len(r["mask"]) > LABEL)
    return [f"### n={n}, {batch} sequences, D={head_dim}, {dtype}", "", *rival_lines(plain), *flex_lines(flex),
            *torch_lines(plain), *spaced(failed_lines(cases)), *spaced([f"{label(m)} is `{m}`." for m in cut])]


# ---- the stage ----

def compared(cases):
    """(ratio, text) of each of our rows against torch's fastest dense kernel, or FlexAttention."""
    for case in cases:
        for row in ours_of(case):
            flex = [r for r in case if r["contender"].startswith("flex-") and r["mask"] == row["mask"]]
            rival = fastest(flex) if is_flex(case) else torch_rival(row, case)
            value = ratio(seconds_of(rival), seconds_of(row))
            if value and rival:
                yield value, (f"{label(row['mask'])} n={row['length']} {row['dtype']} {PASS_NAMES[row['pass']]} "
                              f"{value:.2f} x of {rival['contender']}")


def summary_lines(cases):
    """Wins and losses in one paragraph."""
    every = sorted(compared(cases))
    losses = [text for value, text in every if value < 1]
    if not every:
        return []
    made = [f"Faster than the rival in {len(every) - len(losses)} of {len(every)} rows, slower in {len(losses)}. "
            "The rival is torch's fastest kernel for the mask (else its fastest dense one), or FlexAttention."]
    if losses:
        made += ["", "The greatest losses:", "", *(f"- {text}" for text in losses[:WORST])]
    return [*made, ""]


def predicted_lines(cases):
    known = [(r["predicted_s"], seconds_of(r)) for c in cases for r in ours_of(c) if r.get("predicted_s") and seconds_of(r)]
    if not known:
        return []
    near = sum(abs(p / s - 1) <= NEAR for p, s in known)
    machines = sorted({r["machine"] for c in cases for r in ours_of(c) if r.get("machine")})
    return [f"{near} of {len(known)} predictions are within 25 % ({', '.join(machines)}).", ""]


def rate_lines(results):
    """Rates behind the floors, as the last process measured them."""
    made = [r for r in results.values() if r.get("copy_bytes_per_s")]
    if not made:
        return []
    mma = made[-1].get("mma") or {}
    products = f"; {mma['flops_per_s'] / 1e12:.0f} TFLOP/s in products ({mma['by']})" if mma.get("flops_per_s") else ""
    return [f"A copy moves {made[-1]['copy_bytes_per_s'] / 1e12:.2f} TB/s{products}.", ""]


def load_lines(cases):
    known = [r["load_s"] for c in cases for r in ours_of(c) if r.get("load_s")]
    if not known:
        return []
    return [f"Kernel files load in {1e3 * percentile(known, 0.5):.1f} ms (median of {len(known)}; the longest "
            f"{1e3 * max(known):.1f} ms).", ""]


def lines(results):
    """The stage in Markdown."""
    cases = [r["results"] for r in results.values() if r.get("results")]
    problems = dict.fromkeys(problem_of(c[0]) for c in cases)
    dead = [f"- **{name}**: {r.get('said')}" for name, r in results.items() if not r.get("results")]
    made = ["## time", "", "Medians of interleaved samples, in ms; 12 heads.", "", *spaced(dead), *rate_lines(results),
            *summary_lines(cases), *load_lines(cases), *predicted_lines(cases)]
    for problem in problems:
        made += problem_lines(problem, [c for c in cases if problem_of(c[0]) == problem])
    return made
