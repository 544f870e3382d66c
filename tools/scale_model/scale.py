# SPDX-License-Identifier: Apache-2.0
"""Several GPUs: bytes of a step over links, what of it hides behind the backward pass, ZeRO-1, accumulation."""
import dataclasses
import math

BUCKET = 16 << 20  # bytes of a bucket: the least (COMM_BUCKET of model/comm/comm.h)
GRADIENT = 4       # bytes of a parameter's gradient: f32
MOMENTS = 8
BACKWARD = 2 / 3   # of forward and backward together


@dataclasses.dataclass(frozen=True)
class Way:
    """Set-up of a run."""
    gpus: int
    accumulate: int = 1
    zero: bool = False
    overlap: bool = True
    gathered: int = 4  # bytes of a value that ZeRO-1 sends: f32 as --zero does


def levels(network, gpus):
    """(GPUs of a node that take part, nodes)."""
    local = min(gpus, network.node)
    if gpus % local:
        raise ValueError(f"{gpus} GPUs: a multiple of {network.node} is expected beyond one node")
    return local, gpus // local


def moved_seconds(network, gpus, size):
    """Reduce-scatter or all-gather of `size` bytes: within nodes all of it, among nodes each GPU's share."""
    local, nodes = levels(network, gpus)
    made = (local - 1) / local * size / network.moved + (nodes - 1) / nodes * size / local / network.nic
    return made + latency_seconds(network, gpus, size)


def latency_seconds(network, gpus, size):
    return math.ceil(size / BUCKET) * network.latency * math.ceil(math.log2(gpus)) if gpus > 1 else 0.0


def sum_seconds(network, gpus, size):
    """All-reduce; in one node by its measured bandwidth."""
    local, nodes = levels(network, gpus)
    if nodes == 1:
        return 2 * (local - 1) / local * size / network.reduced + latency_seconds(network, gpus, size)
    return 2 * moved_seconds(network, gpus, size)


def late_parameters(model):
    """Their gradients are whole only when the backward pass ends: the tables of embeddings; the decoder is one of them."""
    return (model.vocabulary + model.positions + 2) * model.hidden + 2 * model.hidden


def exposed_seconds(step, network, way):
    """Returns the seconds that a step waits for links. Sums follow the last micro-batch; early gradients are summed during its backward pass."""
    if way.gpus == 1:
        return 0.0
    early, late = (n * GRADIENT for n in (step.model.parameters() - late_parameters(step.model), late_parameters(step.model)))
    reduce = moved_seconds if way.zero else sum_seconds
    hidden = BACKWARD * step.forward_backward if way.overlap else 0.0
    made = max(0.0, reduce(network, way.gpus, early) - hidden) + reduce(network, way.gpus, late)
    return made + (moved_seconds(network, way.gpus, way.gathered * step.model.parameters()) if way.zero else 0.0)


def step_seconds(step, network, way):
    optimizer = step.optimizer / (way.gpus if way.zero else 1)
    return way.accumulate * step.forward_backward + optimizer + exposed_seconds(step, network, way)


def tokens_per_second(step, network, way):
    return way.gpus * way.accumulate * step.batch.tokens / step_seconds(step, network, way)


def efficiency(step, network, way):
    """Tokens per second and GPU over those of one GPU that accumulates as much."""
    one = dataclasses.replace(way, gpus=1, zero=False)
    return tokens_per_second(step, network, way) / way.gpus / tokens_per_second(step, network, one)


def least_accumulation(step, network, way, share=0.95, most=64):
    """The smallest power of two that keeps so much efficiency; None: none up to `most` does."""
    k = 1
    while k <= most:
        if efficiency(step, network, dataclasses.replace(way, accumulate=k)) >= share:
            return k
        k *= 2
    return None


def zero_gain(step, network, way):
    """(s of a step that ZeRO-1 saves, bytes of a GPU that it saves)."""
    plain, shared = (step_seconds(step, network, dataclasses.replace(way, zero=z)) for z in (False, True))
    return plain - shared, MOMENTS * step.model.parameters() * (way.gpus - 1) / way.gpus
