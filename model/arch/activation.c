/* SPDX-License-Identifier: Apache-2.0 */
/* Activations by the names of transformers. */
#include "model/arch/config.h"
#include <string.h>

/* clang-format off */
static const struct {
    const char *name;
    enum activation activation;
} activations[] = {
    {"gelu", ACTIVATION_GELU}, {"gelu_new", ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
    {"relu", ACTIVATION_RELU}, {"silu", ACTIVATION_SILU}, {"swish", ACTIVATION_SILU},
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof *(table))

const char *activation_name(enum activation a)
{
    for (size_t k = 0; k < COUNT(activations); k++)
        if (activations[k].activation == a)
            return activations[k].name;
    return "?";
}

int activation_parse(const char *key, const char *name, enum activation *ret, struct error *e)
{
    for (size_t k = 0; k < COUNT(activations); k++)
        if (!strcmp(activations[k].name, name)) {
            *ret = activations[k].activation;
            return 0;
        }
    return error_set(e, ERROR_INPUT,
                     "%s '%.60s' is not supported: gelu, gelu_new, gelu_pytorch_tanh, "
                     "relu or silu is expected",
                     key, name);
}
