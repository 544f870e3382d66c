/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that runs SASS, the GPU's own instructions, on a CPU: a block of warps of 32 lanes, what its
   instructions look like once parsed, and how handlers read and write registers. Values of a warp are
   vectors of 32 lanes; predicates are words with a bit for each lane. */
#pragma once
#include "tests/sass/cost/cost.h"
#include "tests/sass/lanes.h"
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ZERO_REGISTER = 255, /* RZ, and URZ whatever its number is */
    TRUE_PREDICATE = 7,  /* PT, UPT */
    MAX_OPERANDS = 10,
    MAX_MODIFIERS = 8,
    MAX_BARRIERS = 16,    /* convergence barriers B0.. of a warp */
    SCOREBOARDS = 6,      /* SB0.. of a warp */
    LOCAL_WORDS = 4096,   /* local memory of a thread */
    MAX_SCORED = 16,      /* registers that an instruction reads */
    SCORED_UNIFORM = 256, /* registers as scoreboards count them: R, UR, P, UP */
    SCORED_PREDICATE = 512,
    SCORED = 528,
    BANKS = 5, /* constant banks c[0x0].. */
    MAX_ARGUMENTS = 16,
};

/* ---- an instruction ---- */

enum operand_kind {
    OPERAND_NONE,
    OPERAND_REGISTER,   /* R4, -R4, |R4|, ~R4, R4.H0_H0 */
    OPERAND_UNIFORM,    /* UR4 */
    OPERAND_PREDICATE,  /* P0, !P0, UP0 */
    OPERAND_IMMEDIATE,  /* 0x10, 1.5 */
    OPERAND_CONSTANT,   /* c[0x0][0x160], c[0x2][R4+0x10] */
    OPERAND_ADDRESS,    /* [R4.64+UR5+0x10] */
    OPERAND_LABEL,      /* `(.L_x_1): value is the instruction's index */
    OPERAND_SPECIAL,    /* SR_TID.X */
    OPERAND_BARRIER,    /* B0 */
    OPERAND_SCOREBOARD, /* SB0 */
    OPERAND_FILE,       /* PR: all predicates */
    OPERAND_MATRIX,     /* gdesc[UR4].tnspB: a descriptor, or two, in uniform registers */
    OPERAND_GROUP,      /* gsb0: products in flight */
};

/* Fields after gdesc[UR4]. */
enum {
    MATRIX_TRANSPOSE_A = 1,
    MATRIX_TRANSPOSE_B = 2,
    MATRIX_NEGATIVE_A = 4,
    MATRIX_NEGATIVE_B = 8,
};

enum special { SPECIAL_ZERO, SPECIAL_THREAD, SPECIAL_BLOCK, SPECIAL_WAVE, SPECIAL_LANE };

struct operand {
    enum operand_kind kind;
    uint8_t index;   /* of the register, predicate, barrier; enum special */
    uint8_t uniform; /* of an address or constant: UR that is added, else ZERO_REGISTER */
    uint8_t bank;    /* of a constant */
    uint8_t scale;   /* of an address: the register counts that many times */
    bool negative, absolute, inverted; /* -x, |x|, ~x; inverted predicate: !P0 */
    bool is_uniform;                   /* a predicate UP */
    bool wide;                         /* .64 */
    bool decimal;   /* an immediate that was written as a decimal number, in `number` */
    uint8_t matrix; /* of a descriptor: MATRIX_TRANSPOSE_A.. */
    uint8_t half;   /* 1 + 0: .H0_H0, 1 + 1: .H1_H1; or 1 + k: .Bk */
    uint32_t value; /* of an immediate; the offset of an address or constant; a label's index */
    double number;
};

struct warp;
struct instruction;
typedef void run_instruction(struct warp *w, const struct instruction *i, uint32_t mask);

struct instruction {
    run_instruction *run;
    struct operand guard; /* @P0; of kind NONE without one */
    struct operand op[MAX_OPERANDS];
    uint8_t operands;
    uint8_t outputs;    /* predicates that follow operand 0 */
    uint64_t modifiers; /* a bit each of enum modifier, after the opcode's name */
    uint8_t control;    /* enum control_kind; 0: goes on to the next */
    uint8_t
        bytes; /* of an access to memory: 1, 2, 4, 8, 16; dimensions of a tensor; columns of HGMMA by 8 */
    uint8_t words[4];      /* registers that operands 0 to 3 are */
    bool stores;           /* operand 0 is no result */
    uint32_t address;      /* in the function */
    uint8_t writes, reads; /* scoreboards that it sets (7: none) */
    uint8_t waits;         /* those that it waits for, a bit each */
    uint8_t stall;         /* cycles until the warp's next instruction */
    uint16_t needs;        /* registers of a thread: up to the highest that it names */
    uint8_t n_results, n_sources;
    uint16_t result[MAX_SCORED], source[MAX_SCORED]; /* registers, as scoreboards count them */
    const char *text;                                /* as disassembled */
};

