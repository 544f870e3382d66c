#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoders beside BERT against transformers in float64: usage families_oracle.py MASKBERT GRADIENTS_DUMP [FAMILY]. Random weights, every switch
that changes the computation, each model class: hidden states (f32 1e-5 of the largest value, bf16 at most 1.5 times the error of
transformers in bfloat16), answers of heads, gradients of the masked words' loss (1e-5 of a tensor's norm, or of a thousandth of the
largest in its layer), folders that are saved and loaded. Exit code 77 (skipped) where torch or transformers is missing."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy
    import safetensors.torch
    import torch
    import transformers
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bert_folder import read_safetensors  # noqa: E402
from families import FAMILIES, OTHERS, READ, SPECIAL, WORDS  # noqa: E402
from families_gradients import gradients_of, layer_of, make_batch, norm, spelled  # noqa: E402

MASKBERT, DUMP = sys.argv[1:3]
failures, checks = 0, 0


def report(name, error, tolerance):
    global failures, checks
    ok = error <= tolerance
    failures += not ok
    checks += 1
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {error:.2e}, at most {tolerance:.2e}", flush=True)


def run(*args, text=None, code=0):
    r = subprocess.run([str(x) for x in args], input=text, capture_output=True, text=True, check=False)
    if r.returncode != code:
        raise SystemExit(f"{' '.join(map(str, args))}: exit code {r.returncode}: {r.stderr}")
    return r.stdout if code == 0 else r.stderr


def number(word):
    return WORDS.index(f"[{word[1:-1]}]" if word[0] == "[" else word)


def ids_of(line):
    """[CLS] a [SEP] b [SEP]"""
    ids = [2]
    for part in line.split("\t"):
        ids += [*(number(w) for w in part.split()), 3]
    return ids


def make(family, cls, work, **switches):
    """A model with random weights in float64, and its folder."""
    torch.manual_seed(len(json.dumps(switches)) + len(cls))
    f = {**FAMILIES, **OTHERS}[family]
    config = getattr(transformers, f["config"])(**{**f["sizes"], **switches})
    config._attn_implementation = "eager"
    model = getattr(transformers, f["prefix"] + cls)(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            torch.nn.init.normal_(p, 1.0 if p.ndim == 1 and name.endswith("weight") else 0.0, 0.1 if p.ndim == 1 else f["std"])
    folder = pathlib.Path(tempfile.mkdtemp(dir=work))
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return model.double(), folder


def texts(longest, rng):
    lengths = [1, 2, 3, 16, 17, 33, longest - 2]
    return [" ".join(WORDS[k] for k in rng.integers(len(SPECIAL), len(WORDS), n)) for n in lengths]


def hidden_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).last_hidden_state[0].double().numpy()


def states(folder, lines, ids, *options):
    run(MASKBERT, "embed", folder, "-o", folder / "x.npy", "--pooling", "none", *options, text="\n".join(lines) + "\n")
    return [x[:len(i)].astype(float) for x, i in zip(numpy.load(folder / "x.npy"), ids)]


def worst(ours, truth):
    return max(abs(a - b).max() for a, b in zip(ours, truth)) / max(abs(b).max() for b in truth)


def rms(ours, truth):
    return numpy.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(ours, truth)))


def check_hidden(family, work, name, switches):
    model, folder = make(family, "Model", work, **switches)
    lines = texts(FAMILIES[family]["longest"](model.config), numpy.random.default_rng(3))
    ids = [ids_of(x) for x in lines]
    truth = [hidden_of(model, i) for i in ids]
    report(f"{family} {name}", worst(states(folder, lines, ids), truth), 1e-5)
    theirs = rms([hidden_of(model.to(torch.bfloat16), i) for i in ids], truth)
    report(f"{family} {name} bf16, error beside torch's", rms(states(folder, lines, ids, "--dtype", "bf16"), truth) / theirs, 1.5)
    return folder


def check_emulated(family, work, name, switches):
    model, folder = make(family, "Model", work, **switches)
    lines = [" ".join(WORDS[7:7 + n]) for n in (2, 19)]
    ids = [ids_of(x) for x in lines]
    truth = [hidden_of(model, i) for i in ids]
    report(f"{family} {name}, emulated GPU", worst(states(folder, lines, ids, "--device", "emulated"), truth), 1e-5)


# ---- heads ----

LINES = ["w1 w2 w3", "w4 w9 w30 w31", "w9"]


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def lines_of(command, folder, text, *options):
    return [json.loads(x) for x in run(MASKBERT, command, folder, "--json", *options, text=text).splitlines()]


