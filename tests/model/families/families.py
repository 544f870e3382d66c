# SPDX-License-Identifier: Apache-2.0
"""Families of encoders beside BERT: sizes, what is switched, what is refused; odd folders that transformers reads."""
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
        ({"architectures": ["NewModel"], "auto_map": {"AutoModel": "new.NewModel"}}, "architecture 'NewModel' is not supported, MPNetModel, "),
        ({"model_type": "mpnets"}, "model_type 'mpnets' is not supported"),
    ],
}
MODERN = {
    "config": "ModernBertConfig", "prefix": "ModernBert", "std": 0.1,
    "sizes": {**PLAIN, "num_hidden_layers": 4, "max_position_embeddings": 200, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
              "cls_token_id": 2, "sep_token_id": 3, "local_attention": 12},
    "longest": lambda c: c.max_position_embeddings,
    "switches": {
        "sizes": {},
        "biases": {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True, "norm_eps": 1e-3,
                   "global_attn_every_n_layers": 2, "local_attention": 7, "hidden_activation": "gelu_pytorch_tanh",
                   "classifier_activation": "silu"},
        "types of layers, angles, heads of 24, untied": {
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 80000.0},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}},
            "num_attention_heads": 2, "decoder_bias": False, "tie_word_embeddings": False, "hidden_activation": "relu", "pad_token_id": None},
    },
    "words": ({"classifier_activation": "relu"},),
    "labels": ({"classifier_pooling": "mean"}, {"classifier_pooling": "cls", "norm_bias": True}),
    "refused": [
        ({"layer_types": ["full_attention"]}, "layer_types: 4 kinds of layers are expected"),
        ({"layer_types": ["full_attention", "x", "full_attention", "full_attention"]}, "layer_types: layer 1: full_attention or sliding_attention"),
        ({"layer_types": None, "global_attn_every_n_layers": 0}, "global_attn_every_n_layers 0"),
        ({"local_attention": 0}, "local_attention 0"),
        ({"local_attention": -1}, "local_attention"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling is not supported"),
        ({"rope_parameters": []}, "rope_parameters: an object is expected"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type 'yarn' is not supported"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 0}}}, "rope_theta 0"),
        ({"rope_parameters": {"full_attention": {"rope_theta": "x"}}}, "rope_parameters: rope_theta"),
        ({"head_dim": 32}, "head_dim 32: 16 is expected"),
        ({"num_attention_heads": 16}, "heads of 3: an even number is expected"),
        ({"hidden_activation": "mish"}, "hidden_activation 'mish' is not supported"),
        ({"classifier_activation": "mish"}, "classifier_activation 'mish' is not supported"),
        ({"classifier_pooling": "max"}, "classifier_pooling 'max' is not supported"),
        ({"attention_bias": True}, "'layers.0.attn.Wqkv.bias' is missing"),
        ({"norm_bias": "yes"}, "norm_bias"),
        ({"rope_parameters": None, "local_rope_theta": None}, "local_rope_theta null"),
        ({"pad_token_id": 96}, "pad_token_id 96 is not below vocab_size 96"),
        ({"is_decoder": True}, "is_decoder true is not supported"),
        ({"intermediate_size": 99}, "config.json says [198, 48]"),
    ],
}
FAMILIES = {
    "roberta": {**ROBERTA, "config": "RobertaConfig", "prefix": "Roberta"},
    "xlm-roberta": {**ROBERTA, "config": "XLMRobertaConfig", "prefix": "XLMRoberta", "switches": {"sizes": {}}, "words": (), "refused": []},
    "camembert": {**ROBERTA, "config": "CamembertConfig", "prefix": "Camembert", "switches": {"sizes": {}}, "words": (), "refused": []},
    "mpnet": MPNET,
    "modernbert": MODERN,
}
# Read beside them: BERT itself and DistilBERT, of which other tests have the sizes.
OTHERS = {
    "bert": {"config": "BertConfig", "prefix": "Bert", "std": 0.1, "sizes": {**PLAIN, "max_position_embeddings": 64}},
    "distilbert": {"config": "DistilBertConfig", "prefix": "DistilBert", "std": 0.1,
                   "sizes": {"vocab_size": len(WORDS), "dim": 48, "n_layers": 2, "n_heads": 3, "hidden_dim": 100, "max_position_embeddings": 64}},
}
# Family, class, changes of config.json: AutoModel computes the encoder.
READ = [
    ("bert", "LMHeadModel", {"pad_token_id": -1}),
    ("bert", "Model", {"architectures": ["Contriever"], "pad_token_id": None}),
    ("distilbert", "Model", {"num_attention_heads": 6, "sinusoidal_pos_embds": True, "pad_token_id": -1}),
    ("roberta", "ForCausalLM", {}),
    ("xlm-roberta", "ForSequenceClassification", {"architectures": ["XLMRobertaModel"]}),
    ("mpnet", "Model", {"architectures": ["BertModel"]}),
    ("modernbert", "Model", {"pad_token_id": -1}),
]
