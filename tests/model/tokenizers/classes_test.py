#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""classes_test.py MASKBERT | --transformers: which files of a tokenizer decide, by its class.

transformers finds the class in tokenizer_config.json, in config.json or by the model's type. Classes of BERT, MPNet and RoBERTa replace
parts of tokenizer.json by their own settings; others run it as it is. Each case is a folder with one pair's ids, which are those of
transformers 5.24; --transformers compares them with the installed one. Closes with cmocka's lines."""
import json
import pathlib
import subprocess
import sys
import tempfile

PAIR = "A \u00e9 \u4e2da", "a"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "e", "\u00e9", "\u4e2d"]
MPNET = ["<s>", "<pad>", "</s>", "<unk>", "a", "A", "e", "\u00e9", "\u4e2d", "[UNK]", "<mask>"]
NAMES = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
NAMES_OF_MPNET = {"cls_token": "<s>", "sep_token": "</s>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}


def added(names, vocabulary):
    return [{"id": vocabulary.index(x), "content": x, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for x in names]


def word_piece(lowercase=True, accents=None, ideographs=True):
    return {"version": "1.0", "added_tokens": added(WORDS[:5], WORDS), "pre_tokenizer": {"type": "BertPreTokenizer"},
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": ideographs, "strip_accents": accents, "lowercase": lowercase},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": {word: k for k, word in enumerate(WORDS)}}}


def config(name, **more):
    """tokenizer_config.json."""
    return {**NAMES, **({"tokenizer_class": name} if name else {}), **more}


def bert(json_settings, name, model="bert", **more):
    return {"tokenizer.json": word_piece(**json_settings), "tokenizer_config.json": config(name, **more), "config.json": {"model_type": model}}


def mpnet(model, settings):
    files = {"vocab.txt": "\n".join(MPNET) + "\n", "config.json": {"model_type": model}}
    return {**files, "tokenizer_config.json": settings} if settings is not None else files


def byte_pairs(prefix=False):
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "a", "A", "\u0120", "\u0120a", "<mask>"]
    return {"version": "1.0", "added_tokens": added(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], vocabulary),
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True},
            "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": prefix},
            "model": {"type": "BPE", "vocab": {word: k for k, word in enumerate(vocabulary)}, "merges": ["\u0120 a"]}}


def roberta(name, prefix=False, model="roberta", **more):
    return {"tokenizer.json": byte_pairs(prefix), "tokenizer_config.json": {**({"tokenizer_class": name} if name else {}), **more},
            "config.json": {"model_type": model}}


