/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: what is let through is within its limits and is read again as it was written. */
#include "model/checkpoint/config.h"
#include "model/checkpoint/json.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_written(const struct model_config *c)
{
    struct error e = {0};
    struct model_config again = {0};
    char *text = config_write(c, "float32");
    hold(text != NULL);
    json_t *json = json_parse(text, strlen(text), "AGAIN", &e);
    hold(json && config_parse(json, &again, &e) == 0);
    hold(again.hidden == c->hidden && again.layers == c->layers && again.labels == c->labels &&
         again.vocabulary == c->vocabulary && again.activation == c->activation);
    config_finish(&again);
    json_decref(json);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {0};
    struct model_config c = {0};
    json_t *json = json_parse((const char *)data, size, "FUZZ", &e);
    if (!json || config_parse(json, &c, &e) < 0) {
        check_refusal(&e);
    } else {
        hold(c.hidden && c.heads && c.hidden % c.heads == 0 && c.layers && c.positions);
        check_written(&c);
    }
    config_finish(&c);
    json_decref(json);
    return 0;
}
