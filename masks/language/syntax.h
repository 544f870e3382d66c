/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of an expression, and the parser that makes it from tokens. Chains of one operator are
   one node, so the depth of a tree is the depth of its brackets. */
#pragma once
#include "masks/language/runs.h"
#include "masks/language/token.h"
#include <stdbool.h>

enum { EXPRESSION_MAX_DEPTH = 100 };

enum argument_kind { ARGUMENT_NUMBER, ARGUMENT_RANGE, ARGUMENT_STRING, ARGUMENT_LIST };

struct argument {
    uint32_t at;             /* place of the argument, for errors */
    char name[WORD_MAX + 1]; /* "" without "name =" */
    enum argument_kind kind;
    bool whole;          /* a number without point or exponent: in first */
    double real;         /* any number */
    int64_t first, last; /* a whole number twice, or both ends of a range */
    char *string;        /* owned */
    int64_t *list;       /* owned */
    uint32_t n_list;
};

enum node_kind { NODE_CALL, NODE_UNION, NODE_BOTH, NODE_MINUS, NODE_NOT };

struct primitive;
struct call;

struct node {
    enum node_kind kind;
    uint32_t at;
    struct node **child; /* owned; of NODE_MINUS the first minus all others */
    uint32_t n_children, capacity;

    /* NODE_CALL */
    const struct primitive *primitive;
    const char *word; /* the user's word: the primitive, or the word that it defines */
    struct argument *argument;
    uint32_t n_arguments;
    struct call *call; /* after prepare */

    struct runs out, spare; /* the row that was evaluated last */
    uint64_t cost;          /* runs produced so far */
};

void node_destroy(struct node *n); /* accepts null */

/* Parses one expression from token *next on and moves *next past it; null with *e set. */
struct node *expression_parse(const struct script *s, uint32_t *next, struct error *e);

/* A whole number without sign at token *next, for the header statements; -1 with *e set. */
int64_t number_parse(const struct script *s, uint32_t *next, struct error *e);

/* "found 'x'" for messages. */
const char *token_found(const struct script *s, uint32_t token, char buffer[64]);
