/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert fill-mask: a line for each [MASK], or a JSON object for each line of text. */
#include "masks/base/text.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/tasks/result_json.h"
#include <jansson.h>
#include <stdio.h>

enum { TOP = 5 };

static void print_json(const struct session *s, const struct task_gaps *g)
{
    for (uint32_t k = 0; k < s->batches.texts; k++) {
        json_t *line = result_gaps(s->engine, &s->batches, g, k);
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        printf("\n");
        json_decref(line);
    }
}

/* Without the blank before it. */
static const char *word_of(const struct session *s, uint32_t token_id, struct text *buffer)
{
    const char *text = result_text(s->engine, token_id, buffer);
    return *text == ' ' && text[1] ? text + 1 : text;
}

static void print_text(const struct session *s, const struct task_gaps *g)
{
    struct text buffer = {0};
    for (uint32_t k = 0; k < g->gaps; k++) {
        printf("%u:%u", g->gap[k].text + 1, g->gap[k].token);
        for (uint32_t w = 0; w < g->top; w++)
            printf("  %s %.4f", word_of(s, g->gap[k].word[w].token_id, &buffer),
                   (double)g->gap[k].word[w].probability);
        printf("\n");
    }
    text_finish(&buffer);
}

static uint32_t count_masks(const struct tokenizer *t, const uint32_t *token_ids,
                            uint32_t count)
{
    uint32_t masks = 0;
    for (uint32_t k = 0; k < count; k++)
        masks += token_ids[k] == t->mask;
    return masks;
}

/* Number of [MASK] that the cut removed. */
static uint32_t count_lost(const struct session *s)
{
    const struct tokenizer *t = s->engine->tokenizer;
    struct tokens whole = {0};
    uint32_t lost = 0;
    for (uint32_t k = 0; k < s->batches.texts; k++) {
        const struct sequence *kept = &s->batches.sequence[k];
        if (!s->batches.is_cut[k])
            continue;
        tokenizer_encode(t, s->text[k].a, s->text[k].b, 0, &whole);
        lost += count_masks(t, whole.token_ids, whole.count) -
                count_masks(t, kept->token_ids, kept->count);
    }
    tokens_finish(&whole);
    return lost;
}

static void tell_missing(const struct session *s, uint32_t gaps)
{
    const char *mask = s->engine->tokenizer->vocabulary.token[s->engine->tokenizer->mask];
    const uint32_t lost = count_lost(s);
    if (lost)
        fprintf(stderr, "maskbert: the cut removed %u of %u %s%s\n", lost, gaps + lost, mask,
                gaps ? "" : ": nothing to fill");
    else if (!gaps)
        fprintf(stderr, "maskbert: no line has a %s: nothing to fill\n", mask);
}

static int fill_mask(const struct options *o, struct session *s, struct error *e)
{
    struct task_gaps gaps = {0};
    if (session_open(o, PART_MLM, s, e) < 0 || session_read(o, s, e) < 0)
        return -1;
    const struct task_runner runner = session_runner(s);
    if (task_fill(&runner, &s->batches, o->top ? o->top : TOP, &gaps, e) < 0)
        return -1;
    tell_missing(s, gaps.gaps);
    if (o->json)
        print_json(s, &gaps);
    else
        print_text(s, &gaps);
    task_gaps_finish(&gaps);
    return 0;
}

int command_fill_mask(const struct options *o)
{
    struct error e = {0};
    struct session s = {0};
    int r = fill_mask(o, &s, &e);
    session_close(&s);
    return r < 0 ? command_fail(&e) : 0;
}
