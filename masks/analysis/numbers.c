/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers as the mask language writes them: ranges from four numbers on. */
#include "masks/analysis/phrase.h"

enum { RANGE_FROM = 4 };

static void add_one(struct text *out, const struct numbers *l, int64_t value, bool alone)
{
    const char *comma = out->length && out->bytes[out->length - 1] != '(' ? "," : "";
    if (alone && l->end && value == (int64_t)l->end - 1 && value)
        text_add(out, "%s-1", comma);
    else
        text_add(out, "%s%lld", comma, (long long)value);
}

static void add_range(struct text *out, const struct numbers *l, uint32_t a, uint32_t b)
{
    add_one(out, l, l->first + a, b - a == 1);
    if (b - a >= RANGE_FROM)
        text_add(out, "..%lld", (long long)(l->first + b - 1));
    for (uint32_t k = a + 1; k < b && b - a < RANGE_FROM; k++)
        add_one(out, l, l->first + k, false);
}

void numbers_add(struct text *out, struct numbers l, uint32_t most)
{
    uint32_t said = 0;
    for (uint32_t a = 0; a < l.count; a++) {
        if (!l.flag[a])
            continue;
        uint32_t b = a + 1;
        while (b < l.count && l.flag[b])
            b++;
        if (said >= most) {
            text_add(out, ",... (%u in all)", numbers_count(l));
            return;
        }
        said += b - a >= RANGE_FROM ? 2 : b - a;
        add_range(out, &l, a, b);
        a = b;
    }
}

uint32_t numbers_count(struct numbers l)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < l.count; k++)
        count += l.flag[k] != 0;
    return count;
}
