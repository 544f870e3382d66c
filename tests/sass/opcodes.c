/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions that are known: a name up to its first dot that is a modifier's, its handler, and the
   modifiers that it may have. What is not here is refused when a cubin is loaded. */
#include "tests/sass/handlers.h"
#include <stdio.h>
#include <stdlib.h>

#define COMPARISONS "LT LE GT GE EQ NE AND OR XOR "

struct opcode {
    const char *name;
    run_instruction *run;
    enum control_kind control;
    const char
        *modifiers;   /* those that count, and the others in brackets, which say nothing here */
    uint8_t words[4]; /* registers of operands 0 to 3; 0: one, or as many as `bytes` says */
    bool stores;      /* operand 0 is no result */
};

static const struct opcode opcodes[] = {
    /* integers */
    {"IADD3", run_iadd3, 0, "X", {0}, 0},
    {"UIADD3.64", run_iadd_wide, 0, "", {2, 2, 2, 2}, 0},
    {"UIADD3", run_iadd3, 0, "X", {0}, 0},
    {"IADD.64", run_iadd_wide, 0, "", {2, 2, 2, 2}, 0},
    {"IADD", run_viadd, 0, "", {0}, 0},
    {"VIADD", run_viadd, 0, "", {0}, 0},
    {"IMAD.WIDE", run_imad_wide, 0, "U32 X", {2, 1, 1, 2}, 0},
    {"UIMAD.WIDE", run_imad_wide, 0, "U32 X", {2, 1, 1, 2}, 0},
    {"IMAD.HI", run_imad_hi, 0, "U32", {1, 1, 1, 2}, 0},
    {"UIMAD.HI", run_imad_hi, 0, "U32", {1, 1, 1, 2}, 0},
    {"IMAD", run_imad, 0, "X [MOV] [IADD] [SHL] [U32]", {0}, 0},
    {"UIMAD", run_imad, 0, "X [MOV] [IADD] [SHL] [U32]", {0}, 0},
    {"LEA", run_lea, 0, "HI X SX32", {0}, 0},
    {"ULEA", run_lea, 0, "HI X SX32", {0}, 0},
    {"LOP3", run_lop3, 0, "[LUT] PAND", {0}, 0},
    {"ULOP3", run_lop3, 0, "[LUT] PAND", {0}, 0},
    {"SHF", run_shf, 0, "L R W U32 S32 U64 S64 HI", {0}, 0},
    {"USHF", run_shf, 0, "L R W U32 S32 U64 S64 HI", {0}, 0},
    {"BMSK", run_bmsk, 0, "", {0}, 0},
    {"PRMT", run_prmt, 0, "", {0}, 0},
    {"UPRMT", run_prmt, 0, "", {0}, 0},
    {"IMNMX", run_imnmx, 0, "U32", {0}, 0},
    {"VIMNMX", run_imnmx, 0, "U32", {0}, 0},
    {"UVIMNMX", run_imnmx, 0, "U32", {0}, 0},
    {"VIADDMNMX", run_viaddmnmx, 0, "U32", {0}, 0},
    {"POPC", run_popc, 0, "", {0}, 0},
    {"UPOPC", run_popc, 0, "", {0}, 0},
    /* predicates */
    {"ISETP", run_isetp, 0, COMPARISONS "U32 EX S64 U64", {0}, 0},
    {"UISETP", run_isetp, 0, COMPARISONS "U32 EX S64 U64", {0}, 0},
    {"FSETP", run_fsetp, 0, COMPARISONS "LTU LEU GTU GEU EQU NEU [FTZ]", {0}, 0},
    {"UFSETP", run_fsetp, 0, COMPARISONS "LTU LEU GTU GEU EQU NEU [FTZ]", {0}, 0},
    {"FSET", run_fset, 0, COMPARISONS "BF LTU LEU GTU GEU EQU NEU", {0}, 0},
    {"PLOP3", run_plop3, 0, "[LUT]", {0}, 0},
    {"UPLOP3", run_plop3, 0, "[LUT]", {0}, 0},
    {"P2R", run_p2r, 0, "", {0}, 0},
    {"R2P", run_r2p, 0, "", {0}, 0},
    {"SEL.64", run_sel_wide, 0, "", {2, 2, 2, 1}, 0},
    {"USEL.64", run_sel_wide, 0, "", {2, 2, 2, 1}, 0},
    {"SEL", run_sel, 0, "", {0}, 0},
    {"USEL", run_sel, 0, "", {0}, 0},
    {"FSEL", run_fsel, 0, "", {0}, 0},
    {"UFSEL", run_fsel, 0, "", {0}, 0},
    /* moves */
    {"MOV.64", run_mov_wide, 0, "", {2, 2}, 0},
    {"UMOV.64", run_mov_wide, 0, "", {2, 2}, 0},
    {"MOV", run_mov, 0, "", {0}, 0},
    {"UMOV", run_mov, 0, "", {0}, 0},
    {"LDC", run_constant, 0, "[64] [128]", {0}, 0},
    {"LDCU", run_constant, 0, "[64] [128]", {0}, 0},
    {"ULDC", run_constant, 0, "[64]", {0}, 0},
    {"S2R", run_special, 0, "", {0}, 0},
    {"S2UR", run_special, 0, "", {0}, 0},
    {"CS2R", run_zero, 0, "", {2}, 0},
    {"R2UR", run_first, 0, "", {0}, 0},
    /* floats */
    {"FADD", run_fadd, 0, "FTZ RP RM RZ", {0}, 0},
    {"UFADD", run_fadd, 0, "FTZ", {0}, 0},
    {"FMUL", run_fmul, 0, "FTZ RP RM RZ", {0}, 0},
    {"UFMUL", run_fmul, 0, "FTZ", {0}, 0},
    {"FFMA", run_ffma, 0, "FTZ RP RM RZ", {0}, 0},
    {"UFFMA", run_ffma, 0, "FTZ", {0}, 0},
    {"FMNMX", run_fmnmx, 0, "NAN FTZ", {0}, 0},
    {"UFMNMX", run_fmnmx, 0, "NAN FTZ", {0}, 0},
    {"MUFU", run_mufu, 0, "EX2 LG2 RCP RSQ", {0}, 0},
    {"FCHK", run_fchk, 0, "", {0}, 0},
    {"I2F.U64", run_i2f_wide, 0, "RP", {1, 2}, 0},
    {"I2F", run_i2f, 0, "U16 U32 RP", {0}, 0},
    {"UI2F", run_i2f, 0, "U32 RP", {0}, 0},
    {"I2FP.F32", run_i2f, 0, "U32", {0}, 0},
    {"F2I.U64", run_f2i_wide, 0, "[TRUNC] [FTZ]", {2}, 0},
    {"F2I", run_f2i, 0, "U32 TRUNC [FTZ] [NTZ]", {0}, 0},
    {"UF2I", run_f2i, 0, "U32 TRUNC [FTZ] [NTZ]", {0}, 0},
    {"F2FP", run_pack, 0, "BF16 [F16] [F32] [PACK_AB]", {0}, 0},
    {"HADD2.F32", run_half_to_float, 0, "", {0}, 0},
    {"HFMA2", run_half_constants, 0, "[MMA]", {0}, 0},
    /* memory */
    {"LDG", run_load, 0, "[E] [64] [128] U8 S8 U16 S16 [CONSTANT]", {0}, 0},
    {"LD", run_load, 0, "[E] [64] [128] U8 S8 U16 S16", {0}, 0},
    {"STG", run_store, 0, "[E] [64] [128] U8 U16", {0}, 1},
    {"ST", run_store, 0, "[E] [64] [128] U8 U16", {0}, 1},
    {"LDL", run_load_local, 0, "[64] [128] [LU]", {0}, 0},
    {"STL", run_store_local, 0, "[64] [128]", {0}, 1},
    {"LDS", run_load_shared, 0, "[64] [128] U8 U16", {0}, 0},
    {"STS", run_store_shared, 0, "[64] [128] U8 U16", {0}, 1},
    {"LDSM.16", run_load_matrix, 0, "[M88] MT88 [4]", {4}, 0},
    {"STSM.16", run_store_matrix, 0, "[M88] MT88 [4]", {1, 4}, 1},
    {"LDGSTS", run_copy, 0, "[E] [BYPASS] [LTC128B] [128] [ZFILL]", {0}, 1},
    {"LDGDEPBAR", run_copy_commit, 0, "", {0}, 1},
    {"DEPBAR.LE", run_copy_wait, 0, "", {0}, 1},
    /* lanes together */
    {"SHFL", run_shuffle, 0, "BFLY IDX UP DOWN", {0}, 0},
    {"VOTE", run_vote, 0, "[ANY] ALL", {0}, 0},
    {"VOTEU", run_vote, 0, "[ANY] ALL", {0}, 0},
    {"ELECT", run_elect, 0, "", {0}, 0},
    {"REDUX", run_redux, 0, "OR", {0}, 0},
    {"HMMA.16816.F32", run_mma_16816, 0, "BF16", {4, 4, 2, 4}, 0},
    {"HMMA.1688.F32", run_mma_1688, 0, "TF32", {4, 4, 2, 4}, 0},
    /* warpgroups, bulk copies */
    {"HGMMA", run_product_issue, 0, "[F32] BF16", {1, 4, 4, 1}, 0},
    {"WARPGROUP.ARRIVE", run_products_fence, 0, "", {0}, 1},
    {"WARPGROUP.DEPBAR.LE", run_products_wait, 0, "", {0}, 1},
    {"SYNCS.EXCH.64", run_mbarrier_init, 0, "", {1, 1, 2}, 0},
    {"SYNCS.CCTL.IV", run_mbarrier_invalidate, 0, "", {0}, 1},
    {"SYNCS.ARRIVE.TRANS64", run_mbarrier_arrive, 0, "A1T0 ART0 A0TR [RED]", {0}, 0},
    {"SYNCS.PHASECHK.TRANS64", run_mbarrier_test, 0, "[TRYWAIT]", {0}, 0},
    {"UTMALDG", run_tensor_load, 0, "", {0}, 1},
    {"UTMASTG", run_tensor_store, 0, "", {0}, 1},
    {"UBLKCP.S.G", run_bulk_load, 0, "", {0}, 1},
    {"UTMACMDFLUSH", run_bulk_commit, 0, "", {0}, 1},
    {"USETMAXREG.DEALLOC", run_registers_down, 0, "[CTAPOOL]", {0}, 1},
    {"USETMAXREG.TRY_ALLOC", run_registers_up, 0, "[CTAPOOL]", {0}, 0},
    {"FENCE.VIEW.ASYNC.S", run_async_fence, 0, "", {0}, 1},
    {"MEMBAR", run_nothing, 0, "[ALL] [SC] [CTA] [GPU]", {0}, 1},
    {"CCTL.IVALL", run_nothing, 0, "", {0}, 1},
    {"BAR.ARV", run_named_arrive, 0, "", {0}, 1},
    /* control */
    {"BSSY", run_barrier_set, 0, "[RELIABLE] [RECONVERGENT]", {0}, 1},
    {"BREAK", run_barrier_leave, 0, "[RELIABLE]", {0}, 1},
    {"BSYNC", run_nothing, CONTROL_SYNC, "[RELIABLE] [RECONVERGENT]", {0}, 1},
    {"BRA", run_nothing, CONTROL_BRANCH, "DIV CONV ANY U", {0}, 1},
    {"BRXU", run_nothing, CONTROL_INDIRECT, "", {0}, 1},
    {"BRX", run_nothing, CONTROL_INDIRECT, "", {0}, 1},
    {"CALL.REL", run_nothing, CONTROL_BRANCH, "[NOINC]", {0}, 1},
    {"RET.REL", run_nothing, CONTROL_RETURN, "[NODEC]", {2}, 1},
    {"EXIT", run_nothing, CONTROL_EXIT, "", {0}, 1},
    {"WARPSYNC", run_nothing, CONTROL_WARP_SYNC, "[ALL] [COLLECTIVE] [EXCLUSIVE]", {0}, 1},
    {"BAR.SYNC", run_nothing, CONTROL_BLOCK_SYNC, "[DEFER_BLOCKING]", {0}, 1},
    {"ENDCOLLECTIVE", run_nothing, 0, "", {0}, 1},
    {"BPT.TRAP", run_trap, 0, "", {0}, 1},
    {"NOP", run_nothing, 0, "", {0}, 1},
    {"YIELD", run_nothing, 0, "", {0}, 1},
};

