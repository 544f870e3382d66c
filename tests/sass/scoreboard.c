/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose time is not known (loads, special functions) set a scoreboard when they have ended;
   whoever uses their results must name it in his control code. Forgetting one is a fault here. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void add(uint16_t *list, uint8_t *count, uint32_t base, uint32_t index, uint32_t words)
{
    for (uint32_t k = 0; k < words && index != ZERO_REGISTER && *count < MAX_SCORED; k++)
        list[(*count)++] = (uint16_t)(base + index + k);
}

static void add_operand(const struct operand *o, uint32_t words, uint16_t *list, uint8_t *count)
{
    const bool uniform = o->kind == OPERAND_UNIFORM || o->kind == OPERAND_MATRIX;
    if (o->kind == OPERAND_PREDICATE) {
        if (o->index != TRUE_PREDICATE)
            list[(*count)++] =
                (uint16_t)(SCORED_PREDICATE + o->index + (o->is_uniform ? 8 : 0));
        return;
    }
    if (o->kind == OPERAND_REGISTER || uniform)
        add(list, count, uniform ? SCORED_UNIFORM : 0, o->index, words);
    if (o->kind == OPERAND_ADDRESS || o->kind == OPERAND_CONSTANT) {
        add(list, count, 0, o->index, o->wide ? 2 : 1);
        add(list, count, SCORED_UNIFORM, o->uniform, 1);
    }
}

/* Up to the highest register of an operand. */
static uint32_t needs_of(const struct operand *o, uint32_t words)
{
    const bool is_address = o->kind == OPERAND_ADDRESS || o->kind == OPERAND_CONSTANT;
    if ((o->kind != OPERAND_REGISTER && !is_address) || o->index == ZERO_REGISTER)
        return 0;
    return o->index + (!is_address ? words : o->wide ? 2 : 1);
}

static void list_needs(struct instruction *i)
{
    const uint32_t sums =
        i->bytes * 4u; /* of a product: 64 x (8 bytes) floats over 128 threads */
    for (uint32_t k = 0; k < i->operands; k++) {
        const bool is_sum = i->run == run_product_issue && k != 1;
        const uint32_t needs = needs_of(&i->op[k], is_sum ? sums : k < 4 ? i->words[k] : 1);
        i->needs = needs > i->needs ? (uint16_t)needs : i->needs;
    }
}

void scoreboard_list(struct instruction *i)
{
    list_needs(i);
    if (i->guard.kind == OPERAND_PREDICATE)
        add_operand(&i->guard, 1, i->source, &i->n_sources);
    for (uint32_t k = 0; k < i->operands; k++) {
        const uint32_t words = k < 4 ? i->words[k] : 1;
        const bool second = i->run == run_lop3 || i->run == run_shuffle; /* P, R, ... */
        const bool is_result =
            !i->stores && (k == 0 || k <= i->outputs ||
                           (k == 1 && second && i->op[0].kind == OPERAND_PREDICATE));
        if (is_result)
            add_operand(&i->op[k], words, i->result, &i->n_results);
        else if (i->n_sources + 4 < MAX_SCORED)
            add_operand(&i->op[k], words, i->source, &i->n_sources);
    }
}

static void clear_one(struct pending *p, uint32_t scoreboard)
{
    if (p->scoreboard == scoreboard || p->also == scoreboard)
        p->mask = 0;
}

static void clear(struct warp *w, uint32_t scoreboard)
{
    struct started *s = &w->started[scoreboard];
    for (uint32_t k = 0; k < SCORED && s->count > LENGTH(s->pending); k++) {
        clear_one(&w->written[k], scoreboard);
        clear_one(&w->read[k], scoreboard);
    }
    for (uint32_t k = 0; k < s->count && s->count <= LENGTH(s->pending); k++)
        clear_one(s->pending[k], scoreboard);
    s->count = 0;
}

static void arrived(struct warp *w, uint32_t scoreboards)
{
    for (uint32_t k = 0; k < SCOREBOARDS; k++)
        if (scoreboards & w->outstanding & 1u << k)
            clear(w, k);
    w->outstanding &= ~scoreboards;
}

