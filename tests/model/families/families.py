# SPDX-License-Identifier: Apache-2.0
"""Families of encoders beside BERT: sizes, what is switched, what is refused."""
SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, *(f"w{k}" for k in range(91))]
PLAIN = {"vocab_size": len(WORDS), "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 100}
BEHIND = {"max_position_embeddings": 68, "pad_token_id": 1}
ROBERTA = {
    "sizes": {**PLAIN, **BEHIND, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "std": 0.1,
    "longest": lambda c: c.max_position_embeddings - c.pad_token_id - 1,
    "switches": {
        "sizes": {},
        "relu, two types, untied": {"hidden_act": "relu", "type_vocab_size": 2, "tie_word_embeddings": False, "layer_norm_eps": 1e-12},
        "padding 7": {"hidden_act": "gelu_new", "pad_token_id": 7, "chunk_size_feed_forward": 1},
    },
    "words": ({"hidden_act": "silu"},),
    "refused": [
        ({"is_decoder": True}, "is_decoder true is not supported"),
        ({"add_cross_attention": True}, "add_cross_attention true is not supported"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder true is not supported"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' is not supported"),
        ({"hidden_act": "mish"}, "hidden_act 'mish' is not supported"),
        ({"pad_token_id": None}, "pad_token_id null"),
        ({"pad_token_id": 67}, "positions begin behind pad_token_id 67"),
        ({"pad_token_id": 96}, "pad_token_id 96 is not below vocab_size 96"),
        ({"pad_token_id": -1}, "pad_token_id"),
        ({"max_position_embeddings": 1}, "positions begin behind pad_token_id 1"),
        ({"max_position_embeddings": 70}, "position_embeddings.weight' is [68, 48], config.json says [70, 48]"),
        ({"num_attention_heads": 5}, "hidden_size 48 is no multiple of num_attention_heads 5"),
        ({"hidden_size": 96}, "config.json says [96"),
        ({"num_hidden_layers": 3}, "'encoder.layer.2.attention.self.query.weight' is missing"),
        ({"type_vocab_size": 3}, "config.json says [3, 48]"),
        ({"type_vocab_size": 0}, "type_vocab_size 0"),
        ({"vocab_size": 97, "pad_token_id": 96}, "positions begin behind pad_token_id 96"),
        ({"layer_norm_eps": "x"}, "layer_norm_eps"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is not supported"),
        ({"quantization_config": {"bits": 8}}, "quantization_config is not supported"),
        ({"architectures": ["RobertaForCausalLM"]}, "architecture 'RobertaForCausalLM' is not supported"),
    ],
}
MPNET = {
    "config": "MPNetConfig", "prefix": "MPNet", "std": 0.1,
    "sizes": {**PLAIN, "max_position_embeddings": 202},
    "longest": lambda c: c.max_position_embeddings - 2,
    "switches": {
        "sizes": {},
        "relu, 40 buckets, untied": {"hidden_act": "relu", "relative_attention_num_buckets": 40, "tie_word_embeddings": False,
                                     "layer_norm_eps": 1e-5, "pad_token_id": 5},
    },
    "words": ({"hidden_act": "silu"},),
    "refused": [
        ({"is_encoder_decoder": True}, "is_encoder_decoder true is not supported"),
        ({"relative_attention_num_buckets": 31}, "relative_attention_num_buckets 31: 32..65536 is expected"),
        ({"relative_attention_num_buckets": 33}, "is [32, 3], config.json says [33, 3]"),
        ({"relative_attention_num_buckets": "32"}, "relative_attention_num_buckets"),
        ({"hidden_act": "mish"}, "hidden_act 'mish' is not supported"),
        ({"max_position_embeddings": 2}, "positions begin behind pad_token_id 1"),
        ({"max_position_embeddings": 200}, "is [202, 48], config.json says [200, 48]"),
        ({"num_attention_heads": 5}, "hidden_size 48 is no multiple of num_attention_heads 5"),
        ({"num_attention_heads": 6}, "is [32, 3], config.json says [32, 6]"),
        ({"hidden_size": 96}, "config.json says [96"),
        ({"num_hidden_layers": 3}, "'encoder.layer.2.attention.attn.q.weight' is missing"),
        ({"num_hidden_layers": 0}, "num_hidden_layers 0"),
        ({"vocab_size": 1}, "pad_token_id 1 is not below vocab_size 1"),
        ({"vocab_size": 300}, "config.json says [300, 48]"),
        ({"intermediate_size": 99}, "config.json says [99"),
        ({"layer_norm_eps": -1}, "layer_norm_eps -1"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is not supported"),
        ({"quantization_config": {"bits": 8}}, "quantization_config is not supported"),
        ({"architectures": ["BertModel"]}, "architecture 'BertModel' is not supported, one of MPNet is expected"),
        ({"model_type": "mpnets"}, "model_type 'mpnets' is not supported"),
    ],
}
FAMILIES = {
    "roberta": {**ROBERTA, "config": "RobertaConfig", "prefix": "Roberta"},
    "xlm-roberta": {**ROBERTA, "config": "XLMRobertaConfig", "prefix": "XLMRoberta", "switches": {"sizes": {}}, "words": (), "refused": []},
    "camembert": {**ROBERTA, "config": "CamembertConfig", "prefix": "Camembert", "switches": {"sizes": {}}, "words": (), "refused": []},
    "mpnet": MPNET,
}