static const char *const modifier_names[] = {
#define M(name) #name,
    MODIFIERS(M)
#undef M
};

static bool starts(const char *s, const char *with, size_t n)
{
    return !strncmp(s, with, n) && (s[n] == 0 || s[n] == ' ' || s[n] == ']');
}

/* Whether `name` is in the list of modifiers; *counts: without brackets. */
static bool in_list(const char *list, const char *name, size_t n, bool *counts)
{
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ') {
        *counts = *at != '[';
        if (starts(at + !*counts, name, n))
            return true;
    }
    return false;
}

static uint64_t modifier_bit(const char *name, size_t n)
{
    for (uint32_t k = 0; k < MODIFIER_COUNT; k++)
        if (strlen(modifier_names[k]) == n && !strncmp(modifier_names[k], name, n))
            return 1ull << k;
    return 0;
}

static uint8_t bytes_of(const char *name, size_t n)
{
    static const struct {
        const char *name;
        uint8_t bytes;
    } table[] = {{"64", 8}, {"128", 16}, {"U8", 1}, {"S8", 1}, {"U16", 2}, {"S16", 2}};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strlen(table[k].name) == n && !strncmp(table[k].name, name, n))
            return table[k].bytes;
    return 0;
}

/* 64xNx16 is N / 8; kD is k. */
static uint8_t shape_of(const char *name, size_t n)
{
    char *end;
    if (n == 2 && name[0] >= '1' && name[0] <= '5' && name[1] == 'D')
        return (uint8_t)(name[0] - '0');
    if (strncmp(name, "64x", 3))
        return 0;
    const unsigned long columns = strtoul(name + 3, &end, 10);
    return strncmp(end, "x16", 3) || end + 3 != name + n || columns % 8 || columns > 256
               ? 0
               : (uint8_t)(columns / 8);
}

