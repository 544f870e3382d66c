# SPDX-License-Identifier: Apache-2.0
"""Final output of a call: the table as text and JSON, the pictures, the page."""
import shutil

import claims
import learned
import longer
import page
import pictures
import rows
import table
from programs import write_json, write_whole


def gather(stages, unigram, names=learned.NAMES, lengths=()):
    """Everything that pages and pictures need, from the stages that are done."""
    found = {row.key: stages.done(f"row-{row.key}") for row in rows.all_rows()}
    reference = table.plateau(found, unigram)
    entries = table.join(found, reference)
    runs = {name: {**r, "plateau": table.on_plateau(r["own_mlm"], reference)} for name in names if (r := stages.done(name))}
    dense = stages.done("dense")
    if dense:
        dense = {**dense, "plateau": table.on_plateau(dense["mlm"], reference)}
    return {"entries": entries, "runs": runs, "dense": dense, "start": stages.done("start"), "theorem": stages.done("theorem"), "noise": table.noise(entries),
            "unigram": unigram, "reference": reference, "samples": stages.done("samples"), "speed": stages.done("speed"), "plan": stages.done("plan"),
            "corpus": stages.done("corpus"), "long": stages.done(longer.stage("long", lengths)), "longer": stages.done(longer.stage("longer", lengths)),
            "took_s": sum(r.get("took_s", 0) for r in every(stages)), "threads": sorted({r["threads"] for r in every(stages) if "threads" in r})}


def every(stages):
    """Results of all stages that are done, over all calls."""
    return [stages.done(path.stem) for path in sorted(stages.folder.glob("*.json"))]


def judged(g):
    dense = g["dense"] or {"plateau": True}
    return claims.judge(claims.Results(g, dense))


def write(d):
    """Writes table.txt, table.json, the pictures and page.md, and publishes the page if --page is given. Returns the text of the table."""
    g = gather(d.stages, (d.stages.done("samples") or {"unigram": 0.0})["unigram"], lengths=d.s.lengths)
    g["in_gallery"] = longer.is_in_gallery(d) if longer.MASK in g["runs"] else None
    verdicts = judged(g)
    text = table.as_text(g["entries"]) if g["entries"] else "no row of the table is done yet\n"
    if d.stages.left_out:
        text += f"\n{len(d.stages.left_out)} stages were left out (table.json says which, and why)\n"
    if g["longer"]:
        text += "\n" + "\n".join(longer.say(g["longer"])) + "\n"
    write_whole(d.folder / "table.txt", text)
    write_json(d.folder / "table.json", {"rows": g["entries"], "noise": g["noise"], "unigram": g["unigram"], "reference": g["reference"], "dense": g["dense"],
                                         "longer": g["longer"],
                                         "learned": g["runs"], "claims": verdicts, "left_out": d.stages.left_out, "took_s": g["took_s"]})
    made = pictures.draw(d, g)
    text_of_page = page.compose(d.s, g, verdicts, d.stages.left_out, made)
    write_whole(d.folder / "page.md", text_of_page)
    if d.s.page:
        publish(d, made, text_of_page)
    return text.rstrip("\n")


def publish(d, made, text):
    """Copies the page to --page, and its pictures to a folder of the same name beside it."""
    beside = d.s.page.with_suffix("").name.lower()
    folder = d.s.page.parent / beside
    folder.mkdir(exist_ok=True)
    for name in pictures.NAMES:  # of a page before
        (folder / name).unlink(missing_ok=True)
    for name in (*made.values(), "numbers.json"):
        if f"](pictures/{name})" in text or name == "numbers.json":
            shutil.copyfile(d.folder / "pictures" / name, folder / name)
    write_whole(d.s.page, text.replace("](pictures/", f"]({beside}/"))
