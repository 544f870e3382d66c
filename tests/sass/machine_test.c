/* SPDX-License-Identifier: Apache-2.0 */
/* The machine itself, on programs of a few instructions: each fault is named, and instructions give what their definition
   says. */
#include "tests/sass/machine.h"
#include "tests/sass/memory.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { LINES = 12, PARAMETERS = 0x160, OUT = 1024, SHARED_BYTES = 1024 };

/* A control code that sets no scoreboard and waits for none; SETS(k) sets one, WAITS(k) waits. */
#define NONE     UINT64_C(0x000fc00000000000)
#define SETS(k)  (UINT64_C(0x000e000000000000) | (uint64_t)(k) << 46)
#define WAITS(k) (NONE | UINT64_C(1) << (52 + (k)))

struct text {
    const char *line[LINES];
    uint64_t control[LINES]; /* 0: NONE */
};

/* As nvdisasm prints it. A line that ends in a colon is a label. */
static void print(const struct text *t, char *to, size_t capacity)
{
    size_t used = (size_t)snprintf(to, capacity, ".text.probe:\n");
    for (uint32_t k = 0, at = 0; k < LINES && t->line[k]; k++) {
        const char *line = t->line[k];
        const bool label = line[strlen(line) - 1] == ':';
        used += (size_t)(label ? snprintf(to + used, capacity - used, "%s\n", line)
                               : snprintf(to + used, capacity - used,
                                          "        /*%04x*/    %s ;   /* 0x%016x */\n    /* "
                                          "0x%016llx */\n",
                                          at, line, 0,
                                          (unsigned long long)(t->control[k] ? t->control[k]
                                                                             : NONE)));
        at += label ? 0 : 16;
    }
}

/* c[0x0][0x160] is the address of OUT bytes of device memory, of which the first half was written. */
struct run {
    char why[FAULT_TEXT];
    uint32_t out[OUT / 4];
    int result;
};

static void run(const struct text *t, uint32_t warps, struct run *r)
{
    static char text[4096];
    struct program p = {.entry = "probe", .parameters = PARAMETERS, .registers = 40};
    static struct memory memory;
    memory = (struct memory){.count = 0};
    uint8_t *out = memory_allocate(&memory, OUT);
    memset(out, 0, OUT);
    memory_wrote(&memory, (uint64_t)(uintptr_t)out, OUT / 2);
    print(t, text, sizeof text);
    *r = (struct run){.result = 0};
    r->result = program_parse(&p, text, r->why, sizeof r->why);
    p.bank[0] = calloc(4096, 1);
    p.bank_bytes[0] = 4096;
    memcpy(p.bank[0] + PARAMETERS, &out, sizeof out);
    struct block b = {.program = &p,
                      .memory = &memory,
                      .warps = warps,
                      .shared_bytes = SHARED_BYTES,
                      .left = 10000,
                      .fault = r->why};
    if (!r->result)
        r->result = block_run(&b);
    memcpy(r->out, out, OUT);
    program_finish(&p);
    memory_free(&memory, out);
}

/* ---- faults ---- */

#define ADDRESS "MOV R2, c[0x0][0x160]", "MOV R3, c[0x0][0x164]"

/* An mbarrier of a count at 0. */
#define MBARRIER_1 "UMOV UR4, 0x1ffffe", "UMOV UR5, 0x7ffff800", "SYNCS.EXCH.64 URZ, [UR6], UR4"
#define MBARRIER_2 "UMOV UR4, 0x1ffffc", "UMOV UR5, 0x7ffff000", "SYNCS.EXCH.64 URZ, [UR6], UR4"
#define MBARRIER_WAIT \
    ".L_x_0:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], RZ", "@!P0 BRA `(.L_x_0)"
#define ONE_ARRIVES "ELECT P1, URZ, PT", "@P1 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR6], RZ"

/* A second operand at 0, its descriptor, a product into R24. */
#define OPERAND                                                               \
    "S2R R0, SR_TID.X", "STS.128 [R0.X16], R4", "STS.128 [R0.X16+0x200], R4", \
        "UMOV UR7, 0x40000040"
