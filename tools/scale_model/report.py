# SPDX-License-Identifier: Apache-2.0
"""The tables, as text and as JSON."""
import bert
from common import terminal
import machine
import published
import scale
import step as steps

GPUS = (1, 8, 64, 512)
STEPS = ((bert.BASE, 128, "dense"), (bert.BASE, 512, "dense"), (bert.BASE, 8192, "longformer"))
GRID = [(m, n, mask) for m in (bert.BASE, bert.LARGE) for n in (128, 512, 4096) for mask in ("dense", "longformer")]


def model_of(model, n):
    """With as many positions as n needs."""
    return model if n <= model.positions else bert.Bert(model.name, model.layers, model.hidden, model.heads, positions=n)


def step_of(model, n, mask, tokens):
    return steps.step_of(machine.H100, model_of(model, n), bert.batch_of(mask, n, tokens))


def step_record(made):
    gpu, launches = machine.H100, sum(r["launches"] for r in made.rows)
    layer = sum(r["launches"] for r in made.rows if r["where"] == "layer") // made.model.layers
    return {"model": made.model.name, "n": made.batch.length, "mask": made.batch.mask, "sequences": made.batch.sequences,
            "seconds": made.seconds, "tokens_per_s": made.batch.tokens / made.seconds, "flops": made.flops,
            "share_of_peak": made.flops / gpu.peak / made.seconds, "launches": launches, "launches_per_layer": layer,
            "seconds_by_cause": steps.losses_of(gpu, made), "rows": made.rows,
            "products_for_40": steps.product_rate_for(gpu, made.model, made.batch, 0.4)}


def zero_record(made, gpus):
    network = machine.DGX_H100
    saved, size = scale.zero_gain(made, network, scale.Way(gpus))
    return {"saved_s": saved, "saved_s_if_gathered_in_bf16": scale.zero_gain(made, network, scale.Way(gpus, gathered=2))[0], "saved_bytes": size}


def scale_record(made):
    network = machine.DGX_H100
    ways = {g: scale.Way(g) for g in GPUS}
    return {"model": made.model.name, "n": made.batch.length, "mask": made.batch.mask, "sequences": made.batch.sequences,
            "tokens_per_s": {g: scale.tokens_per_second(made, network, w) for g, w in ways.items()},
            "efficiency": {g: {f"{'' if o else 'no '}overlap, accumulate {k}": scale.efficiency(made, network, scale.Way(g, k, overlap=o))
                               for o in (False, True) for k in (1, 4)} for g in GPUS[1:]},
            "accumulate_for_95": {"overlap" if o else "no overlap": {g: scale.least_accumulation(made, network, scale.Way(g, overlap=o)) for g in GPUS[1:]}
                                  for o in (False, True)},
            "zero": {g: zero_record(made, g) for g in GPUS[1:]}}


def record(tokens):
    rest, torch = published.torch_check()
    return {"measured": False, "gpu": machine.H100.name, "tokens_per_gpu": tokens, "assumptions": machine.SOURCES,
            "steps": [step_record(step_of(*s, tokens)) for s in STEPS], "scale": [scale_record(step_of(*s, tokens)) for s in GRID],
            "checks": {"torch_rest_s": rest, "torch": torch, "nvidia_scaling": published.nvidia_check(), "nvidia_step": published.nvidia_step()}}


# ---- text ----

def table(heads, rows):
    """The first column to the left, numbers to the right."""
    return terminal.table(heads, rows)


def title(r):
    return f"{r['model']} n={r['n']} {r['mask']}"


def step_text(r):
    rows = [[f"{x['where']}: {x['name']}", x["launches"], f"{x['flops'] / 1e9:.0f}", f"{x['bytes'] / 1e9:.2f}",
             f"{1e3 * (x['seconds'] + x['gaps']):.2f}", f"{x['flops'] / (x['seconds'] + x['gaps']) / 1e12:.0f}" if x["flops"] else ""] for x in r["rows"]]
    return f"{title(r)}, {r['sequences']} sequences: {1e3 * r['seconds']:.2f} ms, {r['launches']} launches, {r['launches_per_layer']} a layer\n" + table(
        ("where: launch", "launches", "GFLOP", "GB", "ms", "TFLOP/s"), rows)


