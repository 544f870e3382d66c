/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/labelled_text.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30 };

int labelled_text_broken(const struct labelled_text *r, size_t column, const char *what,
                         struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s:%" PRIu64 ":%zu: %s; `label TAB text` is expected",
                     r->path, r->line, column + 1, what);
}

static int split(const struct labelled_text *r, const char *line, size_t size,
                 struct labelled_row *ret, struct error *e)
{
    const char *tab = memchr(line, '\t', size);
    if (!tab)
        return labelled_text_broken(r, size, size ? "no tab" : "an empty line", e);
    const size_t label = (size_t)(tab - line), text = size - label - 1;
    const char *second = memchr(tab + 1, '\t', text);
    if (!label)
        return labelled_text_broken(r, 0, "an empty label", e);
    if (!text)
        return labelled_text_broken(r, size, "an empty text", e);
    if (second)
        return labelled_text_broken(r, (size_t)(second - line), "a second tab", e);
    if (memchr(line, 0, label))
        return labelled_text_broken(r, 0, "a label with a zero byte", e);
    if (size > MOST_BYTES)
        return labelled_text_broken(r, 0, "a line of more than 1 GiB", e);
    *ret = (struct labelled_row){line, tab + 1, (uint32_t)label, (uint32_t)text};
    return 0;
}

int labelled_text_next(struct labelled_text *r, struct labelled_row *ret, struct error *e)
{
    if (r->at == r->end)
        return 0;
    const char *line = r->at, *end = memchr(line, '\n', (size_t)(r->end - line));
    r->at = end ? end + 1 : r->end;
    end = end ? end : r->end;
    end -= end > line && end[-1] == '\r';
    r->line++;
    return split(r, line, (size_t)(end - line), ret, e) < 0 ? -1 : 1;
}

struct labelled_text labelled_text_begin(const char *path, const struct file *f)
{
    return (struct labelled_text){path, (const char *)f->bytes,
                                  (const char *)f->bytes + f->size, 0};
}
