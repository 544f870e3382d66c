/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the emitted files' own includes into one text. A kernel file keeps it for a CUDA target, so that the emulation can
   compile the very same kernels later. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* Index of the file that an #include line names, or -1. */
static int64_t included(const struct source *s, const char *line, size_t length)
{
    static const char start[] = "#include \"";
    size_t skip = sizeof start - 1;
    if (length <= skip || memcmp(line, start, skip))
        return -1;
    const char *name = line + skip, *close = memchr(name, '"', length - skip);
    for (uint32_t k = 0; close && k < s->n_files; k++) {
        size_t bytes = strlen(s->files[k].name);
        if (bytes == (size_t)(close - name) && !memcmp(name, s->files[k].name, bytes))
            return k;
    }
    return -1;
}

static void add_file(const struct source *s, uint32_t index, bool *done, struct text *out)
{
    if (done[index])
        return;
    done[index] = true;
    for (const char *line = s->files[index].text, *next; *line; line = next) {
        const char *end = strchr(line, '\n');
        next = end ? end + 1 : line + strlen(line);
        int64_t file = included(s, line, (size_t)(next - line));
        if (file >= 0)
            add_file(s, (uint32_t)file, done, out);
        else
            text_append(out, line, (size_t)(next - line));
    }
}

void source_flatten(const struct source *s, struct text *out)
{
    bool *done = memory_new(s->n_files, sizeof *done);
    add_file(s, 0, done, out);
    free(done);
}
