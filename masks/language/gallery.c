/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the gallery. tests/masks/gallery_test.c compares it with the embedded files. */
#include "masks/language/gallery.h"
#include "masks/base/memory.h"
#include "masks/language/primitive.h"
#include <string.h>

#define SPACE " \t\r\n"

/* clang-format off */
const struct gallery_entry mask_gallery[] = {
    {"star", {{0}}, "token 0 is the relay, the others form a closed ring", "Guo et al. 2019"},
    {"logsparse", {{0}}, "distances 0 and the powers of two", "Li et al. 2019"},
    {"strided", {{"l", 4}}, "l keys to each side and every l-th key", "Child et al. 2019"},
    {"fixed", {{"l", 4}, {"c", 1}}, "blocks of l tokens and the last c keys of each", "Child et al. 2019"},
    {"longformer", {{"w", 5}, {"g", 2}, {"seed", 1}}, "w keys to each side, g random global tokens", "Beltagy et al. 2020"},
    {"longformer-cls", {{"w", 5}, {"g", 2}}, "w keys to each side, the first g tokens are global", "Beltagy et al. 2020"},
    {"bigbird", {{"w", 1}, {"g", 2}, {"r", 2}, {"seed", 2}}, "w keys to each side, g random global tokens, r random keys a row", "Zaheer et al. 2020"},
    {"fairseq-fixed", {{"l", 128}, {"c", 32}}, "fairseq's fixed mask, as BlockBERT's authors measured it", "Qiu et al. 2020"},
    {"blockbert-2", {{0}}, "2 blocks, shifted by 1 in 2 of 12 heads", "Qiu et al. 2020"},
    {"blockbert-3", {{0}}, "3 blocks, shifted by 1 and by 2 in 2 of 12 heads each", "Qiu et al. 2020"},
    {"dam-s-example", {{0}}, "a learned mask: distances and the border, one for each of 12 heads", "Shi et al. 2021"},
    {"dense", {{0}}, "every key", NULL},
    {"causal", {{0}}, "a query sees itself and earlier keys", NULL},
    {"sink", {{"s", 4}, {"w", 28}}, "the first s tokens and a causal window of w keys", "Xiao et al. 2023"},
    {0},
};
/* clang-format on */

const struct gallery_file *gallery_find(const char *name)
{
    size_t length = strlen(name);
    for (const struct gallery_file *g = gallery_embedded; g->name; g++)
        if (!strncmp(g->name, name, length) && !strcmp(g->name + length, ".mask"))
            return g;
    return NULL;
}

const struct gallery_entry *gallery_begins(const char *text, size_t length)
{
    const struct gallery_entry *found = NULL;
    size_t longest = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        size_t n = strlen(g->name);
        if (n <= longest || n > length || !strchr(g->name, '-') || memcmp(text, g->name, n))
            continue;
        if (n < length && word_character(text[n]))
            continue;
        found = g;
        longest = n;
    }
    return found;
}

const char *gallery_word(const struct gallery_entry *g)
{
    for (const struct primitive *p = primitives; p->name; p++) {
        size_t k = 0;
        while (p->name[k] &&
               (p->name[k] == g->name[k] || (p->name[k] == '_' && g->name[k] == '-')))
            k++;
        if (!p->name[k] && !g->name[k])
            return p->name;
    }
    return NULL;
}

/* True if the first closing bracket ends the text, or none is there. */
static bool ends_with_bracket(const char *text)
{
    const char *close = strchr(text, ')');
    return !close || !close[1 + strspn(close + 1, SPACE)];
}

char *gallery_call(const char *text)
{
    const size_t at = strspn(text, SPACE);
    const struct gallery_entry *g = gallery_begins(text + at, strlen(text + at));
    const char *word = g ? gallery_word(g) : NULL;
    if (!word)
        return NULL;
    const char *rest = text + at + strlen(word);
    if (rest[strspn(rest, SPACE)] != '(' || !ends_with_bracket(rest))
        return NULL;
    char *call = memory_text(text);
    memcpy(call + at, word, strlen(word));
    return call;
}