def causes_text(records):
    causes = list(records[0]["seconds_by_cause"])
    rows = [[c, *(f"{1e3 * r['seconds_by_cause'][c]:.2f} ({100 * r['seconds_by_cause'][c] / r['seconds']:.0f} %)" for r in records)] for c in causes]
    rows.append(["step", *(f"{1e3 * r['seconds']:.2f}" for r in records)])
    rows.append(["tokens/s", *(f"{r['tokens_per_s']:,.0f}" for r in records)])
    rows.append(["share of peak", *(f"{100 * r['share_of_peak']:.0f} %" for r in records)])
    rows.append(["products at .. for 40 % of peak", *(f"{r['products_for_40'] / 1e12:.0f} TFLOP/s" if r["products_for_40"] else "never" for r in records)])
    rows.append(["launches (a layer)", *(f"{r['launches']} ({r['launches_per_layer']})" for r in records)])
    return table(("ms", *(title(r) for r in records)), rows)


def scale_text(records):
    rows = [[title(r), *(f"{r['tokens_per_s'][g] / 1e6:.2f}" for g in GPUS),
             *(f"{100 * r['efficiency'][g][f'{o}overlap, accumulate {k}']:.0f} %" for g in (8, 512) for o, k in (("no ", 1), ("no ", 4), ("", 1), ("", 4)))]
            for r in records]
    return table(("million tokens/s", *GPUS, *(f"{g}: {w}" for g in (8, 512) for w in ("1", "4", "1 ov.", "4 ov."))), rows)


def pays_text(records):
    rows = [[title(r), *(str(r["accumulate_for_95"][o][g] or "> 64") for o in ("no overlap", "overlap") for g in GPUS[1:]),
             *(f"{1e3 * r['zero'][g][k]:+.1f}" for k in ("saved_s", "saved_s_if_gathered_in_bf16") for g in GPUS[1:]), f"{r['zero'][512]['saved_bytes'] / 1e9:.1f}"] for r in records]
    return table(("accumulate for 95 %", *(f"{g}" for g in GPUS[1:]), *(f"{g} ov." for g in GPUS[1:]), *(f"ZeRO {g}" for g in GPUS[1:]), *(f"bf16 {g}" for g in GPUS[1:]), "GB"), rows)


def checks_text(c):
    rows = [[f"{x['kernels']} {x['mask']} n={x['n']}", f"{1e3 * x['measured']:.1f}", f"{1e3 * x['predicted']:.1f}",
             f"{100 * (x['predicted'] / x['measured'] - 1):+.1f} %"] for x in c["torch"]]
    a, b = c["nvidia_scaling"], c["nvidia_step"]
    rows.append([f"NVIDIA, BERT-large n=128, {a['nodes']} nodes of 8 A100 over one", a["measured"], f"{a['predicted']:.1f}", f"{100 * (a['predicted'] / a['measured'] - 1):+.1f} %"])
    rows.append(["NVIDIA, BERT-large n=128, one A100, sequences/s", f"{b['measured']:.0f}", f"{b['predicted']:.0f}", f"{100 * (b['predicted'] / b['measured'] - 1):+.1f} %"])
    return f"torch steps of BERT-base: {1e3 * c['torch_rest_s']:.1f} ms beside attention, one number for all rows\n" + table(("check", "measured", "model", ""), rows)


def text(r, kernels):
    made = ["Model, not measured: one GPU and what links add, from counted FLOPs and bytes and the rates below.",
            "\n".join(terminal.fold(f"{name:<14}{what}", hang=14) for name, what in r["assumptions"])]
    if kernels:
        made += [step_text(x) for x in r["steps"]]
    made += ["Where a step's time goes:\n" + causes_text(r["steps"]),
             f"Throughput of 1, 8, 64, 512 GPUs with overlap, {r['tokens_per_gpu']} tokens on each; efficiency on 8 and 512, accumulating 1 or 4:\n" + scale_text(r["scale"]),
             "Smallest accumulation for 95 % efficiency, without and with overlap. ms of a step that ZeRO-1 saves on so many GPUs (below 0: it costs), and with\n"
             "values gathered in bf16; GB of each GPU's memory that it saves:\n" + pays_text(r["scale"]),
             checks_text(r["checks"])]
    return terminal.fold("\n\n".join(made), hang=0)
