# SPDX-License-Identifier: Apache-2.0
"""A family of tools/encoder-peers: its model with random weights, and every contender on one batch."""
import os
import types

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy
import torch
import torch._inductor.config
import transformers

import bert_peers_ours
import bert_peers_torch
import bert_train_ours
import peers_report as report
from bert_peers_ours import OWN
from bert_train_torch import masked_loss
from peers_clock import CpuClock, interleave

F32_TOLERANCE = 1e-4  # of the largest value
BF16_TOLERANCE = 3  # times the rms error of torch's bf16
LOSS_TOLERANCE = 1e-2
F32_GRADIENT, BF16_GRADIENT = 1e-3, 3  # of a tensor's norm; times the error of torch's bf16
MASKED_SHARE, FIRST_ID = 0.3, 5
NAMES = {torch.float32: "f32", torch.bfloat16: "bf16"}

CONFIGS = {
    "modernbert": ("ModernBert", {}),
    "mpnet": ("MPNet", {"max_position_embeddings": 514}),
    "xlm-r": ("XLMRoberta", {"vocab_size": 32000, "type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 514}),
}
# Parameters whose gradients are compared: words, the first attention's queries, the last layer, what else attention has.
GRADIENTS = {
    "modernbert": ("embeddings.tok_embeddings.weight", "layers.0.attn.Wqkv.weight", "layers.{last}.mlp.Wo.weight"),
    "mpnet": ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.attn.q.weight", "encoder.layer.{last}.output.dense.weight",
              "encoder.relative_attention_bias.weight"),
    "xlm-r": ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight", "encoder.layer.{last}.output.dense.weight"),
}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96, "vocab_size": 200}

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


class Batch:
    """As bert_peers_torch.Batch and bert_train_torch.Batch have it, of sequences of one length; what is masked is drawn once."""

    def __init__(self, count, n, words):
        g = torch.Generator().manual_seed(1)
        self.numbers = list(torch.randint(FIRST_ID, words, (count, n), generator=g))
        self.counts, self.longest, self.length, self.sequences, self.tokens = [n] * count, n, n, count, count * n
        self.ids, self.packed_ids = torch.stack(self.numbers), torch.cat(self.numbers)
        self.mixed, self.table, self.next = False, None, None
        self.real = torch.ones(count, 1, 1, n, dtype=torch.bool)
        self.first_parts = [n] * count
        self.rows = torch.randperm(self.tokens, generator=g)[:int(MASKED_SHARE * self.tokens)].sort().values.numpy()
        self.labels = torch.randint(FIRST_ID, words, (len(self.rows),), generator=g).numpy()
        self.masked = torch.from_numpy(self.rows), torch.from_numpy(self.labels)


def bert_names(model):
    """MPNet's tensors by BERT's names; positions from that of the first token on."""
    found = {}
    for name, x in model.state_dict().items():
        for ours, theirs in (("attention.self.query", "attention.attn.q"), ("attention.self.key", "attention.attn.k"), ("attention.self.value", "attention.attn.v"),
                             ("attention.output.dense", "attention.attn.o"), ("attention.output.LayerNorm", "attention.LayerNorm")):
            name = name.replace(theirs + ".", ours + ".")
        found[name] = x
    found["embeddings.position_embeddings.weight"] = found["embeddings.position_embeddings.weight"][2:]
    found.setdefault("embeddings.token_type_embeddings.weight", torch.zeros(1, model.config.hidden_size))
    return found


class Torch:
    """transformers' model in one type, eager or compiled."""

    def __init__(self, model, dtype, batch, compiled):
        self.model, self.ids, self.compiled = model.to(dtype), batch.ids, compiled
        self.call = torch.compile(self.model, dynamic=False) if compiled else self.model

    @torch.no_grad()
    def __call__(self):
        with torch._inductor.config.patch(freezing=self.compiled):  # read where a call compiles
            return self.call(input_ids=self.ids).last_hidden_state

    def states(self):
        return self().float().reshape(-1, self.model.config.hidden_size).numpy()


