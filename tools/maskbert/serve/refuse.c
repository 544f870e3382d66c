/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that refuse a request. */
#include "tools/maskbert/serve/route.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *error_json(const struct request *r, unsigned status, const char *what)
{
    if (!r->openai)
        return json_pack("{s:s}", "error", what);
    return json_pack("{s:{s:s, s:s, s:s?, s:n}}", "error", "message", what, "type",
                     status < 500 ? "invalid_request_error" : "server_error", "param",
                     r->parameter, "code");
}

void request_refuse(struct request *r, unsigned status, const char *format, ...)
{
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    json_t *json = error_json(r, status, what);
    char *words = json ? json_dumps(json, JSON_COMPACT) : NULL;
    text_finish(&r->reply);
    text_add(&r->reply, "%s\n", words ? words : "{\"error\":\"refused\"}");
    r->status = status;
    free(words);
    json_decref(json);
}