#define UNTIL_UP0 "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0", "@!P0 BRA `(.L_x_0)"
#define PRODUCT   "HGMMA.64x8x16.F32.BF16 R24, R32, gdesc[UR4], RZ, !UPT, gsb0"

static const struct {
    const char *name, *fault; /* null: none */
    struct text text;
} faults[] = {
    {"one warp alone", NULL, {.line = {"S2R R0, SR_TID.X", "STS [RZ], RZ", "EXIT"}}},
    {"written by two warps", "race", {.line = {"MOV R0, 0x1", "STS [RZ], R0", "EXIT"}}},
    {"written, then read by another",
     "race",
     {.line = {"S2R R0, SR_TID.X", "STS [R0.X4], R0", "BAR.SYNC.DEFER_BLOCKING 0x0",
               "STS [R0.X4], R0", "LOP3.LUT R1, R0, 0x20, RZ, 0x3c, !PT", "LDS R4, [R1.X4]",
               "EXIT"}}},
    {"read by another after a barrier",
     NULL,
     {.line = {"S2R R0, SR_TID.X", "STS [R0.X4], R0", "BAR.SYNC.DEFER_BLOCKING 0x0",
               "LOP3.LUT R1, R0, 0x20, RZ, 0x3c, !PT", "LDS R4, [R1.X4]", "EXIT"}}},
    {"nobody wrote it", "nobody wrote it", {.line = {"LDS R4, [0x40]", "EXIT"}}},
    {"outside of shared memory",
     "outside of shared memory",
     {.line = {"LDS R4, [0x400]", "EXIT"}}},
    {"not aligned", "not aligned", {.line = {"LDS.64 R4, [0x4]", "EXIT"}}},
    {"a copy that nobody waits for",
     "before a copy to it was waited for",
     {.line = {ADDRESS, "LDGSTS.E.BYPASS.128 [RZ], [R2.64]", "LDGDEPBAR", "LDS R4, [RZ]",
               "EXIT"}}},
    {"a copy that is not committed",
     "before a copy to it was waited for",
     {.line = {ADDRESS, "LDGSTS.E.BYPASS.128 [RZ], [R2.64]", "DEPBAR.LE SB0, 0x0",
               "LDS R4, [RZ]", "EXIT"}}},
    {"a copy that is waited for",
     NULL,
     {.line = {ADDRESS, "LDGSTS.E.BYPASS.128 [RZ], [R2.64]", "LDGDEPBAR", "DEPBAR.LE SB0, 0x0",
               "LDS R4, [RZ]", "EXIT"}}},
    {"device memory that is nobody's",
     "not in the device's memory",
     {.line = {"LDG.E R4, [R2.64]", "EXIT"}}},
    {"device memory that nobody wrote",
     "never written",
     {.line = {ADDRESS, "LDG.E R4, [R2.64+0x200]", "EXIT"}}},
    {"a lane that is not there",
     "is not there",
     {.line = {"S2R R0, SR_LANEID", "ISETP.GE.AND P0, PT, R0, 0x10, PT", "@P0 EXIT",
               "SHFL.BFLY PT, R1, R0, 0x10, 0x1f", "EXIT"}}},
    {"a barrier for some",
     "at a barrier that the others are not at",
     {.line = {"S2R R0, SR_LANEID", "ISETP.GE.AND P0, PT, R0, 0x10, PT",
               "@P0 BAR.SYNC.DEFER_BLOCKING 0x0", "EXIT"}}},
    {"lanes that differ in a uniform register",
     "differ",
     {.line = {"S2R R0, SR_LANEID", "R2UR UR4, R0", "EXIT"}}},
    {"no end", "does not come to an end", {.line = {".L_x_0:", "BRA `(.L_x_0)", "EXIT"}}},
    {"an instruction that is not known", "not known", {.line = {"FROB R1, R2", "EXIT"}}},
    {"a modifier that is not known", "not known", {.line = {"FADD.SAT R1, R2, R3", "EXIT"}}},
    {"an operand that is not known", "not known", {.line = {"IADD3 R1, R2, T3, RZ", "EXIT"}}},
    {"a result that is not waited for",
     "nobody waited for SB2",
     {.line = {"S2R R0, SR_LANEID", "IADD3 R1, R0, 0x1, RZ", "EXIT"}, .control = {SETS(2)}}},
    {"an mbarrier without arrivals", "deadlock", {.line = {MBARRIER_1, MBARRIER_WAIT, "EXIT"}}},
    {"an mbarrier with an arrival",
     NULL,
     {.line = {MBARRIER_1, ONE_ARRIVES, MBARRIER_WAIT, "EXIT"}}},
    {"an mbarrier that lacks an arrival",
     "lacks 1",
     {.line = {MBARRIER_2, ONE_ARRIVES, MBARRIER_WAIT, "EXIT"}}},
    {"a lane that arrives again",
     "arrives twice",
     {.line = {MBARRIER_2, ONE_ARRIVES, ONE_ARRIVES, "EXIT"}}},
    {"arrivals beyond the count",
     "3 arrivals",
     {.line = {MBARRIER_2, "MOV R1, 0x3", "SYNCS.ARRIVE.TRANS64.ART0 RZ, [UR6], R1", "EXIT"}}},
    {"no mbarrier",
     "no mbarrier",
     {.line = {MBARRIER_1, "UMOV UR6, 0x40", ONE_ARRIVES, "EXIT"}}},
    {"bytes that no copy brings",
     "16 bytes",
     {.line = {MBARRIER_1, "MOV R1, 0x10", "ELECT P1, URZ, PT",
               "@P1 SYNCS.ARRIVE.TRANS64 RZ, [UR6], R1", MBARRIER_WAIT, "EXIT"}}},
    {"a named barrier that another warp lacks",
     "deadlock",
     {.line = {"S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 EXIT",
               "BAR.SYNC.DEFER_BLOCKING 0x1, 0x40", "EXIT"}}},
    {"read by another after a named barrier",
     NULL,
     {.line = {"S2R R0, SR_TID.X", "STS [R0.X4], R0", "BAR.SYNC.DEFER_BLOCKING 0x1, 0x40",
               "LOP3.LUT R1, R0, 0x20, RZ, 0x3c, !PT", "LDS R4, [R1.X4]", "EXIT"}}},
    {"read by another after an arrival alone",
     "race",
     {.line = {"S2R R0, SR_TID.X", "STS [R0.X4], R0", "BAR.SYNC.DEFER_BLOCKING 0x0",
               "STS [R0.X4], R0", "BAR.ARV 0x1, 0x40", "LOP3.LUT R1, R0, 0x20, RZ, 0x3c, !PT",
               "LDS R4, [R1.X4]", "EXIT"}}},
    {"registers that are free",
     NULL,
     {.line = {"USETMAXREG.DEALLOC.CTAPOOL 0x18",
               ".L_x_0:", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20", UNTIL_UP0, "EXIT"}}},
    {"a register that was given back",
     "R24 of a warp that has 24 registers",
     {.line = {"USETMAXREG.DEALLOC.CTAPOOL 0x18", "IADD3 R24, RZ, RZ, RZ", "EXIT"}}},
    {"registers that nobody gave back",
     "deadlock",
     {.line = {".L_x_0:", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x30", UNTIL_UP0, "EXIT"}}},
    {"a product that is waited for",
     NULL,
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", PRODUCT,
               "WARPGROUP.DEPBAR.LE gsb0, 0x0", "IADD3 R1, R24, RZ, RZ", "EXIT"}}},
    {"sums in flight",
     "R24 is read, a product in flight",
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", PRODUCT,
               "WARPGROUP.DEPBAR.LE gsb0, 0x1", "IADD3 R1, R24, RZ, RZ", "EXIT"}}},
    {"a first operand in flight",
     "R33 is written, a product in flight",
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", PRODUCT,
               "IADD3 R33, R1, RZ, RZ", "EXIT"}}},
    {"a product that nobody waits for",
     "nobody waited for its products",
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", PRODUCT, "EXIT"}}},
    {"an operand behind no fence",
     "no fence.proxy.async",
     {.line = {OPERAND, "WARPGROUP.ARRIVE", PRODUCT, "EXIT"}}},
    {"sums behind no fence",
     "R24 of a product was read after the last WARPGROUP.ARRIVE",
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", "MOV R1, R24", PRODUCT,
               "EXIT"}}},
    {"one of two warps in a product",
     "different products",
     {.line = {"S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 EXIT",
               "STS.128 [R0.X16], R4", "STS.128 [R0.X16+0x200], R4", "UMOV UR7, 0x40000040",
               "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", PRODUCT,
               "WARPGROUP.DEPBAR.LE gsb0, 0x0", "EXIT"}}},
    {"a first operand behind no fence",
     "R32 of a product was written after the last WARPGROUP.ARRIVE",
     {.line = {OPERAND, "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE", "MOV R32, R0", PRODUCT,
               "EXIT"}}},
    {"a result that is waited for",
     NULL,
     {.line = {"S2R R0, SR_LANEID", "IADD3 R1, R0, 0x1, RZ", "EXIT"},
      .control = {SETS(2), WAITS(2)}}},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(faults); k++) {
        struct run r;
        run(&faults[k].text,
            strstr(faults[k].name, "another") || strstr(faults[k].name, "two") ? 2 : 1, &r);
        if (!faults[k].fault && r.result)
            fail_msg("%s: %s", faults[k].name, r.why);
        if (faults[k].fault && (!r.result || !strstr(r.why, faults[k].fault)))
            fail_msg("%s: expected \"%s\", was \"%s\"", faults[k].name, faults[k].fault, r.why);
    }
}

