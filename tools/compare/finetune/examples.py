# SPDX-License-Identifier: Apache-2.0
"""Examples of the tasks `text` and `pair`, and the order in which maskbert finetune takes them."""
import dataclasses
import pathlib

import numpy

STREAM_ORDER, ROUNDS = 18, 6  # model/base/order.h, order.c
U32, U64 = numpy.uint32, numpy.uint64


@dataclasses.dataclass
class Table:
    """A file with a header line: the texts, then the label."""
    header: list
    rows: list

    def texts(self):
        return [r[:-1] for r in self.rows]

    def labels(self):
        return [r[-1] for r in self.rows]


def read(folder, part):
    lines = (pathlib.Path(folder) / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
    return Table(lines[0].split("\t"), [line.split("\t") for line in lines[1:]])


def write(table, path):
    path.write_text("".join("\t".join(r) + "\n" for r in [table.header, *table.rows]), encoding="utf-8")


def join(table, words):
    """Texts of one label, one behind the other, of at least so many words each."""
    held, rows = {}, []
    for text, label in table.rows:
        held[label] = (held[label] + " " if label in held else "") + text
        if len(held[label].split()) >= words:
            rows.append([held.pop(label), label])
    return Table(table.header, rows)


def philox(counter, key):
    """Philox4x32-10 of arrays of counters: the first word."""
    c = [numpy.broadcast_to(numpy.asarray(x, U64), counter[0].shape).copy() for x in counter]
    k, low = [int(x) for x in key], U64(0xFFFFFFFF)
    for _ in range(10):
        a, b = U64(0xD2511F53) * c[0], U64(0xCD9E8D57) * c[2]
        c = [(b >> U64(32)) ^ c[1] ^ U64(k[0]), b & low, (a >> U64(32)) ^ c[3] ^ U64(k[1]), a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def epoch_order(seed, epoch, count):
    """The examples of an epoch: a Feistel network over the next even number of bits, again where the result is too large."""
    bits = 1
    while bits < 16 and 1 << 2 * bits < count:
        bits += 1
    low, key = U64((1 << bits) - 1), (seed & 0xFFFFFFFF, seed >> 32)
    k, todo = numpy.arange(count, dtype=U64), numpy.ones(count, bool)
    while todo.any():
        left, right = k[todo] >> U64(bits), k[todo] & low
        for r in range(ROUNDS):
            left, right = right, left ^ (philox((right, r, epoch, STREAM_ORDER), key) & low)
        k[todo] = left << U64(bits) | right
        todo = k >= count
    return k.astype(numpy.int64)


def order(seed, count, wanted):
    """The first `wanted` examples of a run, epoch after epoch."""
    epochs = -(-wanted // count)
    return numpy.concatenate([epoch_order(seed, e, count) for e in range(epochs)])[:wanted].tolist()
