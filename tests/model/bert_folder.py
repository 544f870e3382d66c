# SPDX-License-Identifier: Apache-2.0
"""Folders of BERT models with random weights, for tests: NumPy alone."""
import json
import os
import struct

import numpy

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def read_safetensors(path):
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    types = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64}
    return {name: numpy.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, x in tensors.items():
        blob = numpy.ascontiguousarray(x, numpy.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def make_folder(path, config, std, seed):
    """A folder with random weights, biases and norms too; words w0, w1, ... follow the special tokens."""
    os.makedirs(path, exist_ok=True)
    c, rng = config, numpy.random.default_rng(seed)
    h, i, v = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    labels = c.get("num_labels", 2)
    t = {}

    def linear(name, out, inside):
        t[name + ".weight"] = rng.normal(0, std, (out, inside))
        t[name + ".bias"] = rng.normal(0, 0.1, out)

    def norm(name):
        t[name + ".weight"] = rng.normal(1, 0.1, h)
        t[name + ".bias"] = rng.normal(0, 0.1, h)

    t["bert.embeddings.word_embeddings.weight"] = rng.normal(0, std, (v, h))
    t["bert.embeddings.position_embeddings.weight"] = rng.normal(0, std, (c["max_position_embeddings"], h))
    t["bert.embeddings.token_type_embeddings.weight"] = rng.normal(0, std, (2, h))
    norm("bert.embeddings.LayerNorm")
    for k in range(c["num_hidden_layers"]):
        p = f"bert.encoder.layer.{k}."
        for part in "query", "key", "value":
            linear(p + "attention.self." + part, h, h)
        linear(p + "attention.output.dense", h, h)
        norm(p + "attention.output.LayerNorm")
        linear(p + "intermediate.dense", i, h)
        linear(p + "output.dense", h, i)
        norm(p + "output.LayerNorm")
    linear("bert.pooler.dense", h, h)
    linear("cls.predictions.transform.dense", h, h)
    norm("cls.predictions.transform.LayerNorm")
    t["cls.predictions.bias"] = rng.normal(0, 0.1, v)
    if not c.get("tie_word_embeddings", True):
        t["cls.predictions.decoder.weight"] = rng.normal(0, std, (v, h))
    linear("cls.seq_relationship", 2, h)
    linear("classifier", labels, h)
    linear("qa_outputs", 2, h)
    write_safetensors(path + "/model.safetensors", t)
    with open(path + "/config.json", "w") as f:
        json.dump({"model_type": "bert", **c}, f)
    with open(path + "/vocab.txt", "w") as f:
        f.write("\n".join(SPECIAL + [f"w{k}" for k in range(v - len(SPECIAL))]) + "\n")