static const struct opcode *find(const char *name, size_t length)
{
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++) {
        const size_t n = strlen(opcodes[k].name);
        if (n <= length && !strncmp(name, opcodes[k].name, n) &&
            (n == length || name[n] == '.'))
            return &opcodes[k];
    }
    return NULL;
}

/* .X.Y after the name. */
static bool read_modifiers(struct instruction *i, const struct opcode *o, const char *at,
                           const char *end)
{
    while (at < end) {
        const char *part = at + 1;
        const size_t n = strcspn(part, ". ;");
        bool counts = false;
        at = part + n;
        if (shape_of(part, n)) {
            i->bytes = shape_of(part, n);
            continue;
        }
        if (!in_list(o->modifiers, part, n, &counts))
            return false;
        i->modifiers |= counts ? modifier_bit(part, n) : 0;
        i->bytes = bytes_of(part, n) ? bytes_of(part, n) : i->bytes;
    }
    return true;
}

bool opcode_find(struct instruction *i, const char *name, size_t length, char *why,
                 size_t capacity)
{
    const struct opcode *o = find(name, length);
    i->bytes = 4;
    if (!o || !read_modifiers(i, o, name + strlen(o->name), name + length)) {
        snprintf(why, capacity, "an instruction that is not known: %.*s", (int)length, name);
        return false;
    }
    i->run = o->run;
    i->control = (uint8_t)o->control;
    i->stores = o->stores;
    const bool memory = i->bytes > 4;
    for (uint32_t k = 0; k < 4; k++)
        i->words[k] = o->words[k] ? o->words[k] : memory ? i->bytes / 4 : 1;
    return true;
}