static void check(const struct warp *w, const struct pending *p, const uint16_t *list,
                  uint32_t count, uint32_t mask, const char *what)
{
    for (uint32_t k = 0; k < count; k++)
        if (p[list[k]].mask & mask)
            fault(w, "%s%u %s: nobody waited for SB%u",
                  list[k] < SCORED_UNIFORM     ? "R"
                  : list[k] < SCORED_PREDICATE ? "UR"
                                               : "P",
                  list[k] % SCORED_UNIFORM, what, p[list[k]].scoreboard);
}

void scoreboard_need(struct warp *w, uint32_t first, uint32_t count)
{
    for (uint32_t k = first; k < first + count && w->outstanding; k++)
        check(w, w->written, &(uint16_t){(uint16_t)k}, 1, ALL_LANES,
              "is read before it is there");
}

static void start(struct warp *w, struct pending *p, uint32_t scoreboard)
{
    struct started *s = &w->started[scoreboard];
    if (s->count < LENGTH(s->pending))
        s->pending[s->count] = p;
    s->count++;
    w->outstanding |= 1u << scoreboard;
}

static void begin_results(struct warp *w, const struct instruction *i, uint32_t mask)
{
    for (uint32_t k = 0; k < i->n_results && i->writes < SCOREBOARDS; k++) {
        struct pending *p = &w->written[i->result[k]];
        *p = (struct pending){p->mask | mask, i->writes, i->writes};
        start(w, p, i->writes);
    }
}

/* Predicates and uniform registers are read at once: ptxas relies on it. */
static void begin_sources(struct warp *w, const struct instruction *i, uint32_t mask)
{
    for (uint32_t k = 0; k < i->n_sources && i->reads < SCOREBOARDS; k++) {
        struct pending *p = &w->read[i->source[k]];
        if (i->source[k] >= SCORED_UNIFORM)
            continue;
        *p = (struct pending){p->mask | mask, i->reads, i->writes};
        start(w, p, i->reads);
        if (i->writes < SCOREBOARDS)
            start(w, p, i->writes);
    }
}

/* Its result comes behind those of older instructions of its kind: a load may have no scoreboard of its own where a later
   one's is waited for. */
static bool queues(const struct instruction *i)
{
    return i->writes < SCOREBOARDS || i->run == run_load || i->run == run_load_shared ||
           i->run == run_load_matrix || i->run == run_load_local || i->run == run_shuffle;
}

static bool is_pending(const struct pending *p, const uint16_t *list, uint32_t count,
                       uint32_t mask)
{
    for (uint32_t k = 0; k < count; k++)
        if (p[list[k]].mask & mask)
            return true;
    return false;
}

/* Without the wait it would be a fault. */
static void note_need(struct warp *w, const struct instruction *i, uint32_t mask)
{
    if (w->block->needed &&
        (is_pending(w->written, i->source, i->n_sources, mask) ||
         (!queues(i) && (is_pending(w->written, i->result, i->n_results, mask) ||
                         is_pending(w->read, i->result, i->n_results, mask)))))
        w->block->needed[i - w->block->program->code] = 1;
}

void scoreboard_issue(struct warp *w, const struct instruction *i, uint32_t mask)
{
    if (i->waits & w->outstanding) {
        note_need(w, i, mask);
        arrived(w, i->waits);
    }
    if (i->op[0].kind == OPERAND_SCOREBOARD && i->op[1].value == 0)
        arrived(w, 1u << i->op[0].index);
    if (!mask)
        return;
    if (w->block->hopper)
        products_watch(w, i);
    if (w->outstanding) {
        check(w, w->written, i->source, i->n_sources, mask, "is read before it is there");
        if (!queues(i)) {
            check(w, w->written, i->result, i->n_results, mask,
                  "is written while an older result is on its way");
            check(w, w->read, i->result, i->n_results, mask,
                  "is written before an older instruction has read it");
        }
    }
    begin_results(w, i, mask);
    begin_sources(w, i, mask);
}
