# SPDX-License-Identifier: Apache-2.0
"""Options of the comparisons. Those that decide a cell are kept in DIR, so that a later call goes on with the same."""
import dataclasses
import hashlib
import pathlib

from programs import Fatal, read_json, write_json
from settings import lengths, whole

from . import folders

EPILOG = """
cells: each is a run of maskbert finetune from the same model, with the same data and the same order of examples for a seed; its result is
DIR/cells/NAME.json (a learned mask's name has a digest of it: another mask has cells of its own). The same command goes on where it was interrupted and makes no cell twice.

time: --minutes is for one call. Where it is short, seeds are left out first, then tasks, never masks: a block (a task with a seed) has all
masks. It begins where its estimated time is left, and may end a fifth of --minutes late; what is then missing the same command makes. Where not
even one task with one seed fits, its cells get fewer training examples (at least 64), unless --examples says how many. --plan prints all this and
runs nothing; before the first cell its times are guesses from the model's size.

results in DIR: table.md, table.json; figures/ (with matplotlib), cells/, masks/, runs/ (those in progress).

exit codes: 0 done, 2 bad input or usage, 3 a program is missing, 4 interrupted.
"""
KEPT = ("command", "model", "tasks", "dev", "length", "lr", "batch", "dtype", "text")


@dataclasses.dataclass
class Settings:
    command: str
    folder: pathlib.Path
    model: pathlib.Path  # None: it is pre-trained here
    tasks: list
    seeds: int
    minutes: float
    examples: int  # None: chosen by the time
    dev: int
    length: int
    lr: float
    batch: int
    dtype: str
    threads: int
    learned: list
    text: pathlib.Path
    plan: bool
    baselines: dict
    note: str
    lengths: tuple = (512, 1024)
    page: pathlib.Path = None

    def kept(self):
        found = {name: getattr(self, name) for name in KEPT}
        found["model"] = digest(self.model) if self.model else ""
        found["tasks"] = [f"{t.name}={t.kind}:{t.folder}" for t in self.tasks]
        found["text"] = str(self.text or "")
        if self.command == "blockbert":
            found["lengths"] = list(self.lengths)
        return found


def digest(model):
    """Hash of the files that decide a model: its sizes and weights."""
    found = hashlib.sha256()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        path = model / name
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def add_options(p, command, above_zero):
    p.add_argument("--model", type=pathlib.Path, metavar="DIR", help="a pre-trained model (default: a bert-mini is pre-trained in the first 40 %% of the time)")
    p.add_argument("--tasks", metavar="NAME=TASK:FOLDER,..", help="tasks of maskbert finetune (default: those of tools/fetch-text --labelled)")
    p.add_argument("--labelled", type=pathlib.Path, default=pathlib.Path("corpus/labelled"), metavar="DIR", help="where these are (default corpus/labelled)")
    p.add_argument("--seeds", type=whole, default=3, metavar="N", help="of each cell (default 3)")
    p.add_argument("--minutes", type=above_zero, default=60, metavar="M", help="how long this call may take (default 60)")
    p.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="DIR", help="where everything is kept")
    p.add_argument("--examples", type=whole, metavar="N", help="training examples of a cell (default 4096, or fewer where the time asks for it)")
    p.add_argument("--dev", type=whole, default=500, metavar="N", help="examples of dev to judge by, drawn once (default 500)")
    p.add_argument("--length", type=whole, default=128, metavar="N", help="length of masks and tokens of an example (default 128)")
    p.add_argument("--lr", type=above_zero, default=3e-4, metavar="X", help="rate of fine-tuning, the same for all cells (default 3e-4)")
    p.add_argument("--batch", type=whole, default=32, metavar="N", help="examples of a step (default 32)")
    p.add_argument("--dtype", choices=("bf16", "f32"), default="bf16", help="of training (default bf16)")
    p.add_argument("--threads", type=whole, default=0, metavar="N", help="threads (default: all)")
    p.add_argument("--text", type=pathlib.Path, metavar="FILE", help="text for pre-training, perplexity and P (default: the tasks' training texts)")
    p.add_argument("--baselines", type=pathlib.Path, metavar="FILE", help="baselines.json of tools/reproduce baselines (default: the one beside the tasks' folders)")
    p.add_argument("--plan", action="store_true", help="print what would run, and run nothing")
    p.add_argument("--note", default="", metavar="TEXT", help="a sentence for the table: on which machine, beside what")
    p.add_argument("--page", type=pathlib.Path, metavar="FILE.md", help="write the section there, too, in the place of an older one")
    if command == "glue-like":
        p.add_argument("--learned", type=pathlib.Path, action="append", default=[], metavar="RUN", help="a run that learned a mask; may be repeated")
    if command == "blockbert":
        p.add_argument("--lengths", type=lengths, default=(512, 1024), metavar="N,N", help="of sequences (default 512,1024)")


def from_options(o):
    if o.model and not (o.model / "config.json").is_file():
        raise Fatal(2, f"--model {o.model}: a model's folder, with config.json, is expected")
    if o.text and not o.text.is_file():
        raise Fatal(2, f"--text {o.text}: no such file")
    if o.output.exists() and not o.output.is_dir():
        raise Fatal(2, f"{o.output}: a folder is expected")
    if o.page and (o.page.suffix != ".md" or not o.page.parent.is_dir()):
        raise Fatal(2, f"--page {o.page}: a file NAME.md in a folder that is there is expected")
    learned = [run.resolve() for run in getattr(o, "learned", [])]
    for k, run in enumerate(learned):
        if run.name in [r.name for r in learned[:k]]:
            raise Fatal(2, f"--learned {run}: the table names runs by their folders, and another one is named {run.name}")
        if not list(run.glob("mask.*")):
            raise Fatal(2, f"--learned {run}: a run with mask.mask or mask.npy is expected")
    if o.length < 8 or min(getattr(o, "lengths", (8,))) < 8:
        raise Fatal(2, "--length, --lengths: 8 or more are expected")
    tasks = folders.parse(o.tasks, o.length) if o.tasks is not None else folders.labelled(o.labelled, o.length)
    return Settings(o.command, o.output.resolve(), o.model.resolve() if o.model else None, tasks, o.seeds, o.minutes, o.examples, o.dev, o.length, o.lr,
                    o.batch, o.dtype, o.threads, learned, o.text.resolve() if o.text else None, o.plan, read_baselines(o.baselines, tasks), o.note.strip(),
                    getattr(o, "lengths", (512, 1024)), o.page.resolve() if o.page else None)


def read_baselines(path, tasks):
    """Scores of dev by task and method; nothing where no file is there."""
    places = [path] if path else [p for t in tasks for p in (t.folder / "baselines.json", t.folder.parent / "baselines.json")]
    found = {}
    for place in dict.fromkeys(places):
        if path or place.is_file():
            try:
                found.update({name: r["dev"] for name, r in read_json(place)["tasks"].items()})
            except (KeyError, TypeError, AttributeError):
                raise Fatal(2, f"{place}: what tools/reproduce baselines wrote is expected") from None
    return found


def keep(s):
    """Notes the settings in DIR, or refuses others than those noted there."""
    path = s.folder / "settings.json"
    if not path.exists():
        return write_json(path, s.kept())
    before = read_json(path)
    for name, value in s.kept().items():
        if before.get(name) != value:
            raise Fatal(2, f"{s.folder}: was begun with {name} {before.get(name)}, not {value}; another folder is expected")
    return None
