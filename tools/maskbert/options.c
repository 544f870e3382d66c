/* SPDX-License-Identifier: Apache-2.0 */
/* One row an option; glibc's argp gets the rows that the command takes. */
#include "tools/maskbert/options.h"
#include "masks/base/text.h"
#include "tools/maskbert/command.h"
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { FLAG, TEXT, U32, U64, REAL, PORT };

enum { KEY_BASE = 0x1000 };

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct row {
    const char *name;
    char letter;
    const char *argument, *help;
    enum kind kind;
    size_t at;
} rows[OPTION_COUNT] = {
    [OPTION_OUTPUT]     = {"output", 'o', "PATH", "Where the result goes", TEXT, AT(output)},
    [OPTION_DTYPE]      = {"dtype", 0, "T", "f32, bf16 or f16 (default: as the model has it)", TEXT, AT(dtype)},
    [OPTION_MASK]       = {"mask", 0, "MASK", "A file, a gallery name or an expression, as maskc takes it", TEXT, AT(mask)},
    [OPTION_TRANSFORM]  = {"transform", 0, "T", "softmax (default) or sparsegen=LAMBDA, stored with the mask", TEXT, AT(transform)},
    [OPTION_POSITIONS]  = {"positions", 0, "N", "Longest text in tokens", U32, AT(positions)},
    [OPTION_SIZE]       = {"size", 0, "SIZE", "tiny, mini, small, medium, base, large or LxHxA: layers, hidden size, heads", TEXT, AT(size)},
    [OPTION_TOKENS]     = {"size", 0, "V", "Tokens in all", TEXT, AT(size)},
    [OPTION_CASED]      = {"cased", 0, 0, "Keep case and accents (default: not)", FLAG, AT(cased)},
    [OPTION_MIN_FREQUENCY] = {"min-frequency", 0, "N", "Of two pieces that are joined (default 2)", U32, AT(min_frequency)},
    [OPTION_VOCABULARY] = {"vocab", 0, "FILE", "A vocab.txt", TEXT, AT(vocabulary)},
    [OPTION_DEVIATION]  = {"std", 0, "S", "Standard deviation of the weights (default 0.02)", REAL, AT(deviation)},
    [OPTION_SEED]       = {"seed", 0, "S", "Of what is drawn (default 0)", U64, AT(seed)},
    [OPTION_OFFSETS]    = {"offsets", 0, 0, "The bytes of each token: ID:BEGIN-END", FLAG, AT(offsets)},
    [OPTION_MAX_LENGTH] = {"max-length", 0, "N", "Cut to N tokens, [CLS] and [SEP] included (default: never)", U32, AT(max_length)},
    [OPTION_COMPAT]     = {"tokenizer-compat", 0, "hf|google", "As HuggingFace's fast tokenizer (default) or as Google's", TEXT, AT(compat)},
    [OPTION_THREADS]    = {"threads", 0, "N", "Default: all", U32, AT(threads)},
    [OPTION_JSON]       = {"json", 0, 0, "JSON on stdout and nothing else", FLAG, AT(json)},
    [OPTION_INPUT]      = {"input", 0, "FILE", "Lines of text (default: stdin)", TEXT, AT(input)},
    [OPTION_POOLING]    = {"pooling", 0, "P", "mean (default), cls, pooler or none", TEXT, AT(pooling)},
    [OPTION_NORMALIZE]  = {"normalize", 0, 0, "Vectors of length 1", FLAG, AT(normalize)},
    [OPTION_RUN_DTYPE]  = {"dtype", 0, "T", "f32 (default) or bf16", TEXT, AT(dtype)},
    [OPTION_RUN_TRANSFORM] = {"transform", 0, "T", "softmax or sparsegen=LAMBDA (default: the model's own, else softmax)", TEXT, AT(transform)},
    [OPTION_DEVICE]     = {"device", 0, "D", "cpu (default), cuda, cuda:N or emulated", TEXT, AT(device)},
    [OPTION_BATCH_TOKENS] = {"batch-tokens", 0, "N", "Tokens of a batch (default 4096)", U32, AT(batch_tokens)},
    [OPTION_TOP]        = {"top", 0, "K", "Words for each [MASK] (default 5)", U32, AT(top)},
    [OPTION_LAYER]      = {"layer", 0, "L", "One layer, from 0 (default: all)", TEXT, AT(layer)},
    [OPTION_HEAD]       = {"head", 0, "H", "One head, from 0 (default: all)", TEXT, AT(head)},
    [OPTION_KEEP]       = {"keep", 0, "P[,P..]", "Percent of the entries that stay", TEXT, AT(keep)},
    [OPTION_DROP_DIAGONAL] = {"drop-diagonal", 0, 0, "Also masks without the diagonal", FLAG, AT(drop_diagonal)},
    [OPTION_RANDOM]     = {"random", 0, 0, "Also random masks of the same size, to compare with", FLAG, AT(random)},
    [OPTION_BATCH]      = {"batch", 0, "B", "Texts (default 32)", U32, AT(batch)},
    [OPTION_LENGTH]     = {"length", 'n', "N", "Tokens of the longest text (bench: 128; prune: the positions)", U32, AT(length)},
    [OPTION_LENGTHS]    = {"lengths", 0, "same|mixed", "All texts as long (default), or of N/8 to N tokens", TEXT, AT(lengths)},
    [OPTION_HOST]       = {"host", 0, "ADDRESS", "To listen on (default 127.0.0.1: this machine alone)", TEXT, AT(host)},
    [OPTION_PORT]       = {"port", 0, "P", "To listen on; 0: any that is free (default 8080)", PORT, AT(port)},
    [OPTION_SECONDS]    = {"seconds", 0, "S", "Time for each measurement (default 2)", REAL, AT(seconds)},
};
/* clang-format on */