def check_words(family, work, switches):
    model, folder = make(family, "ForMaskedLM", work, **switches)
    if not switches:  # of tied tensors this writes the first by name, most often the decoder
        safetensors.torch.save_model(model, str(folder / "model.safetensors"), {"format": "pt"})
    line = "w1 [MASK] w5 w8 [MASK]"
    truth = logits_of(model, ids_of(line)).softmax(-1).numpy()
    out = lines_of("fill-mask", folder, line + "\n", "--top", str(len(WORDS)))[0]
    error = 0
    for m in out["masks"]:
        for w in m["words"]:
            error = max(error, abs(w["probability"] - truth[m["token"]][w["id"]]) / truth[m["token"]].max())
    report(f"{family} masked words {switches}", error, 1e-5)


def check_labels(family, work, **switches):
    model, folder = make(family, "ForSequenceClassification", work, num_labels=3, **switches)
    lines = [*LINES, "w1 w2\tw3 w4 w5"]
    error = 0
    for line, out in zip(lines, lines_of("classify", folder, "\n".join(lines) + "\n"), strict=True):
        truth = logits_of(model, ids_of(line)).softmax(-1).numpy()
        error = max(error, abs(numpy.array([x["probability"] for x in out["labels"]]) - truth).max())
    report(f"{family} labels of sequences {switches}", error, 1e-5)
    model, folder = make(family, "ForTokenClassification", work, num_labels=4)
    error = 0
    for line, out in zip(LINES, lines_of("classify", folder, "\n".join(LINES) + "\n"), strict=True):
        truth = logits_of(model, ids_of(line)).softmax(-1).numpy()
        error = max(error, *(abs(t["probability"] - p.max()) for t, p in zip(out["tokens"], truth, strict=True)))
    report(f"{family} labels of tokens", error, 1e-5)


def check_types(family, work):
    """A pair whose second part has token type 1, as BERT's tokenizer gives it, at a model with rows for two types."""
    model, folder = make(family, "ForSequenceClassification", work, num_labels=3, type_vocab_size=2)
    ids = ids_of("w1 w2\tw3 w4 w5")
    with torch.no_grad():
        truth = model(torch.tensor([ids]), token_type_ids=torch.tensor([[0] * 4 + [1] * 4])).logits[0].softmax(-1).numpy()
    out = lines_of("classify", folder, "w1 w2\tw3 w4 w5\n")[0]
    report(f"{family} token types", abs(numpy.array([x["probability"] for x in out["labels"]]) - truth).max(), 1e-5)


def check_pickle(family, work):
    """The refusal of pickled weights prints a command that keeps all of them, heads too."""
    model, folder = make(family, "ForSequenceClassification", work, num_labels=3)
    before = lines_of("classify", folder, "w1 w2\n")
    (folder / "model.safetensors").unlink()
    torch.save(model.float().state_dict(), folder / "pytorch_model.bin")
    command = re.search(r'python3 (-c ".*)', run(MASKBERT, "classify", folder, text="w1\n", code=2))[1]
    subprocess.run(f"{sys.executable} {command}", shell=True, check=True)
    report(f"{family} weights that were pickled", float(lines_of("classify", folder, "w1 w2\n") != before), 0)


def check_choice(family, work):
    model, folder = make(family, "ForMultipleChoice", work)
    with torch.no_grad():
        ids = [ids_of(f"w1 w2\t{x}") for x in ("w5 w6", "w7 w8", "w9 w3")]
        truth = model(torch.tensor([ids])).logits[0].softmax(-1).numpy()
    out = lines_of("classify", folder, "w1 w2\tw5 w6\tw7 w8\tw9 w3\n")[0]
    report(f"{family} choices", abs(numpy.array(out["all"]) - truth).max(), 1e-5)


def check_span(family, work):
    model, folder = make(family, "ForQuestionAnswering", work)
    context = " ".join(f"w{k}" for k in range(10, 30))
    ids = ids_of("w1 w2\t" + context)
    with torch.no_grad():
        out = model(torch.tensor([ids]))
    begin, end = out.start_logits[0], out.end_logits[0]
    best = max(float(begin[i] + end[j]) for i in range(4, len(ids) - 1) for j in range(i, len(ids) - 1))
    ours = lines_of("answer", folder, f"w1 w2\t{context}\n")[0]["answers"][0]["score"]
    report(f"{family} spans", abs(ours - best) / max(1, abs(best)), 1e-5)


# ---- gradients ----

