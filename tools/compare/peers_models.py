# SPDX-License-Identifier: Apache-2.0
"""`tools/peers --models`: whole models of transformers with random weights, attention by maskc, by scaled_dot_product_attention and by
compiled FlexAttention, interleaved in one process. The same model without attention says what no attention can beat (Amdahl).
"""
import copy
import os
import tempfile
import time
import warnings

import torch

import peers_contenders
import peers_report as report

WIDTH, HEADS, VOCABULARY = 768, 12, 1000
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
MOST_ERROR = {"f32": 1e-4, "bf16": 5e-2, "f16": 2e-2}
TEXT = "longformer(64,2)"
NOTHING = "peers_nothing"


class Skipped(Exception):
    """Why a way cannot take part."""


def modernbert(n, layers):
    """One layer in three is global, the others see 64 tokens on each side: ModernBERT's own."""
    import transformers
    config = transformers.ModernBertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=1152, num_hidden_layers=layers,
        max_position_embeddings=n, local_attention=128, global_attn_every_n_layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        cls_token_id=1, sep_token_id=2, attn_implementation="sdpa")
    return transformers.ModernBertModel(config)


def bert(n, layers):
    import transformers
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
                                     num_hidden_layers=layers, max_position_embeddings=n, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0, attn_implementation="sdpa")
    return transformers.BertModel(config, add_pooling_layer=False)


MODELS = {"modernbert": (modernbert, None), "bert-longformer": (bert, TEXT)}  # None: the model's own mask


def bits_of(text, n):
    import maskc
    return torch.from_numpy(maskc.compile(text, n=n, heads=1).mask[0])


def ours(model, text, n):
    import contextlib
    import io

    import maskc
    if text is None:
        model.set_attn_implementation("maskc")
        return {}
    with contextlib.redirect_stderr(io.StringIO()):
        maskc.apply(model, text)
    return {}


def sdpa(model, text, n):
    model.set_attn_implementation("sdpa")
    if text is None:
        return {}
    return {"attention_mask": peers_contenders.additive(bits_of(text, n)[None], model.dtype)}


def flex(model, text, n):
    from torch.nn.attention.flex_attention import create_block_mask
    if model.training:
        raise Skipped("PyTorch has no FlexAttention backward on CPU")
    model.set_attn_implementation("flex_attention")
    if text is None:
        return {}
    bits = bits_of(text, n)[0]
    return {"attention_mask": create_block_mask(lambda b, h, q, kv: bits[q, kv], None, None, n, n, device="cpu")}


def nothing(model, text, n):
    """V in the place of attention's output: all else that the model does."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface
    AttentionInterface.register(NOTHING, lambda module, q, k, v, mask, **named: (v.transpose(1, 2), None))
    AttentionMaskInterface.register(NOTHING, lambda *arguments, **named: None)
    model.set_attn_implementation(NOTHING)
    return {}


WAYS = {"maskc": ours, "sdpa": sdpa, "flex": flex, "nothing": nothing}


class Contender:
    """A model that is ready, and its first call's time."""

    def __init__(self, name, model, text, ids, now):
        self.model, self.now = model, now
        begin = now()
        self.named = WAYS[name](model, text, ids.shape[1])
        self.build_s, self.ids, self.samples = now() - begin, ids, []
        self.optimizer = torch.optim.SGD(model.parameters(), 1e-4) if model.training else None
        self.first_s, self.out = self.time()

    def call(self):
        if not self.optimizer:
            with torch.no_grad():
                return self.model(input_ids=self.ids, **self.named).last_hidden_state
        self.optimizer.zero_grad()
        out = self.model(input_ids=self.ids, **self.named).last_hidden_state
        out.float().square().mean().backward()
        self.optimizer.step()
        return out.detach()

    def time(self):
        begin = self.now()
        out = self.call()
        return self.now() - begin, out

    def sample(self):
        self.samples.append(self.time()[0])


def difference(a, b):
    a, b = a.double(), b.double()
    e = ((a - b).norm() / b.norm()).item()
    return e if e == e else float("inf")


