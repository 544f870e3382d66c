/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/masks/help.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[512];

struct mask *load(struct mask_request r)
{
    struct error e = {0};
    if (r.layer == 0)
        r.layer = -1;
    struct mask *m = mask_load(&r, NULL, &e);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

struct mask *load_text(const char *text, uint32_t n)
{
    return load((struct mask_request){.name = text, .n = n});
}

void refuse(struct mask_request r, const char *line)
{
    struct error e = {0};
    if (r.layer == 0)
        r.layer = -1;
    struct mask *m = mask_load(&r, NULL, &e);
    if (m)
        fail_msg("%s was accepted, expected: %s", r.name, line);
    size_t first = strcspn(e.text, "\n");
    if (first != strlen(line) || memcmp(e.text, line, first))
        fail_msg("expected: %s\n   found: %s", line, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
}

const char *test_path(const char *name)
{
    if (!folder[0]) {
        strcpy(folder, "/tmp/masks-test.XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

int test_folder_remove(void **state)
{
    (void)state;
    DIR *d = folder[0] ? opendir(folder) : NULL;
    for (struct dirent *f; d && (f = readdir(d));)
        if (f->d_name[0] != '.')
            unlink(test_path(f->d_name));
    if (d)
        closedir(d);
    rmdir(folder);
    folder[0] = 0;
    return 0;
}

void write_bytes(const char *to, const void *bytes, size_t size)
{
    struct error e = {0};
    if (file_write(to, bytes, size, &e) < 0)
        fail_msg("%s", e.text);
}

void write_npy(const char *to, const char *descr, const char *shape, bool fortran,
               const void *data, size_t bytes)
{
    struct text t = {0};
    char header[118];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
             descr, fortran ? "True" : "False", shape);
    text_append(&t, "\x93NUMPY\x01\x00\x76\x00", 10);
    text_add(&t, "%-117s\n", header);
    text_append(&t, data, bytes);
    write_bytes(to, t.bytes, t.length);
    text_finish(&t);
}

uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

void element_store(const char *descr, double value, uint8_t *to)
{
    float single = (float)value;
    uint64_t bits = isnan(value) ? 0 : (uint64_t)(int64_t)value;
    static const uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200}; /* 0 to 3 */
    if (!strcmp(descr, "<f8"))
        memcpy(to, &value, 8);
    else if (!strcmp(descr, "<f4"))
        memcpy(to, &single, 4);
    else if (!strcmp(descr, "<f2"))
        memcpy(to, &half[(int)value], 2);
    else
        memcpy(to, &bits, (size_t)(descr[2] - '0'));
}