/* ---- values ---- */

/* R4, R5 are 7 and 0x80000001, R6 the lane, R8:R9 0x1ffffffff, P0 holds in even lanes; lanes 1 and 2 of R1. */
static const struct {
    const char *line[3];
    uint32_t odd, even;
} values[] = {
    {{"IADD3 R1, R4, -0x2, R5"}, 0x80000006, 0x80000006},
    {{"IADD3 R1, P1, R5, R5, RZ", "IADD3.X R1, R4, RZ, RZ, P1, !PT"}, 8, 8},
    {{"IMAD.WIDE.U32 R10, R5, 0x4, R8", "IADD3 R1, R11, RZ, RZ"}, 4, 4},
    {{"IMAD.HI.U32 R1, R5, 0x2, RZ"}, 1, 1},
    {{"LEA.HI R1, R5, R4, RZ, 0x1e"}, 0x20000007, 0x20000007},
    {{"LEA R1, R6, R4, 0x3"}, 15, 23},
    {{"LOP3.LUT R1, R5, 0x7, R4, 0xe2, !PT"}, 1, 1},
    {{"SHF.R.S32.HI R1, RZ, 0x1f, R5"}, 0xffffffff, 0xffffffff},
    {{"SHF.R.U64 R1, R8, 0x1, R9"}, 0xffffffff, 0xffffffff},
    {{"SHF.L.U32 R1, R4, 0x20, RZ"}, 0, 0},
    {{"SHF.L.W.U32 R1, R4, 0x21, RZ"}, 14, 14},
    {{"PRMT R1, R5, 0x9730, R4"}, 0x8001, 0x8001},
    {{"SEL R1, R4, RZ, P0"}, 0, 7},
    {{"ISETP.GT.AND P1, PT, R5, RZ, PT", "SEL R1, R4, RZ, P1"}, 0, 0},
    {{"ISETP.GT.U32.AND P1, PT, R5, RZ, PT", "SEL R1, R4, RZ, P1"}, 7, 7},
    {{"P2R R1, PR, RZ, 0x1"}, 0, 1},
    {{"@P0 IADD3 R1, R4, R4, RZ"}, 0, 14},
    {{"VOTE.ANY R1, PT, P0"}, 0x55555555, 0x55555555},
    {{"SHFL.BFLY PT, R1, R6, 0x1, 0x1f"}, 0, 3},
    {{"REDUX.OR UR4, R6", "MOV R1, UR4"}, 31, 31},
    {{"I2F.U32.RP R1, R5"}, 0x4f000001, 0x4f000001},
    {{"MUFU.EX2 R1, 3"}, 0x41000000, 0x41000000},
    {{"FFMA R1, RZ, 1, -1.5"}, 0xbfc00000, 0xbfc00000},
    {{"FMNMX R1, +QNAN , 2, !PT"}, 0x40000000, 0x40000000},
    {{"FMNMX.NAN R1, +QNAN , 2, !PT"}, 0x7fffffff, 0x7fffffff},
    {{"F2FP.BF16.PACK_AB R1, 1, -2"}, 0x3f80c000, 0x3f80c000},
    {{"FSETP.NEU.AND P1, PT, |R4|, +INF , PT", "SEL R1, R4, RZ, P1"}, 7, 7},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(values); k++) {
        struct run r;
        struct text whole = {
            .line = {"S2R R6, SR_LANEID", "LOP3.LUT R7, R6, 0x1, RZ, 0xc0, !PT",
                     "ISETP.EQ.AND P0, PT, R7, RZ, PT", "MOV R4, 0x7", "MOV R5, 0x80000001",
                     "MOV R8, 0xffffffff", "MOV R9, 0x1"}};
        uint32_t at = 7;
        for (uint32_t x = 0; x < 2 && values[k].line[x]; x++)
            whole.line[at++] = values[k].line[x];
        whole.line[at++] = "IMAD.WIDE.U32 R2, R6, 0x4, c[0x0][0x160]";
        whole.line[at++] = "STG.E [R2.64], R1";
        whole.line[at] = "EXIT";
        run(&whole, 1, &r);
        if (r.result || r.out[1] != values[k].odd || r.out[2] != values[k].even)
            fail_msg("%s: 0x%x and 0x%x, expected 0x%x and 0x%x %s", values[k].line[0],
                     r.out[1], r.out[2], values[k].odd, values[k].even, r.why);
    }
}

