# SPDX-License-Identifier: Apache-2.0
"""Settings of a reproduction, kept in DIR so that a later call continues with the same ones."""
import dataclasses
import pathlib

from programs import Fatal, read_json, write_json

EPILOG = """
stages: corpus, vocabulary, samples, speed, plan; then BERT is pre-trained, at the start with window(2) as its mask (a dense one finds
neighbours late, as it learns positions), then dense; P is learned from there with three seeds, dam-s with
four lambdas, dam-u with one; then every mask of the table replaces the dense one in that BERT, which goes on training for the same few steps
("settles") and is judged on held-out text: one row. Rows come in the order of what is asked first; those without time are
left out, and the table says so. A stage that this maskbert cannot do is named and left out.

time: --minutes is for one call. Steps are planned once, from the speed measured first. Repeat a call that was killed or ran out of
time: results in DIR/results are kept (other --lengths are measured anew), and a run that was cut continues from its newest state.

results in DIR: table.txt, table.json, page.md, pictures/; results/ has a file a stage, runs/ the models, masks/ the masks.
--page writes the page there too (model/REPRODUCTION.md is made by --page model/REPRODUCTION.md), its pictures beside it.

needs: the programs built (tools/quickstart), and apt with its package lists for the corpus, or --text. Nothing is installed.
Without --text, less than 20 minutes take a corpus of 6 MB instead of 87.

exit codes: 0 done, 2 bad input or usage, 3 a program or the corpus is missing, 4 interrupted.
"""


@dataclasses.dataclass
class Settings:
    folder: pathlib.Path
    minutes: float
    size: str
    batch: int
    dtype: str
    seed: int
    threads: int
    text: str
    page: pathlib.Path
    rows: int
    note: str
    length: int = 128
    heads: int = 12
    head_dim: int = 16
    vocabulary: int = 1000
    held_out: float = 0.002
    lengths: tuple = (512, 2048)

    def kept(self):
        """Settings that must not change in a later call; --minutes, --threads, --rows, --lengths, --note and --page may."""
        names = ("size", "batch", "dtype", "seed", "text", "vocabulary", "held_out")
        return {name: getattr(self, name) for name in names}


def whole(text):
    if not text.isdigit() or not 0 < int(text) < 2**24:
        raise ValueError
    return int(text)


whole.__name__ = "whole number from 1"


def lengths(text):
    return tuple(whole(x) for x in text.split(","))


lengths.__name__ = "N,N"


def add_options(p, above_zero):
    p.add_argument("--minutes", type=above_zero, default=60, metavar="M", help="how long this call may take (default 60)")
    p.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="DIR", help="where everything is kept")
    p.add_argument("--text", type=pathlib.Path, metavar="FILE", help="a corpus for maskbert prep (default: tools/fetch-text)")
    p.add_argument("--size", default="2x192x12", metavar="LxHx12", help="layers, hidden size, 12 heads (default 2x192x12)")
    p.add_argument("--batch", type=whole, default=16, metavar="N", help="sequences of a step (default 16)")
    p.add_argument("--dtype", choices=("bf16", "f32"), default="bf16", help="of training and kernels (default bf16)")
    p.add_argument("--vocabulary", type=whole, default=1000, metavar="V", help="tokens of the vocabulary (default 1000)")
    p.add_argument("--held-out", type=above_zero, metavar="P", help="share of the documents to judge by (default 0.002; a call of less than 20 minutes, "
                   "whose corpus is small, begins with 0.05)")
    p.add_argument("--seed", type=int, default=0, metavar="S", help="of the weights, the order and the masks (default 0)")
    p.add_argument("--threads", type=whole, default=0, metavar="N", help="threads (default: all)")
    p.add_argument("--rows", type=whole, default=0, metavar="N", help="only the first N rows of the table (default: all that have time)")
    p.add_argument("--lengths", type=lengths, default=(512, 2048), metavar="N,N", help="longer sequences to time dam-s at (default 512,2048)")
    p.add_argument("--note", default="", metavar="TEXT", help="a sentence for the page: on which machine, beside what")
    p.add_argument("--page", type=pathlib.Path, metavar="FILE.md", help="write the page there, too")


def head_dim(size):
    parts = size.split("x")
    numbers = [int(p) for p in parts if p.isdigit()]
    if len(parts) != 3 or len(numbers) != 3 or min(numbers) < 1 or numbers[2] != 12 or numbers[1] % 12:
        raise Fatal(2, f"--size {size}: layers x hidden size x 12 is expected, the hidden size a multiple of 12, as 2x192x12")
    return numbers[1] // 12


def from_options(o):
    dim = head_dim(o.size)
    if o.held_out and o.held_out >= 0.5:
        raise Fatal(2, f"--held-out {o.held_out:g}: a share below 0.5 is expected")
    if min(o.lengths) < 8:
        raise Fatal(2, "--lengths: 8 or more are expected")
    if o.text and not o.text.is_file():
        raise Fatal(2, f"--text {o.text}: no such file")
    if o.page and (o.page.suffix != ".md" or not o.page.parent.is_dir()):
        raise Fatal(2, f"--page {o.page}: a file NAME.md in a folder that is there is expected")
    if o.output.exists() and not o.output.is_dir():
        raise Fatal(2, f"{o.output}: a folder is expected")
    held_out = o.held_out or begun_with(o.output, "held_out") or (0.002 if o.minutes >= 20 else 0.05)
    return Settings(o.output.resolve(), o.minutes, o.size, o.batch, o.dtype, o.seed, o.threads, str(o.text.resolve()) if o.text else "",
                    o.page.resolve() if o.page else None, o.rows, o.note.strip(), head_dim=dim, vocabulary=o.vocabulary, held_out=held_out, lengths=o.lengths)


def begun_with(folder, name):
    """Settings of an earlier call; None where there was none."""
    path = folder / "settings.json"
    return read_json(path).get(name) if path.exists() else None


def keep(s):
    """Notes them in DIR, or refuses others than those noted there."""
    path = s.folder / "settings.json"
    if not path.exists():
        return write_json(path, s.kept())
    before = read_json(path)
    for name, value in s.kept().items():
        if before.get(name) != value:
            raise Fatal(2, f"{s.folder}: was begun with --{name.replace('_', '-')} {before.get(name)}, not {value}; another folder is expected")
    return None
