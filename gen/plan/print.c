/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as people read it: what is visited how, why, and what else it would have cost. Row blocks
   that are alike follow each other as one. Nothing here depends on more than the plan. */
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include <math.h>
#include <string.h>

enum { MAX_GROUPS = 40 }; /* of row blocks; a longer plan is cut short, and says so */

static void add_seconds(struct text *out, double s)
{
    if (s < 1e-3)
        text_add(out, "%.2f us", s * 1e6);
    else if (s < 1)
        text_add(out, "%.2f ms", s * 1e3);
    else
        text_add(out, "%.2f s", s);
}

/* "0-9,11": the heads of a layer that have the mask. */
static void add_heads(const struct plan *p, uint32_t layer, uint32_t which, struct text *out)
{
    const uint32_t *at = p->at + (size_t)layer * p->heads;
    const char *comma = "";
    for (uint32_t h = 0; h < p->heads; h++) {
        uint32_t first = h;
        if (at[h] != which)
            continue;
        while (h + 1 < p->heads && at[h + 1] == which)
            h++;
        text_add(out, first == h ? "%s%u" : "%s%u-%u", comma, first, h);
        comma = ",";
    }
}

static bool same_layer(const struct plan *p, uint32_t a, uint32_t b)
{
    return !memcmp(p->at + (size_t)a * p->heads, p->at + (size_t)b * p->heads,
                   p->heads * sizeof *p->at);
}

static bool layer_has(const struct plan *p, uint32_t layer, uint32_t which)
{
    for (uint32_t h = 0; h < p->heads; h++)
        if (p->at[(size_t)layer * p->heads + h] == which)
            return true;
    return false;
}

static void add_places(const struct plan *p, uint32_t which, struct text *out)
{
    const char *between = "";
    for (uint32_t l = 0; l < p->layers; l++) {
        uint32_t first = l;
        if (!layer_has(p, l, which))
            continue;
        while (l + 1 < p->layers && same_layer(p, l + 1, first))
            l++;
        text_add(out, "%s", between);
        if (p->layers > 1)
            text_add(out, first == l ? "layer %u " : "layers %u-%u ", first, l);
        text_add(out, "heads ");
        add_heads(p, first, which, out);
        between = "; ";
    }
}

static void add_launch(const struct plan *p, bool backward, uint32_t batch, uint32_t threads,
                       struct text *out)
{
    double predicted = plan_predict(p, backward, 0, batch, threads);
    double dense = plan_predict_dense(p, backward, 0, batch, threads);
    text_add(out, "  %-9s predicted ", backward ? "backward" : "forward");
    add_seconds(out, predicted);
    text_add(out, ", dense ");
    add_seconds(out, dense);
    text_add(out, " (%.2fx), floor ", dense / predicted);
    add_seconds(out, plan_floor(p, backward, 0, batch, threads));
    text_add(out, "\n");
}

/* Families that the target would have with another driver. */
static void add_missing(const struct plan *p, struct text *out)
{
    const struct target *whole = target_find(p->target->name, NULL);
    for (const struct kernel_family *const *f = kernel_families;
         p->target->no_tensor_maps && *f; f++)
        if ((*f)->applies(whole, &p->config.request, FAMILY_FORWARD) &&
            !(*f)->applies(p->target, &p->config.request, FAMILY_FORWARD))
            text_add(out,
                     "  without %s: the NVIDIA driver of this machine has no "
                     "cuTensorMapEncodeTiled; install one for CUDA 12 or later\n",
                     (*f)->name);
}

static void add_families(const struct plan *p, struct text *out)
{
    const struct kernel_config *c = &p->config;
    text_add(out, "  forward by %s", family_of(p->target, c, FAMILY_FORWARD)->name);
    if (c->request.backward)
        text_add(out, ", backward by %s", family_of(p->target, c, FAMILY_BACKWARD)->name);
    text_add(out, c->tall ? ", row blocks of %u rows\n" : "\n", p->block_rows);
}

static void add_steps(const struct plan *p, uint32_t batch, struct text *out)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    for (int k = 0; k < PASSES; k++) {
        const struct step_launch l = plan_step_launch(p, (enum machine_pass)k, batch);
        if (family_step_shapes(p->target, &p->config, l.pass, shape))
            steps_print(&l, shape[p->config.step_shape[k]], &p->steps[k], out);
    }
}