def check_gradients(family, work, name, switches):
    model, folder = make(family, "ForMaskedLM", work, **switches)
    batch = make_batch(folder, FAMILIES[family]["longest"](model.config), numpy.random.default_rng(5))
    loss, truth = gradients_of(model, batch)

    def ours(*options):
        out = folder / "g.safetensors"
        line = json.loads(run(DUMP, folder, folder / "batch.txt", out, *options).splitlines()[0])
        return line["mlm"] / line["masked"], read_safetensors(out)

    mine, gradients = ours()
    report(f"{family} {name} loss", abs(mine - loss) / loss, 1e-6)
    spell = spelled(truth)
    for n in set(spell) ^ set(gradients):
        assert n in spell and (n.endswith("decoder.weight") or not spell[n].any()), f"{n} has a gradient on one side alone"
    most = {}
    for n, g in spell.items():
        most[layer_of(n)] = max(most.get(layer_of(n), 0), norm(g))
    parts = {n: norm(gradients[n] - g) / max(norm(g), 1e-3 * most[layer_of(n)]) for n, g in spell.items() if n in gradients}
    n = max(parts, key=parts.get)
    report(f"{family} {name} gradients: {n}", parts[n], 1e-5)
    _, rounded = ours("dtype=bf16")
    with torch.autocast("cpu", torch.bfloat16):
        _, theirs = gradients_of(model.float(), batch)
    theirs = spelled(theirs)
    both = [n for n in spell if n in gradients]
    error = lambda of: numpy.sqrt(sum(norm(of[n] - spell[n]) ** 2 for n in both))
    report(f"{family} {name} gradients in bf16, error beside autocast's", error(rounded) / error(theirs), 1.5)


# ---- folders ----

def check_saved(family, work, **switches):
    """Checks that transformers loads the folder that maskbert writes."""
    model, folder = make(family, "ForMaskedLM", work, **switches)
    run(MASKBERT, "convert", folder, "-o", folder / "again")
    back, said = getattr(transformers, FAMILIES[family]["prefix"] + "ForMaskedLM").from_pretrained(folder / "again", output_loading_info=True, attn_implementation="eager")
    assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"], said
    ids = ids_of(LINES[1])
    report(f"{family} converted", abs((logits_of(back.double().eval(), ids) - logits_of(model, ids)).numpy()).max(), 1e-9)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": None}))
    said = run(MASKBERT, "info", folder)
    assert f": {FAMILIES[family]['prefix']}, ".lower() in said.replace("-", "").lower() and "masked" in said, said


def check_family(family, work):
    f = FAMILIES[family]
    for name, switches in f["switches"].items():
        check_hidden(family, work, name, switches)
        if f.get("trains", True):
            check_gradients(family, work, name, {**switches, **f.get("train", {})})
    if f.get("emulated", True) and not os.environ.get("CPU"):
        check_emulated(family, work, "sizes", {})
    for switches in ({}, *f.get("words", ())):
        check_words(family, work, switches)
    for switches in f.get("labels", ({},)):
        check_labels(family, work, **switches)
    if family == next(iter(FAMILIES)):  # the others' weights are read by the same code
        check_pickle(family, work)
    if "type_vocab_size" in f["sizes"]:
        check_types(family, work)
    if f.get("choice", True):
        check_choice(family, work)
    check_span(family, work)
    for switches in ({}, {"tie_word_embeddings": False}):
        check_saved(family, work, **switches)
    with torch.no_grad():
        for change, said in f["refused"]:
            must_refuse(family, work, change, said)


def make_odd(family, cls, work, change):
    """A folder whose config.json is changed."""
    _, folder = make(family, cls, work)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    return folder


def check_read(family, work, cls, change):
    folder = make_odd(family, cls, work, change)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").double()
    ids = ids_of(LINES[1])
    report(f"{family} {cls} {change}", worst(states(folder, LINES[1:2], [ids]), [hidden_of(model, ids)]), 1e-5)


def must_refuse(family, work, change, said):
    """One line, and what it must say."""
    folder = make_odd(family, "Model", work, change)
    line = run(MASKBERT, "embed", folder, "-o", folder / "x.npy", text="w1\n", code=2)
    global failures, checks
    ok = said in line and line.count("\n") == 1
    failures += not ok
    checks += 1
    print(f"{'ok  ' if ok else 'FAIL'} {family} refuses {change}: {line}", end="")


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as work:
        for family in sys.argv[3:] or FAMILIES:
            check_family(family, work)
        for family, cls, change in READ:
            check_read(family, work, cls, change)
    assert checks
    sys.exit(1 if failures else 0)


main()