/* Lanes part at a branch, work apart and meet again; BRA.U is taken where all of them would, BRA.U.ANY where one would. */
static void test_paths_meet(void **state)
{
#define LANES(least) "S2R R6, SR_LANEID", "ISETP.GE.AND P0, PT, R6, " least ", PT"
#define TOGETHER(least, branch)  \
    {                            \
        .line = {                \
            LANES(least),        \
            "MOV R1, 0x4",       \
            branch " `(.L_x_0)", \
            "MOV R1, 0x5",       \
            ".L_x_0:",           \
            RESULT               \
        }                        \
    }
#define RESULT                                                                   \
    "SHFL.IDX PT, R1, R1, RZ, 0x1f", "IMAD.WIDE.U32 R2, R6, 0x4, c[0x0][0x160]", \
        "STG.E [R2.64], R1", "EXIT"
    static const struct text texts[] = {
        {.line = {LANES("0x10"), "BSSY B0, `(.L_x_1)", "@P0 BRA `(.L_x_0)", "MOV R1, 0x5",
                  ".L_x_0:", "BSYNC B0", ".L_x_1:", RESULT}},
        TOGETHER("0x10", "@P0 BRA.U"),
        TOGETHER("RZ", "@P0 BRA.U"),
        TOGETHER("0x10", "@P0 BRA.U.ANY")};
    (void)state;
    for (uint32_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct run r;
        run(&texts[k], 1, &r);
        if (r.result)
            fail_msg("%s", r.why);
        for (uint32_t l = 0; l < 32; l++)
            assert_int_equal(r.out[l], k < 2 ? 5 : 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_paths_meet),
    };
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 77;
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
