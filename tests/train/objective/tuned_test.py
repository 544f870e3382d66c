#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of `maskbert finetune` in transformers: for each kind of task, with a mask, BERT and DistilBERT, the model class that the run
names computes what `eval`, `classify` and `answer` print, labels have their names, and a pipeline gives the same labels."""
import functools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / name) for name in ("python", "train", "train/objective")]
from common import Transformers5, cmocka_count, needs_transformers  # noqa: E402
import finetune_toy  # noqa: E402
import maskc  # noqa: E402, F401
from maskc import _library  # noqa: E402
import pretrain_toy  # noqa: E402

MASK, POSITIONS, WIDTH = "window(2) | global(0)", 96, 48
LIMIT = 1e-5
CLASSES = {"text": "SequenceClassification", "pair": "SequenceClassification", "number": "SequenceClassification",
           "swag": "MultipleChoice", "tokens": "TokenClassification", "squad1": "QuestionAnswering", "squad2": "QuestionAnswering"}
TOP = 5  # answers that `answer --json` prints
QUESTIONS = 25  # of each run that are compared


@functools.cache
def workplace():
    """A toy with the files of each task and two untrained models, kept for all tests."""
    kept = tempfile.TemporaryDirectory(prefix="maskc-tuned-")
    toy = pretrain_toy.Toy(_library.program_path("maskbert"), kept.name)
    finetune_toy.make(kept.name)
    make_models(toy)
    return kept, toy


def make_models(toy):
    """Weights at which the mask shows, in the place of an untrained model's small ones."""
    import torch
    import transformers
    tokens = len((toy.work / "vocab.txt").read_text(encoding="utf-8").splitlines())
    bert = transformers.BertConfig(vocab_size=tokens, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=3, intermediate_size=100,
                                   max_position_embeddings=POSITIONS, initializer_range=0.2)
    distilbert = transformers.DistilBertConfig(vocab_size=tokens, dim=WIDTH, n_layers=2, n_heads=3, hidden_dim=100,
                                               max_position_embeddings=POSITIONS, initializer_range=0.2)
    for name, model, reader in (("bert", transformers.BertModel, "BertTokenizer"), ("distilbert", transformers.DistilBertModel, "DistilBertTokenizer")):
        torch.manual_seed(3)
        folder = toy.work / name
        model(bert if name == "bert" else distilbert).save_pretrained(folder)
        shutil.copy(toy.work / "vocab.txt", folder)
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": reader, "do_lower_case": True}))


@functools.cache
def tuned(architecture, task, *options):
    """A run of an epoch."""
    toy, run = workplace()[1], "-".join(["run", architecture, task, *map(str, options)]).replace(" ", "")
    toy.ok("finetune", architecture, "--task", finetune_toy.NAMES.get(task, task), "--data", task, "-o", run, "--epochs", 1, "--lr", 1e-3,
           "--batch", 16, "--mask", MASK, *options)
    return toy.work / run


def predicted(run, task, *options):
    """Checks the file that `eval --predictions` writes."""
    toy = workplace()[1]
    toy.ok("eval", run, "--task", finetune_toy.NAMES.get(task, task), "--data", task, "--predictions", "p.json", *options)
    text = (toy.work / "p.json").read_text(encoding="utf-8")
    return json.loads(text) if task.startswith("squad") else [json.loads(line) for line in text.splitlines()]


def printed(command, run, lines, *options):
    made = workplace()[1].ok(command, run, "--json", *options, stdin="\n".join(lines) + "\n")
    return [json.loads(line) for line in made.stdout.splitlines()]