/* Suffixes of an opcode's name that change the instruction. */
/* clang-format off */
#define MODIFIERS(M) \
    M(X) M(EX) M(U32) M(S32) M(U64) M(S64) M(U16) M(S16) M(S8) M(AND) M(OR) M(LT) M(LE) \
    M(GT) M(GE) M(EQ) M(NE) M(LTU) M(LEU) M(GTU) M(GEU) M(EQU) M(NEU) M(HI) M(L) M(W) \
    M(SX32) M(FTZ) M(RP) M(RM) M(RZ) M(BF16) M(TF32) M(BF) M(TRUNC) M(BFLY) M(UP) \
    M(DOWN) M(ALL) M(MT88) M(DIV) M(CONV) M(PAND) M(EX2) M(LG2) M(RCP) M(RSQ) M(NAN) \
    M(ANY) M(A1T0) M(ART0) M(A0TR) M(U)
/* clang-format on */
enum modifier {
#define M(name) MODIFIER_##name,
    MODIFIERS(M)
#undef M
        MODIFIER_COUNT
};
_Static_assert(MODIFIER_COUNT <= 64, "modifiers are bits of a word");

static inline bool has(const struct instruction *i, enum modifier m)
{
    return i->modifiers >> m & 1;
}

/* Kinds of instructions that change the control flow; control.c. */
enum control_kind {
    CONTROL_NONE,
    CONTROL_BRANCH,
    CONTROL_INDIRECT,
    CONTROL_RETURN,
    CONTROL_EXIT,
    CONTROL_SYNC, /* BSYNC */
    CONTROL_WARP_SYNC,
    CONTROL_BLOCK_SYNC, /* BAR.SYNC */
    CONTROL_NAMED_SYNC, /* the same of some warps */
};

/* ---- a program: one entry of a cubin ---- */

struct argument {
    uint32_t offset, bytes; /* in the parameters */
};

struct program {
    char entry[48];
    struct instruction *code;
    uint32_t count;
    char *text;           /* what `text` of the instructions points into */
    uint8_t *bank[BANKS]; /* constants; bank 0 is filled in at launch */
    uint32_t bank_bytes[BANKS];
    uint32_t parameters; /* where they begin in bank 0 */
    uint32_t parameter_bytes;
    uint32_t shared_base; /* bytes of shared memory that are the system's */
    uint32_t shared_static;
    uint32_t registers;                      /* of a thread */
    bool apart;                              /* its warps run apart: hopper/ */
    struct argument argument[MAX_ARGUMENTS]; /* of the entry; none: all are one */
    uint32_t arguments;
};

/* ---- a block that runs ---- */

/* Lanes that are at the same place together. */
struct path {
    uint32_t pc, mask;
    uint8_t waits;   /* enum control_kind, 0: it can run */
    uint8_t barrier; /* CONTROL_SYNC, CONTROL_NAMED_SYNC: which */
    bool polled;     /* it asked for what is not there yet, and lets others run */
    uint32_t sync;   /* CONTROL_WARP_SYNC: whom it waits for */
};

/* A copy from global to shared memory on its way. */
struct copy {
    uint32_t to[32];
    uint8_t data[32][16];
    uint32_t mask;
    uint32_t bytes;
    uint32_t group; /* commits of the warp before it */
};

/* A register that is not there yet, or not yet read. */
struct pending {
    uint32_t mask;      /* lanes */
    uint8_t scoreboard; /* that says when */
    uint8_t also;       /* a result's scoreboard says that sources were read too */
};

struct started {
    uint32_t count;
    struct pending *pending[64]; /* beyond as many all are looked at */
};

struct warp {
    lanes r[256];
    uint32_t ur[256];
    uint32_t p[8], up[8]; /* a bit for each lane; uniform ones: all or none */
    lanes barrier[MAX_BARRIERS],
        target[MAX_BARRIERS]; /* of each lane: who meets, and where all go on */
    struct path path[32];
    uint32_t paths, live;
    uint32_t index; /* within the block */
    struct block *block;
    struct copy *copy; /* in the order of issue */
    uint32_t copies, copy_capacity, groups;
    uint32_t *local; /* [LOCAL_WORDS][32], once it is used */
    struct pending written[SCORED],
        read[SCORED]; /* by an instruction that has not ended: scoreboard.c */
    struct started started[SCOREBOARDS]; /* those registers by their scoreboard */
    uint32_t outstanding;                /* scoreboards of such instructions, a bit each */
    struct warp_clock clock;
    const struct instruction *now;
    bool yields; /* the instruction found that others must go on first */
};

