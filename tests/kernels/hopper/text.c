/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/hopper/text.h"
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 80 };

static bool starts_with(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* Adds the headers that CUDA kernels of sm_90 may include. */
static uint32_t add_templates(struct source_file *files, uint32_t count)
{
    for (const struct source_file *f = templates_embedded; f->name; f++)
        if (!strchr(f->name, '/') || starts_with(f->name, "cuda/common/") ||
            starts_with(f->name, "cuda/hopper/")) {
            assert_true(count < MAX_FILES);
            files[count++] = *f;
        }
    return count;
}

char *hopper_text_flatten(const char *text, bool f16, bool rows_in_registers)
{
    struct source_file files[MAX_FILES];
    struct text config = {0}, out = {0};
    text_add(&config, "#include \"abi.h\"\nenum { DTYPE = ABI_%s, ROWS_IN_REGISTERS = %d };\n",
             f16 ? "F16" : "BF16", rows_in_registers);
    files[0] = (struct source_file){"entry.cu", text};
    files[1] = (struct source_file){"kernel_config.h", text_get(&config)};
    const struct source s = {.files = files, .n_files = add_templates(files, 2)};
    source_flatten(&s, &out);
    text_finish(&config);
    return text_take(&out);
}

struct emulated_text *hopper_text_open(const char *text, bool f16, bool rows_in_registers)
{
    struct error e = {0};
    char *flat = hopper_text_flatten(text, f16, rows_in_registers);
    struct emulated_text *t = emulated_open(flat, "the pipeline", &e);
    if (!t)
        fail_msg("%s\n%s", e.text, text);
    free(flat);
    return t;
}