static void add_head(const struct plan *p, uint32_t batch, uint32_t threads, struct text *out)
{
    const struct kernel_request *r = &p->config.request;
    text_add(out, "plan for %s on %s: length %u, ", p->target->name, p->machine->name, p->n);
    count_print(out, p->heads, "head");
    text_add(out, ", ");
    count_print(out, p->layers, "layer");
    text_add(out, ", ");
    count_print(out, p->n_masks, "distinct mask");
    text_add(out, "\n");
    text_add(out, "  head dim %u, %s, ", r->head_dim, dtype_name(r->dtype));
    if (r->transform == ABI_SPARSEGEN)
        text_add(out, "sparsegen=%g", (double)r->lambda);
    else
        text_add(out, "softmax");
    if (r->bias)
        text_add(out, ", soft mask: %s", bias_name(r->bias));
    if (r->keys) {
        text_add(out, ", %u quer%s, ", r->queries, r->queries == 1 ? "y" : "ies");
        count_print(out, r->keys, "key");
    }
    if (r->kv_heads) {
        text_add(out, ", ");
        count_print(out, r->kv_heads, "key head");
    }
    text_add(out, ", batch %u", batch);
    if (p->machine->kind == TARGET_CPU) {
        text_add(out, ", ");
        count_print(out, threads, "thread");
    }
    text_add(out, p->layers > 1 ? "; times of layer 0\n" : "\n");
    add_families(p, out);
    add_missing(p, out);
    add_launch(p, false, batch, threads, out);
    if (r->backward)
        add_launch(p, true, batch, threads, out);
    add_steps(p, batch, out);
}

/* True if a rejected lowering costs less: in the forward pass, where the plan is chosen for both passes that share it. */
static bool is_undercut(const struct plan_summary *s)
{
    for (uint32_t k = 0; k < s->n_rejected; k++)
        if (!s->rejected[k].family && !s->rejected[k].at_least &&
            s->rejected[k].predicted < s->predicted * (1 - 1e-9))
            return true;
    return false;
}

static void add_rejected(const struct plan_summary *s, bool shared, struct text *out)
{
    text_add(out, "    rejected ");
    for (uint32_t k = 0; k < s->n_rejected; k++) {
        const struct plan_rejected *r = &s->rejected[k];
        text_add(out, "%s %s%s%s %s", k ? "," : "", r->family ? r->family->name : "",
                 r->family ? ": " : "", r->lowering, r->at_least ? "at least " : "");
        add_seconds(out, fmax(r->predicted, s->floor));
    }
    if (shared && is_undercut(s))
        text_add(out, "; dq has the same plan");
    text_add(out, s->n_rejected ? "\n" : " nothing\n");
}

static void add_figures(const struct plan_summary *s, bool shared, struct text *out)
{
    text_add(out, "    why       %s\n", s->reason);
    text_add(out, "    executed  %.2f%% of the entries\n", 100 * s->executed_fraction);
    text_add(out, "    a head    predicted ");
    add_seconds(out, fmax(s->predicted, s->floor));
    text_add(out, ", dense ");
    add_seconds(out, fmax(s->dense_predicted, s->floor));
    text_add(out, ", floor ");
    add_seconds(out, s->floor);
    text_add(out, " (%s)\n", s->bound);
    add_rejected(s, shared, out);
}

/* Adds counts of visits by kind, over all items of the mask. */
static void add_counts(const struct plan_pass *t, uint32_t which, struct text *out)
{
    uint64_t row_blocks = 0, rows = 0, joined = 0, classes = 0, count[ABI_KINDS] = {0},
             full[ABI_KINDS] = {0};
    for (u32 i = t->item_first[which]; i < t->item_first[which + 1]; i++) {
        const struct abi_item *item = &t->items[i];
        row_blocks += item->step == 1 && item->rows > 1;
        rows += item->step == 1 && item->rows == 1;
        classes += item->step > 1;
        joined += item->step > 1 && t->pieces[item->piece].kind == ABI_BLOCKS;
        for (u32 k = item->piece; k < item->piece + item->pieces; k++) {
            const struct abi_piece *piece = &t->pieces[k];
            count[piece->kind] += piece->count;
            if (lowering_of(piece->kind)->full)
                full[piece->kind] += lowering_of(piece->kind)->full(t, piece);
        }
    }
    text_add(out, "    visits    ");
    count_print(out, row_blocks, "row block");
    text_add(out, ", ");
    count_print(out, rows, "single row");
    if (joined) {
        text_add(out, ", ");
        count_print(out, joined, "row block");
        text_add(out, " of rows apart");
    }
    if (classes > joined) {
        text_add(out, ", ");
        count_print(out, classes - joined, "part");
        text_add(out, " of residue classes");
    }
    for (uint32_t k = 0; k < ABI_KINDS; k++) {
        if (!count[k])
            continue;
        text_add(out, "; ");
        count_print(out, count[k], lowering_of(k)->part);
        if (lowering_of(k)->full)
            text_add(out, " (%llu full)", (unsigned long long)full[k]);
    }
    text_add(out, "\n");
}

