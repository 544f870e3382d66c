/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to break the kernels of cuda_hopper: a part of a function's text, its first place there, and the text that takes its
   place. Each must make a launch of its subject fail.

   Not here, because nothing can notice it: SYNC_WARP() after mbarrier_expect(), since copies may bring bytes of a phase before
   they are expected; hold_floats() and hold_words(), which only the compiler reads; keep_rows() and keep_held(), whose branch
   is never taken (sass/rows_test); the second word in has_row(), since blocks that come later overwrite a wrong delta
   (hopper_kernels_test runs several orders). */
#pragma once

enum subject { WIDE, NARROW, SCATTERED, DEEP, CUT, SUBJECTS };

struct kernel_fault {
    enum subject subject;
    const char *function, *find, *replace;
};

/* clang-format off */
static const struct kernel_fault kernel_faults[] = {
    /* fences and waits of products */
    {WIDE,      "forward_first",  "wgmma_fence();", ""},
    {WIDE,      "forward_step",   "wgmma_fence();", ""},
    {WIDE,      "forward_first",  "WGMMA_WAIT(0);", ""},
    {WIDE,      "forward_step",   "WGMMA_WAIT(1);", ""},
    {WIDE,      "forward_step",   "WGMMA_WAIT(0);", ""},
    {WIDE,      "forward_step",   "rescale(&f->o, alpha);", ""},
    {WIDE,      "forward_finish", "WGMMA_WAIT(0);", ""},
    {WIDE,      "issue_scores",   "wgmma_commit();", ""},
    {WIDE,      "backward_step",  "    wgmma_fence();\n    issue_both", "    issue_both"},
    {NARROW,    "backward_step",  "    wgmma_fence();\n    issue_sums", "    issue_sums"},
    {WIDE,      "backward_step",  "WGMMA_WAIT(0);", ""},
    {WIDE,      "await_x",        "WGMMA_WAIT(1);", ""},
    {NARROW,    "backward_steps", "WGMMA_WAIT(0);", ""},
    {DEEP,      "step_end",       "WGMMA_WAIT(0);", ""},
    {WIDE,      "issue_sums",     "wgmma_commit();", ""},
    /* arrivals */
    {WIDE,      "forward_first",  "stage_give_back(g, g->stage.at, 0);", ""},
    {WIDE,      "forward_step",   "stage_give_back(g, f->last.at, 1);", ""},
    {WIDE,      "forward_finish", "stage_give_back(g, f->last.at, 1);", ""},
    {NARROW,    "await_x",        "give_back_last(b, g);", ""},
    {WIDE,      "stage_give_back", "lane() == 0", "lane() < 2"},
    {WIDE,      "give_back_rows", "g->thread == 0 && g->owed", "g->thread == 0"},
    {WIDE,      "give_back_rows", "bulk_wait_read();", ""},
    {DEEP,      "item_end",       "bulk_wait_read();", ""},
    {WIDE,      "barrier_arrivals", "4 * k->warpgroups", "4 * k->warpgroups - 1"},
    {WIDE,      "barrier_arrivals", "4 * k->warpgroups", "4 * k->warpgroups + 1"},
    {WIDE,      "give_back_last", "b->pending = 0;", ""},
    /* phases */
    {WIDE,      "copy_works",     "c.rows.phase = c.stage.phase = 1;", "c.rows.phase = c.stage.phase = 0;"},
    {WIDE,      "ring_advance",   "p->phase ^= 1;", ""},
    {WIDE,      "item_start",     "mbarrier_wait(", "(void)("},
    {WIDE,      "step_read",      "mbarrier_wait(", "(void)("},
    {WIDE,      "await_columns",  "mbarrier_wait(", "(void)("},
    {WIDE,      "forward_step",   "await_columns(g, &s);", ""},
    {WIDE,      "copy_step",      "mbarrier_wait(", "(void)("},
    {WIDE,      "copy_second",    "mbarrier_wait(", "(void)("},
    {WIDE,      "copy_work",      "mbarrier_wait(", "(void)("},
    /* bytes that a phase expects */
    {WIDE,      "step_bytes",     "(3 - k->stage_parts)", "(2 - k->stage_parts)"},
    {SCATTERED, "step_bytes",     "HOPPER_PATTERN_BYTES * bit_count(i->some >> 16)", "0"},
    {SCATTERED, "step_bytes",     "k->slots - bit_count(i->gathered)", "k->slots"},
    {WIDE,      "copy_work",      "bit_count(c->alive)", "(bit_count(c->alive) + 1)"},
    {WIDE,      "copy_second",    "mbarrier_expect(barrier, column_bytes(c->k));", "mbarrier_expect(barrier, 0);"},
    /* descriptors and operands */
    {DEEP,      "matrix_descriptor", "(u64)(leading >> 4) << 16", "(u64)(leading >> 4) << 17"},
    {WIDE,      "matrix_descriptor", "(u64)1 << 62", "(u64)2 << 62"},
    {WIDE,      "matrix_descriptor", "(u64)(1024 >> 4) << 32", "(u64)(512 >> 4) << 32"},
    {WIDE,      "matrix_further", "bytes >> 4", "bytes >> 5"},
    {DEEP,      "head_step",      "of / 4 * part_bytes", "0"},
    {WIDE,      "multiply_columns", "of * COLUMN_STEP_BYTES", "(of ^ 1) * COLUMN_STEP_BYTES"},
    {DEEP,      "multiply_columns", "column_part(k));", "64);"},
    {NARROW,    "read_rows",      "^ row % 8", "^ row % 4"},
    /* fences between ordinary stores and copies, and barriers of a warpgroup */
    {WIDE,      "store_outputs",  "async_fence();", ""},
    {WIDE,      "store_outputs",  "warpgroup_sync(g);", ""},
    {WIDE,      "forward_store",  "warpgroup_sync(g); /* nobody", "/* nobody"},
    {WIDE,      "store_outputs",  "bulk_commit();", ""},
    {WIDE,      "block_start",    "mbarrier_init_fence();", ""},
    {WIDE,      "block_start",    "SYNC();", ""},
    {WIDE,      "copy_step",      "SYNC_WARP();\n    copy_first", "copy_first"},
    {WIDE,      "copy_work",      "SYNC_WARP();", ""},
    {WIDE,      "forward_items",  "bulk_wait();", ""},
    /* what a row sees: padding, patterns, live columns, lengths */
    {SCATTERED, "load_slot_rows", "i32 row = ABSENT;", "i32 row = (i32)(first + l);"},
    {SCATTERED, "words_read",     "low &= smem_get_u32(", "low |= smem_get_u32("},
    {SCATTERED, "words_read",     "w->row[1][s] = g->dead & 2 ? 0 : high;", "w->row[1][s] = low;"},
    {SCATTERED, "columns_below",  "column < length", "1"},
    {WIDE,      "find_slots",     "!c->whole && !ends_with_tensor(c)", "0"},
    {WIDE,      "find_modes",     "shuffle_u32(c->flags, g) & ROWS_CROSS", "0"},
    {SCATTERED, "clip_step",      "c->alive >> place / 4 % 4 & 1", "1"},
    {WIDE,      "step_operands",  "mode & MODE_CLEAR", "0"},
    {SCATTERED, "load_patterns",  "(i->word - ABI_SLOT_PATTERN)", "(i->word - ABI_SLOT_PATTERN + 1)"},
    /* faults in the choice of the next work or step, and of the last one */
    {WIDE,      "entry_of",       "left < batch ? entry : entry + 1", "entry"},
    {WIDE,      "tell_step",      "last ? MODE_LAST : 0", "0"},
    {WIDE,      "copy_work",      "if (!last)", "if (0)"},
    {NARROW,    "copy_works",     "next < count", "1"},
    {WIDE,      "walk_next",      "i->row += (i32)on;", ""},
    {NARROW,    "load_numbers",   "c->k->slots, row[0]", "1, row[0]"},
    /* turns, and parts of global rows */
    {WIDE,      "turn_pass",      "turn_give(g, g->index);", ";"},
    {WIDE,      "turn_start",     "turn_give(g, g->index);", ";"},
    {CUT,       "forward_merge",  "alpha * merge_position(m, s, 0)", "merge_position(m, s, 0)"},
    {CUT,       "merge_sum",      "x += merge_position(m, s, sum);", "x = merge_position(m, s, sum);"},
    {CUT,       "forward_merge",  "sum += alpha * from", "sum += from"},
    {CUT,       "partial_store_sum", "g->thread < 4", "g->thread < 3"},
};
/* clang-format on */
