/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert answer: a line out for each question. */
#include "masks/base/memory.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <jansson.h>
#include <stdio.h>

enum { TOP = 5 };

static bool is_withheld(const struct options *o, const struct task_spans *a, uint32_t k)
{
    return o->null_threshold_given && task_is_withheld(a, k, o->null_threshold);
}

static void print_json(const struct options *o, const struct session *s,
                       const struct task_spans *a, uint32_t k)
{
    const struct task_span *list = a->span + (size_t)k * a->top;
    json_t *all = json_array();
    for (uint32_t i = 0; i < a->count[k]; i++) {
        const char *bytes = s->text[k].b.bytes + list[i].begin;
        json_t *text = json_stringn(bytes, list[i].end - list[i].begin);
        json_array_append_new(
            all, json_pack("{s:o, s:i, s:i, s:f, s:f}", "text", text ? text : json_null(),
                           "begin", (int)list[i].begin, "end", (int)list[i].end, "score",
                           (double)list[i].score, "probability", (double)list[i].probability));
    }
    json_t *line =
        json_pack("{s:o, s:f}", "answers", all, "no_answer_score", (double)a->no_answer[k]);
    if (o->null_threshold_given)
        json_object_set_new(line, "no_answer", json_boolean(is_withheld(o, a, k)));
    json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(line);
}

static void print_text(const struct options *o, const struct session *s,
                       const struct task_spans *a, uint32_t k)
{
    const struct task_span *best = a->span + (size_t)k * a->top;
    if (a->count[k] && !is_withheld(o, a, k))
        fwrite(s->text[k].b.bytes + best->begin, 1, best->end - best->begin, stdout);
    printf("\n");
}

static int answer(const struct options *o, struct session *s, struct error *e)
{
    struct task_spans spans = {0};
    if (session_open(o, PART_SPAN, s, e) < 0 || input_read(o->input, &s->input, e) < 0)
        return -1;
    s->text = memory_new(s->input.count, sizeof *s->text);
    for (uint32_t k = 0; k < s->input.count; k++)
        input_parts(s->input.line[k], &s->text[k].a, &s->text[k].b);
    const struct task_runner runner = session_runner(s);
    if (task_answer(&runner, s->text, s->input.count, TOP, &spans, e) < 0)
        return -1;
    session_tell_cut(NULL, spans.cut, spans.texts, "questions", spans.cut_to);
    for (uint32_t k = 0; k < spans.texts; k++)
        o->json ? print_json(o, s, &spans, k) : print_text(o, s, &spans, k);
    task_spans_finish(&spans);
    return 0;
}

int command_answer(const struct options *o)
{
    struct error e = {0};
    struct session s = {0};
    int r = answer(o, &s, &e);
    session_close(&s);
    return r < 0 ? command_fail(&e) : 0;
}
