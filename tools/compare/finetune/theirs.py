# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer as a contender: the same model, examples in the same order, batches padded to their longest text."""
import time

import numpy
import torch
import transformers

WAYS = {"sdpa": ("sdpa", False), "eager": ("eager", False), "compiled": ("sdpa", True), "bucketed": ("sdpa", False)}


class Examples(torch.utils.data.Dataset):
    """Tokens of examples, in the order of `places`."""

    def __init__(self, tokenizer, table, label2id, most):
        columns = [list(c) for c in zip(*table.texts())]
        tokens = tokenizer(*columns, truncation=True, max_length=most)
        self.rows = [{name: tokens[name][k] for name in tokens} | {"labels": label2id[label]} for k, label in enumerate(table.labels())]
        self.places = range(len(self.rows))

    def placed(self, places):
        again = object.__new__(Examples)
        again.rows, again.places = self.rows, places
        return again

    def tokens(self, place):
        return len(self.rows[place]["input_ids"])

    def __len__(self):
        return len(self.places)

    def __getitem__(self, k):
        return dict(self.rows[self.places[k]])


def bucketed(examples, places, batch, seed):
    """The same examples in batches of neighbouring lengths, these in random order: at least as well sorted as group_by_length does."""
    places = sorted(places, key=examples.tokens)
    batches = [places[k:k + batch] for k in range(0, len(places), batch)]
    numpy.random.default_rng(seed).shuffle(batches)
    return [p for b in batches for p in b]


class Collator:
    """Pads; with a mask, attention_mask is the additive one [B, 1, n, n] of the mask and of padding."""

    def __init__(self, tokenizer, table):
        self.tokenizer, self.table = tokenizer, None if table is None else torch.from_numpy(table)

    def __call__(self, rows):
        batch = self.tokenizer.pad(rows, return_tensors="pt")
        if self.table is not None:
            n = batch["input_ids"].shape[1]
            bits = self.table[:n, :n] & batch["attention_mask"].bool()[:, None, None, :]
            batch["attention_mask"] = torch.zeros(bits.shape).masked_fill_(~bits, torch.finfo(torch.float32).min)
        return batch


class Watch(transformers.TrainerCallback):
    """Evaluates after the given steps, and takes the time of steps first + 1 .. last."""

    def __init__(self, evaluations=(), first=0, last=0, now=time.perf_counter):
        self.evaluations, self.first, self.last, self.now, self.seconds, self.each = set(evaluations), first, last, now, 0.0, []

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.first:
            self.seconds = -self.now()

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.last:
            self.seconds += self.now()
        control.should_evaluate = state.global_step in self.evaluations

    def on_evaluate(self, args, state, control, metrics=None, **_):
        self.each.append(metrics["eval_accuracy"])


class Ordered(transformers.Trainer):
    """Examples as they come, and in each step maskbert's learning rate. The Trainer's own schedule is one step behind during the warm-up, where
    it begins at 0."""

    def create_scheduler(self, num_training_steps, optimizer=None):
        warmup = self.args.warmup_steps

        def share(done):
            return min((done + 1) / max(warmup, 1), (num_training_steps - done) / max(num_training_steps - warmup, 1))
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or self.optimizer, share)
        return self.lr_scheduler

    def _get_train_sampler(self, *_, **__):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


class Theirs:
    """o: options of the tool; parts: {"train", "dev"} of examples; table: bool [n, n] or None."""

    def __init__(self, o, work, parts, table):
        self.o, self.work, self.parts, self.table, self.models, self.data = o, work, parts, table, {}, {}

    def prepare(self, folder):
        """The tokens of all examples."""
        if not self.data:
            config = transformers.AutoConfig.from_pretrained(folder)
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            self.data = {part: Examples(self.tokenizer, t, config.label2id, self.o.max_length) for part, t in self.parts.items()}

    def load(self, folder, way):
        p = {name: self.o.dropout for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")}
        config = transformers.AutoConfig.from_pretrained(folder)
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, attn_implementation=WAYS[way][0], **{k: v for k, v in p.items() if hasattr(config, k)})

    def arguments(self, seed, steps, way, **more):
        o = self.o
        return transformers.TrainingArguments(
            output_dir=str(self.work / "trainer"), max_steps=steps, per_device_train_batch_size=o.batch, per_device_eval_batch_size=o.batch,
            learning_rate=o.lr, weight_decay=0.01, adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8, max_grad_norm=1.0,
            lr_scheduler_type="linear", warmup_steps=int(0.1 * steps + 0.5), save_strategy="no", eval_strategy="no", report_to="none",
            disable_tqdm=True, use_cpu=True, seed=seed, data_seed=seed, dataloader_pin_memory=False, bf16=o.dtype == "bf16",
            torch_compile=WAYS[way][1], **more)

    def train(self, model, places, watch, arguments):
        trainer = Ordered(model=model, args=arguments, train_dataset=self.data["train"].placed(places), eval_dataset=self.data["dev"],
                          data_collator=Collator(self.tokenizer, self.table), compute_metrics=accuracy, callbacks=[watch])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        return trainer

    def whole(self, folder, seed, places, ours):
        """The dev metric of a run, the best of the evaluations that ours had."""
        self.prepare(folder)
        watch = Watch(ours["evaluations"])
        self.train(self.load(folder, "sdpa"), places, watch, self.arguments(seed, ours["steps"], "sdpa", logging_strategy="no"))
        return {"best": max(watch.each), "each": watch.each}

    def first_loss(self, folder, places):
        """(loss, tokens) of the first batch without dropout."""
        self.prepare(folder)
        batch = Collator(self.tokenizer, self.table)([self.data["train"].placed(places)[k] for k in range(self.o.batch)])
        with torch.no_grad():
            loss = self.load(folder, "sdpa").eval()(**batch).loss.item()
        return loss, sum(self.data["train"].tokens(p) for p in places[:self.o.batch])

    def timed(self, folder, seed, places, way):
        """Seconds of the steps after the first ones. The model is kept from turn to turn."""
        o = self.o
        self.prepare(folder)
        if way not in self.models:
            self.models[way] = self.load(folder, way)
        if way == "bucketed":
            places = bucketed(self.data["train"], places, o.batch, seed)
        watch = Watch(first=o.untimed, last=o.untimed + o.steps, now=time.process_time if o.clock == "cpu" else time.perf_counter)
        self.train(self.models[way], places, watch, self.arguments(seed, o.untimed + o.steps, way, logging_strategy="no"))
        return watch.seconds

    def padding(self, places):
        """Share of the tokens of padded batches that are padding."""
        counts = [[self.data["train"].tokens(p) for p in places[k:k + self.o.batch]] for k in range(0, len(places), self.o.batch)]
        return 1 - sum(map(sum, counts)) / sum(max(c) * len(c) for c in counts)