def dev(task):
    """[(texts, label)] of the dev file."""
    folder = workplace()[1].work / task
    if task == "swag":
        rows = [line.split(",") for line in (folder / "dev.csv").read_text().splitlines()[1:]]
        return [((r[0], [r[1] + " " + e for e in r[2:6]]), r[6]) for r in rows]
    if task.startswith("squad"):
        paragraphs = json.loads((folder / "dev.json").read_text())["data"][0]["paragraphs"]
        return [((p["qas"][0]["question"], p["context"]), p["qas"][0]["id"]) for p in paragraphs]
    if task == "tokens":
        sentences = (folder / "dev.tsv").read_text().rstrip("\n").split("\n\n")
        return [tuple(zip(*(line.split("\t") for line in s.split("\n")))) for s in sentences]
    rows = [line.split("\t") for line in (folder / "dev.tsv").read_text().splitlines()[1:]]
    return [(tuple(r[:-1]), r[-1]) for r in rows]


@functools.cache
def loaded(run, task, implementation="maskc"):
    """(model, tokenizer) of the run."""
    import transformers
    model = getattr(transformers, "AutoModelFor" + CLASSES[task]).from_pretrained(run, attn_implementation=implementation)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(run)


def outputs(run, task, batch, implementation="maskc"):
    import torch
    with torch.no_grad():
        return loaded(run, task, implementation)[0](**batch)


def encoded(run, task, *texts, **options):
    """A padded batch."""
    return loaded(run, task)[1](*texts, padding=True, return_tensors="pt", **options)


