# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the families that maskbert reads, trained by the library tokenizers on the texts of texts.py."""
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import texts

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True, special=True)]
byte_level, metaspace, sequence = pre_tokenizers.ByteLevel, pre_tokenizers.Metaspace, pre_tokenizers.Sequence


def train(model, trainer, size, special, normalizer=None, split=None, alphabet=(), **options):
    t = Tokenizer(model)
    if normalizer:
        t.normalizer = normalizer
    if split:
        t.pre_tokenizer = split
    t.train_from_iterator(corpus(), trainer(vocab_size=size, special_tokens=special, initial_alphabet=list(alphabet),
                                            show_progress=False, **options))
    return t


def corpus():
    return [part for line in texts.texts(400, 7) for part in line.split("\t")]


def bpe(size, special, normalizer=None, split=None, alphabet=(), **model):
    return train(models.BPE(**model), trainers.BpeTrainer, size, special, normalizer, split, alphabet)


def unigram(size, special, normalizer=None, split=None, unknown="<unk>", **options):
    return train(models.Unigram(), trainers.UnigramTrainer, size, special, normalizer, split, unk_token=unknown, **options)


def pair(t, begin, end):
    """RoBERTa's way round: <s> A </s></s> B </s>, all types 0."""
    ids = [(x, t.token_to_id(x)) for x in (begin, end)]
    return processors.TemplateProcessing(single=f"{begin} $A {end}", pair=f"{begin} $A {end} {end} $B {end}", special_tokens=ids)


def typed(t, begin, end):
    ids = [(x, t.token_to_id(x)) for x in (begin, end)]
    return processors.TemplateProcessing(single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1", special_tokens=ids)


def roberta(size, prefix=False, trim=True):
    t = bpe(size, ROBERTA, None, byte_level(add_prefix_space=prefix), byte_level.alphabet())
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")),
                                                    trim_offsets=trim, add_prefix_space=prefix)
    return t


def modernbert(size):
    t = bpe(size, BERT, normalizers.NFC(), byte_level(add_prefix_space=False), byte_level.alphabet())
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)] + [AddedToken("www.", single_word=True)])
    t.post_processor = typed(t, "[CLS]", "[SEP]")
    return t


def ignoring(size):
    """Split and ByteLevel apart, whole words before merges, offsets trimmed in a Sequence."""
    split = sequence([pre_tokenizers.Split(Regex(GPT2), "isolated"), byte_level(add_prefix_space=True, use_regex=False)])
    t = bpe(size, BERT, normalizers.NFKC(), split, byte_level.alphabet(), ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=True),
                                            typed(t, "[CLS]", "[SEP]")])
    return t


def few_bytes(size):
    """Bytes that the vocabulary has not are left out."""
    t = bpe(size, ROBERTA, normalizers.NFD(), byte_level(add_prefix_space=True), limit_alphabet(60))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    return t


def limit_alphabet(count):
    return sorted(byte_level.alphabet())[:count]


def spaced(size):
    """Blanks as U+2581 by normalizers, bytes for unknown characters."""
    special = ["<unk>", "<s>", "</s>", "<pad>", "<mask>", *(f"<0x{k:02X}>" for k in range(256))]
    t = bpe(size + 256, special, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, (),
            unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    t.post_processor = pair(t, "<s>", "</s>")
    return t


def characters(size, **model):
    split = sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Split("a", "merged_with_next"),
                      pre_tokenizers.Split("x", "merged_with_previous"), pre_tokenizers.Split("1", "isolated"),
                      pre_tokenizers.Split("2", "removed"), pre_tokenizers.Split(Regex("3+"), "contiguous"),
                      pre_tokenizers.Split("4", "removed", invert=False)])
    trained = train(models.BPE(unk_token="[UNK]", **model), trainers.BpeTrainer, size, BERT,
                    normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(), normalizers.Strip()]), split, (),
                    limit_alphabet=90)
    trained.post_processor = typed(trained, "[CLS]", "[SEP]")
    return trained


def xlmr(size, every):
    split = sequence([pre_tokenizers.WhitespaceSplit(), metaspace(prepend_scheme="always")])
    t = unigram(size, ["<s>", "<pad>", "</s>", "<unk>"], normalizers.Precompiled(charsmap(every)), split)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = pair(t, "<s>", "</s>")
    return t


def bge(size, every):
    """As later conversions have it: runs of blanks joined, blanks only before the first word."""
    normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(every)), normalizers.Strip(left=False),
                                       normalizers.Replace(Regex(" {2,}"), "▁")])
    t = unigram(size, ["<s>", "<pad>", "</s>", "<unk>"], normalizer, metaspace(prepend_scheme="first", split=False))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, special=True)])
    t.post_processor = pair(t, "<s>", "</s>")
    return t


def fallback(size):
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *(f"<0x{k:02X}>" for k in range(256))]
    t = unigram(size + 256, special, normalizers.NFKC(), metaspace(prepend_scheme="never"))
    model = t.to_str().replace('"byte_fallback":false', '"byte_fallback":true')
    t = Tokenizer.from_str(model)
    t.post_processor = typed(t, "[CLS]", "[SEP]")
    return t


def mpnet(size):
    t = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer, size, [*ROBERTA, "[UNK]"],
              normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), (), limit_alphabet=90)
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


def charsmap(every):
    import base64
    return base64.b64decode(texts.charsmap(texts.rules(every)))


def families(size, every):
    """{name: tokenizer}; vocabularies of about `size` tokens beside the characters, one rule of `every`."""
    return {"roberta": roberta(256 + size), "roberta-prefix": roberta(256 + size, prefix=True),
            "roberta-untrimmed": roberta(256 + size // 2, trim=False), "modernbert": modernbert(256 + size),
            "ignore-merges": ignoring(256 + size), "few-bytes": few_bytes(200 + size), "byte-fallback": spaced(size),
            "characters": characters(100 + size), "characters-fused": characters(100 + size // 2, fuse_unk=True),
            "xlm-roberta": xlmr(1400 + size, every), "bge": bge(1400 + size, every), "unigram-bytes": fallback(1400 + size),
            "mpnet": mpnet(200 + size)}
