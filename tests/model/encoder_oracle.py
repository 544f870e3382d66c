#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert's answers against a plain BERT in float64: usage encoder_oracle.py MASKBERT MASKC [MINILM-FOLDER | --base]:
random models of many shapes with every head, the model in the folder, or a random one of BERT-base's size.
f32 within 1e-5 of the largest value; bf16 at most 1.5 times the error of the plain BERT in bfloat16.
Sparsegen's p is (z - tau) / (1 - lambda), so that what f32 rounds off anywhere before counts 1 / (1 - lambda)
times in every layer: up to lambda = -1 1e-5 holds as for softmax; beyond it twice the error of the plain BERT in
f32 is allowed (model/README.md has what was measured).
Exit code 77 (skipped) where there is no torch."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bert import SPECIAL, Bert, make_folder  # noqa: E402

failures = 0


def report(name, error, tolerance):
    global failures
    ok = error <= tolerance
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {error:.2e}, at most {tolerance:.2e}", flush=True)


def run(*args, text=None):
    r = subprocess.run(args, input=text, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(f"{' '.join(args)}: exit code {r.returncode}: {r.stderr}")
    return r.stdout


def config(layers, hidden, heads, positions=128, **more):
    return {"architectures": ["BertForPreTraining"], "vocab_size": 600, "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 4 * hidden,
            "max_position_embeddings": positions, **more}


def make_texts(vocabulary, lengths, rng):
    """Lines of whole words, every third a pair; and their ids and types."""
    lines, ids, types = [], [], []
    for k, length in enumerate(lengths):
        words = rng.integers(0, vocabulary - len(SPECIAL), max(length - 2, 0))
        number = [2, *(words + len(SPECIAL)), 3]
        text, first = [f"w{w}" for w in words], len(number)
        line = " ".join(text)
        if k % 3 == 2 and length > 6:
            cut = (length - 3) // 2
            line = " ".join(text[:cut]) + "\t" + " ".join(text[cut:-1])
            number = [2, *(words[:cut] + len(SPECIAL)), 3, *(words[cut:-1] + len(SPECIAL)), 3]
            first = cut + 2
        lines.append(line)
        ids.append([int(x) for x in number])
        types.append([int(at >= first) for at in range(len(number))])
    return lines, ids, types


def worst(ours, truth):
    return max(abs(a - b).max() for a, b in zip(ours, truth)) / max(abs(b).max() for b in truth)


def rms(ours, truth):
    return numpy.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(ours, truth)))


def states(maskbert, folder, lines, ids, *options):
    out = folder + "/states.npy"
    run(maskbert, "embed", folder, "-o", out, "--pooling", "none", *options, text="\n".join(lines) + "\n")
    x = numpy.load(out)
    for line, number in zip(x, ids):
        assert not line[len(number):].any(), "rows beyond a line's end are not zero"
    return [line[:len(number)].astype(numpy.float64) for line, number in zip(x, ids)]


def truth_of(model, ids, types, mask, sparsegen):
    with torch.no_grad():
        return [model.hidden(i, t, mask, sparsegen).to(torch.float64).numpy() for i, t in zip(ids, types)]


def make_mask(maskc, folder, name, positions):
    out = folder + "/m.npy"
    run(maskc, "make", name, "-n", str(positions), "-o", out)
    m = numpy.load(out)
    return m.reshape((1,) * (4 - m.ndim) + m.shape).astype(bool)


def per_head_mask(folder, heads, n, rng):
    m = rng.random((heads, n, n)) < numpy.linspace(0.05, 0.9, heads)[:, None, None]
    m[0, 3] = False  # a query that sees nothing
    numpy.save(folder + "/heads.npy", m)
    return m[None]


# name, config, std, mask (None: dense), sparsegen
CASES = [
    ("tiny", config(2, 128, 2), 0.2, None, None),
    ("tiny sparsegen", config(2, 128, 2), 0.2, None, -4),
    ("tiny longformer", config(2, 128, 2), 0.2, "longformer(5,2)", None),
    ("mini sparsegen near 1", config(2, 256, 4), 0.1, "longformer(5,2)", 0.5),
    ("tiny longformer sparsegen=-1", config(2, 128, 2), 0.2, "longformer(5,2)", -1),
    ("mini per head", config(2, 256, 4), 0.1, "heads", None),
    ("mini per head sparsegen", config(2, 256, 4), 0.1, "heads", -4),
    ("heads of 8", config(2, 32, 4), 0.2, "strided", None),
    ("heads of 26", config(2, 130, 5), 0.2, "star", None),
    ("heads of 32", config(2, 384, 12), 0.1, "bigbird", None),
    ("one position", config(1, 64, 2, positions=4), 0.2, None, None),
    ("gelu_new", config(2, 64, 4, hidden_act="gelu_new"), 0.2, None, None),
    ("relu", config(2, 64, 4, hidden_act="relu", layer_norm_eps=1e-5), 0.2, None, None),
    ("silu", config(2, 64, 4, hidden_act="silu"), 0.2, None, None),
    ("MiniLM's width", config(2, 384, 12, positions=512), 0.05, None, None),  # deeper: MiniLM itself, --base
]


