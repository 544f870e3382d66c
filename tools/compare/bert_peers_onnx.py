# SPDX-License-Identifier: Apache-2.0
"""BERT's encoder for ONNX Runtime, written with the fused operators that its own transformer optimizer
puts there (Attention, SkipLayerNormalization, BiasGelu), so that it runs as fast as it can. f32: its
CPU provider has no bf16 products.
"""
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

MICROSOFT = "com.microsoft"


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(onnx.numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def node(self, kind, inputs, out, domain=MICROSOFT, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, domain=domain, **attributes))
        return out


def add_layer(g, w, k, x, heads, eps, masks):
    p = f"encoder.layer.{k}."
    array = lambda name: w[p + name].float().numpy()
    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]

    def product(name, y, out):
        return g.node("MatMul", [y, g.constant(f"{out}.w", array(name + ".weight").T)], out, domain="")

    def norm(name, y, bias, out):
        return g.node("SkipLayerNormalization", [y, x, *(g.constant(f"{out}.{s}", array(f"{name}.LayerNorm.{s}"))
                                                         for s in ("weight", "bias")),
                                                 g.constant(f"{out}.extra", array(bias + ".bias"))],
                      out, epsilon=eps)

    weights = numpy.concatenate([array(n + ".weight") for n in parts]).T
    biases = numpy.concatenate([array(n + ".bias") for n in parts])
    o = g.node("Attention", [x, g.constant(f"qkv.w{k}", weights), g.constant(f"qkv.b{k}", biases), *masks],
               f"o{k}", num_heads=heads)
    x = norm("attention.output", product("attention.output.dense", o, f"a{k}"), "attention.output.dense", f"n{k}")
    y = product("intermediate.dense", x, f"i{k}")
    y = g.node("BiasGelu", [y, g.constant(f"i{k}.bias", array("intermediate.dense.bias"))], f"g{k}")
    return norm("output", product("output.dense", y, f"y{k}"), "output.dense", f"x{k}")


def model_of(w, config, batch, bias=None):
    """Padded [B, n] token numbers to [B, n, H]. bias: f32 [1, heads, n, n], added to the scores."""
    g, n, size = Graph(), batch.longest, config["hidden_size"]
    eps = config.get("layer_norm_eps", 1e-12)
    value = lambda name: w["embeddings." + name].float().numpy()
    added = value("position_embeddings.weight")[:n] + value("token_type_embeddings.weight")[0]
    x = g.node("Gather", [g.constant("words", value("word_embeddings.weight")), "ids"], "e", domain="")
    x = g.node("Add", [x, g.constant("added", added[None])], "s", domain="")
    x = g.node("LayerNormalization", [x, g.constant("w", value("LayerNorm.weight")),
                                      g.constant("b", value("LayerNorm.bias"))], "x", domain="", epsilon=eps)
    masks = [g.constant("real", batch.real[:, 0, 0].numpy().astype(numpy.int32)) if batch.mixed else ""]
    if bias is not None:
        masks += ["", g.constant("mask", bias)]
    elif batch.table is not None:
        bias = numpy.where(batch.table[:n, :n].numpy(), 0, -1e9).astype(numpy.float32)
        masks += ["", g.constant("mask", bias[None, None])]
    while masks and not masks[-1]:
        masks.pop()
    for k in range(config["num_hidden_layers"]):
        x = add_layer(g, w, k, x, config["num_attention_heads"], eps, masks)
    shape = [len(batch.numbers), n]
    graph = helper.make_graph(g.nodes, "bert", [helper.make_tensor_value_info("ids", TensorProto.INT64, shape)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [*shape, size])], g.constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                 helper.make_opsetid(MICROSOFT, 1)])


def runner(w, config, batch, threads, bias=None):
    """A function that runs the batch: packed rows, f32."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    options.add_session_config_entry("session.force_spinning_stop", "1")  # not through others' turns
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model_of(w, config, batch, bias).SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    ids = numpy.zeros((len(batch.numbers), batch.longest), numpy.int64)
    for k, numbers in enumerate(batch.numbers):
        ids[k, :len(numbers)] = numbers.numpy()
    real = batch.real[:, 0, 0].numpy()

    def run():
        y = session.run(None, {"ids": ids})[0]
        return y[real] if batch.mixed else y.reshape(-1, y.shape[-1])
    return run