struct memory;
struct hopper;
struct shadow; /* who wrote and read shared memory: shared.c */

struct block {
    const struct program *program;
    struct memory *memory;
    struct warp *warp;
    uint32_t warps, index, grid, wave;
    uint8_t *shared;
    uint32_t shared_bytes; /* with what is the system's at the beginning */
    struct shadow *shadow;
    struct hopper *hopper; /* of a program whose warps run apart, else null */
    bool early;            /* asynchronous work happens at once: hopper.h */
    uint32_t epoch;        /* barriers of the block so far */
    uint64_t *counts;      /* [program->count] times issued, or null */
    uint64_t copied;       /* bytes of tensors that bulk loads brought to shared memory */
    struct cost *cost;     /* or null */
    uint8_t *needed; /* [program->count] 1: a wait or a barrier that was needed; or null */
    uint32_t opened; /* the barrier that began this epoch: its instruction */
    void (*trace)(void *to, uint32_t warp, uint32_t pc);
    void *trace_to;
    uint64_t left; /* instructions until it counts as hanging */
    uint64_t random;
    jmp_buf *fault_at;
    char *fault; /* [FAULT_TEXT] */
};

enum { FAULT_TEXT = 512 };

/* Ends the launch: what the instruction at w->now did wrong. */
_Noreturn void fault(const struct warp *w, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- registers ---- */

/* The operand as 32-bit words, its -x or ~x applied as to integers. For a float operand use float_of. */
lanes word_of(const struct warp *w, const struct operand *o);

/* Operand as floats: -x, |x|. */
float_lanes float_of(const struct warp *w, const struct operand *o);

/* A register pair. */
wide_lanes wide_of(const struct warp *w, const struct operand *o);

/* Lanes where it holds. */
uint32_t predicate_of(const struct warp *w, const struct operand *o);

/* Write the lanes of `mask`; RZ and PT take nothing. A uniform register takes the first lane's. */
void put_word(struct warp *w, const struct operand *to, lanes x, uint32_t mask);
void put_wide(struct warp *w, const struct operand *to, wide_lanes x, uint32_t mask);
void put_predicate(struct warp *w, const struct operand *to, uint32_t x, uint32_t mask);

/* Register `index` + k; RZ reads as zero. */
static inline lanes register_at(const struct warp *w, uint32_t index, uint32_t k)
{
    return index == ZERO_REGISTER ? (lanes){0} : w->r[index + k];
}

static inline void put_register(struct warp *w, uint32_t index, lanes x, uint32_t mask)
{
    if (index == ZERO_REGISTER)
        return;
    w->r[index] = mask == ALL_LANES ? x : lanes_choose(lanes_of_mask(mask), x, w->r[index]);
}

/* ---- parts ---- */

/* Parses nvdisasm's text of one function (with -hex): 0, or -1 with a line in `why`. */
int program_parse(struct program *p, const char *text, char *why, size_t capacity);
void program_finish(struct program *p);

/* The opcode's handler, control kind and modifiers; false: it is not known. */
bool opcode_find(struct instruction *i, const char *name, size_t length, char *why,
                 size_t capacity);

/* Runs a block to its end; 0, or -1 with block->fault set. */
int block_run(struct block *b);

/* One instruction that leaves the straight line, for lanes `mask` of the path: control.c. */
void control(struct warp *w, struct path *p, const struct instruction *i, uint32_t mask);
/* Lets paths go on that have waited for what has come about; false: nothing has. */
bool control_release(struct warp *w);

/* Scoreboards: lists the registers of an instruction; faults where one uses what nobody waited for. */
void scoreboard_list(struct instruction *i);
void scoreboard_issue(struct warp *w, const struct instruction *i, uint32_t mask);

/* Faults where a result for one of the registers is on its way. */
void scoreboard_need(struct warp *w, uint32_t first, uint32_t count);

/* A number below `below`, from the block's seed. */
uint32_t block_draw(struct block *b, uint32_t below);

/* Allocates the shadow of this many bytes of shared memory. */
struct shadow *shadow_new(uint32_t bytes);
void shadow_destroy(struct shadow *s);

/* Where each lane goes in shared memory; a write there by the warp. */
lanes shared_addresses(const struct warp *w, const struct operand *o);
void shared_write(struct warp *w, uint32_t at, uint32_t bytes);