struct input {
    const struct command *command;
    struct options *options;
};

static bool read_u64(const char *text, uint64_t limit, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v > limit)
        return false;
    *ret = v;
    return true;
}

static void read_value(struct argp_state *state, const struct row *r, char *text,
                       struct options *o)
{
    void *to = (char *)o + r->at;
    uint64_t whole = 0;
    char *end;
    switch (r->kind) {
    case FLAG:
        *(bool *)to = true;
        break;
    case TEXT:
        *(const char **)to = text;
        break;
    case U32:
        if (!read_u64(text, INT32_MAX, &whole) || !whole)
            argp_error(state, "--%s: '%s' is not a whole number from 1", r->name, text);
        *(uint32_t *)to = (uint32_t)whole;
        break;
    case U64:
        if (!read_u64(text, UINT64_MAX, &whole))
            argp_error(state, "--%s: '%s' is not a whole number from 0", r->name, text);
        *(uint64_t *)to = whole;
        break;
    case PORT:
        if (!read_u64(text, UINT16_MAX, &whole))
            argp_error(state, "--%s: '%s' is not a port, 0 to 65535", r->name, text);
        o->port = (uint16_t)whole;
        o->port_given = true;
        break;
    case REAL:
        *(double *)to = strtod(text, &end);
        if (end == text || *end || !isfinite(*(double *)to))
            argp_error(state, "--%s: '%s' is not a number", r->name, text);
        break;
    }
}

static int key_of(int id)
{
    return rows[id].letter ? rows[id].letter : KEY_BASE + id;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const struct input *in = state->input;
    for (int k = 0; k < OPTION_COUNT; k++)
        if (in->command->options & OPTION_BIT(k) && key == key_of(k)) {
            read_value(state, &rows[k], text, in->options);
            return 0;
        }
    if (key == ARGP_KEY_ARG) {
        if (in->options->argument || !in->command->n_arguments)
            argp_error(state, "unexpected argument '%s'", text);
        in->options->argument = text;
        return 0;
    }
    if (key == ARGP_KEY_END && in->command->n_arguments && !in->options->argument)
        argp_error(state, "%s is missing", in->command->arguments);
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

static void make_table(const struct command *c, struct argp_option *ret)
{
    for (int k = 0; k < OPTION_COUNT; k++)
        if (c->options & OPTION_BIT(k))
            *ret++ = (struct argp_option){rows[k].name, key_of(k), rows[k].argument, 0,
                                          rows[k].help, 0};
    *ret = (struct argp_option){0};
}

void options_parse(const struct command *command, int argc, char **argv, struct options *ret)
{
    struct argp_option table[OPTION_COUNT + 1];
    make_table(command, table);
    struct text about = {0};
    text_add(&about, "%s.%s%s", command->summary, command->details ? "\v" : "",
             command->details ? command->details : "");
    struct argp argp = {table, parse, command->arguments, text_get(&about)};
    char name[64];
    snprintf(name, sizeof name, "maskbert %s", command->name);
    argv[0] = name;
    *ret = (struct options){0};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &(struct input){command, ret});
    text_finish(&about);
}
