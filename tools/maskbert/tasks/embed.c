/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert embed: lines to vectors, in a .npy or a .jsonl file that is whole or absent. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/npy.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/tasks/embedding_settings.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { FORM_NPY, FORM_JSONL };

struct embed {
    const struct options *o;
    struct session s;
    enum form form;
    struct embedding_settings settings;
    bool pooled;      /* a vector for each line, not for each token */
    uint64_t longest; /* rows of a line: 1 if pooled */
    uint64_t size;    /* numbers of a vector */
    float *value;     /* [lines, longest, H] */
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static int check_output(struct embed *m, struct error *e)
{
    const char *path = m->o->output;
    if (!path || (!ends_with(path, ".npy") && !ends_with(path, ".jsonl")))
        return error_set(e, ERROR_INPUT, "embed: -o FILE.npy or -o FILE.jsonl is expected");
    m->form = ends_with(path, ".npy") ? FORM_NPY : FORM_JSONL;
    return 0;
}

static int read_settings(struct embed *m, struct error *e)
{
    if (embedding_read(m->o, &m->settings, e) < 0)
        return -1;
    m->pooled = m->settings.how.pooling[0] != POOLING_NONE;
    if (!m->pooled && m->o->normalize)
        return error_set(e, ERROR_INPUT, "--normalize needs a pooling other than none");
    return 0;
}

static uint64_t longest_of(const struct task_batches *b)
{
    return b->texts ? b->sequence[b->order[0]].count : 0;
}

/* Copies the hidden states of a batch to m->value. */
static int keep_states(void *context, const uint32_t *text, uint32_t n,
                       struct engine_workspace *workspace, struct error *e)
{
    struct embed *m = context;
    uint64_t size = m->size;
    if (engine_fetch(m->s.engine, workspace, e) < 0)
        return -1;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t first = (uint32_t)workspace->offsets[k],
                       rows = (uint32_t)workspace->offsets[k + 1] - first;
        float *x = m->value + text[k] * m->longest * size;
        for (uint32_t i = 0; i < rows; i++)
            engine_row(m->s.engine, workspace, first + i, x + i * size);
        if (task_check_output(&m->s.task, text[k], x, rows * size, e) < 0)
            return -1;
    }
    return 0;
}

static int run(struct embed *m, struct error *e)
{
    const struct task_visitor states = {keep_states, m};
    const struct task_runner runner = session_runner(&m->s);
    return m->pooled ? task_embed(&runner, &m->s.batches, &m->settings.how, m->value, e)
                     : task_run(&runner, &m->s.batches, &states, e);
}

static void print_vector(const float *x, uint64_t n, struct text *out)
{
    for (uint64_t k = 0; k < n; k++) {
        text_add(out, k ? "," : "[");
        if (isfinite(x[k]))
            text_add(out, "%.9g", (double)x[k]);
        else
            text_add(out, "null"); /* the maximum of no rows */
    }
    text_add(out, "]");
}

static void print_line(const struct embed *m, uint32_t line, struct text *out)
{
    uint64_t size = m->size;
    const float *x = m->value + line * m->longest * size;
    uint64_t rows = m->pooled ? 1 : m->s.batches.sequence[line].count;
    if (!m->pooled)
        text_add(out, "[");
    for (uint64_t r = 0; r < rows; r++) {
        text_add(out, r ? "," : "");
        print_vector(x + r * size, size, out);
    }
    text_add(out, m->pooled ? "\n" : "]\n");
}

static int write_jsonl(struct embed *m, struct error *e)
{
    struct text out = {0};
    uint64_t values = m->s.batches.texts * m->longest * m->size;
    m->value = memory_new(values, sizeof *m->value);
    int r = run(m, e);
    for (uint32_t k = 0; k < m->s.batches.texts && r == 0; k++)
        print_line(m, k, &out);
    if (r == 0)
        r = file_write(m->o->output, text_get(&out), out.length, e);
    text_finish(&out);
    free(m->value);
    return r;
}

/* The file is mapped, and values are computed in place. */
static int write_npy(struct embed *m, struct error *e)
{
    uint64_t lines = m->s.batches.texts, size;
    uint64_t shape[3] = {lines, m->pooled ? m->size : m->longest, m->size};
    uint8_t *bytes = npy_write("<f4", sizeof(float), m->pooled ? 2 : 3, shape, NULL, &size);
    m->value = (float *)(void *)(bytes + size - lines * m->longest * m->size * sizeof(float));
    int r = run(m, e);
    if (r == 0)
        r = file_write(m->o->output, bytes, size, e);
    free(bytes);
    return r;
}

static int check_size(const struct embed *m, struct error *e)
{
    double all = memory_physical();
    unsigned __int128 bytes =
        (unsigned __int128)m->s.batches.texts * m->longest * m->size * sizeof(float);
    if (all > 0 && (double)bytes > all / 2)
        return error_set(e, ERROR_INPUT,
                         "%u lines give %.1f GB, more than half of the memory: "
                         "split the input",
                         m->s.batches.texts, (double)bytes / 1e9);
    return 0;
}

/* The lines as tokens, behind the prompt. */
static int read_lines(struct embed *m, struct error *e)
{
    uint32_t parts = m->settings.how.pooling[0] == POOLING_POOLER ? PART_POOLER : 0;
    if (session_open(m->o, parts, &m->s, e) < 0 ||
        embedding_check(&m->settings, m->s.engine, m->o->max_length, e) < 0)
        return -1;
    m->s.task.prompt = m->settings.prompt;
    m->s.task.prompt_tokens = m->settings.prompt_tokens;
    return session_read(m->o, &m->s, e);
}

static int embed(struct embed *m, struct error *e)
{
    if (check_output(m, e) < 0 || read_settings(m, e) < 0 || read_lines(m, e) < 0)
        return -1;
    m->longest = m->pooled ? 1 : longest_of(&m->s.batches);
    m->size =
        m->pooled ? embedding_size(m->s.engine, &m->settings.how) : m->s.engine->config.hidden;
    if (check_size(m, e) < 0)
        return -1;
    return m->form == FORM_NPY ? write_npy(m, e) : write_jsonl(m, e);
}

int command_embed(const struct options *o)
{
    struct error e = {0};
    struct embed m = {.o = o};
    int r = embed(&m, &e);
    session_close(&m.s);
    embedding_finish(&m.settings);
    return r < 0 ? command_fail(&e) : 0;
}
