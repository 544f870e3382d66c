/* SPDX-License-Identifier: Apache-2.0 */
/* Merges of sorted run lists; see runs.h. */
#include "masks/language/runs.h"
#include "masks/base/memory.h"
#include <stdlib.h>

static const struct clip everything = {0, UINT32_MAX};

void runs_finish(struct runs *r)
{
    free(r->run);
    *r = (struct runs){0};
}

void runs_add(struct runs *r, struct clip clip, int64_t begin, int64_t end)
{
    begin = begin > clip.begin ? begin : clip.begin;
    end = end < clip.end ? end : clip.end;
    if (begin >= end)
        return;
    struct run *last = r->count ? &r->run[r->count - 1] : NULL;
    if (last && last->end >= begin)
        last->end = last->end > end ? last->end : (uint32_t)end;
    else
        *MEMORY_PUSH(r->run, r->count, r->capacity) =
            (struct run){(uint32_t)begin, (uint32_t)end};
}

void runs_union(const struct runs *a, const struct runs *b, struct runs *ret)
{
    size_t x = 0, y = 0;
    ret->count = 0;
    while (x < a->count || y < b->count) {
        bool first = y == b->count || (x < a->count && a->run[x].begin <= b->run[y].begin);
        struct run next = first ? a->run[x++] : b->run[y++];
        runs_add(ret, everything, next.begin, next.end);
    }
}

void runs_both(const struct runs *a, const struct runs *b, struct runs *ret)
{
    size_t x = 0, y = 0;
    ret->count = 0;
    while (x < a->count && y < b->count) {
        struct run p = a->run[x], q = b->run[y];
        uint32_t begin = p.begin > q.begin ? p.begin : q.begin;
        runs_add(ret, everything, begin, p.end < q.end ? p.end : q.end);
        if (p.end < q.end)
            x++;
        else
            y++;
    }
}

void runs_minus(const struct runs *a, const struct runs *b, struct runs *ret)
{
    size_t y = 0;
    ret->count = 0;
    for (size_t x = 0; x < a->count; x++) {
        uint32_t from = a->run[x].begin, end = a->run[x].end;
        while (y < b->count && b->run[y].end <= from)
            y++;
        for (size_t k = y; k < b->count && b->run[k].begin < end; k++) {
            runs_add(ret, everything, from, b->run[k].begin);
            from = b->run[k].end;
        }
        runs_add(ret, everything, from, end);
    }
}

void runs_not(const struct runs *a, struct clip clip, struct runs *ret)
{
    uint32_t from = clip.begin;
    ret->count = 0;
    for (size_t k = 0; k < a->count; k++) {
        runs_add(ret, clip, from, a->run[k].begin);
        from = a->run[k].end;
    }
    runs_add(ret, clip, from, clip.end);
}

struct clip runs_hull(const struct runs *r)
{
    if (!r->count)
        return (struct clip){0, 0};
    return (struct clip){r->run[0].begin, r->run[r->count - 1].end};
}
