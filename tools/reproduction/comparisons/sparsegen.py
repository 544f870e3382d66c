# SPDX-License-Identifier: Apache-2.0
"""Sparsegen attention (SSAF, Cui et al. 2019): lambda from -8 to 0 against softmax, fine-tuned from the pre-trained model and trained from scratch,
with the number of keys that queries look at in each layer, and attention maps."""
import json
import statistics

from programs import Fatal

from . import drawing, folders, ordering, table, variants

LAMBDAS = tuple(range(-8, 1))
PAPER = tuple(range(-7, -2))  # lambdas that the paper takes for its tasks
MAPS = (-4, 0)
TEXTS = 3  # of dev, for support sizes
WORDS_SHOWN = 10  # of a text, in attention maps
STARTS = ("model", "scratch")
TITLE = "Sparsegen against softmax"


def name(transform, start):
    return transform + (", from scratch" if start == "scratch" else "")


def rows(c):
    return [variants.Variant(name(label, start), start, transform=transform, start=start) for start in STARTS
            for label, transform in [("softmax", "softmax")] + [(f"lambda {x}", f"sparsegen={x}") for x in LAMBDAS]]


def lines_of(task):
    """Lines of dev as maskbert attention takes them."""
    if not task.file("dev"):
        return []
    pairs = {"pair": ("text", "text2"), "swag": ("sent1", "ending0"), "squad1": ("question", "context"), "squad2": ("question", "context")}
    names = pairs.get(task.kind, ("text",))
    return ["\t".join(" ".join((row.get(n) or "").split()) for n in names) for row in folders.read_rows(task, "dev")[:TEXTS]]


def support(c):
    """after() of cells: the mean number of keys of each layer, and of all keys, with the first seed."""
    def after(cell, run):
        if cell.seed:
            return {}
        layers, tokens = {}, []
        for line in lines_of(cell.task):
            said = attention(c, cell, run, line, "--json")
            if said is None:
                return {}
            found = json.loads(said)
            tokens.append(len(found["tokens"]))
            for head in found["heads"]:
                layers.setdefault(head["layer"], []).append(head["mean_support"])
        maps(c, cell, run)
        return {"more": {"support": [statistics.mean(v) for _, v in sorted(layers.items())], "tokens": statistics.mean(tokens)}} if layers else {}
    return after


def attention(c, cell, run, line, *more):
    path = c.s.folder / "line.txt"
    path.write_text(line + "\n", encoding="utf-8")
    with open(path, "rb") as stdin:
        return c.programs.run("maskbert", "attention", run, "--max-length", cell.task.length, *more, stdin=stdin)