CASED = {"lowercase": False}
CASES = [
    # name, files, ids of the pair, or the message that refuses them
    ("a plain class ignores the switches", bert(CASED, "PreTrainedTokenizerFast", do_lower_case=True), [2, 6, 8, 9, 5, 3, 5, 3]),
    ("accents", bert({"accents": False}, "TokenizersBackend", strip_accents=None), [2, 5, 8, 9, 5, 3, 5, 3]),
    ("ideographs", bert({}, "PreTrainedTokenizerFast", tokenize_chinese_chars=False), [2, 5, 7, 9, 5, 3, 5, 3]),
    ("ModernBERT has no class of its own", bert(CASED, "BertTokenizer", "modernbert", do_lower_case=True), [2, 6, 8, 9, 5, 3, 5, 3]),
    ("BERT's class takes them", bert({}, "BertTokenizerFast", do_lower_case=False), [2, 6, 8, 9, 5, 3, 5, 3]),
    ("for words of another model, too", bert({}, "BertTokenizer", "roberta", do_lower_case=False), [2, 6, 8, 9, 5, 3, 5, 3]),
    ("or has its defaults", bert(CASED, "BertTokenizer"), [2, 5, 7, 9, 5, 3, 5, 3]),
    ("defaults: accents", bert({"accents": False}, "DistilBertTokenizer", "distilbert"), [2, 5, 7, 9, 5, 3, 5, 3]),
    ("defaults: ideographs", bert({"ideographs": False}, "BertTokenizerFast"), [2, 5, 7, 9, 5, 3, 5, 3]),
    ("the class by the model's type", bert(CASED, None), [2, 5, 7, 9, 5, 3, 5, 3]),
    ("and without a tokenizer_config.json", {"tokenizer.json": word_piece(lowercase=False), "config.json": {"model_type": "bert"}}, [2, 5, 7, 9, 5, 3, 5, 3]),
    ("the class in config.json", {**bert(CASED, None, do_lower_case=True), "config.json": {"model_type": "bert", "tokenizer_class": "PreTrainedTokenizerFast"}}, [2, 6, 8, 9, 5, 3, 5, 3]),
    ("another language's class there", {**bert({}, None), "config.json": {"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"}},
     "/config.json: tokenizer_class 'BertJapaneseTokenizer' is not supported, BertTokenizer, RobertaTokenizer or XLMRobertaTokenizer is expected"),
    ("which tokenizer_config.json overrides", {**bert({}, "BertTokenizer"), "config.json": {"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"}},
     [2, 5, 7, 9, 5, 3, 5, 3]),
    ("and ModernBERT ignores", {**bert(CASED, None), "config.json": {"model_type": "modernbert", "tokenizer_class": "BertJapaneseTokenizer"}},
     [2, 6, 8, 9, 5, 3, 5, 3]),
    ("MPNet's vocab.txt", mpnet("mpnet", {"tokenizer_class": "MPNetTokenizer", "unk_token": "[UNK]", **NAMES_OF_MPNET}), [0, 4, 6, 8, 4, 2, 2, 4, 2]),
    ("by the model's type", mpnet("mpnet", None), [0, 4, 6, 8, 4, 2, 2, 4, 2]),
    ("by the class", mpnet("bert", {"tokenizer_class": "MPNetTokenizerFast"}), [0, 4, 6, 8, 4, 2, 2, 4, 2]),
    ("another class", mpnet("mpnet", {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", **NAMES_OF_MPNET}), [0, 4, 6, 8, 4, 2, 4, 2]),
    ("BERT's vocab.txt", {"vocab.txt": "\n".join(WORDS) + "\n", "config.json": {"model_type": "bert"}}, [2, 5, 7, 9, 5, 3, 5, 3]),
    ("is not MPNet's", {"vocab.txt": "\n".join(WORDS) + "\n", "config.json": {"model_type": "mpnet"}}, ": the token <s> is not in the vocabulary"),
    ("RoBERTa's class has its default", roberta("RobertaTokenizer", True), [0, 5, 6, 7, 2, 2, 4, 2]),
    ("or its key", roberta("RobertaTokenizerFast", add_prefix_space=True), [0, 6, 5, 6, 7, 2, 2, 7, 2]),
    ("false is a key, too", roberta("RobertaTokenizer", True, add_prefix_space=False), [0, 5, 6, 7, 2, 2, 4, 2]),
    ("RoBERTa by the model's type", roberta(None, True), [0, 5, 6, 7, 2, 2, 4, 2]),
    ("with a key", roberta(None, add_prefix_space=True), [0, 6, 5, 6, 7, 2, 2, 7, 2]),
    ("and without a tokenizer_config.json", {"tokenizer.json": byte_pairs(True), "config.json": {"model_type": "roberta"}}, [0, 5, 6, 7, 2, 2, 4, 2]),
    ("a plain class of RoBERTa", roberta("PreTrainedTokenizerFast", True, add_prefix_space=False), [0, 6, 5, 6, 7, 2, 2, 7, 2]),
    ("ModernBERT with RoBERTa's class", roberta("RobertaTokenizer", True, "modernbert", add_prefix_space=False), [0, 6, 5, 6, 7, 2, 2, 7, 2]),
    ("the post-processor's names", roberta("RobertaTokenizer", cls_token="<s>", sep_token="</s>"), [0, 5, 6, 7, 2, 2, 4, 2]),
    ("another cls_token", roberta("RobertaTokenizer", cls_token="<pad>"),
     ": cls_token <pad> of a RobertaTokenizer: the token in the post_processor of tokenizer.json is expected"),
    ("texts that are cut on the left", {**bert({}, "BertTokenizer"), "tokenizer.json": {**word_piece(), "truncation": {"direction": "Left", "max_length": 8, "strategy": "LongestFirst", "stride": 0}}},
     ": truncation on the left is not supported"),
    ("unless the config says otherwise", {**bert({}, "BertTokenizer", truncation_side="right"), "tokenizer.json": {**word_piece(), "truncation": {"direction": "Left", "max_length": 8, "strategy": "LongestFirst", "stride": 0}}},
     [2, 5, 7, 9, 5, 3, 5, 3]),
    ("another sep_token", roberta(None, sep_token="<pad>"),
     ": sep_token <pad> of a RobertaTokenizer: the token in the post_processor of tokenizer.json is expected"),
]


def write(folder, files):
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def ids_of_maskbert(maskbert):
    def ids(folder):
        made = subprocess.run([maskbert, "tokenize", folder], input="\t".join(PAIR) + "\n", capture_output=True, encoding="utf-8", check=False)
        return [int(k) for k in made.stdout.split()] if made.returncode == 0 else made.stderr.strip().removeprefix(f"maskbert: {folder}")
    return ids


def ids_of_transformers():
    from transformers import AutoTokenizer  # pylint: disable=import-outside-toplevel
    return lambda folder: AutoTokenizer.from_pretrained(folder)(*PAIR)["input_ids"]


def main():
    ids, fails = ids_of_transformers() if sys.argv[1] == "--transformers" else ids_of_maskbert(sys.argv[1]), 0
    with tempfile.TemporaryDirectory(prefix="classes-") as folder:
        for k, (name, files, expected) in enumerate(CASES):
            if isinstance(expected, str) and sys.argv[1] == "--transformers":
                continue  # only maskbert refuses it
            at = pathlib.Path(folder) / str(k)
            write(at, files)
            seen = ids(at)
            fails += seen != expected
            if seen != expected:
                print(f"{name}: {seen}, {expected} expected")
    print(f"[  PASSED  ] {len(CASES) - fails} test(s).\n[  FAILED  ] {fails} test(s).")
    return int(fails > 0)


if __name__ == "__main__":
    sys.exit(main())
