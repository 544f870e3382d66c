/* SPDX-License-Identifier: Apache-2.0 */
/* Measured plans: the input as a whole file, then as the entries of a file with a right checksum. What is accepted is
   written and read again. */
#include "runtime/pipeline/measured_plans.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_parse(const void *text, size_t size)
{
    struct error e = {0};
    struct measured_plans p, again;
    if (measured_parse(text, size, "FUZZ", &p, &e)) {
        check_refusal(&e);
        hold(!p.count && !p.entry);
        return;
    }
    hold(p.count <= MEASURED_MOST);
    char *written = measured_text(&p, "FUZZ");
    hold(written && !measured_parse(written, strlen(written), "FUZZ", &again, &e));
    hold(again.count == p.count);
    free(written);
    measured_finish(&p);
    measured_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char sum[17];
    check_parse(data, size);
    json_t *list = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    if (!list)
        return 0;
    measured_digest(list, sum);
    json_t *j = json_pack("{s:i, s:s, s:s, s:o}", "measured_plans", 1, "cpu", "FUZZ",
                          "checksum", sum, "entries", list);
    char *text = j ? json_dumps(j, 0) : NULL;
    if (text)
        check_parse(text, strlen(text));
    free(text);
    json_decref(j);
    return 0;
}
