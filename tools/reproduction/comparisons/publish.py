# SPDX-License-Identifier: Apache-2.0
"""A page of the comparisons: a section for each, replaced where it is there; figures and table.json in a folder beside the page."""
import re
import shutil

from programs import write_whole

HEAD = """\
# The papers' comparisons on tasks, measured here

Each section was written by `tools/reproduce NAME --page {page}` from the results of its runs; nothing in it is written by hand. The tables, as JSON, are
in `{beside}/`. `tools/reproduce NAME --help` says how cells are made, and what is left out where time is short.
`python3 tools/reproduction/redraw.py {page}` draws the figures again from the JSON.
SparseBERT: Shi et al. 2021. BlockBERT: Qiu et al. 2020. SSAF: Cui et al. 2019. These fine-tune a BERT-base that was trained for days; models here are
small and train for minutes, on other tasks. So a verdict is about this model and these tasks.
"""


def sections(text):
    """{title: section} of a page's text."""
    return {part.split("\n", 1)[0]: "## " + part.rstrip("\n") + "\n" for part in text.split("\n## ")[1:]}


def write(page, name, titles, section, folder, figures):
    """titles: those of all comparisons, in the page's order."""
    beside = page.with_suffix("").name
    to = page.parent / beside
    to.mkdir(exist_ok=True)
    for old in to.glob(f"{name}-*"):
        old.unlink()
    shutil.copyfile(folder / "table.json", to / f"{name}.json")
    for figure in figures:
        shutil.copyfile(folder / "figures" / figure, to / f"{name}-{figure}")
    found = sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    mine = section.replace("](figures/", f"]({beside}/{name}-")
    found[mine.split("\n", 1)[0][3:]] = mine.rstrip("\n") + "\n"
    order = [t for t in titles if t in found]
    write_whole(page, "\n".join([HEAD.format(page=page.name, beside=beside), *(found[t] for t in order)]))


def replace(page, name, title, figures):
    """The section's drawn figures by others; its maps (PNG) and its text stay."""
    beside = page.with_suffix("").name
    text = page.read_text(encoding="utf-8")
    old = sections(text)[title]
    blocks = re.findall(rf"\n!\[[^\]]*\]\({beside}/{name}-[^)]*\)\n\n[^\n]*\n", old)
    new = old
    for block in blocks:
        new = new.replace(block, "")
    for path in (page.parent / beside).glob(f"{name}-*.svg"):
        path.unlink()
    for figure in figures.made:
        shutil.copyfile(figures.folder / figure, page.parent / beside / f"{name}-{figure}")
    new += figures.markdown().replace("](figures/", f"]({beside}/{name}-") + "".join(b for b in blocks if ".png)" in b)
    write_whole(page, text.replace(old.rstrip("\n"), new.rstrip("\n")))
