/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests to maskbert serve. The first byte names the path. Accepted texts are within the limits of the model,
   and each refusal is one line of JSON. */
#include "tests/fuzz/check.h"
#include "tools/maskbert/serve/body.h"
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 6, VOCABULARY = 30, HIDDEN = 8 };

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_text(const struct task_text *t)
{
    hold((t->token_ids != NULL) != (t->a.bytes != NULL));
    hold(!t->token_ids || (t->count >= 1 && t->count <= LONGEST));
    for (uint32_t k = 0; k < t->count; k++)
        hold(t->token_ids[k] < VOCABULARY);
}

static void check_accepted(const struct request *r)
{
    hold(r->text && r->texts <= r->route->most_texts && r->options.dimensions <= HIDDEN);
    for (uint32_t k = 0; k < r->texts; k++)
        check_text(&r->text[k]);
}

static void check_refused(const struct request *r)
{
    const char *reply = text_get(&r->reply), *end = strchr(reply, '\n');
    json_t *json = json_loads(reply, 0, NULL);
    hold(r->status == 400 || r->status == 413);
    hold(end && !end[1] && json_object_get(json, "error"));
    json_decref(json);
}

static void finish(struct request *r)
{
    text_finish(&r->body);
    text_finish(&r->reply);
    json_decref(r->json);
    free(r->token_ids);
    free(r->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct body_key *const bodies[] = {body_of_texts, body_of_vectors, body_of_openai,
                                             body_of_ranking};
    struct engine engine = {.longest = LONGEST};
    engine.config.vocabulary = VOCABULARY;
    engine.config.hidden = HIDDEN;
    const struct serving serving = {.engine = &engine, .embedding.how.poolings = 1};
    if (!size)
        return 0;
    const struct route route = {.most_texts = 4, .body = bodies[data[0] % 4]};
    struct request r = {.route = &route, .openai = data[0] & 4};
    text_append(&r.body, (const char *)data + 1, size - 1);
    if (body_read(&serving, &r))
        check_accepted(&r);
    else
        check_refused(&r);
    finish(&r);
    return 0;
}