class TorchSteps:
    """Whole steps: autocast in bf16, masked rows gathered before the head, fused AdamW."""

    def __init__(self, model, dtype, batch, compiled=False):
        self.model, self.batch, self.dtype = model.train(), batch, dtype
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.01, fused=True)
        self.run = torch.compile(self.loss_of, dynamic=False) if compiled else self.loss_of

    def loss_of(self, ids, rows, labels):
        return masked_loss(self.model.base_model(input_ids=ids).last_hidden_state, rows, labels, self.head)

    def head(self, states):
        m = self.model
        return m.lm_head(states) if hasattr(m, "lm_head") else m.decoder(m.head(states))

    def backward(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            loss = self.run(self.batch.ids, *self.batch.masked)
        loss.backward()
        return loss

    def gradients(self, names):
        """(loss, {name without the model's prefix: gradient})"""
        loss, known = self.backward().item(), dict(self.model.base_model.named_parameters())
        return loss, {name: known[name].grad.numpy().copy() for name in names}

    def __call__(self):
        loss = self.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


class Gradients:
    """Loss and gradients of torch in f32, and the errors of its bf16."""

    def __init__(self, truth, half):
        self.loss, self.truth = truth
        self.shapes = {name: x.shape for name, x in self.truth.items()}
        self.half = {name: self.distance(half, name) for name in self.truth}

    def distance(self, found, name):
        return numpy.linalg.norm((found[name] - self.truth[name]).ravel()) / numpy.linalg.norm(self.truth[name].ravel())

    def error(self, loss, found, dtype):
        """The largest, in tolerances; NaN is infinitely wrong."""
        most = {name: BF16_GRADIENT * x if dtype == torch.bfloat16 else F32_GRADIENT for name, x in self.half.items()}
        errors = [abs(loss - self.loss) / self.loss / LOSS_TOLERANCE, *(self.distance(found, name) / most[name] for name in self.truth)]
        return float(max(errors)) if numpy.isfinite(errors).all() else numpy.inf


class Family:
    def __init__(self, o, name, folder, library):
        prefix, named = CONFIGS[name]
        more = {"attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0} if name == "modernbert" else {
            "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        self.o, self.name, self.folder = o, name, folder
        self.config = getattr(transformers, prefix + "Config")(**{**named, **more, **(SMALL if o.quick else {})})
        self.config.pad_token_id = min(self.config.pad_token_id, self.config.vocab_size - 1)
        self.kind = getattr(transformers, prefix + ("ForMaskedLM" if o.train else "Model"))
        torch.manual_seed(3)
        self.kind(self.config).save_pretrained(folder)
        self.library = (bert_train_ours if o.train else bert_peers_ours).Library(library)

    def load(self):
        try:
            return self.kind.from_pretrained(self.folder, attn_implementation="sdpa", dtype=torch.float32).eval()
        except ValueError:  # no such attention in this model
            return self.kind.from_pretrained(self.folder, attn_implementation="eager", dtype=torch.float32).eval()

    def contenders(self, batch):
        """{name: (dtype, function that makes it)}"""
        f32, bf16, o = torch.float32, torch.bfloat16, self.o
        kind, found = TorchSteps if o.train else Torch, {}
        for dtype in (bf16, f32):
            found["ours " + NAMES[dtype]] = (dtype, lambda dtype=dtype: self.ours(dtype, batch))
            for form, compiled in (("eager", False), ("compiled", True)):
                found[f"{form} {NAMES[dtype]}"] = (dtype, lambda dtype=dtype, compiled=compiled: kind(self.load(), dtype, batch, compiled))
        if self.name != "modernbert" and not o.train:
            found["onnx f32"] = (f32, lambda: self.onnx(batch))
        return {k: v for k, v in found.items() if not o.contenders or k in o.contenders}

    def ours(self, dtype, batch):
        if self.o.train:
            return bert_train_ours.Ours(self.library, self.folder, OWN, self.o.threads, 0, batch, NAMES[dtype])
        return bert_peers_ours.Ours(self.library, self.folder, OWN, NAMES[dtype], self.o.threads, batch, self.config.hidden_size)

    @torch.no_grad()
    def onnx(self, batch):
        import bert_peers_onnx
        model, bias = self.load(), None
        if self.name == "mpnet":
            x = torch.zeros(1, batch.length, self.config.hidden_size)
            bias = model.encoder.compute_position_bias(x)[:1].contiguous().numpy()
        run = bert_peers_onnx.runner(bert_names(model), self.config.to_dict(), batch, self.o.threads, bias)
        run.states = run
        return run

    def judge(self, one, dtype, reference):
        """(verdict, error in tolerances)"""
        if self.o.train:
            error = reference.error(*one.gradients(reference.shapes), dtype)
        elif dtype == torch.bfloat16:
            one_states = states_of(one)
            error = rms(one_states - reference.states) / reference.rms / BF16_TOLERANCE
        else:
            error = abs(states_of(one) - reference.states).max() / abs(reference.states).max() / F32_TOLERANCE
        return "ok" if error <= 1 else "wrong", float(error)

    def reference(self, batch):
        model = self.load()
        if self.o.train:
            names = [name.format(last=self.config.num_hidden_layers - 1) for name in GRADIENTS[self.name]]
            return Gradients(TorchSteps(model, torch.float32, batch).gradients(names), TorchSteps(model, torch.bfloat16, batch).gradients(names)[1])
        states = Torch(model, torch.float32, batch, False).states()
        rough = Torch(self.load(), torch.bfloat16, batch, False).states()
        return types.SimpleNamespace(states=states, rms=rms(rough - states))

    def run(self, n):
        batch = Batch(max(1, self.o.tokens // n), n, self.config.vocab_size)
        torch._dynamo.reset()  # code of other lengths
        reference, tried, ready = self.reference(batch), [], {}
        for name, (dtype, make) in self.contenders(batch).items():
            report.progress(f"{self.name} {n}: checking {name}")
            result = {"family": self.name, "length": n, "sequences": batch.sequences, "contender": name, "dtype": NAMES[dtype], "verdict": "failed"}
            tried.append(result)
            try:
                one = make()
                result["verdict"], result["error_in_tolerances"] = self.judge(one, dtype, reference)
            except Exception as e:  # whatever the libraries raise: a contender that failed
                result["reason"] = (str(e).strip() or type(e).__name__).splitlines()[0][:200]
                continue
            if result["verdict"] == "ok":
                ready[name] = one
        report.progress(f"{self.name} {n}: timing {len(ready)} contenders")
        times = interleave(CpuClock("wall"), {name: [one] for name, one in ready.items()}, self.o.repeat, self.o.limit)
        for one in ready.values():
            if hasattr(one, "close"):
                one.close()
        return [r | times.get(r["contender"], {}) for r in tried]


def states_of(one):
    if isinstance(one, bert_peers_ours.Ours):
        one()
    return one.states()


def rms(x):
    return numpy.sqrt((x.astype(numpy.float64) ** 2).mean())
