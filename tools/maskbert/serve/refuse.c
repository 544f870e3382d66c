/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that refuse a request. */
#include "model/checkpoint/json.h"
#include "model/tokenizer/base/unicode.h"
#include "tools/maskbert/serve/route.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUOTED_BYTES = 64 };

static json_t *error_json(const struct request *r, unsigned status, const char *what)
{
    if (!r->openai)
        return json_pack("{s:s}", "error", what);
    return json_pack("{s:{s:s, s:s, s:s?, s:n}}", "error", "message", what, "type",
                     status < 500 ? "invalid_request_error" : "server_error", "param",
                     r->parameter, "code");
}

int request_quoted(const char *name)
{
    return (int)json_prefix(name, QUOTED_BYTES);
}

/* JSON is UTF-8: anything else becomes U+FFFD. */
static void clean(const char *what, struct text *ret)
{
    const uint8_t *at = (const uint8_t *)what, *end = at + strlen(what);
    uint32_t point;
    while (at < end) {
        char bytes[4];
        at += unicode_decode(at, end, &point);
        text_append(ret, bytes, unicode_encode(point, bytes));
    }
}

void request_refuse(struct request *r, unsigned status, const char *format, ...)
{
    char what[512];
    struct text whole = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    clean(what, &whole);
    json_t *json = error_json(r, status, text_get(&whole));
    char *words = json ? json_dumps(json, JSON_COMPACT) : NULL;
    text_finish(&r->reply);
    text_add(&r->reply, "%s\n", words ? words : "{\"error\":\"refused\"}");
    r->status = status;
    free(words);
    json_decref(json);
    text_finish(&whole);
}