BASE = ("BERT-base's shape", {**config(12, 768, 12, positions=512), "vocab_size": 30522}, 0.05, None, None)
LENGTHS = [512, 2, 3, 16, 17, 511, 31, 64, 40]
STRICT = -1  # lambda up to here


def check_case(maskbert, maskc, work, case, lengths=LENGTHS):
    name, c, std, mask, sparsegen = case
    folder, rng = work + "/" + name.replace(" ", "-"), numpy.random.default_rng(len(name))
    make_folder(folder, c, std, 7)
    positions = c["max_position_embeddings"]
    lengths = [positions if x == 512 else positions - 1 if x == 511 else x for x in lengths]
    lines, ids, types = make_texts(c["vocab_size"], [min(x, positions) for x in lengths], rng)
    bits, options = None, []
    if mask == "heads":
        bits = per_head_mask(folder, c["num_attention_heads"], positions, rng)
        options = ["--mask", folder + "/heads.npy"]
    elif mask:
        bits = make_mask(maskc, folder, mask, positions)
        options = ["--mask", mask]
    if sparsegen is not None:
        options += ["--transform", f"sparsegen={sparsegen}"]
    truth = truth_of(Bert(folder), ids, types, bits, sparsegen)
    tolerance = 1e-5
    if sparsegen is not None and sparsegen > STRICT:
        tolerance = max(1e-5, 2 * worst(truth_of(Bert(folder, torch.float32), ids, types, bits, sparsegen), truth))
    report(name, worst(states(maskbert, folder, lines, ids, *options), truth), tolerance)
    if positions > 4:
        theirs = rms(truth_of(Bert(folder, torch.bfloat16), ids, types, bits, sparsegen), truth)
        ours = rms(states(maskbert, folder, lines, ids, "--dtype", "bf16", *options), truth)
        report(name + " bf16, error beside torch's", ours / theirs, 1.5)


# ---- heads ----

def reshape(folder, **changes):
    with open(folder + "/config.json") as f:
        c = json.load(f)
    with open(folder + "/config.json", "w") as f:
        json.dump({**c, **changes}, f)


def head_folder(work, name, **more):
    folder = work + "/head-" + name
    make_folder(folder, config(2, 64, 4, **more), 0.2, 3)
    return folder, Bert(folder)


def check_words(maskbert, work, known=600):
    """A vocabulary of `known` words, while the model has 600 rows."""
    folder, model = head_folder(work, f"words-{known}", num_labels=3)
    with open(folder + "/vocab.txt") as f:
        words = f.readlines()
    with open(folder + "/vocab.txt", "w") as f:
        f.writelines(words[:known])
    text = "w1 [MASK] w2 [MASK]\nw5\nw7 [MASK]"
    out = [json.loads(line) for line in run(maskbert, "fill-mask", folder, "--top", "600", "--json",
                                            text=text).splitlines()]
    gaps = [([2, 6, 4, 7, 4, 3], [2, 4]), ([2, 10, 3], []), ([2, 12, 4, 3], [2])]
    error = 0
    for line, (ids, at) in zip(out, gaps):
        assert [m["token"] for m in line["masks"]] == at
        p = torch.softmax(model.words(model.hidden(ids, [0] * len(ids)))[:, :known], -1).numpy()
        for m in line["masks"]:
            ours = numpy.zeros(p.shape[-1])
            for w in m["words"]:
                ours[w["id"]] = w["probability"]
            order = [w["probability"] for w in m["words"]]
            assert order == sorted(order, reverse=True) and len(set(w["id"] for w in m["words"])) == known
            error = max(error, abs(ours - p[m["token"]]).max() / p[m["token"]].max())
    report(f"masked words of {known}", error, 1e-5)


