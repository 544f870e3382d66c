/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of a folder, and the one setting that the tokenizer's files decide: token types. */
#include "model/checkpoint/config.h"
#include "model/checkpoint/json.h"
#include <string.h>
#include <sys/stat.h>

/* True if the tokenizer of transformers gives types to a model: by model_input_names, else by its class, which config.json may
   name too, else by the family. */
static bool gives_types(const json_t *tokenizer, const json_t *config, bool family)
{
    static const char *const without[] = {"DistilBert", "Roberta",   "XLMRoberta",
                                          "MPNet",      "Camembert", "TokenizersBackend"};
    const json_t *names = json_object_get(tokenizer, "model_input_names");
    const char *own = json_string_value(json_object_get(tokenizer, "tokenizer_class")),
               *name =
                   own ? own : json_string_value(json_object_get(config, "tokenizer_class"));
    for (size_t k = 0; k < json_array_size(names); k++) {
        const char *input = json_string_value(json_array_get(names, k));
        if (input && !strcmp(input, "token_type_ids"))
            return true;
    }
    if (json_is_array(names) || !name)
        return !json_is_array(names) && family;
    for (size_t k = 0; k < sizeof without / sizeof *without; k++)
        if (!strncmp(name, without[k], strlen(without[k])))
            return false;
    return family || !strncmp(name, "BertTokenizer", 13);
}

/* A family may have another one's tokenizer. Where transformers cannot compute, with types for a family's model of one, the
   family decides. */
static int take_types(const char *folder, struct model_config *c, struct error *e)
{
    json_t *tokenizer;
    if (!c->types)
        return 0;
    if (json_read_optional(folder, "tokenizer_config.json", &tokenizer, e) < 0)
        return -1;
    c->one_type =
        !gives_types(tokenizer, c->json, !c->one_type) || (c->types == 1 && c->one_type);
    json_decref(tokenizer);
    return 0;
}

/* Refuses a file in the place of the folder. */
static int check_folder(const char *path, struct error *e)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISDIR(s.st_mode)
               ? error_set(e, ERROR_INPUT, "%s: not a directory, a model's folder is expected",
                           path)
               : 0;
}

int config_read(const char *folder, struct model_config *ret, struct error *e)
{
    json_t *json = check_folder(folder, e) == 0 ? json_read(folder, "config.json", e) : NULL;
    if (!json)
        return -1;
    struct model_config c;
    int r = config_parse(json, &c, e);
    json_decref(json);
    if (r < 0)
        return error_prefix(e, "%s/config.json", folder);
    if (take_types(folder, &c, e) < 0) {
        config_finish(&c);
        return -1;
    }
    *ret = c;
    return 0;
}
