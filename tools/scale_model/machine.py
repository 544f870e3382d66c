# SPDX-License-Identifier: Apache-2.0
"""Rates of GPUs and links: value, unit, source. `assumed` marks the values that nobody measured."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    processors: int   # SMs
    peak: float       # FLOP/s, dense bf16
    product: float    # FLOP/s of a large matrix product
    dram: float       # bytes/s of a copy, read and written bytes together
    launch: float     # s from a launch to the next one in a graph
    fill: float       # s until the first tile of a product computes, and its last one is stored
    tile: tuple = (128, 256)  # rows and columns that a processor computes of a product at a time


@dataclasses.dataclass(frozen=True)
class Network:
    """GPUs of a node are on NVLink, nodes on one NIC for each GPU. Bytes/s of a GPU in one direction."""
    node: int
    reduced: float    # "bus bandwidth" of all-reduce in a node
    moved: float      # of reduce-scatter and all-gather in a node
    nic: float
    latency: float    # s of each level of each bucket


H100 = Gpu("H100 80GB HBM3", 132, 989e12, 798e12, 2.98e12, 3e-6, 1.5e-6)
A100 = Gpu("A100 80GB SXM4", 108, 312e12, 262e12, 1.75e12, 3e-6, 1.5e-6)
DGX_H100 = Network(8, 476e9, 360e9, 47e9, 1e-5)
DGX_A100 = Network(8, 230e9, 230e9, 23e9, 1e-5)

SOURCES = (
    ("H100 peak", "989 TFLOP/s dense bf16 (NVIDIA H100 data sheet, SXM)"),
    ("H100 product", "798 TFLOP/s: 8192 x 8192 x 8192 by cuBLAS on random data, measured on an H100 80GB HBM3"),
    ("H100 copy", "2.98 TB/s, measured (tests/results/h100-b84ec2a)"),
    ("launch", "3 us from a launch to the next in a graph, measured by maskc calibrate"),
    ("fill", "1.5 us of a product outside of its tiles: assumed"),
    ("attention", "tests/results/h100-b84ec2a/timing.txt: dense is cuDNN's, longformer ours; n = 4096 lies between 2048 and 8192"),
    ("NVLink", "476 GB/s bus bandwidth of all-reduce on 8 H100 (github.com/NVIDIA/nccl-tests/issues/290)"),
    ("NVLink", "360 GB/s of reduce-scatter and all-gather, 80 % of the link's 450: assumed"),
    ("NIC", "47 GB/s for each GPU, NDR 400 Gb/s (46 to 48 in the same thread)"),
    ("latency", "10 us for each level of each bucket of 16 MB: assumed"),
    ("A100", "312 TFLOP/s (data sheet); 84 % of it in products, 1.75 TB/s copied, 230 GB/s NVLink, 23 GB/s a NIC: assumed"),
    ("overlap", "sums slow the backward pass by nothing: assumed"),
)