def contenders(options, model, text, ids, now, names):
    """({name: Contender}, {name: why not})."""
    ready, reasons = {}, {}
    for name in names:
        report.progress(f"first call of {name}, n={ids.shape[1]}")
        try:
            ready[name] = Contender(name, copy.deepcopy(model), text, ids, now)
        except Skipped as e:
            reasons[name] = str(e)
        except Exception as e:  # pylint: disable=broad-exception-caught
            if name != "flex":
                raise
            reasons[name] = f"not on this machine: {(str(e).strip() or type(e).__name__).splitlines()[0][:120]}"
    return ready, reasons


def measure(options, label, n, dtype, training, now):
    """One row."""
    build, text = MODELS[label]
    torch.manual_seed(1)
    model = build(n, options.layers).to(DTYPES[dtype]).train(training)
    ids = torch.randint(3, VOCABULARY, (options.batch, n))
    names = [name for name in WAYS if not options.contenders or name in options.contenders or name in ("maskc", "nothing")]
    ready, reasons = contenders(options, model, text, ids, now, names)
    errors = {name: difference(c.out, ready["maskc"].out) for name, c in ready.items() if name not in ("maskc", "nothing")}
    begin = time.perf_counter()
    for k in range(options.repeat):
        if k >= 3 and time.perf_counter() - begin > options.limit:
            break
        for name, c in ready.items():
            report.progress(f"{label} n={n}: sample {k + 1} of {name}")
            c.sample()
    report.progress("")
    row = {name: report.summary(c.samples) | {"first_s": c.build_s + c.first_s} for name, c in ready.items()}
    return {"model": label, "layers": options.layers, "width": WIDTH, "length": n, "dtype": dtype, "training": training,
            "contenders": row, "errors": errors, "reasons": reasons}


def show_row(row, clock):
    median = {name: c["median_s"] for name, c in row["contenders"].items()}
    first = {name: c["first_s"] - c["median_s"] for name, c in row["contenders"].items()}
    best = min((name for name in median if name not in ("maskc", "nothing")), key=median.get, default=None)
    ratios = f"{median[best] / median['maskc']:.2f} x {best}; ceiling {median[best] / median['nothing']:.2f} x; " if best else ""
    what = "training step" if row["training"] else "inference"
    print(report.terminal.fold(
        f"{row['model']}, n={row['length']}, {row['dtype']}, {what}: " +
        ", ".join(f"{name} {1e3 * t:.0f}" for name, t in median.items() if name != "nothing") + " ms; without attention "
        f"{1e3 * median['nothing']:.0f}"))
    print(report.terminal.fold(
        f"  {ratios}first call, beyond a later one: " +
        ", ".join(f"{name} {first[name]:.2f} s" for name in first if name != "nothing")))
    for name, reason in row["reasons"].items():
        print(report.terminal.fold(f"  {name}: {reason}"))
    for name, e in row["errors"].items():
        if e > MOST_ERROR[row["dtype"]]:
            print(f"  WRONG: {name} and maskc differ by {e:.1e}")
    return all(e <= MOST_ERROR[row["dtype"]] for e in row["errors"].values())


def show(options, header):
    """0; 1 where the ways do not compute the same."""
    warnings.simplefilter("ignore")
    now, good, rows = time.process_time if options.clock == "cpu" else time.perf_counter, True, []
    print(f"{header['device']}, {header['threads']} threads, torch {header['torch']}; {options.layers} layers of {WIDTH}, {HEADS} heads, batch "
          f"{options.batch}; {options.clock} clock, medians of up to {options.repeat} turns")
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # Flex compiles for each process that has not kept it, as maskc does
        for label in options.models.split(","):
            for n in options.length:
                for dtype in options.dtype:
                    for pass_ in options.passes:
                        rows.append(measure(options, label, n, dtype, pass_ == "both", now))
                        good &= show_row(rows[-1], options.clock)
                        if options.json:
                            report.write_json(options.json, header, rows)
    return 0 if good else 1
