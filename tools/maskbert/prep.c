/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prep: text to samples for pre-training. */
#include "masks/base/file.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/prep_report.h"
#include "tools/maskbert/session.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_DUPE = 10 };
#define DEFAULT_SHORT    0.1
#define DEFAULT_HELD_OUT 0.01

static int read_share(const char *option, double value, double *ret, struct error *e)
{
    *ret = value;
    return value >= 0 && value < 1
               ? 0
               : error_set(e, ERROR_INPUT, "--%s %g: a share from 0 to below 1 is expected",
                           option, value);
}

static int read_pairing(const struct options *o, struct prepare_options *ret, struct error *e)
{
    bool full = o->pairing && !strcmp(o->pairing, "full");
    if (o->pairing && !full && strcmp(o->pairing, "nsp") != 0)
        return error_set(e, ERROR_INPUT, "--pairing %s: nsp or full is expected", o->pairing);
    if (full && o->dupe)
        return error_set(e, ERROR_INPUT,
                         "--dupe: with --pairing full all copies would be equal");
    ret->pairing = full ? PAIRING_FULL : PAIRING_NEXT;
    ret->dupe = full ? 1 : o->dupe ? o->dupe : DEFAULT_DUPE;
    uint32_t least = full ? 4 : 5;
    if (o->length < least || o->length > DATA_MAX_LENGTH)
        return error_set(e, ERROR_INPUT, "prep: --length in %u..%d is expected", least,
                         DATA_MAX_LENGTH);
    ret->length = o->length;
    return read_share("short",
                      o->short_given ? o->short_share
                      : full         ? 0
                                     : DEFAULT_SHORT,
                      &ret->short_share, e);
}

static int read_options(const struct options *o, struct prepare_options *ret, struct error *e)
{
    struct stat status;
    if (!o->output)
        return error_set(e, ERROR_INPUT, "prep: -o DATA is expected");
    if (!o->vocabulary)
        return error_set(e, ERROR_INPUT, "prep: --vocab FILE|DIR is expected");
    if (lstat(o->output, &status) == 0)
        return error_set(e, ERROR_INPUT, "%s: is there already; a new name is expected",
                         o->output);
    ret->path = o->arguments;
    ret->n_paths = o->n_arguments;
    ret->folder = o->output;
    ret->seed = o->seed;
    ret->split = o->split;
    ret->threads = o->threads;
    if (read_pairing(o, ret, e) < 0)
        return -1;
    return read_share("held-out", o->held_out_given ? o->held_out : DEFAULT_HELD_OUT,
                      &ret->held_out, e);
}

static struct tokenizer *read_file(const char *path, enum tokenizer_compat compat,
                                   struct error *e)
{
    struct file f = {0};
    if (file_open(path, &f, e) < 0)
        return NULL;
    const char *bytes = (const char *)f.bytes;
    struct tokenizer *t = tokenizer_new(bytes, f.size, false, compat, e);
    if (t && vocabulary_find(&t->vocabulary, "A") >= 0) {
        tokenizer_destroy(t);
        t = tokenizer_new(bytes, f.size, true, compat, e);
    }
    if (!t)
        error_prefix(e, "%s", path);
    file_close(&f);
    return t;
}

/* Samples are [CLS] A [SEP], or [CLS] A [SEP] B [SEP] where B has type 1. */
static int check_tokenizer(const struct tokenizer *t, const struct options *o, bool pairs,
                           struct error *e)
{
    const struct text_part text = {"", 0}, none = {0};
    struct tokens k = {0};
    tokenizer_encode(t, text, pairs ? text : none, 0, &k);
    bool fits =
        k.head == 1 && k.tail == 1 && (!pairs || (k.middle == 1 && k.first_part == k.second));
    tokens_finish(&k);
    if (t->mask < 0)
        return error_set(e, ERROR_INPUT, "%s: has no [MASK], which training needs",
                         o->vocabulary);
    return fits
               ? 0
               : error_set(e, ERROR_INPUT, "%s: its special tokens are not %s%s", o->vocabulary,
                           pairs ? "[CLS] A [SEP] B [SEP] with types 0 and 1" : "[CLS] A [SEP]",
                           pairs ? ": --pairing full makes samples of one part" : "");
}

static struct tokenizer *read_vocabulary(const struct options *o, bool pairs, struct error *e)
{
    enum tokenizer_compat compat;
    struct stat status;
    if (session_compat(o, &compat, e) < 0)
        return NULL;
    bool folder = stat(o->vocabulary, &status) == 0 && S_ISDIR(status.st_mode);
    struct tokenizer *t =
        folder ? tokenizer_load(o->vocabulary, compat, e) : read_file(o->vocabulary, compat, e);
    if (t && check_tokenizer(t, o, pairs, e) < 0) {
        tokenizer_destroy(t);
        return NULL;
    }
    return t;
}

static sigset_t ending_signals(void)
{
    static const int each[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        struct sigaction action;
        if (sigaction(each[k], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, each[k]);
    }
    return set;
}

/* Blocks ending signals until data_prepare() has finished or removed its partial output. */
static int prepare(const struct prepare_options *p, struct prepare_stats *ret, struct error *e)
{
    sigset_t ends = ending_signals(), before;
    sigprocmask(SIG_BLOCK, &ends, &before);
    int r = data_prepare(p, ret, e);
    session_tell(NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

static bool go_on(const struct prepare_progress *p)
{
    char line[128], what[40];
    snprintf(what, sizeof what, p->round ? "drawing samples %.0f" : "%.0f MB read",
             p->round ? p->round : (double)p->bytes * 1e-6);
    snprintf(line, sizeof line, "%s, %" PRIu64 " documents, %.1f million tokens", what,
             p->documents, (double)p->tokens * 1e-6);
    session_tell(line);
    sigset_t pending, ends = ending_signals();
    sigpending(&pending);
    sigandset(&pending, &pending, &ends);
    return sigisemptyset(&pending);
}

static void report(const char *path, const char *what)
{
    session_tell(NULL);
    fprintf(stderr, "maskbert: %s: %s\n", path, what);
}

int command_prep(const struct options *o)
{
    struct error e = {0};
    struct prepare_options p = {0};
    struct prepare_stats stats = {0};
    if (read_options(o, &p, &e) < 0)
        return command_fail(&e);
    struct tokenizer *t = read_vocabulary(o, p.pairing == PAIRING_NEXT, &e);
    if (!t)
        return command_fail(&e);
    p.tokenizer = t;
    p.progress = go_on;
    p.report = report;
    int r = prepare(&p, &stats, &e);
    if (r == 0)
        prep_report(o, &p, &stats);
    tokenizer_destroy(t);
    return r < 0 ? command_fail(&e) : 0;
}
