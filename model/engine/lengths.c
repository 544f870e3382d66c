/* SPDX-License-Identifier: Apache-2.0 */
#include "model/engine/lengths.h"
#include "model/base/windows.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"

static const char key[] = "maskc_windows";

static int read_windows(const json_t *config, struct lengths *l, struct error *e)
{
    const json_t *kept = json_object_get(config, key);
    return json_take_u32(kept, "max_length", &l->window, e) < 0
               ? -1
               : json_take_u32(kept, "stride", &l->overlap, e);
}

int lengths_read(const char *folder, const json_t *config, const struct tokenizer *t,
                 struct lengths *ret, struct error *e)
{
    struct lengths l = {0};
    if (sentence_read_length(folder, &l.text, e) < 0)
        return -1;
    if (!l.text && t)
        l.text = t->max_length;
    if (read_windows(config, &l, e) < 0)
        return error_prefix(e, "%s/config.json: %s", folder, key);
    *ret = l;
    return 0;
}

void lengths_keep(json_t *config, uint32_t window, uint32_t overlap)
{
    json_t *kept = json_object_get(config, key);
    if (!window && !overlap)
        return;
    if (!json_is_object(kept)) {
        kept = json_object();
        json_object_set_new(config, key, kept);
    }
    if (window)
        json_object_set_new(kept, "max_length", json_integer(window));
    if (overlap)
        json_object_set_new(kept, "stride", json_integer(overlap));
}

/* 0 is no limit. */
static uint32_t smaller(uint32_t a, uint32_t b)
{
    return b && b < a ? b : a;
}

uint32_t lengths_text(const struct lengths *l, uint32_t most, uint32_t asked)
{
    return smaller(most, asked ? asked : l->text);
}

uint32_t lengths_window(const struct lengths *l, uint32_t most, uint32_t asked)
{
    const uint32_t usual = l->window ? l->window : smaller(WINDOW_TOKENS, l->text);
    return smaller(most, asked ? asked : usual);
}

uint32_t lengths_sample(const struct lengths *l, bool windows, uint32_t most, uint32_t asked)
{
    return windows ? lengths_window(l, most, asked) : lengths_text(l, most, asked);
}

uint32_t lengths_overlap(const struct lengths *l, uint32_t asked)
{
    return asked ? asked : l->overlap;
}
