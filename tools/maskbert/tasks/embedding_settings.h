/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of sentence vectors for `embed` and `serve`: those of the options, else of the folder, else mean pooling. */
#pragma once
#include "model/tasks/tasks.h"
#include "tools/maskbert/options.h"

struct embedding_settings {
    struct sentence_settings sentence;
    struct embedding how;
    struct text_part prompt; /* into `sentence` or the options */
    uint32_t prompt_tokens;  /* tokens of `prompt` that pooling leaves out */
};

/* Reads the settings. Refuses those that are not supported. */
int embedding_read(const struct options *o, struct embedding_settings *ret, struct error *e);
/* Refuses settings that the loaded model cannot follow, and counts the tokens of the prompt. max_length: as of struct
   task_options. */
int embedding_check(struct embedding_settings *s, const struct engine *g, uint32_t max_length,
                    struct error *e);
void embedding_finish(struct embedding_settings *s); /* a zeroed one is fine */
