#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sass_report_test.py MASKC: tools/sass and its parts, on a small listing (loop.sass, of loop.cu by NVRTC 13.0
for sm_80) and, where nvdisasm and NVRTC are, on kernels and their budgets. Closes with cmocka's lines, so that
tools/count_tests adds it up.
"""
import contextlib
import ctypes
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/sass_report"), str(ROOT / "tests/support")]
import budget  # noqa: E402
import classes  # noqa: E402
import cmocka_count  # noqa: E402
import cubin  # noqa: E402
import disassembly  # noqa: E402
import entries  # noqa: E402
import fatbin  # noqa: E402
import figures  # noqa: E402
import flash  # noqa: E402
import kernel_file  # noqa: E402
import loops  # noqa: E402
import model  # noqa: E402
import report  # noqa: E402

MASKC = os.path.abspath(sys.argv[1])
LISTING = (ROOT / "tests/sass_report/loop.sass").read_text(encoding="utf-8")
BUDGETS = ROOT / "tools/sass_report/budgets.txt"
A100, H100 = model.MACHINES["sm_80"], model.MACHINES["sm_90"]


def program(name, *arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "tools" / name), *map(str, arguments)], text=True,
                          capture_output=True, check=False, env=os.environ | environment)


def code_of(text):
    """Instructions of lines `[LABEL:] TEXT`, without control codes."""
    lines, address = ["\t.section\t.text.k,\"ax\""], 0
    for line in filter(None, map(str.strip, text.splitlines())):
        label, colon, rest = line.partition(":")
        lines += [f"{label}:"] if colon else []
        lines.append(f"/*{address:04x}*/ {rest if colon else line} ; /* 0x0000000000000000 */")
        address += 16
    return disassembly.parse("\n".join(lines))["k"].code


def only_loop(name="loop"):
    kernel = disassembly.parse(LISTING)["loop"]
    kernel.name = name
    return kernel


class ParserTest(unittest.TestCase):
    def test_listing(self):
        kernel = only_loop()
        self.assertEqual((kernel.target, kernel.registers, len(kernel.code)), ("sm_80", 28, 96))
        self.assertEqual([i.index for i in kernel.code], list(range(96)))
        branch = kernel.code[10]
        self.assertEqual((branch.guard, branch.base, branch.goes_to), ("@!P0", "BRA", 0x4e0 // 16))

    def test_control_codes(self):
        copy = next(i for i in only_loop().code if i.base == "LDGSTS")
        self.assertEqual((copy.name, copy.parts[-1]), ("LDGSTS.E.BYPASS.128", "128"))
        i = disassembly.new_instruction(0, 0, "@P0 FADD R1, R2, R3")
        disassembly.set_control(i, 0x3f << 52 | 2 << 49 | 3 << 46 | 5 << 41)
        self.assertEqual((i.stall, i.write_barrier, i.read_barrier, i.wait), (5, 3, 2, 0x3f))
        self.assertEqual((i.guard, i.name, i.operands), ("@P0", "FADD", "R1, R2, R3"))

    def test_classes(self):
        found = classes.count(only_loop().code)
        self.assertEqual({k: found[k] for k in ("tensor", "mufu", "copy", "barrier", "sts")},
                         {"tensor": 2, "mufu": 4, "copy": 2, "barrier": 3, "sts": 0})
        self.assertEqual(sum(found.values()), 96)
        sizes = {"LDSM.16.M88.4 R0, [R1]": 512, "LDS.128 R0, [R1]": 512, "STS [R1], R0": 128, "LDG.E R0, [R1]": 0,
                 "LDGSTS.E.BYPASS.128 [R0], [R2.64]": 512, "@!PT LDS RZ, [RZ]": 0}
        for text, size in sizes.items():
            self.assertEqual(classes.shared_bytes(disassembly.new_instruction(0, 0, text)), size, text)


class LoopTest(unittest.TestCase):
    def found(self, code):
        blocks = loops.blocks_of(code)
        return blocks, loops.loops_of(code, blocks)

    def test_nested(self):
        code = only_loop().code
        blocks, made = self.found(code)
        at = {code[blocks[x.header].first].address: x for x in made}
        self.assertEqual(sorted(at), [0x130, 0x190])
        self.assertEqual([at[k].trips for k in (0x130, 0x190)], [1, 2])
        self.assertIs(at[0x190].parent, at[0x130])
        self.assertIsNone(at[0x130].parent)

    def test_ways(self):
        """Whole groups leave the hiding out, and go twice through the loop of copies."""
        turn, = entries.turns_of(only_loop("attention_forward"), 16)
        self.assertEqual((turn.address, turn.slots, turn.partial, turn.longest), (0x130, 60, 72, 72))
        self.assertEqual((turn.products, turn.entries), (2, 128))
        self.assertEqual(sum(i.base == "LDGSTS" for i in turn.code), 2)

    def test_calls_that_are_jumps(self):
        """A call of a label inside is a branch that does not come back; that of a function does."""
        code = code_of("""
            MOV R1, RZ
            .L_x_1: HMMA.16816.F32.BF16 R0, R4, R8, R0
            @!P0 CALL.REL.NOINC `(.L_x_2)
            BRA `(.L_x_1)
            .L_x_2: CALL.REL.NOINC `($__internal_0_$slow)
            BRA `(.L_x_1)""")
        blocks, made = self.found(code)
        self.assertEqual([len(x.tails) for x in made], [2])
        self.assertEqual([blocks[k].first for k in loops.best_way(code, blocks, made[0], made, lambda b: (1,))], [1, 3])

    def test_joins_and_divisions(self):
        code = code_of("""
            BSSY B0, `(.L_x_3)
            @P0 BRA `(.L_x_2)
            BRA.DIV ~URZ, `(.L_x_4)
            BSYNC B0
            .L_x_2: BSYNC B0
            .L_x_3: EXIT
            .L_x_4: EXIT""")
        blocks = loops.blocks_of(code)
        self.assertEqual([tuple(blocks[t].first for t in b.to) for b in blocks], [(4, 2), (3,), (5,), (5,), (), ()])

    def test_products(self):
        """depth, head dimension, MUFU.EX2, products without exp2 -> products, fragments of 16 x 8 entries."""
        for given, expected in (((32 * 16, 64, 16, 2), (2, 4)), ((32 * 16, 64, 18, 2), (2, 4)),
                                ((64 * 16, 64, 16, 3), (4, 4)), ((256 * 16, 64, 132, 2), (2, 32)),
                                ((320 * 16, 64, 64, 5), (5, 16)), ((16 * 16, 64, 0, 1), (1, 4)),
                                ((40 * 16, 80, 16, 2), (2, 4)), ((7 * 16, 64, 3, 2), (0, 0))):
            self.assertEqual(entries.fragments(*given), expected, given)

    def test_phases(self):
        def turn(products):
            return entries.Turn(0, [None], 1, 1, products, 128, [])
        made = [turn(1), turn(2), turn(1)]
        entries.set_repeats(made, "attention_short_backward")
        self.assertEqual([t.repeats for t in made], [1, 1, 2])


class ModelTest(unittest.TestCase):
    def stream(self, text, times, stall=1):
        made = code_of("\n".join([text] * times))
        for i in made:
            i.stall = stall
        return made

    def test_tensor_pipe(self):
        run = model.simulate([self.stream("HMMA.16816.F32 R0, R4, R8, R0", 1000)] * 4, A100, 1)
        self.assertAlmostEqual(run["tensor"], 1, delta=0.01)
        run = model.simulate([self.stream("HMMA.16816.F32 R0, R4, R8, R0", 1000)] * 4, H100, 1)
        self.assertAlmostEqual(run["tensor"], 4 / 6.4, delta=0.01)

    def test_issue(self):
        """One warp issues every `stall` cycles, several on a partition each cycle."""
        code = self.stream("NOP", 500, stall=4)
        self.assertAlmostEqual(model.simulate([code], A100, 1)["issue"], 1 / 16, delta=0.001)
        self.assertGreater(model.simulate([code] * 16, A100, 1)["issue"], 0.95)

    def test_scoreboard(self):
        load, use = code_of("LDS R0, [R1]\nFADD R2, R0, R0")
        load.write_barrier, use.wait = 2, 1 << 2
        self.assertGreaterEqual(model.simulate([[load, use]], A100, 1)["cycles"], model.LATENCY["LDS"])
        use.wait = 0
        self.assertLess(model.simulate([[load, use]], A100, 1)["cycles"], 5)

    def test_barriers_end(self):
        """Also where warps of a block end early."""
        bar, nop = code_of("BAR.SYNC.DEFER_BLOCKING 0x0\nNOP")
        run = model.simulate([[nop, bar, nop], [nop] * 50 + [bar], [nop]], A100, 3)
        self.assertGreater(run["cycles"], 50)

    def test_occupancy(self):
        def launch(registers, threads, shared_bytes):
            return types.SimpleNamespace(registers=registers, threads=threads, shared_bytes=shared_bytes)
        for given, machine, blocks in (((128, 128, 27648), A100, 4), ((164, 128, 36864), A100, 3),
                                       ((255, 256, 147456), A100, 1), ((255, 128, 49152), H100, 2),
                                       ((32, 128, 99 * 1024), A100, 1), ((32, 128, 99 * 1024), H100, 2),
                                       ((16, 32, 0), A100, 32), ((255, 512, 0), A100, 0)):
            self.assertEqual(model.resident_blocks(machine, launch(*given)), blocks, given)

    def test_traces(self):
        kernel = only_loop()
        data = b"".join(struct.pack("<I", w << 24 | k) for k in range(3) for w in (1, 0))
        self.assertEqual([[i.index for i in t] for t in figures.traces_of(data, kernel)], [[0, 1, 2]] * 2)
        with self.assertRaises(disassembly.Fatal):
            figures.traces_of(struct.pack("<I", 96), kernel)

    def test_counts(self):
        kernel = only_loop("attention_forward")
        known = [figures.loop_figures(t) for t in entries.turns_of(kernel, 16)]
        made = figures.launch_figures({"counts": [2] * 96, "blocks": 1}, kernel, 64, known)
        self.assertEqual((made["slots"], made["tensor"], made["slots_per_entry"]), (192, 4, 3))
        self.assertEqual(made["classes"]["mufu"], 8)
        loop, = made["loops"]  # 59 instructions, of which the inner loop's were not issued twice as often
        self.assertEqual((loop["slots"], loop["entries"]), (2 * 59, 256))
        with self.assertRaises(disassembly.Fatal):
            figures.launch_figures({"counts": [2]}, kernel, 64, known)


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


class CommandTest(unittest.TestCase):
    def test_help(self):
        said = program("sass", "--help")
        self.assertEqual(said.returncode, 0)
        for word in ("--target", "--kernel", "--counts", "--trace", "--flash-attention", "--budget", "--json",
                     "exit codes"):
            self.assertIn(word, said.stdout)

    def test_bad_input(self):
        for arguments, word in (([], "kernel file"), (["/nonexistent/k.mkb"], "/nonexistent"), ([__file__], "neither"),
                                (["--budget", BUDGETS], "kernel file"), (["--turns", "0"], "0"),
                                (["--flash-attention", "/proc/nonexistent"], "no such file"),
                                (["--flash-attention", __file__], "not a shared library")):
            said = program("sass", *arguments)
            self.assertEqual((said.returncode, said.stdout), (2, ""), said.stderr)
            self.assertIn(word, said.stderr)
            self.assertNotIn("Traceback", said.stderr)

    def test_finding_nvdisasm(self):
        self.assertEqual(program("find_nvdisasm", NVDISASM=sys.executable).stdout.strip(), sys.executable)
        said = program("find_nvdisasm", NVDISASM="/proc/nonexistent")
        self.assertEqual((said.returncode, said.stdout, said.stderr.count("\n")), (2, "", 1))
        said = program("find_nvdisasm", "--install", "/proc/nonexistent/x")
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("--install", program("find_nvdisasm", "--help").stdout)

    def test_tables(self):
        launch = kernel_file.Launch("attention_forward", "sm_80", b"", 28, 128, 4096, 16, "bf16", "loop")
        made = figures.kernel_figures(launch, only_loop("attention_forward"))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.print_report([made])
        words = said.getvalue().splitlines()[1].split()
        self.assertEqual(words[:7], ["attention_forward", "sm_80", "16", "00130", "60", "128", "2"])
        json.dumps(made)


def compiled(folder, *options):
    """A kernel file, or a reason that there is none."""
    path = pathlib.Path(folder) / "k.mkb"
    made = subprocess.run([MASKC, "compile", *map(str, options), "--heads", "2", "-o", str(path)], capture_output=True,
                          text=True, check=False)
    return (path, "") if made.returncode == 0 else (None, made.stderr.strip().splitlines()[0])


def missing():
    """Why kernels cannot be looked at here, or nothing."""
    if program("find_nvdisasm").returncode:
        return "no nvdisasm"
    with tempfile.TemporaryDirectory() as folder:
        return compiled(folder, "dense", "-n", "16", "--target", "sm_80")[1]


REASON = missing()


@unittest.skipIf(REASON, REASON)
class KernelTest(unittest.TestCase):
    def budget_for(self, n, head_dim):
        """One file's share of the budget."""
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "dense", "-n", n, "--dtype", "bf16", "--head-dim", head_dim, "--target",
                                 "sm_80,sm_90a")
            self.assertTrue(path, why)
            compilers = {t["compiler"] for t in kernel_file.KernelFile(path).targets}
            written = BUDGETS.read_text(encoding="utf-8")
            if not all(f"compiler {c}" in written for c in compilers):
                self.skipTest(f"budgets are of another compiler than {', '.join(compilers)}")
            return program("sass", path, "--budget", BUDGETS)

    def test_budgets(self):
        compared = 0
        for n, head_dim in ((1024, 64), (1024, 32), (1024, 128), (128, 64), (128, 32)):
            with self.subTest(n=n, head_dim=head_dim):
                said = self.budget_for(n, head_dim)
                self.assertEqual(said.returncode, 0, said.stderr)
                compared += int(said.stdout.split()[0])
        self.assertEqual(compared, len(budget.read(BUDGETS)))

    def test_over_the_budget(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "dense", "-n", 1024, "--dtype", "bf16", "--target", "sm_80")
            self.assertTrue(path, why)
            tight = pathlib.Path(folder) / "tight.txt"
            tight.write_text("attention_forward sm_80 bf16 64 0.01 9\n", encoding="utf-8")
            said = program("sass", path, "--budget", tight)
            self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said.stderr)
            tight.write_text("attention_forward sm_80 f16 64 0.01 9\n", encoding="utf-8")
            self.assertEqual(program("sass", path, "--budget", tight).returncode, 2)

    def test_launches(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "window(8)", "-n", 512, "--dtype", "bf16", "--target", "sm_80")
            self.assertTrue(path, why)
            opened = kernel_file.KernelFile(path)
            self.assertEqual(opened.active_entries(), 2 * (17 * 512 - 8 * 9))
            # Whatever family runs it forward: one of its kernels counted as if each instruction had issued once.
            name = opened.targets[0]["forward"][0]["entry"]
            launch = next(x for x in opened.launches(["sm_80"]) if x.name == name)
            length = len(figures.disassembled([launch])["sm_80", name].code)
            counts = pathlib.Path(folder) / "counts"
            counts.write_text(json.dumps({"entry": name, "target": "sm_80", "blocks": 1, "counts": [1] * length}) + "\n",
                              encoding="utf-8")
            trace = pathlib.Path(folder) / "trace"
            trace.write_bytes(b"".join(struct.pack("<I", k) for k in range(10)))
            said = program("sass", path, "--counts", counts, "--trace", trace, "--kernel", name, "--json")
            self.assertEqual(said.returncode, 0, said.stderr)
            made, = json.loads(said.stdout)["kernels"]
            self.assertEqual(made["launch"]["slots"], length)
            self.assertAlmostEqual(made["launch"]["slots_per_entry"], length / opened.active_entries())
            self.assertEqual(made["trace"]["slots"], 10)
            said = program("sass", path, "--counts", trace)
            self.assertEqual(said.returncode, 2, said.stderr)

    def test_bare_cubins(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "dense", "-n", 1024, "--dtype", "bf16", "--target", "sm_90a")
            self.assertTrue(path, why)
            whole = {k["kernel"]: k for k in json.loads(program("sass", path, "--turns", 1, "--json").stdout)["kernels"]}
            image = pathlib.Path(folder) / "k.cubin"
            image.write_bytes(kernel_file.KernelFile(path).images("sm_90a")[0])
            made, = json.loads(program("sass", image, "--turns", 1, "--json").stdout)["kernels"]
            for key in ("target", "registers", "threads", "instructions"):
                self.assertEqual(made[key], whole[made["kernel"]][key], key)
            self.assertEqual(made["summary"]["slots_per_entry"], whole[made["kernel"]]["summary"]["slots_per_entry"])


def main():
    if REASON:
        print(f"kernels are not looked at: {REASON}")
    cmocka_count.run_cases()


if __name__ == "__main__":
    main()
