/* SPDX-License-Identifier: Apache-2.0 */
/* Gate values of DuoAttention and the config.json behind them, after a line "====". */
#include "masks/readers/duo.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

static const char mark[] = "====\n";

/* Half of the heads are full, and all with a threshold of 0. */
static void check(const struct duo *g)
{
    struct error e = {0};
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .name = "FUZZ", .n = 9, .has_keep = true,
                             .keep = 50};
    struct mask *m = duo_mask(g, &r, &e);
    if (!m)
        abort();
    check_mask(m);
    r.has_keep = false;
    r.has_threshold = true;
    m = duo_mask(g, &r, &e);
    if (!m || m->n_patterns != 1 || m->pattern[0]->active != 45)
        abort();
    mask_destroy(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {0};
    struct duo g = {0};
    const char *text = (const char *)data, *end = memmem(data, size, mark, sizeof mark - 1);
    const size_t first = end ? (size_t)(end - text) : size, gap = end ? sizeof mark - 1 : 0;
    if (duo_parse(text, first, "FUZZ", &g, &e) < 0 ||
        duo_parse_config(text + first + gap, size - first - gap, "FUZZ", &g, &e) < 0)
        check_refusal(&e);
    else if (g.layers * g.heads <= 4096)
        check(&g);
    duo_finish(&g);
    return 0;
}
