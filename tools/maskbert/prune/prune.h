/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prune, step by step: what each entry is worth on some lines (measure.c), masks that keep the most of that
   (masks.c), what the model still says with them on other lines (evaluate.c), what they cost (price.c), and the report
   of all that (report.c, kept_entries.c). */
#pragma once
#include "gen/snap/snap.h"
#include "masks/base/text.h"
#include "masks/importance.h"
#include "tools/maskbert/session.h"
#include <jansson.h>

enum { PRUNE_MOST = 32 }; /* percentages, shares */

/* A mask of the table. What is not known is NaN. */
struct prune_row {
    const char *kind; /* "keep", "no-diagonal", "random", or snap's: "snap", "magnitude", ... */
    double keep;      /* percent of the entries; NaN: as many as fit into ... */
    double share;     /* ... this share of dense's predicted time; NaN: not asked for */
    char *file;       /* its name in the output's folder; owned */
    struct mask *mask;          /* owned; null: no mask of this kind is within the share */
    const char *won;            /* of the row "snap": the best kind; else null */
    double density, retained;   /* of the entries; of the importance */
    double predicted, measured; /* seconds of all layers' attention for a batch */
    double cosine,
        neighbours; /* to unpruned vectors; share of lines whose nearest line stays */
};

struct prune_prices; /* what a mask costs here: price.c */

struct prune {
    const struct options *o;
    struct session s;
    struct engine_options engine; /* as s.engine was loaded with */
    double keep[PRUNE_MOST], share[PRUNE_MOST];
    uint32_t keeps, shares, n, batch;
    bool of_output;                         /* --importance output */
    uint32_t layer, head;                   /* of the picture */
    struct task_batches measured, held_out; /* sequences of s.batches */
    uint32_t longest;                       /* of those measured */
    struct importance importance;
    struct calibration *calibration; /* stored for this machine, or null */
    struct prune_row dense;          /* what the others are compared with */
    struct prune_row *row;
    uint32_t rows, capacity;
    struct text missed; /* shares that no mask is within, with commas between them */
    struct error why;   /* of the last of them */
};

struct prune_row prune_row_new(const char *kind, double keep, double share);

/* ---- the steps ---- */

/* Divides the lines: every fourth is held out, MOST_HELD_OUT at most; of fewer than four none is. */
void prune_divide(struct prune *p);
/* Fills p->importance. */
int prune_measure(struct prune *p, struct error *e);
/* Fails if two masks would have the same file. */
int prune_check_names(const struct prune *p, struct error *e);
/* Fills p->row: their masks, files, density, retained. Rows of a share that no mask is within have no mask, and p->missed
   names it. */
int prune_make_masks(struct prune *p, struct error *e);
/* Writes each row's mask into the output's folder, which is made if there are any. */
int prune_write_masks(const struct prune *p, struct error *e);
/* Fills in cosine, neighbours, predicted and measured, p->dense's too. */
int prune_evaluate(struct prune *p, struct error *e);
void prune_report(const struct prune *p);
int prune_draw(const struct prune *p, struct error *e);
int prune_check_picture(const struct prune *p, struct error *e);

/* ---- prices ---- */

/* The target, machine and request that the engine's attention is compiled for. */
int prune_request(const struct prune *p, struct snap_request *ret, struct error *e);
/* Predicted seconds of all layers. */
int prune_predict(const struct prune *p, const struct snap_request *r, const struct mask *m,
                  double *ret, struct error *e);
/* Median seconds of all layers' attention launches: the masks interleaved. ret [count]. */
int prune_time(struct prune *p, struct attention *const *attention, uint32_t count, double *ret,
               struct error *e);
