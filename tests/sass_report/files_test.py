#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""files_test.py: the files that tools/sass reads: fat binaries, cubins, FlashAttention's numbers, budgets.
Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import ctypes
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from sass_report_help import ROOT  # noqa: E402
import budget  # noqa: E402
import cmocka_count  # noqa: E402
import cubin  # noqa: E402
import disassembly  # noqa: E402
import fatbin  # noqa: E402
import flash  # noqa: E402
import report  # noqa: E402


class FileTest(unittest.TestCase):
    def entry(self, payload, kind=2, arch=80, flags=0, size=0):
        padded = payload + bytes(-len(payload) % 8)
        return fatbin.ENTRY.pack(kind, 0x101, fatbin.ENTRY.size, len(padded), len(payload), 0, 0, 0, arch, 0, 0, flags, 0,
                                 size) + padded

    def test_fat_binaries(self):
        rows = self.entry(b"first"), self.entry(b"text", kind=1), self.entry(b"second", arch=90)
        body = b"".join(rows)
        data = bytes(8) + fatbin.CONTAINER.pack(fatbin.MAGIC, 1, fatbin.CONTAINER.size, len(body)) + body + bytes(16)
        found = list(fatbin.entries(data, 0, len(data)))
        self.assertEqual([(e.kind, e.arch) for e in found], [(2, 80), (1, 80), (2, 90)])
        self.assertTrue(fatbin.unpack(data, found[2], "x").startswith(b"second"))

    def test_zstd(self):
        try:
            zstd = fatbin.library("zstd", "libzstd1")
        except disassembly.Fatal as e:
            self.skipTest(str(e))
        zstd.ZSTD_compress.restype, zstd.ZSTD_compress.argtypes = ctypes.c_size_t, [
            ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
        plain, out = b"cubin " * 100, ctypes.create_string_buffer(2000)
        size = zstd.ZSTD_compress(out, 2000, plain, len(plain), 3)
        packed = out.raw[:size]
        data = self.entry(packed, flags=fatbin.ZSTD, size=len(plain))
        self.assertEqual(fatbin.unpack(data, fatbin.Entry(data, 0), "x"), plain)
        data = self.entry(b"no zstd", flags=fatbin.ZSTD, size=len(plain))
        with self.assertRaises(disassembly.Fatal):
            fatbin.unpack(data, fatbin.Entry(data, 0), "x")

    def test_damaged_cubins(self):
        for data in (b"\x7fELF", b"\x7fELF" + bytes(60), b"\x7fELF" + b"\xff" * 100):
            with self.assertRaises(disassembly.Fatal) as caught:
                cubin.kernels_of(data, "x.cubin")
            self.assertEqual(caught.exception.code, 2)

    def test_flash_attention_is_stored(self):
        stored = json.loads((ROOT / "tools/sass_report/flash_attention.json").read_text(encoding="utf-8"))
        made = {(report.name_of(k), k["target"]): k["summary"] for k in stored["flash_attention"]}
        for name, slots, products in (("forward", 0.41, 2), ("backward", 0.68, 5)):
            found = made[f"FlashAttention-2 {name}", "sm_80"]
            self.assertEqual((round(found["slots_per_entry"], 2), found["products"]), (slots, products))
        self.assertEqual(stored["source"]["torch"], "2.15.0")

    def test_names_of_flash_attention(self):
        flags = b"ELb0ELb0ELb0ELb0ELb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE"
        name = (b"_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0E"
                b"N7cutlass10bfloat16_tE19Flash_kernel_traitsILi64ELi128ELi128ELi4ES3_EE" + flags[1:])
        self.assertEqual(flash.KERNELS["flash_fwd"].search(b"\0.text." + name + b"\0").group(0), name)
        causal = name.replace(b"EELb0ELb0E", b"EELb0ELb1E", 1)
        self.assertIsNone(flash.KERNELS["flash_fwd"].search(causal))


class BudgetTest(unittest.TestCase):
    kernel = {"kernel": "k", "target": "sm_80", "dtype": "bf16", "head_dim": 64,
              "summary": {"slots_per_entry": 0.9, "partial_per_entry": 1.2}}

    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "b.txt"
            path.write_text(text, encoding="utf-8")
            return budget.check(budget.read(path), [self.kernel])

    def test_lines(self):
        self.assertEqual(self.check("# none\nk sm_80 bf16 64 0.9 1.2 # present\nother sm_80 bf16 64 0 0\n"), (1, []))
        compared, said = self.check("k sm_80 bf16 64 0.89 1.1\n")
        self.assertEqual((compared, len(said)), (1, 2))
        self.assertIn("0.900 slots per entry of whole groups, at most 0.89", said[0])
        self.assertEqual(self.check("k sm_80 bf16 32 0 0\n")[0], 0)

    def test_bad_lines(self):
        for text in ("k sm_80 bf16 64 0.9", "k sm_80 bf16 x 1 1", "k sm_80 bf16 64 1 2 3", "k"):
            with self.assertRaises(disassembly.Fatal) as caught:
                self.check(text)
            self.assertIn("b.txt:1", str(caught.exception))


if __name__ == "__main__":
    cmocka_count.run_cases()
