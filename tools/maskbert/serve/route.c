/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/serve/route.h"
#include "tools/maskbert/serve/body.h"
#include "tools/maskbert/serve/replies.h"
#include "tools/maskbert/serve/server.h"
#include <stdlib.h>
#include <string.h>

static const char *nothing_missing(const struct serving *s)
{
    (void)s;
    return NULL;
}

static void get_health(struct server *server, struct text *out)
{
    (void)server;
    text_add(out, "{\"status\":\"ok\"}\n");
}

static void get_models(struct server *server, struct text *out)
{
    const struct serving *s = &server->serving;
    json_t *json =
        json_pack("{s:s, s:[{s:s?, s:s, s:I, s:s}]}", "object", "list", "data", "id", s->name,
                  "object", "model", "created", (json_int_t)s->started, "owned_by", "maskbert");
    char *words = json_dumps(json, JSON_COMPACT);
    text_add(out, "%s\n", words ? words : "{\"object\":\"list\",\"data\":[]}");
    free(words);
    json_decref(json);
}

/* clang-format off */
static const char type_of_json[] = "application/json";
static const char type_of_metrics[] = "text/plain; version=0.0.4";
const struct route routes[] = {
    {"/embed", "POST", vectors_missing, TEXTS_LIMIT, body_of_vectors, true, false, vectors_bytes, vectors_run, NULL, type_of_json},
    {"/fill-mask", "POST", words_missing, TEXTS_LIMIT, body_of_texts, false, false, words_bytes, words_run, NULL, type_of_json},
    {"/classify", "POST", labels_missing, TEXTS_LIMIT, body_of_texts, false, false, labels_bytes, labels_run, NULL, type_of_json},
    {"/rerank", "POST", ranking_missing, MANY_TEXTS_LIMIT, body_of_ranking, false, false, ranking_bytes, ranking_run, NULL, type_of_json},
    {"/v1/rerank", "POST", ranking_missing, MANY_TEXTS_LIMIT, body_of_ranking, false, true, ranking_bytes, ranking_run, NULL, type_of_json},
    {"/v2/rerank", "POST", ranking_missing, MANY_TEXTS_LIMIT, body_of_ranking, false, true, ranking_bytes, ranking_run, NULL, type_of_json},
    {"/v1/embeddings", "POST", vectors_missing, MANY_TEXTS_LIMIT, body_of_openai, true, true, openai_bytes, openai_run, NULL, type_of_json},
    {"/v1/models", "GET", nothing_missing, 0, NULL, false, true, NULL, NULL, get_models, type_of_json},
    {"/health", "GET", nothing_missing, 0, NULL, false, false, NULL, NULL, get_health, type_of_json},
    {"/metrics", "GET", nothing_missing, 0, NULL, false, false, NULL, NULL, server_metrics, type_of_metrics},
    {0},
};
/* clang-format on */
_Static_assert(sizeof routes / sizeof *routes <= METRIC_PATHS, "each path has its counters");

const struct route *route_find(const char *path)
{
    for (const struct route *r = routes; r->path; r++)
        if (!strcmp(r->path, path))
            return r;
    return NULL;
}
