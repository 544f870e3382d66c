/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prune: the command. */
#include "tools/maskbert/prune/prune.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "masks/npy.h"
#include "runtime/pipeline/calibration.h"
#include "tools/maskbert/command.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t most_bytes = UINT64_C(4) << 30;

/* ---- what is asked ---- */

/* Numbers above 0 to `most`, with commas between them; 0 of them: the text is none. */
static uint32_t read_list(const char *text, double most, double ret[PRUNE_MOST])
{
    for (uint32_t count = 0; count < PRUNE_MOST;) {
        char *end;
        const double x = strtod(text, &end);
        if (end == text || !(x > 0 && x <= most))
            return 0;
        ret[count++] = x;
        if (!*end)
            return count;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

static int read_importance(struct prune *p, struct error *e)
{
    const char *name = p->o->importance;
    p->of_output = name && !strcmp(name, "output");
    return name && !p->of_output && strcmp(name, "attention")
               ? error_set(e, ERROR_INPUT, "--importance %s: attention or output is expected",
                           name)
               : 0;
}

static int check_outputs(const struct options *o, struct error *e)
{
    if (!o->keep && !o->snap && !o->save)
        return error_set(e, ERROR_INPUT,
                         "prune: --keep P[,P..], --snap SHARE[,SHARE..] or --save P.npy is "
                         "expected");
    if ((o->keep || o->snap) && !o->output)
        return error_set(e, ERROR_INPUT, "prune: -o DIR is expected");
    if ((o->drop_diagonal || o->random) && !o->keep)
        return error_set(e, ERROR_INPUT, "--%s: --keep P[,P..] is expected with it",
                         o->random ? "random" : "drop-diagonal");
    if (o->save && !has_suffix(o->save, ".npy"))
        return error_set(e, ERROR_INPUT, "--save %s: FILE.npy is expected", o->save);
    return 0;
}

static int read_options(struct prune *p, struct error *e)
{
    const struct options *o = p->o;
    p->batch = o->batch ? o->batch : 1;
    if (check_outputs(o, e) < 0 || read_importance(p, e) < 0)
        return -1;
    if (o->keep && !(p->keeps = read_list(o->keep, 100, p->keep)))
        return error_set(e, ERROR_INPUT,
                         "--keep %s: at most %d percentages above 0 to 100, with commas "
                         "between them, are expected",
                         o->keep, PRUNE_MOST);
    if (o->snap && !(p->shares = read_list(o->snap, 1, p->share)))
        return error_set(e, ERROR_INPUT,
                         "--snap %s: at most %d shares of dense's time above 0 to 1, with "
                         "commas between them, are expected",
                         o->snap, PRUNE_MOST);
    return prune_check_names(p, e) < 0 ? -1 : prune_check_picture(p, e);
}

static int check_size(struct prune *p, struct error *e)
{
    const struct model_config *c = &p->s.engine->config;
    p->n = p->o->length ? p->o->length : c->positions;
    if (p->n > c->positions)
        return error_set(e, ERROR_INPUT, "-n %u: the model has %u positions", p->n,
                         c->positions);
    if (p->n < TOKENIZER_MIN_LENGTH)
        return error_set(e, ERROR_INPUT, "-n %u: at least %d is expected", p->n,
                         TOKENIZER_MIN_LENGTH);
    const uint64_t heads = (uint64_t)c->layers * c->heads;
    if (heads * p->n * p->n * sizeof(float) > most_bytes)
        return error_set(e, ERROR_INPUT,
                         "%" PRIu64 " heads over %u tokens are too much to hold: a "
                         "smaller -n is expected",
                         heads, p->n);
    if ((uint64_t)p->batch * p->n > 1 << 24)
        return error_set(e, ERROR_INPUT, "--batch %u: at most %d tokens in all", p->batch,
                         1 << 24);
    p->s.task.max_length = p->n;
    return 0;
}

static int read_head(const char *option, const char *text, uint32_t count, uint32_t *ret,
                     struct error *e)
{
    uint64_t value = 0;
    if (text && !whole_number(text, count - 1, &value))
        return error_set(e, ERROR_INPUT, "--%s %s: 0..%u is expected", option, text, count - 1);
    *ret = (uint32_t)value;
    return 0;
}

/* ---- the steps ---- */

static int open_model(struct prune *p, struct error *e)
{
    if (session_options(p->o, &p->engine, e) < 0 || session_open(p->o, 0, &p->s, e) < 0 ||
        check_size(p, e) < 0)
        return -1;
    const struct model_config *c = &p->s.engine->config;
    return read_head("layer", p->o->layer, c->layers, &p->layer, e) < 0 ||
                   read_head("head", p->o->head, c->heads, &p->head, e) < 0
               ? -1
               : 0;
}

static int read_lines(struct prune *p, struct error *e)
{
    if (session_read(p->o, &p->s, e) < 0)
        return -1;
    if (!p->s.batches.texts)
        return error_set(e, ERROR_INPUT, "prune: lines of text are expected");
    prune_divide(p);
    return 0;
}

static int save(const struct prune *p, struct error *e)
{
    const struct importance *from = &p->importance;
    const uint64_t shape[] = {from->layers, from->heads, from->n, from->n};
    uint64_t size;
    uint8_t *bytes = npy_write("<f4", sizeof(float), 4, shape, from->value, &size);
    int r = file_write(p->o->save, bytes, size, e);
    free(bytes);
    return r;
}

static int make_dense(struct prune *p, struct error *e)
{
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = "dense", .n = p->n,
                                         .heads = p->importance.heads};
    p->dense = prune_row_new("dense", (double)NAN, (double)NAN);
    p->dense.mask = mask_load(&request, NULL, e);
    p->dense.density = p->dense.retained = 1;
    return p->dense.mask ? 0 : -1;
}

/* An unreadable calibration file is only a warning, as in maskc. */
static void load_calibration(struct prune *p)
{
    struct error e = {0};
    if (calibration_load(&p->calibration, &e))
        fprintf(stderr, "maskbert: %s; it is ignored\n", e.text);
}

static int prune(struct prune *p, struct error *e)
{
    load_calibration(p);
    if (read_options(p, e) < 0 || open_model(p, e) < 0 || read_lines(p, e) < 0 ||
        prune_measure(p, e) < 0)
        return -1;
    if (p->longest < p->n)
        fprintf(stderr,
                "maskbert: no text reaches beyond token %u of %u: nothing is known there\n",
                p->longest, p->n);
    if ((p->o->save && save(p, e) < 0) || prune_make_masks(p, e) < 0 ||
        prune_write_masks(p, e) < 0)
        return -1;
    if (p->rows && (make_dense(p, e) < 0 || prune_evaluate(p, e) < 0 ||
                    (p->o->picture && prune_draw(p, e) < 0)))
        return -1;
    prune_report(p);
    return *text_get(&p->missed)
               ? error_set(e, ERROR_FALSE, "--snap %s: %s", text_get(&p->missed), p->why.text)
               : 0;
}

static void finish_row(struct prune_row *r)
{
    free(r->file);
    mask_destroy(r->mask);
}

static void finish(struct prune *p)
{
    for (uint32_t k = 0; k < p->rows; k++)
        finish_row(&p->row[k]);
    finish_row(&p->dense);
    free(p->row);
    text_finish(&p->missed);
    task_finish(&p->measured);
    task_finish(&p->held_out);
    importance_finish(&p->importance);
    calibration_destroy(p->calibration);
    session_close(&p->s);
}

int command_prune(const struct options *o)
{
    struct error e = {0};
    struct prune p = {.o = o};
    int r = prune(&p, &e);
    finish(&p);
    return r < 0 ? command_fail(&e) : 0;
}
