/* SPDX-License-Identifier: Apache-2.0 */
/* maskc gallery: the masks that can be named, with their arguments, sparsity and papers. */
#include "masks/language/gallery.h"
#include "masks/base/text.h"
#include "tools/maskc/command.h"
#include <math.h>
#include <stdio.h>

enum { DEFAULT_LENGTH = 128 };

struct listed {
    const struct gallery_entry *entry;
    uint32_t heads;  /* 0: no mask of this length */
    double sparsity; /* percent, the mean of all heads */
};

/* A mask that needs more tokens, or more memory than there is, stays without figures. */
static struct listed measure(const struct gallery_entry *g, uint32_t n)
{
    struct error e = {0};
    const struct mask_request request = {.name = g->name, .n = n, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    struct listed ret = {.entry = g, .heads = m ? m->heads : 0};
    double active = 0;
    for (uint32_t h = 0; h < ret.heads; h++)
        active += (double)mask_pattern(m, 0, h)->active / ret.heads;
    ret.sparsity = 100 - 100 * active / ((double)n * n);
    mask_destroy(m);
    return ret;
}

static json_t *entry_json(const struct listed *x)
{
    const struct gallery_entry *g = x->entry;
    json_t *arguments = json_object();
    for (int k = 0; k < GALLERY_MAX_ARGUMENTS && g->argument[k].name; k++)
        json_object_set_new(arguments, g->argument[k].name, json_integer(g->argument[k].value));
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:o}", "name", g->name, "arguments", arguments,
                     "heads", x->heads ? json_integer(x->heads) : json_null(), "sparsity",
                     x->heads ? json_real(round(x->sparsity * 100) / 100) : json_null(),
                     "description", g->text, "paper",
                     g->paper ? json_string(g->paper) : json_null());
}

static void print_json(uint32_t n)
{
    json_t *list = json_array();
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        const struct listed x = measure(g, n);
        json_array_append_new(list, entry_json(&x));
    }
    command_print_json(json_pack("{s:i, s:o}", "length", (int)n, "gallery", list));
}

/* Two lines of at most 80 columns. */
static void print_entry(const struct listed *x)
{
    const struct gallery_entry *g = x->entry;
    struct text call = {0};
    text_add(&call, "%s", g->name);
    for (int k = 0; k < GALLERY_MAX_ARGUMENTS && g->argument[k].name; k++)
        text_add(&call, "%s%s=%d", k ? ", " : "(", g->argument[k].name, g->argument[k].value);
    text_add(&call, "%s", g->argument[0].name ? ")" : "");
    printf("%-32s ", text_get(&call));
    text_finish(&call);
    if (x->heads)
        printf("%6.1f %%  %4u   ", x->sparsity, x->heads);
    else
        printf("%6s    %4s   ", "-", "-");
    printf("%s\n    %s\n", g->paper ? g->paper : "-", g->text);
}

static void print_table(uint32_t n)
{
    printf("%-32s sparsity  heads  paper, length %u\n", "mask", n);
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        const struct listed x = measure(g, n);
        print_entry(&x);
    }
    printf("\nA name is a MASK, with its arguments or without:\n"
           "    maskc show 'longformer-cls(64, 1)' -n 512\n");
}

int command_gallery(const struct options *o)
{
    const uint32_t n = o->n_lengths ? o->length[0] : DEFAULT_LENGTH;
    if (o->json)
        print_json(n);
    else
        print_table(n);
    return 0;
}
