/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/hopper/text.h"
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char *template_of(const char *name)
{
    for (const struct source_file *f = templates_embedded; f->name; f++)
        if (!strcmp(f->name, name))
            return f->text;
    fail_msg("no template %s", name);
    return NULL;
}

/* The text in one piece, with all that it includes. */
static char *flatten(const char *text, bool f16, bool rows_in_registers)
{
    static const char *const names[] = {"abi.h",
                                        "cuda/common/device.h",
                                        "cuda/common/matrix.h",
                                        "cuda/common/numbers.h",
                                        "cuda/common/sizes.h",
                                        "cuda/common/work_item.h",
                                        "cuda/hopper/args.h",
                                        "cuda/hopper/device.h",
                                        "cuda/hopper/wgmma.h"};
    enum { NAMES = sizeof names / sizeof *names };
    struct source_file files[NAMES + 2];
    struct text config = {0}, out = {0};
    text_add(&config, "#include \"abi.h\"\nenum { DTYPE = ABI_%s, ROWS_IN_REGISTERS = %d };\n",
             f16 ? "F16" : "BF16", rows_in_registers);
    files[0] = (struct source_file){"entry.cu", text};
    for (size_t k = 0; k < NAMES; k++)
        files[k + 1] = (struct source_file){names[k], template_of(names[k])};
    files[NAMES + 1] = (struct source_file){"kernel_config.h", text_get(&config)};
    const struct source s = {.files = files, .n_files = NAMES + 2};
    source_flatten(&s, &out);
    text_finish(&config);
    return text_take(&out);
}

struct emulated_text *hopper_text_open(const char *text, bool f16, bool rows_in_registers)
{
    struct error e = {0};
    char *flat = flatten(text, f16, rows_in_registers);
    struct emulated_text *t = emulated_open(flat, "the pipeline", &e);
    if (!t)
        fail_msg("%s\n%s", e.text, text);
    free(flat);
    return t;
}
