#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""maskbert embed against sentence-transformers on random folders of four families: usage modules_judge.py MASKBERT [FAMILY..].
Every pooling mode and several at once, Dense with each activation and with residuals, Normalize before and behind it, prompts that
pooling includes or leaves out, and truncate_dim: vectors within 1e-5. Exit code 77 (skipped) where sentence-transformers is not installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy
    import tokenizers
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer, models
except ImportError as e:
    print(f"skipped: no sentence-transformers ({e})")
    sys.exit(77)

LINES = ["A man is eating food.", "a", "naïve café — 中文", " ".join(["sparse attention"] * 30), " ".join(f"number {k}" for k in range(80)), "The girl carries a baby."]
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
SIZES = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 100}
BERT_SPECIAL = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
ROBERTA_SPECIAL = {"unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}


def train(kind, trainer, names, split, normalizer=None, **options):
    t = tokenizers.Tokenizer(kind)
    t.pre_tokenizer = split
    if normalizer:
        t.normalizer = normalizer
    special = [names[k] for k in ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")]
    t.train_from_iterator(LINES * 4, trainer(vocab_size=300, special_tokens=special, show_progress=False, **options))
    begin, end = names["cls_token"], names["sep_token"]
    pair = f"{begin} $A {end} $B:1 {end}:1" if begin == "[CLS]" else f"{begin} $A {end} {end} $B {end}"
    t.post_processor = tokenizers.processors.TemplateProcessing(single=f"{begin} $A {end}", pair=pair,
                                                                special_tokens=[(x, t.token_to_id(x)) for x in (begin, end)])
    return t


def wordpiece(names):
    t = train(tokenizers.models.WordPiece(unk_token=names["unk_token"]), tokenizers.trainers.WordPieceTrainer, names,
              tokenizers.pre_tokenizers.BertPreTokenizer(), tokenizers.normalizers.BertNormalizer())
    t.decoder = tokenizers.decoders.WordPiece()
    return t


def bpe(names):
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return train(tokenizers.models.BPE(), tokenizers.trainers.BpeTrainer, names, split, initial_alphabet=split.alphabet())


def unigram(names):
    return train(tokenizers.models.Unigram(), tokenizers.trainers.UnigramTrainer, names, tokenizers.pre_tokenizers.Metaspace(), unk_token="<unk>")


FAMILIES = {
    "bert": ("Bert", wordpiece, BERT_SPECIAL, {"max_position_embeddings": 128}),
    "xlm-r": ("XLMRoberta", unigram, ROBERTA_SPECIAL, {"max_position_embeddings": 130, "type_vocab_size": 1, "pad_token_id": 1}),
    "mpnet": ("MPNet", wordpiece, ROBERTA_SPECIAL, {"max_position_embeddings": 130}),
    "modernbert": ("ModernBert", bpe, BERT_SPECIAL, {"max_position_embeddings": 128, "local_attention": 16, "global_attn_every_n_layers": 2}),
}


def make_encoder(family, folder):
    prefix, kind, names, more = FAMILIES[family]
    t = kind(names)
    transformers.PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=128, **names).save_pretrained(folder)
    ids = {"pad_token_id": t.token_to_id(names["pad_token"]), "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
    config = getattr(transformers, prefix + "Config")(vocab_size=t.get_vocab_size(), **{**SIZES, **ids, **more})
    torch.manual_seed(3)
    model = getattr(transformers, prefix + "Model")(config)
    with torch.no_grad():
        for name, x in model.named_parameters():
            x.normal_(0 if x.dim() > 1 or "bias" in name else 1, 0.1)
    model.save_pretrained(folder)


class Case:
    def __init__(self, maskbert, encoder, work, family):
        self.maskbert, self.encoder, self.work, self.family = maskbert, encoder, work, family
        self.saved = os.path.join(work, "saved-" + family)
        self.worst, self.count = 0.0, 0

    def save(self, *modules, **named):
        body = models.Transformer(self.encoder, max_seq_length=64)
        model = SentenceTransformer(modules=[body, *modules], device="cpu", **named)
        subprocess.run(["rm", "-rf", self.saved], check=True)
        model.save(self.saved)

    def compare(self, what, *options, **named):
        theirs = SentenceTransformer(self.saved, device="cpu").encode(LINES, convert_to_numpy=True, batch_size=3, **named)
        out = os.path.join(self.work, "x.npy")
        subprocess.run([self.maskbert, "embed", self.saved, "-o", out, *options], input="\n".join(LINES) + "\n", text=True, check=True,
                       stderr=subprocess.DEVNULL)
        ours = numpy.load(out)
        error = abs(ours - theirs).max() / max(1, abs(theirs).max()) if ours.shape == theirs.shape else float("nan")
        if not error <= 1e-5:  # NaN fails
            sys.exit(f"FAIL {self.family}, {what}: {ours.shape} and {theirs.shape}, {error:.2e} is more than 1e-5")
        self.worst, self.count = max(self.worst, error), self.count + 1


def dense(width, out, activation, **named):
    torch.manual_seed(out)
    return models.Dense(width, out, activation_function=activation, **named)


def check(case):
    width, nn = SIZES["hidden_size"], torch.nn
    for mode in MODES:
        case.save(models.Pooling(width, pooling_mode=mode))
        case.compare(mode)
    case.save(models.Pooling(width, pooling_mode=tuple(MODES)), models.Normalize())
    case.compare("all modes, Normalize")
    for k, activation in enumerate((nn.Identity(), nn.Tanh(), nn.ReLU(), nn.GELU(), nn.Sigmoid())):
        case.save(models.Pooling(width, pooling_mode="mean"), dense(width, 20 + k, activation, bias=bool(k % 2)))
        case.compare(f"Dense, {activation}")
    last = [models.Pooling(width, pooling_mode=("mean", "cls")), models.Normalize(), dense(2 * width, width, nn.Tanh(), use_residual=True),
            dense(width, width, nn.GELU(), use_residual=True), models.Normalize()]
    case.save(*last, prompts={"query": "find: ", "passage": "The "}, default_prompt_name="query", truncate_dim=20)
    case.compare("default prompt, truncate_dim")
    case.compare("passage", "--prompt-name", "passage", prompt_name="passage")
    check_prompts(case, width)
    case.save(*last, prompts={"query": "find: ", "passage": "The "}, default_prompt_name="query", truncate_dim=20)
    case.compare("own prompt, normalize", "--prompt", "A man ", "--normalize", prompt="A man ", normalize_embeddings=True)
    print(f"ok   {case.family}: {case.count} settings, {len(LINES)} sentences each: {case.worst:.2e}, at most 1e-5", flush=True)


def check_prompts(case, width):
    """Prompts that end in a blank, in a word, in a part of one, and one that is longer than max_seq_length."""
    for modes in (*MODES, tuple(MODES)):
        case.save(models.Pooling(width, pooling_mode=modes, include_prompt=False), prompts={"query": "find: "}, default_prompt_name="query")
        case.compare(f"{modes} without the prompt")
    for prompt in ("A man ", "A man", "spar", "a", "sparse attention " * 40, " "):
        case.compare(f"without the prompt '{prompt[:20]}'", "--prompt", prompt, prompt=prompt)
    case.save(models.Pooling(width, pooling_mode="mean", include_prompt=False), models.Normalize(), prompts={"query": "find: "})
    case.compare("no prompt, include_prompt false")
    case.compare("a named prompt, include_prompt false", "--prompt-name", "query", prompt_name="query")


def check_refusals(case):
    """An unsupported setting ends the program with one line that names it."""
    saved = pathlib.Path(case.saved)
    case.save(models.Pooling(48, pooling_mode="mean"), dense(48, 8, torch.nn.Tanh()))
    config = json.loads((saved / "2_Dense/config.json").read_text())
    for change, said in (({"activation_function": "torch.nn.modules.activation.Mish"}, "Mish' is not supported"), ({"activation_function": "mine.Tanh"}, "'mine.Tanh' is not supported"),
                         ({"in_features": 47}, "[8, 47] are expected"), ({"module_input_name": "token_embeddings"}, "'token_embeddings' is not supported"),
                         ({"bias": "yes"}, "bias: true or false"), ({"out_features": 0}, "out_features 0"), ({"use_residual": True}, "residual.weight")):
        (saved / "2_Dense/config.json").write_text(json.dumps({**config, **change}))
        refused(case, said)
    (saved / "2_Dense/config.json").write_text(json.dumps(config))
    (saved / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": ["mean", "max"]}))
    refused(case, "a Dense of 48 numbers after 96")
    os.rename(saved / "2_Dense/model.safetensors", saved / "2_Dense/pytorch_model.bin")
    refused(case, "pickle")


def refused(case, said):
    made = subprocess.run([case.maskbert, "embed", case.saved, "-o", os.path.join(case.work, "x.npy")], input="a\n", capture_output=True, text=True, check=False)
    if made.returncode != 2 or said not in made.stderr or made.stderr.count("\n") != 1:
        sys.exit(f"FAIL '{said}' expected, code 2: {made.returncode} {made.stderr}")


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for k, family in enumerate(sys.argv[2:] or FAMILIES):
        with tempfile.TemporaryDirectory() as work:
            encoder = os.path.join(work, "encoder")
            make_encoder(family, encoder)
            case = Case(os.path.abspath(sys.argv[1]), encoder, work, family)
            check(case)
            if k == 0:
                check_refusals(case)


main()
