# SPDX-License-Identifier: Apache-2.0
"""Models of a comparison: the given one (or one that is pre-trained here) at a number of positions, the same from random weights, and
samples for pre-training."""
import json
import os
import shutil

from programs import Fatal, write_whole

from . import folders

SHARE = 0.4  # of --minutes: pre-training where no model is given
PRETRAINING_RATE = "5e-4"  # 1e-3 stays at the unigram entropy
POSITIONS = 512
VOCABULARY = 8192
HELD_OUT = 0.05
TOGETHER = 100  # texts in a document


class Models:
    def __init__(self, programs, settings, once):
        """once(name, action): the result of a stage, from before or made now."""
        self.programs, self.s, self.once = programs, settings, once
        self.folder = settings.folder / "models"

    def whole(self, name, make):
        """A folder that is there whole or not at all; make(path) writes it."""
        path = self.folder / name
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            aside = self.folder / (name + ".part")
            shutil.rmtree(aside, ignore_errors=True)
            make(aside)
            os.replace(aside, path)
        return path

    def given(self):
        if self.s.model:
            return self.s.model
        self.once("pretrained", lambda: self.pretrain(self.folder / "pretrained"))
        return self.folder / "pretrained"

    def config(self):
        return json.loads((self.given() / "config.json").read_text(encoding="utf-8"))

    def heads(self):
        return int(self.config()["num_attention_heads"])

    def at(self, n):
        """With n positions, and a dense mask of its own. Without the heads of tasks nothing of a task is known."""
        return self.whole(f"n{n}", lambda to: self.programs.run("maskbert", "convert", self.given(), "-o", to, "--positions", n, "--mask", "dense"))

    def scratch(self, n):
        """The same sizes, random weights."""
        c = self.config()
        size = f"{c['num_hidden_layers']}x{c['hidden_size']}x{c['num_attention_heads']}"
        if c.get("intermediate_size") != 4 * c["hidden_size"] or c.get("model_type") != "bert":
            raise Fatal(2, f"{self.given()}: a BERT whose feed-forward size is 4 times its hidden size is expected, to train one from scratch")
        return self.whole(f"scratch-n{n}", lambda to: self.programs.run("maskbert", "init", "--size", size, "--vocab", self.given() / "vocab.txt",
                                                                       "--positions", n, "--seed", 0, "-o", to))

    # ---- text
    def text(self):
        """--text, or the tasks' training texts, TOGETHER in a document, so that samples of any length are full."""
        if self.s.text:
            return self.s.text
        path = self.s.folder / "text.txt"
        if not path.exists():
            found = dict.fromkeys(" ".join(t.split()) for task in self.s.tasks for t in folders.texts(task))
            if not found:
                raise Fatal(2, "--text FILE is needed: the tasks' files give no text for pre-training")
            every = list(found)
            write_whole(path, "\n\n".join("\n".join(every[k:k + TOGETHER]) for k in range(0, len(every), TOGETHER)) + "\n")
        return path

    def data(self, n):
        """Samples of n tokens for maskbert pretrain and eval."""
        def prepare(to):
            self.programs.run("maskbert", "prep", self.text(), "--split", "--vocab", self.vocabulary(), "--length", n, "--pairing", "full",
                              "--held-out", HELD_OUT, "-o", to)
        return self.whole(f"data-n{n}", prepare)

    def vocabulary(self):
        if self.s.model:
            return self.s.model / "vocab.txt"
        path = self.s.folder / "vocab.txt"
        if not path.exists():
            with open(self.text(), "rb") as text:
                self.programs.run("maskbert", "vocab", "--size", VOCABULARY, "-o", path, stdin=text)
        return path

    def pretrain(self, path):
        """A bert-mini, from a start that needs no hours."""
        minutes = self.s.minutes * SHARE
        new = self.whole("new", lambda to: self.programs.run("maskbert", "init", "--size", "mini", "--start", "mimetic", "--vocab", self.vocabulary(),
                                                             "--positions", POSITIONS, "-o", to))
        shutil.rmtree(path, ignore_errors=True)
        self.programs.run("maskbert", "pretrain", new, "--data", self.data(min(128, POSITIONS)), "-o", path, "--minutes", f"{minutes:g}", "--objective", "mlm",
                          "--lr", PRETRAINING_RATE, "--batch", 16, "--warmup", 0.05, "--dropout", 0, "--dtype", self.s.dtype, *self.threads())
        return {"minutes": minutes}

    def threads(self):
        return ["--threads", self.s.threads] if self.s.threads else []
