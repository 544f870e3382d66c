#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""machine_code_test.py: what tools/sass reads in machine code, on a small listing: instructions, loops, the model of
their time. Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import struct
import sys
import types
import unittest

sys.dont_write_bytecode = True
from sass_report_help import code_of, only_loop  # noqa: E402
import classes  # noqa: E402
import cmocka_count  # noqa: E402
import disassembly  # noqa: E402
import entries  # noqa: E402
import figures  # noqa: E402
import hopper  # noqa: E402
import loops  # noqa: E402
import model  # noqa: E402

A100, H100 = model.MACHINES["sm_80"], model.MACHINES["sm_90"]


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
        entries.set_repeats(made, "attention_resident_backward")
        self.assertEqual([t.repeats for t in made], [1, 1, 2])

    def test_versions_of_a_phase(self):
        """dV and dK have a loop of their own for warp tiles that are all live: the longer one counts."""
        def turn(products, slots):
            return entries.Turn(0, [None] * slots, slots, slots, products, 128, [])
        made = [turn(3, 9), turn(1, 4), turn(1, 3), turn(1, 4), turn(1, 3)]
        entries.set_repeats(made, "attention_resident_backward")
        self.assertEqual([t.repeats for t in made], [1, 1, 0, 1, 0])


class HopperTest(unittest.TestCase):
    """A loop of a warpgroup over 64 x 32 entries at D = 16: S in one product, P V in two."""
    TEXT = "\n".join([".L_x_0:HGMMA.64x32x16.F32.BF16 R24, gdesc[UR4], !UPT", *["MUFU.EX2 R1, R1"] * 16,
                      *["HGMMA.64x16x16.F32.BF16 R8, R4, gdesc[UR8].tnspB, gsb0"] * 2, "@P0 BRA `(.L_x_0)", "EXIT"])

    def kernel(self, name="attention_forward"):
        return disassembly.Kernel(name, "sm_90a", 128, code_of(self.TEXT))

    def test_products_of_a_warpgroup(self):
        self.assertEqual([classes.depth(i) for i in self.kernel().code if i.base == "HGMMA"], [64, 32, 32])
        turn, = entries.turns_of(self.kernel(), 16)
        self.assertEqual((turn.products, turn.entries, turn.slots), (2, 512, 20))

    def test_softmax_beside_products(self):
        wait, exp2 = "WARPGROUP.DEPBAR.LE gsb0, 0x%d", "MUFU.EX2 R1, R1"
        for lines, expected in (((wait % 0, exp2, wait % 1, exp2, exp2, wait % 0, exp2), [2]), ((wait % 1, wait % 0, exp2), [0]),
                                ((exp2, wait % 0), [])):
            self.assertEqual(hopper.exp2_beside_products(code_of("\n".join(lines))), expected)

    def test_warps_that_copy_are_left_out(self):
        for threads, warps in ((160, 4), (256, 4), (384, 8), (512, 12), (640, 16)):
            launch = types.SimpleNamespace(threads=threads)
            self.assertEqual(figures.working_warps(launch, self.kernel()), warps)
        self.assertEqual(figures.working_warps(types.SimpleNamespace(threads=160), only_loop()), 5)

    def test_the_summary_is_of_loops_with_all_products(self):
        loops_of = [{"products": p, "entries": 1, "slots_per_entry": s, "partial_per_entry": 2 * s} for p, s in ((2, 1), (3, 3), (4, 9))]
        made = figures.summary("attention_dq", loops_of)
        self.assertEqual((made["slots_per_entry"], made["partial_per_entry"]), (3, 6))
        self.assertEqual(figures.summary("attention_dq", loops_of[:1])["slots_per_entry"], 1)

    def test_a_launch_beside_the_prototype(self):
        """Each instruction is issued 8 times by 4 warps: 2 tiles."""
        record = {"counts": [8] * 21, "copied": 6000, "threads": 512}
        made = hopper.figures(record, self.kernel(), 16, {"source": "dense", "length": 2048})
        self.assertEqual(made, {"shape": "wide", "slots": 8 * 21 / 4096, "bytes": 3000, "prototype": None})
        self.assertIsNone(hopper.figures(record, only_loop("attention_forward"), 16, {}))
        self.assertIsNone(hopper.figures(record, self.kernel("attention_forward_merge"), 16, {}))
        kernel = {"kernel": "attention_forward", "head_dim": 64}
        self.assertEqual(hopper.row(kernel, made | {"prototype": (0.041, 2400)}),
                         ["forward", "64", "wide", "0.0410", "0.0410", "1.00", "3000", "2400", "1.25"])


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


if __name__ == "__main__":
    cmocka_count.run_cases()