/* Which kernels the items take, where there is a choice. */
static void add_kernels(const struct plan_pass *t, uint32_t which, struct text *out)
{
    uint64_t count[ABI_ITEM_KERNELS];
    const char *before = "    kernels   ";
    if (!item_kernels_any(&t->kernels))
        return;
    count_kernels(t, which, count);
    for (uint32_t k = 0; k < ABI_ITEM_KERNELS; k++) {
        if (!count[k])
            continue;
        text_add(out, "%s%llu %s", before, (unsigned long long)count[k], item_kernel_names[k]);
        before = ", ";
    }
    text_add(out, "\n");
}

/* Same kinds of pieces with as many parts each: told once. */
static bool alike(const struct plan_pass *t, const struct abi_item *a, const struct abi_item *b)
{
    if (a->kernel != b->kernel || a->rows != b->rows || a->step != b->step ||
        a->pieces != b->pieces || a->cols != b->cols || a->cost != b->cost)
        return false;
    for (u32 k = 0; k < a->pieces; k++) {
        const struct abi_piece *x = &t->pieces[a->piece + k], *y = &t->pieces[b->piece + k];
        if (x->kind != y->kind || x->count != y->count)
            return false;
    }
    return true;
}

static void add_item(const struct plan *p, const struct plan_pass *t,
                     const struct abi_item *item, const struct abi_item *last, uint32_t same,
                     struct text *out)
{
    if (item->step > 1)
        text_add(out, "    rows %u..%u by %u", item->row0,
                 item->row0 + item->step * (item->rows - 1), item->step);
    else if (item->rows == 1)
        text_add(out, same > 1 ? "    rows %u..%u" : "    row %u", item->row0, last->row0);
    else
        text_add(out, "    rows %u..%u", item->row0, last->row0 + last->rows - 1);
    if (same > 1)
        text_add(out, ", %u alike; the first", same);
    uint32_t missing = 0, merged = 0;
    for (uint32_t r = 0; r < item->rows; r++) {
        missing += !item_owns(item, r);
        merged += item->merge[r / 32] >> (r % 32) & 1;
    }
    if (missing) {
        text_add(out, ", without ");
        count_print(out, missing, "row");
    }
    if (item->split)
        text_add(out, item->partial_slots ? ", a part" : ", left to others");
    if (item->partial_slots && !item->split)
        text_add(out, ", %u parts", item->partial_slots);
    if (merged)
        text_add(out, merged == item->rows ? ", all resumed" : ", %u resumed", merged);
    text_add(out, item->pieces ? ":\n" : ": nothing\n");
    for (u32 k = item->piece; k < item->piece + item->pieces; k++) {
        const struct lowering *l = lowering_of(t->pieces[k].kind);
        text_add(out, "      %-9s ", l->name);
        l->print(t, p->block_rows, item, &t->pieces[k], out);
    }
}

/* Neighbours, or classes in any order. */
static bool follows(const struct abi_item *a, const struct abi_item *b)
{
    return a->step > 1 || b->row0 == a->row0 + a->rows;
}

static void add_items(const struct plan *p, const struct plan_pass *t, uint32_t which,
                      struct text *out)
{
    u32 end = t->item_first[which + 1];
    uint32_t groups = 0;
    for (u32 i = t->item_first[which]; i < end; groups++) {
        u32 next = i + 1;
        while (next < end && alike(t, &t->items[i], &t->items[next]) &&
               follows(&t->items[next - 1], &t->items[next]))
            next++;
        if (groups == MAX_GROUPS) {
            text_add(out, "    ... and %u items more\n", end - i);
            return;
        }
        add_item(p, t, &t->items[i], &t->items[next - 1], next - i, out);
        i = next;
    }
}

static void add_pass(const struct plan *p, const struct plan_pass *t, const char *name,
                     uint32_t which, struct text *out)
{
    text_add(out, "  %s: %s\n", name, t->summary[which].lowering);
    add_figures(&t->summary[which], t == &p->forward && p->config.request.backward, out);
    add_counts(t, which, out);
    add_kernels(t, which, out);
    add_items(p, t, which, out);
}

void plan_print(const struct plan *p, uint32_t batch, uint32_t threads, struct text *out)
{
    threads = threads ? threads : 1;
    add_head(p, batch, threads, out);
    for (uint32_t k = 0; k < p->n_masks; k++) {
        text_add(out, "\nmask %u: ", k);
        add_places(p, k, out);
        text_add(out, "\n");
        add_pass(p, &p->forward, "forward, rows are queries", k, out);
        if (p->config.request.backward)
            add_pass(p, &p->transposed, "transposed, rows are keys", k, out);
    }
}
