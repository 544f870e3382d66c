/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/tasks/embedding_settings.h"
#include "model/arch/arch.h"
#include <string.h>

static int read_prompt(const struct options *o, struct embedding_settings *s, struct error *e)
{
    if (o->prompt && o->prompt_name)
        return error_set(e, ERROR_INPUT, "--prompt and --prompt-name: one of them is expected");
    const char *text = o->prompt ? o->prompt : sentence_prompt(&s->sentence, o->prompt_name, e);
    if (!text)
        return o->prompt_name ? error_prefix(e, "--prompt-name") : -1;
    s->prompt = (struct text_part){text, (uint32_t)strlen(text)};
    return 0;
}

int embedding_read(const struct options *o, struct embedding_settings *ret, struct error *e)
{
    enum pooling pooling = POOLING_MEAN;
    if (o->pooling && pooling_parse(o->pooling, &pooling, e) < 0)
        return -1;
    if (sentence_read(o->argument, o->pooling, &ret->sentence, e) < 0)
        return -1;
    const struct sentence_settings *s = &ret->sentence;
    bool cut = s->dimension != 0;
    ret->how = (struct embedding){
        .poolings = o->pooling ? 1 : s->poolings,
        .step = s->step,
        .steps = s->steps,
        .normalize = s->normalize || (o->normalize && !cut),
        .dimension = s->dimension,
        .normalize_kept = o->normalize && cut,
    };
    memcpy(ret->how.pooling, s->pooling, sizeof s->pooling);
    if (o->pooling)
        ret->how.pooling[0] = pooling;
    return read_prompt(o, ret, e);
}

/* Each dense layer takes the vector that the module before it gives. */
static int check_steps(const struct embedding_settings *s, const struct engine *g,
                       struct error *e)
{
    struct embedding before = s->how;
    for (before.steps = 0; before.steps < s->how.steps; before.steps++) {
        const struct sentence_dense *d = s->how.step[before.steps];
        uint32_t width = embedding_width(g, &before);
        if (d && d->in != width)
            return error_set(e, ERROR_INPUT, "modules.json: a Dense of %u numbers after %u",
                             d->in, width);
    }
    return 0;
}

static bool is_special(const struct tokenizer *t, uint32_t token_id)
{
    return token_id == t->begin || token_id == t->end || token_id == t->pad ||
           token_id == t->unknown || token_id == t->mask;
}

/* Tokens of the prompt by itself. Like sentence-transformers, counts those before it, and leaves out a special token at
   the end. */
static uint32_t count_prompt(const struct embedding_settings *s, const struct engine *g,
                             uint32_t longest)
{
    struct tokens t = {0};
    if (!s->sentence.excludes_prompt || !s->prompt.size || !g->tokenizer ||
        longest < TOKENIZER_MIN_LENGTH)
        return 0;
    tokenizer_encode(g->tokenizer, s->prompt, (struct text_part){0}, longest, &t);
    const uint32_t count = t.count;
    const bool is_closed = count && is_special(g->tokenizer, t.token_ids[count - 1]);
    tokens_finish(&t);
    return count - is_closed;
}

int embedding_check(struct embedding_settings *s, const struct engine *g, uint32_t max_length,
                    struct error *e)
{
    if (s->sentence.lowercase && g->tokenizer && !g->tokenizer->rules.lowercase)
        return error_set(e, ERROR_INPUT,
                         "sentence_bert_config.json: do_lower_case true with a cased tokenizer "
                         "is not supported");
    if (s->how.pooling[0] == POOLING_POOLER && arch_pooler(&g->config) != POOLER_OF_ENCODER)
        return error_set(e, ERROR_INPUT, "pooling pooler: %s has none; mean or cls is expected",
                         g->config.arch->title);
    s->prompt_tokens = count_prompt(s, g, task_longest(g, max_length));
    return check_steps(s, g, e);
}

void embedding_finish(struct embedding_settings *s)
{
    sentence_finish(&s->sentence);
    *s = (struct embedding_settings){0};
}
