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

static int fill_mask(const struct options *o, struct session *s, struct error *e)
{
    struct task_gaps gaps = {0};
    if (session_open(o, PART_MLM, s, e) < 0 || session_read(o, s, e) < 0)
        return -1;
    const struct task_runner runner = session_runner(s);
    if (task_fill(&runner, &s->batches, o->top ? o->top : TOP, &gaps, e) < 0)
        return -1;
    if (!gaps.gaps) {
        const struct tokenizer *t = s->engine->tokenizer;
        fprintf(stderr, "maskbert: no line has a %s: nothing to fill\n",
                t->vocabulary.token[t->mask]);
    }
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
