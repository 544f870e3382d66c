/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/windows.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct windows windows_begin(uint32_t most, uint32_t overlap, uint32_t question,
                             uint32_t special, uint32_t text)
{
    struct windows w = {.text = text};
    w.question = least(question, least(most / 2, WINDOW_QUESTION + special));
    w.fits = most - w.question - 1;
    w.overlap = least(overlap ? overlap : WINDOW_OVERLAP, w.fits / 2);
    return w;
}

bool windows_next(struct windows *w, uint32_t *first, uint32_t *count)
{
    if (w->done)
        return false;
    const uint32_t left = w->text - w->first;
    *first = w->first;
    *count = least(left, w->fits);
    w->done = left <= w->fits;
    w->first += w->fits - w->overlap;
    return true;
}
