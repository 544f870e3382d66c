/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the language. A primitive is one row of a table: its name, its parameters with
   their limits, and a function that gives one row of keys. A paper's mask is a definition: a name,
   parameters and an expression in the language itself. */
#pragma once
#include "masks/base/random.h"
#include "masks/graph/grid.h"
#include "masks/language/syntax.h"

enum { MAX_PARAMETERS = 4, MAX_LIMIT = INT32_MAX };

enum parameter_kind {
    PARAMETER_NONE,
    PARAMETER_WHOLE, /* one whole number */
    PARAMETER_SPANS, /* any number of whole numbers and ranges, at least one */
    PARAMETER_SIZES, /* any number of whole numbers in their order, at least one */
    PARAMETER_REAL,
    PARAMETER_STRING,
    PARAMETER_LIST, /* [1,2,3] */
};

/* by_n * n + plus */
struct limit {
    int by_n;
    int64_t plus;
};

struct parameter {
    const char *name;
    enum parameter_kind kind;
    struct limit least, most; /* of whole numbers and spans */
    bool optional;            /* given by name alone */
    bool from_end;            /* spans: a negative number counts from the end */
    bool endless;             /* whole: what is beyond MAX_LIMIT means MAX_LIMIT */
    int64_t otherwise; /* of optional whole numbers; not 0: also of a word without arguments */
};

/* Sorted, disjoint, first <= last, both inside. */
struct span {
    int64_t first, last;
};

/* A primitive with its arguments for masks of length n. */
struct call {
    uint32_t n;
    int64_t whole[MAX_PARAMETERS];
    double real[MAX_PARAMETERS];
    const struct argument *given[MAX_PARAMETERS]; /* null: not given */
    struct span *span;
    uint32_t n_spans;
    int64_t *size; /* sizes in their order; documents: the end of each */
    uint32_t n_sizes;
    struct grid grid;     /* neighborhood */
    struct gaps gaps;     /* random */
    bool flipped;         /* random, random_keys: what is off is drawn */
    uint32_t *target;     /* blocks: of each block of queries its block of keys, or null */
    uint32_t *keys;       /* random_keys: space for the draws of a row */
    struct pattern *file; /* file */
};

struct prepare_context {
    const struct script *script;
    const char *folder; /* where file("...") looks; ends in '/' or is "" */
    const struct node *node;
};

struct primitive {
    const char *name;
    struct parameter parameter[MAX_PARAMETERS];
    /* Checks beyond the limits, and values computed once; may be null. */
    int (*prepare)(struct call *c, const struct prepare_context *x, struct error *e);
    void (*row)(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
    const char *definition; /* in place of row: an expression over the parameters */
};

extern const struct primitive primitives[]; /* ended by a null name */

/* Null where no primitive or definition has this name. */
const struct primitive *primitive_find(const char *name);

/* Binds the arguments of each call in the tree for length n and checks them. */
int node_prepare(struct node *node, const struct script *s, const char *folder, uint32_t n,
                 struct error *e);
void call_destroy(struct call *c); /* null is fine */

/* Primitives in files of their own: file.c, neighborhood.c, random_words.c. */
int prepare_file(struct call *c, const struct prepare_context *x, struct error *e);
int prepare_neighborhood(struct call *c, const struct prepare_context *x, struct error *e);
int prepare_documents(struct call *c, const struct prepare_context *x, struct error *e);
int prepare_random(struct call *c, const struct prepare_context *x, struct error *e);
int prepare_random_keys(struct call *c, const struct prepare_context *x, struct error *e);
int prepare_random_global(struct call *c, const struct prepare_context *x, struct error *e);
void row_neighborhood(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
void row_documents(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
void row_sink(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
void row_random(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
void row_random_keys(const struct call *c, uint32_t i, struct clip clip, struct runs *ret);
