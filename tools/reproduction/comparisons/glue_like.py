# SPDX-License-Identifier: Apache-2.0
"""Masks x tasks x seeds (SparseBERT, Shi et al. 2021, Tables 1 to 4; BlockBERT, Qiu et al. 2020): dense, the six designed masks, blocks with
shares of heads, random masks of equal sparsity, learned masks of runs (--learned), each with the diagonal and without it."""
from . import drawing, ordering, table, variants

DESIGNED = ("longformer", "fixed", "strided", "bigbird", "star", "logsparse")  # from the best to the worst of SparseBERT's Table 4
PAPER = {"longformer": 80.1, "fixed": 79.7, "strided": 79.5, "bigbird": 79.4, "star": 78.9, "logsparse": 77.9}  # its averages of GLUE
BLOCKS = ((2, (12, 0)), (2, (10, 2)), (3, (12, 0, 0)), (3, (8, 2, 2)))
EQUAL = ("strided", "longformer", "star")  # designed masks that random ones have the entries of
TITLE = "Masks x tasks"


def with_diagonal(c):
    heads = c.models.heads()
    blocks = [v for count, parts in BLOCKS if (v := variants.blocks(count, parts, heads))]
    found = [variants.Variant("dense", "dense")] + [variants.Variant(name, "designed", name) for name in DESIGNED] + blocks
    found += [variants.Variant(f"random as {name}", "random", f"like:{name}") for name in EQUAL]
    found += [variants.Variant(f"random as blockbert-{count}", "random", f"like:blocks:{count}:{heads}") for count in (2, 3)]
    for run in c.s.learned:
        path = sorted(run.glob("mask.*"))[0]
        variants.check_learned(path, c.programs, c.s.length, heads)
        found += [variants.Variant(f"{words} {run.name}", group, f"{kind}:{path}", digest=variants.digest_of(path))
                  for words, group, kind in (("learned:", "learned", "file"), ("random as", "random", "like:file"))]
    return found


def rows(c):
    found = with_diagonal(c)
    return [x for v in found for x in (v, *variants.without([v]))]


def judge(c, gathered):
    tasks, every = table.judged(c, gathered), with_diagonal(c)
    def pairs_of(groups):
        return [(variants.without([v])[0].label, v.label) for v in every if v.group in groups]
    blocks = {k: [v.label for v in every if v.name.startswith(f"blockbert-{k}")] for k in (2, 3)}
    ordered = [(a, b) for k, a in enumerate(DESIGNED) for b in DESIGNED[k + 1:]]
    def claim(paper, text, pairs, expects="above"):
        return ordering.judge(paper, text, gathered, tasks, pairs, expects)
    found = [claim("SparseBERT Table 1", "Dense attention is not worse without the diagonal", pairs_of(("dense",)), "not below"),
             claim("SparseBERT Table 4", "Designed masks are not worse without the diagonal", pairs_of(("designed",)), "not below"),
             claim("SparseBERT Table 4", "Order of the designed masks: " + ", ".join(f"{n} {PAPER[n]}" for n in DESIGNED), ordered),
             claim("SparseBERT Table 3", "Dense attention is not worse than designed masks", [("dense", n) for n in DESIGNED], "not below"),
             claim("BlockBERT Figure 4", "Heads with shifted blocks are better than blocks of each head's own place alone",
                   [(b[1], b[0]) for b in blocks.values() if len(b) == 2]),
             claim("BlockBERT Table 3", "Two blocks are better than three, dense better than two",
                   [(blocks[2][-1], blocks[3][-1]), ("dense", blocks[2][-1])] if blocks[2] and blocks[3] else []),
             claim("SparseBERT 3.4", "A mask with structure is better than a random one with as many entries",
                   [(n, f"random as {n}") for n in EQUAL] + [(b[-1], f"random as blockbert-{k}") for k, b in blocks.items() if b])]
    if c.s.learned:
        found.append(claim("SparseBERT Table 3", "Learned masks are better than the designed one of the nearest sparsity", learned_pairs(c, every, gathered)))
    return found


def learned_pairs(c, every, gathered):
    def sparsity(label):
        return next((e["sparsity"] for e in gathered[label].values() if e["sparsity"] is not None), None)
    found = []
    for v in every:
        designed = [n for n in DESIGNED if sparsity(n) is not None]
        if v.group == "learned" and designed and sparsity(v.label) is not None:
            found.append((v.label, min(designed, key=lambda n: abs(sparsity(n) - sparsity(v.label)))))
    return found


OFF = " - diagonal(0)"
ENTRIES = ("Sparsity: share of entries (query, key) off. Diagonal: a token that sees itself. Random: as many entries on in each head, diagonal ones by chance; "
           "not every row has one.")


def random_of(label, labels):
    """The row of a random mask with as many entries as this one."""
    names = [f"random as {label}", f"random as {label.removeprefix('learned: ')}", f"random as {label.split(' ')[0]}"]
    found = next((n for n in names if n in labels), None)
    first = next((x for x in labels if x.startswith(label.split(" ")[0])), label)  # of rows with the same blocks one is enough
    return found if found != names[2] or first == label else None


def draw(c, gathered, figures):
    labels = [x for x in gathered if not x.startswith("random") and not x.endswith(OFF)]
    groups = {"dense": "", "blockbert": "blocks", "learned:": "learned"}
    def one(task, metric, baselines):
        def entry(label):
            return gathered[label][task.name] if label in gathered else None
        def of(ending, drawn=False):
            return [entry(f"{name}{ending}") if (name := random_of(x, gathered) if drawn else x) else None for x in labels]
        rows = [{"name": drawing.mask_name(x), "group": groups.get(x.split(" ")[0].split("-")[0], "designed by hand"),
                 "said": f"{gathered[x][task.name]['sparsity'] or 0:.1f}"} for x in labels]
        dense, found = drawing.dense_level(gathered, task), [row[task.name] for row in gathered.values()]
        drawing.dots(figures, f"masks-{task.name}", f"Task {task.name}: each mask with and without its diagonal", drawing.score(task, metric, dense), rows,
                     [("mask", of(""), {"colour": 0}), ("without the diagonal", of(OFF), {"colour": 0, "ring": True}),
                      ("random, as many entries", of("", True), {"colour": 1}), ("random, without the diagonal", of(OFF, True), {"colour": 1, "ring": True})],
                     levels=[*dense, *baselines], said="sparsity (%)",
                     note=drawing.about(c, task, found, drawing.masks_are(labels), ENTRIES, drawing.WHEN, drawing.shaded(dense, found)))
    drawing.each_task(c, gathered, one)


def note(c, gathered):
    return ("\"- diagonal(0)\": the same mask without its diagonal (`--drop diagonal`). \"random as X\": as many entries in each head as X has, drawn anew for each seed. "
            "\"blockbert-k a:b:..\": a of 12 heads see blocks in their own place, b of them blocks shifted by one, ... "
            "Sequences shorter than the mask use its top left corner; the attention output of a query without a key is 0.\n")