LINES = "w1 w2 w3\nw4\tw5 w6\nw9"
LINE_IDS = [([2, 6, 7, 8, 3], [0] * 5), ([2, 9, 3, 10, 11, 3], [0, 0, 0, 1, 1, 1]), ([2, 14, 3], [0] * 3)]


def classify(maskbert, folder, text=LINES):
    return [json.loads(line) for line in run(maskbert, "classify", folder, "--json", text=text).splitlines()]


def check_classifier(maskbert, work):
    folder, model = head_folder(work, "labels", num_labels=3)
    label = {"id2label": {"0": "red", "1": "green", "2": "blue"}}
    hidden = [model.hidden(*x) for x in LINE_IDS]
    logits = [model.linear("classifier", model.pooled(x)) for x in hidden]
    one = {"architectures": ["BertForSequenceClassification"], **label}
    pick = lambda line: numpy.array([x["probability"] for x in line["labels"]])

    def check(name, change, ours_of, theirs):
        reshape(folder, **change)
        ours = [ours_of(line) for line in classify(maskbert, folder)]
        report(name, max(abs(a - b.numpy()).max() for a, b in zip(ours, theirs)), 1e-5)

    check("one label", {**one, "problem_type": "single_label_classification"}, pick,
          [torch.softmax(x, -1) for x in logits])
    check("many labels", {**one, "problem_type": "multi_label_classification"}, pick,
          [torch.sigmoid(x) for x in logits])
    check("regression", {**one, "problem_type": "regression"}, lambda line: numpy.array(line["values"]), logits)
    reshape(folder, architectures=["BertForTokenClassification"], problem_type=None)
    error = 0
    for line, x in zip(classify(maskbert, folder), hidden):
        p = torch.softmax(model.linear("classifier", x), -1).numpy()
        for k, token in enumerate(line["tokens"]):
            assert token["label"] == ["red", "green", "blue"][p[k].argmax()]
            error = max(error, abs(token["probability"] - p[k].max()))
        assert len(line["tokens"]) == len(p)
    report("labels of tokens", error, 1e-5)
    reshape(folder, architectures=["BertForPreTraining"])
    next_one = [torch.softmax(model.linear("cls.seq_relationship", model.pooled(x)), -1) for x in hidden]
    ours = [pick(line) for line in classify(maskbert, folder)]
    report("next sentence", max(abs(a - b.numpy()).max() for a, b in zip(ours, next_one)), 1e-5)


def check_choice(maskbert, work):
    folder, model = head_folder(work, "choice", num_labels=1)
    reshape(folder, architectures=["BertForMultipleChoice"])
    ours = classify(maskbert, folder, "w1\tw2\tw3\tw4\nw5\tw6 w7\tw8")
    pairs = [[([2, 6, 3, 7, 3]), ([2, 6, 3, 8, 3]), ([2, 6, 3, 9, 3])],
             [([2, 10, 3, 11, 12, 3]), ([2, 10, 3, 13, 3])]]
    error = 0
    for line, choices in zip(ours, pairs):
        z = torch.cat([model.linear("classifier", model.pooled(model.hidden(x, [0] * 3 + [1] * (len(x) - 3))))
                       for x in choices])
        error = max(error, abs(numpy.array(line["all"]) - torch.softmax(z, -1).numpy()).max())
        assert line["choice"] == z.argmax()
    report("multiple choice", error, 1e-5)