def maps(c, cell, run):
    """Attention maps of one layer's heads on the first words of the first task's first text, of three fine-tuned models."""
    if not c.maps or cell.task.name != c.tasks[0].name or cell.variant.name not in ["softmax", *(f"lambda {x}" for x in MAPS)]:
        return
    lines = lines_of(cell.task)
    path = c.s.folder / "figures" / f"attention-{cell.variant.key}.png"
    path.parent.mkdir(exist_ok=True)
    words = " ".join(lines[0].split(" ")[:WORDS_SHOWN]) if lines else ""
    try:
        if words:
            attention(c, cell, run, words, "-o", path, "--layer", c.models.config()["num_hidden_layers"] // 2)
    except Fatal as e:
        if e.code != 3:
            raise
        c.maps = False
        c.say(f"attention maps are left out: {e}")


def judge(c, gathered):
    tasks = table.judged(c, gathered)
    def claim(text, pairs, expects="above"):
        return ordering.judge("SSAF", text, gathered, tasks, pairs, expects)
    found = []
    for start, words in zip(STARTS, ("fine-tuned", "from scratch")):
        def of(x, start=start):
            return name(f"lambda {x}" if isinstance(x, int) else x, start)
        found += [claim(f"Sparsegen with lambda {PAPER[0]} to {PAPER[-1]} is better than softmax ({words})", [(of(x), of("softmax")) for x in PAPER]),
                  claim(f"It is flat between {PAPER[0]} and {PAPER[-1]}: each is not below the next ({words})", [(of(x), of(x + 1)) for x in PAPER[:-1]], "not below"),
                  claim(f"Lambda {PAPER[len(PAPER) // 2]} is better than 0, sparsemax ({words})", [(of(PAPER[len(PAPER) // 2]), of(0))])]
    found.append(claim("A pre-trained model is better than one from scratch", [(v.name, f"{v.name}, from scratch") for v in rows(c) if v.start == "model"]))
    return found + [support_claim(c, gathered)]


def supports(gathered, label, task):
    return next((m["support"] for m in gathered[label][task]["more"] if "support" in m), None)


def support_claim(c, gathered):
    """Over tasks and starts, in how many does the mean support fall with each step of lambda."""
    good = bad = 0
    for task in c.tasks:
        for start in STARTS:
            found = [statistics.mean(s) for x in LAMBDAS if (s := supports(gathered, name(f"lambda {x}", start), task.name))]
            if len(found) == len(LAMBDAS):
                good, bad = (good + 1, bad) if found[0] > found[-1] else (good, bad + 1)
    return ordering.number("SSAF 2", "Queries look at fewer keys with lambda 0 than with -8", f"in {good} of {good + bad} tasks and starts", None if not good + bad else not bad)


def note(c, gathered):
    """The support sizes as a table."""
    lines, layers = [], 0
    for task in c.tasks:
        for label, row in gathered.items():
            more = next((m for m in row[task.name]["more"] if "support" in m), None)
            if more:
                layers = len(more["support"])
                lines.append([task.name, label, f"{more['tokens']:.0f}", *(f"{s:.1f}" for s in more["support"])])
    if not lines:
        return ""
    head = ["task", "transform", "keys in all", *(f"layer {k}" for k in range(layers))]
    return f"\nKeys that a query looks at, mean over heads, queries and the first {TEXTS} texts of dev, first seed (`maskbert attention --json`):\n\n" + table.markdown([head, *lines])


LAMBDA_IS = ("Sparsegen gives small probabilities exactly 0; the larger its lambda (at most 0 here, which is sparsemax), the more of them. Fine-tuned: from the "
             "pre-trained model; from scratch: from random weights.")
WORDS = {"model": "fine-tuned", "scratch": "from scratch"}


def draw(c, gathered, figures):
    def one(task, metric, baselines):
        rows_of = [row[task.name] for row in gathered.values()]
        series = [{"name": f"sparsegen, {WORDS[start]}", "ring": start == "scratch", "points": [
            drawing.point(x, e) for x in LAMBDAS if (e := gathered[name(f"lambda {x}", start)][task.name])["mean"] is not None]} for start in STARTS]
        soft = [x for s in STARTS for x in drawing.dense_level(gathered, task, name("softmax", s), f"softmax, {WORDS[s]}")]
        drawing.lines(figures, f"lambda-{task.name}", f"Task {task.name}: sparsegen attention and softmax", ({"label": "lambda"}, drawing.score(task, metric, soft)), series,
                      levels=[*soft, *baselines], note=drawing.about(c, task, rows_of, LAMBDA_IS, drawing.shaded(soft, rows_of)))
        draw_support(c, gathered, figures, task)
    drawing.each_task(c, gathered, one)
    for path in sorted((c.s.folder / "figures").glob("attention-*.png")):
        figures.made[path.name] = f"Attention of {path.stem[10:].replace('_', ' ')}, {c.tasks[0].name}"


def draw_support(c, gathered, figures, task):
    keys = [{"name": f"sparsegen, {WORDS[start]}", "ring": start == "scratch", "points": [
        [x, statistics.mean(s)] for x in LAMBDAS if (s := supports(gathered, name(f"lambda {x}", start), task.name))]} for start in STARTS]
    tokens = next((m["tokens"] for row in gathered.values() for m in row[task.name]["more"] if "tokens" in m), None)
    drawing.lines(figures, f"support-{task.name}", f"Task {task.name}: keys that a query looks at", ({"label": "lambda"}, {"label": "keys of a query", "least": 0}), keys,
                  levels=[drawing.level("all keys, as with softmax", tokens)] if tokens else [],
                  note=f"Keys with a probability above 0, mean over layers, heads, queries and {TEXTS} texts of dev; first seed. {LAMBDA_IS}")
