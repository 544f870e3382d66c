#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model fine-tuned under several masks: dev metric and the speed of the whole model, in one table. The masks: dense, longformer(16,1),
blockbert-2, and two that the model's own attention gives (`maskbert prune`): pruned (--keep percent of each head) and snapped (the most
that --snap percent of dense's predicted time holds)."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no folders in the source tree
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import examples  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
DESIGNED = ["dense", "longformer(16,1)", "blockbert-2"]
IMPORTANT = 400  # texts that the importance is taken from


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def new_parser():
    p = argparse.ArgumentParser(prog="mask_table.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="Exit codes: 2 bad input or usage, 3 a program is missing. Needs numpy.")
    p.add_argument("model", metavar="MODEL", type=pathlib.Path)
    p.add_argument("--data", type=pathlib.Path, required=True, metavar="FOLDER", help="train.tsv and dev.tsv")
    p.add_argument("--task", choices=("text", "pair"), default="pair", help="default pair")
    p.add_argument("-n", "--length", type=int, default=128, metavar="N", help="tokens of a text, to which the model is cut (default 128)")
    p.add_argument("--examples", type=int, default=2000, metavar="N", help="of train.tsv, the first (default 2000)")
    p.add_argument("--dev-examples", type=int, default=1000, metavar="N", help="of dev.tsv, the first (default 1000)")
    p.add_argument("--keep", type=int, default=10, metavar="P", help="percent that the pruned mask keeps (default 10)")
    p.add_argument("--snap", type=float, default=0.5, metavar="S", help="share of dense's time that the snapped mask takes (default .5)")
    p.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each mask (default 1)")
    p.add_argument("--epochs", type=float, default=2, metavar="N", help="default 2")
    p.add_argument("--batch", type=int, default=16, metavar="N", help="default 16")
    p.add_argument("--lr", type=float, default=5e-5, metavar="X", help="default 5e-5")
    p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="default f32")
    p.add_argument("--seconds", type=float, default=2, metavar="S", help="of each measurement of speed (default 2)")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="default: all")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="FOLDER", help="default build")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures, after each mask")
    return p


def run_program(o, name, command, *arguments):
    path = o.build / "tools" / name / name
    try:
        made = subprocess.run([path, command, *map(str, arguments)], capture_output=True, text=True, check=False)
    except OSError as e:
        raise Failed(3, f"{path}: {e.strerror}; build maskc or give --build") from None
    if made.returncode:
        raise Failed(made.returncode, made.stderr.strip() or f"{name} {command} failed")
    return made.stdout


def maskbert(o, command, *arguments):
    threads = [] if command == "convert" else ["--threads", o.threads]
    return run_program(o, "maskbert", command, *arguments, *threads)


def density_of(o, mask):
    """The mean over heads."""
    found = json.loads(run_program(o, "maskc", "show", mask, "-n", o.length, "--json"))["masks"]
    return sum(m["density"] * len(m["heads"]) for m in found) / sum(len(m["heads"]) for m in found)


def make_data(o, work):
    """The tables in work/data, and the texts for prune."""
    (work / "data").mkdir()
    for part, most in (("train", o.examples), ("dev", o.dev_examples)):
        try:
            table = examples.read(o.data, part)
        except OSError as e:
            raise Failed(2, f"{e.filename}: {e.strerror}") from None
        table.rows = table.rows[:most]
        examples.write(table, work / "data" / f"{part}.tsv")
        if part == "train":
            (work / "lines").write_text("".join("\t".join(t) + "\n" for t in table.texts()[:IMPORTANT]), encoding="utf-8")


def masks(o, work):
    """[(name, MASK, density)]"""
    made = json.loads(maskbert(o, "prune", work / "model", "-n", o.length, "--input", work / "lines", "-o", work / "pruned", "--keep", o.keep,
                               "--snap", o.snap, "--json"))
    own = [next(m for m in made["masks"] if m["kind"] == kind) for kind in ("keep", "snap")]
    return [(m, m, density_of(o, m)) for m in DESIGNED] + [(name, work / "pruned" / m["file"], m["density"])
                                               for name, m in zip((f"pruned, {o.keep} %", f"snapped, {o.snap:g} of the time"), own)]


def majority(work):
    labels = examples.read(work / "data", "dev").labels()
    return max(labels.count(x) for x in set(labels)) / len(labels)


def row(o, work, name, mask, density):
    run = work / "run"
    maskbert(o, "finetune", work / "model", "--task", o.task, "--data", work / "data", "-o", run / name, "--mask", mask, "--max-length", o.length,
             "--epochs", o.epochs, "--lr", o.lr, "--batch", o.batch, "--dtype", o.dtype, "--seeds", o.seeds)
    summary = json.loads((run / name / "summary.json").read_text(encoding="utf-8"))
    first = run / name / "seed-0"
    bench = json.loads(maskbert(o, "bench", first, "-n", o.length, "--batch", o.batch, "--dtype", o.dtype, "--seconds", o.seconds, "--json"))
    return {"mask": name, "density": density, "metric": summary["metric"], "texts_per_s": bench["results"][0]["sentences_per_s"],
            "speedup": bench.get("speedup", 1.0), "ceiling": bench["ceiling"]}


def show(r):
    m = r["metric"]
    spread = f" +- {m['deviation']:.4f}" if m["deviation"] is not None else ""
    print(f"| {r['mask']} | {100 * r['density']:.0f} % | {m['mean']:.4f}{spread} | {r['texts_per_s']:.1f} | {r['speedup']:.2f} x |", flush=True)


def json_failed(o, e):
    return Failed(2, f"--json {o.json}: {e.strerror}")


def check_json(o):
    """Opens the file, before anything is computed. An earlier table stays in it until there is a row."""
    if o.json:
        is_new = not o.json.exists()
        try:
            o.json.open("a", encoding="utf-8").close()
            if is_new:
                o.json.unlink()
        except OSError as e:
            raise json_failed(o, e) from None


def write_rows(o, rows):
    if o.json:
        try:
            o.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        except OSError as e:
            raise json_failed(o, e) from None


def main():
    o = new_parser().parse_args()
    try:
        check_json(o)
        with tempfile.TemporaryDirectory(prefix="mask-table-") as folder:
            work, rows = pathlib.Path(folder), []
            make_data(o, work)
            maskbert(o, "convert", o.model, "-o", work / "model", "--positions", o.length)
            (work / "run").mkdir()
            print(f"{o.dtype}, n = {o.length}, {o.threads} threads, {o.examples} examples, {o.epochs:g} epochs, {o.seeds} seeds; of dev's labels the "
                  f"most frequent is {majority(work):.4f}\n")
            print("| mask | entries kept | dev metric | texts/s | of dense's speed |\n| --- | --- | --- | --- | --- |", flush=True)
            for name, mask, density in masks(o, work):
                rows.append(row(o, work, name, mask, density))
                show(rows[-1])
                write_rows(o, rows)
        return 0
    except Failed as e:
        print(f"mask_table: {e}", file=sys.stderr)
        return e.code


if __name__ == "__main__":
    sys.exit(main())