def check_span(maskbert, work):
    folder, model = head_folder(work, "span")
    reshape(folder, architectures=["BertForQuestionAnswering"])
    words = [f"w{k}" for k in range(20, 60)]
    out = json.loads(run(maskbert, "answer", folder, "--json", text="w1 w2\t" + " ".join(words)))
    ids = [2, 6, 7, 3, *range(25, 65), 3]
    z = model.linear("qa_outputs", model.hidden(ids, [0] * 4 + [1] * 41)).numpy()
    score = {(i, j): z[i, 0] + z[j, 1] for i in range(4, 44) for j in range(i, min(44, i + 30))}
    best = sorted(score, key=score.get, reverse=True)[:5]
    assert [a["text"] for a in out["answers"]] == [" ".join(words[i - 4:j - 3]) for i, j in best], (out, best)
    report("spans", max(abs(a["score"] - score[b]) for a, b in zip(out["answers"], best)) /
           abs(z).max(), 1e-5)
    report("no answer", abs(out["no_answer_score"] - z[0].sum()) / abs(z).max(), 1e-5)
    windows = json.loads(run(maskbert, "answer", folder, "--json", "--max-length", "16",
                             text="w1 w2\t" + " ".join(words)))
    best = {}
    for at in range(0, 40, 6):
        part = ids[4 + at:4 + at + 11] if at + 11 < 40 else ids[4 + at:44]
        y = model.linear("qa_outputs", model.hidden([2, 6, 7, 3, *part, 3], [0] * 4 + [1] * (len(part) + 1))).numpy()
        for i in range(len(part)):
            for j in range(i, len(part)):
                text = " ".join(words[at + i:at + j + 1])
                best[text] = max(best.get(text, -1e9), y[4 + i, 0] + y[4 + j, 1])
        if at + 11 >= 40:
            break
    top = sorted(best, key=best.get, reverse=True)[:5]
    assert [a["text"] for a in windows["answers"]] == top, (windows, top)
    report("spans of windows", max(abs(a["score"] - best[t]) for a, t in zip(windows["answers"], top)) /
           abs(z).max(), 1e-5)


def check_pooling(maskbert, work):
    folder, model = head_folder(work, "pooling")
    hidden = [model.hidden(*x) for x in LINE_IDS]
    for pooling, of in (("mean", lambda x: x.mean(0)), ("cls", lambda x: x[0]), ("pooler", model.pooled)):
        for normalize in [], ["--normalize"]:
            run(maskbert, "embed", folder, "-o", folder + "/x.npy", "--pooling", pooling, *normalize, text=LINES)
            truth = numpy.stack([of(x).numpy() for x in hidden])
            if normalize:
                truth /= numpy.linalg.norm(truth, axis=1, keepdims=True)
            report(" ".join([pooling, *normalize]), worst([numpy.load(folder + "/x.npy")], [truth]), 1e-5)


def check_minilm(maskbert, folder):
    with tempfile.TemporaryDirectory() as work:
        check_minilm_in(maskbert, folder, work)


def check_minilm_in(maskbert, folder, work):
    lines = ["A man is eating food.", "The girl carries a baby.", "", "naïve café — 中文 emoji 🙂"]
    lines += [" ".join(["sparse attention"] * k) for k in (3, 30, 120)]
    text = "\n".join(lines) + "\n"
    ids = [[int(x) for x in line.split()] for line in
           run(maskbert, "tokenize", folder, "--max-length", "256", text=text).splitlines()]
    model = Bert(folder)
    truths = [truth_of(model, ids, [[0] * len(i) for i in ids], None, sparsegen) for sparsegen in (None, -4)]
    for truth, options in zip(truths, ([], ["--transform", "sparsegen=-4"])):
        run(maskbert, "embed", folder, "--max-length", "256", "-o", work + "/x.npy", "--pooling", "none", *options,
            text=text)
        x = [a[:len(i)] for a, i in zip(numpy.load(work + "/x.npy"), ids)]
        report(" ".join(["MiniLM", *options]), worst(x, truth), 1e-5)
    vectors = numpy.stack([x.mean(0) for x in truths[0]])
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    run(maskbert, "embed", folder, "--max-length", "256", "-o", work + "/x.npy", text=text)
    report("MiniLM's sentences", abs(numpy.load(work + "/x.npy") - vectors).max(), 1e-5)


def check_random_models(maskbert, maskc):
    with tempfile.TemporaryDirectory() as work:
        for case in CASES:
            check_case(maskbert, maskc, work, case, LENGTHS if case[1].get("max_position_embeddings") < 512 else [512, 3, 40])
        with torch.no_grad():
            check_words(maskbert, work)
            check_words(maskbert, work, 592)
            check_classifier(maskbert, work)
            check_choice(maskbert, work)
            check_span(maskbert, work)
            check_pooling(maskbert, work)


def check_base(maskbert, maskc):
    """110 million parameters, written, read and thrown away."""
    with tempfile.TemporaryDirectory() as work:
        check_case(maskbert, maskc, work, BASE, [512, 1 + 128, 17])


def main():
    torch.set_num_threads(2 if sys.argv[3:] else 1)  # small models wait for threads longer than they compute
    if sys.argv[3:] == ["--base"]:
        check_base(*sys.argv[1:3])
    elif len(sys.argv) > 3:
        check_minilm(sys.argv[1], sys.argv[3])
    else:
        check_random_models(*sys.argv[1:3])
    sys.exit(1 if failures else 0)


main()