@needs_transformers
class TunedTest(Transformers5):
    def near(self, ours, theirs, scale=1.0):
        import torch
        ours, theirs = torch.as_tensor(ours).double(), torch.as_tensor(theirs).double()
        self.assertEqual(ours.shape, theirs.shape)
        self.assertLess((ours - theirs).abs().max().item(), LIMIT * max(1.0, scale))

    def same_shares(self, ours, logits):
        """Probabilities, and their logarithms as logits but for a constant of each row."""
        import torch
        self.near(ours, logits.softmax(-1))
        logarithms, logits = torch.tensor(ours, dtype=torch.float64).log(), logits.double()
        self.near(logarithms - logarithms.mean(-1, keepdim=True), logits - logits.mean(-1, keepdim=True), logits.abs().max().item())

    def each(self, task, check):
        for architecture in ("bert", "distilbert"):
            with self.subTest(f"{architecture} {task}"):
                run = tuned(architecture, task)
                name = json.loads((run / "config.json").read_text())["architectures"][0]
                self.assertEqual(type(loaded(run, task)[0]).__name__, name)
                self.assertTrue(name.endswith("For" + CLASSES[task]))
                check(run)

    def check_classes(self, task, run):
        import transformers
        texts, gold = zip(*dev(task))
        batch = encoded(run, task, *map(list, zip(*texts)))
        logits, ours = outputs(run, task, batch).logits, predicted(run, task)
        self.same_shares([x["probabilities"] for x in ours], logits)
        names = loaded(run, task)[0].config.id2label
        self.assertEqual(sorted(set(gold)), [names[k] for k in range(len(names))])
        self.assertEqual([x["prediction"] for x in ours], [names[k] for k in logits.argmax(-1).tolist()])
        self.assertGreater((outputs(run, task, batch, "sdpa").logits - logits).abs().max().item(), 1e-2)  # without the mask
        model, tokenizer = loaded(run, task)
        pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        said = pipeline([{"text": t[0], **({"text_pair": t[1]} if len(t) > 1 else {})} for t in texts], batch_size=8)
        self.assertEqual([x["label"] for x in said], [x["prediction"] for x in ours])
        self.near([x["score"] for x in said], [max(x["probabilities"]) for x in ours])

    def test_classes(self):
        for task in ("text", "pair"):
            self.each(task, functools.partial(self.check_classes, task))

    def test_pipeline_of_a_folder(self):
        """The run by its name alone: mask and labels come along."""
        import transformers
        run = tuned("bert", "text")
        pipeline = transformers.pipeline("text-classification", model=str(run), model_kwargs={"attn_implementation": "maskc"})
        said = pipeline([t[0] for t, _ in dev("text")])
        self.assertEqual([x["label"] for x in said], [x["prediction"] for x in predicted(run, "text")])

    def test_numbers(self):
        def check(run):
            logits = outputs(run, "number", encoded(run, "number", [t[0] for t, _ in dev("number")])).logits
            ours = [float(x["prediction"]) for x in predicted(run, "number")]
            self.near(ours, logits[:, 0], logits.abs().max().item())
            self.assertEqual(loaded(run, "number")[0].config.problem_type, "regression")
        self.each("number", check)

    def test_choices(self):
        def check(run):
            rows = [t for t, _ in dev("swag")]
            batch = encoded(run, "swag", [t[0] for t in rows for _ in t[1]], [e for t in rows for e in t[1]])
            logits = outputs(run, "swag", {name: x.view(len(rows), 4, -1) for name, x in batch.items()}).logits
            ours = predicted(run, "swag")
            self.same_shares([x["probabilities"] for x in ours], logits)
            self.assertEqual([int(x["prediction"]) for x in ours], logits.argmax(-1).tolist())
        self.each("swag", check)

    def test_words(self):
        """As transformers' recipe reads words: the first token of each."""
        def check(run):
            words = [list(w) for w, _ in dev("tokens")]
            batch = encoded(run, "tokens", words, is_split_into_words=True)
            logits, names = outputs(run, "tokens", batch).logits, loaded(run, "tokens")[0].config.id2label
            shares = logits.softmax(-1)
            for k, (one, said) in enumerate(zip(predicted(run, "tokens"), printed("classify", run, [" ".join(w) for w in words]))):
                of = batch.word_ids(k)
                best = [names[shares[k, of.index(w)].argmax().item()] for w in range(len(words[k]))]
                self.assertEqual(one["prediction"], best)
                self.near([t["probability"] for t in said["tokens"]], shares[k, :len(said["tokens"])].max(-1).values)
            self.assertEqual(sorted({x for _, labels in dev("tokens") for x in labels}), [names[k] for k in range(len(names))])
        self.each("tokens", check)

    def spans(self, run, task, question, context, **options):
        """([(score, text)] best first, the score of no answer) of a question, over the windows that the tokenizer makes."""
        batch = encoded(run, task, question, context, truncation="only_second", return_offsets_mapping=True,
                        return_overflowing_tokens=True, **options)
        places = batch.pop("offset_mapping").tolist()
        batch.pop("overflow_to_sample_mapping")
        parts, found, none = [batch.sequence_ids(k) for k in range(len(places))], {}, []
        out = outputs(run, task, batch)
        for k, (begin, end) in enumerate(zip(out.start_logits.tolist(), out.end_logits.tolist())):
            none.append(begin[0] + end[0])
            rows = [i for i, part in enumerate(parts[k]) if part == 1]
            for i in rows:
                for j in rows:
                    if i <= j < i + 30:
                        place = places[k][i][0], places[k][j][1]
                        found[place] = max(begin[i] + end[j], found.get(place, -1e9))
        best = sorted(((score, context[a:b]) for (a, b), score in found.items()), reverse=True)
        return best[:TOP], min(none)

    def check_spans(self, task, run, options, named):
        rows = [t for t, _ in dev(task)][:QUESTIONS]
        ours = list(predicted(run, task, *options).values())[:QUESTIONS]
        for row, one, said in zip(rows, ours, printed("answer", run, ["\t".join(t) for t in rows], *options), strict=True):
            best, none = self.spans(run, task, *row, **named)
            scale = max(abs(none), *(abs(score) for score, _ in best))
            self.near([x["score"] for x in said["answers"]], [score for score, _ in best], scale)
            self.near(said["no_answer_score"], none, scale)
            absent = task == "squad2" and none > best[0][0]
            self.assertEqual(one, "" if absent else best[0][1])

    def test_spans(self):
        for task in ("squad1", "squad2"):
            self.each(task, lambda run, task=task: self.check_spans(task, run, (), {"max_length": POSITIONS}))

    def test_spans_of_windows(self):
        options = ("--max-length", 40, "--stride", 8)
        run = tuned("bert", "squad2", *options)
        self.check_spans("squad2", run, options, {"max_length": 40, "stride": 8})


if __name__ == "__main__":
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
