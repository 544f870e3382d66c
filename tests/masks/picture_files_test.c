/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as files: pixels of a PNG read back, an SVG that is well-formed XML. */
#include "masks/picture/picture.h"
#include "tests/masks/help.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairo.h>

static void draw(const struct mask *m, const char *suffix, char path[64])
{
    struct error e = {0};
    snprintf(path, 64, "/tmp/picture_test.XXXXXX%s", suffix);
    int fd = mkstemps(path, (int)strlen(suffix));
    assert_true(fd >= 0);
    close(fd);
    if (mask_draw(m, path, &e) < 0)
        fail_msg("%s", e.text);
}

struct image {
    cairo_surface_t *surface;
    uint32_t width, height;
};

static uint32_t pixel(const struct image *i, uint32_t x, uint32_t y)
{
    const unsigned char *bytes = cairo_image_surface_get_data(i->surface);
    uint32_t p;
    memcpy(&p,
           bytes + (size_t)y * (size_t)cairo_image_surface_get_stride(i->surface) +
               4 * (size_t)x,
           sizeof p);
    return p & 0xffffff;
}

static struct image draw_image(const struct mask *m)
{
    char path[64];
    draw(m, ".png", path);
    struct image i = {cairo_image_surface_create_from_png(path)};
    assert_int_equal(cairo_surface_status(i.surface), CAIRO_STATUS_SUCCESS);
    i.width = (uint32_t)cairo_image_surface_get_width(i.surface);
    i.height = (uint32_t)cairo_image_surface_get_height(i.surface);
    unlink(path);
    return i;
}

enum { WHITE = 0xffffff, DARK = 0x1e1b5e, MARGIN = 16, TITLE = 22, SIDE = 512 };

/* The middle of each entry's square. */
static void test_pixels(void **state)
{
    (void)state;
    enum { N = 16, SCALE = SIDE / N };
    struct mask *m = load_text("window(1) | global(5) | (rows(2)&columns(12..14))", N);
    struct image image = draw_image(m);
    assert_int_equal(image.width, SIDE + 2 * MARGIN);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < N; j++) {
            uint32_t x = MARGIN + j * SCALE + SCALE / 2,
                     y = MARGIN + TITLE + i * SCALE + SCALE / 2;
            assert_int_equal(pixel(&image, x, y),
                             pattern_test(m->pattern[0], i, j) ? DARK : WHITE);
        }
    cairo_surface_destroy(image.surface);
    mask_destroy(m);
}

/* Sampled down: full areas are dark, empty ones white, a band of one entry in 2^17 shows as a shade. */
static void test_large(void **state)
{
    (void)state;
    struct mask *m = load_text("blocks(2, shift=1) | diagonal(0)", 1 << 17);
    struct image image = draw_image(m);
    uint32_t x = MARGIN, y = MARGIN + TITLE;
    assert_int_equal(pixel(&image, x + SIDE * 3 / 4, y + SIDE / 4), DARK);
    assert_int_equal(pixel(&image, x + SIDE / 4, y + SIDE * 3 / 4), DARK);
    assert_int_equal(pixel(&image, x + SIDE * 3 / 4, y + SIDE / 2 + 9), WHITE);
    uint32_t grey = pixel(&image, x + 100, y + 100);
    assert_true(grey != WHITE && grey != DARK);
    cairo_surface_destroy(image.surface);
    mask_destroy(m);
}

/* A panel for each of 12 heads, four in a row, whether or not heads have the same mask. */
static void test_panels(void **state)
{
    (void)state;
    enum { CELLS = 224, COLUMNS = 4 };
    struct mask *m = load_text("blockbert-3", CELLS);
    assert_int_equal(m->n_patterns, 3);
    struct image image = draw_image(m);
    assert_int_equal(image.width, MARGIN + COLUMNS * (CELLS + MARGIN));
    assert_int_equal(image.height, MARGIN + 3 * (CELLS + TITLE + MARGIN));
    for (uint32_t h = 0; h < 12; h++) {
        uint32_t x = MARGIN + h % COLUMNS * (CELLS + MARGIN);
        uint32_t y = MARGIN + TITLE + h / COLUMNS * (CELLS + TITLE + MARGIN);
        for (uint32_t i = 0; i < CELLS; i += 7)
            for (uint32_t j = 0; j < CELLS; j += 11)
                assert_int_equal(pixel(&image, x + j, y + i),
                                 pattern_test(mask_pattern(m, 0, h), i, j) ? DARK : WHITE);
    }
    cairo_surface_destroy(image.surface);
    mask_destroy(m);
}

/* Whether any pixel of the sheet's lowest line of text differs from its background. */
static bool has_last_line(const struct image *i)
{
    for (uint32_t y = i->height - MARGIN - 8; y < i->height - MARGIN; y++)
        for (uint32_t x = MARGIN; x < MARGIN + 100; x++)
            if (pixel(i, x, y) != pixel(i, 1, 1))
                return true;
    return false;
}

/* Beyond 1024 panels the sheet ends, and says so. */
static void test_many_heads(void **state)
{
    (void)state;
    enum { SMALL = 128, SIDES = 32 };
    for (uint32_t heads = 1024; heads <= 1025; heads++) {
        struct error e = {0};
        struct mask_request r = {
            .name = "causal", .n = 8, .heads = heads, MASK_REQUEST_DEFAULTS};
        struct mask *m = mask_load(&r, NULL, &e);
        assert_non_null(m);
        struct image image = draw_image(m);
        uint32_t height = MARGIN + SIDES * (SMALL + TITLE + MARGIN);
        assert_int_equal(image.width, MARGIN + SIDES * (SMALL + MARGIN));
        assert_int_equal(image.height, heads > 1024 ? height + TITLE : height);
        if (heads > 1024)
            assert_true(has_last_line(&image));
        cairo_surface_destroy(image.surface);
        mask_destroy(m);
    }
}

/* Reads tags and matches their names; enough for what a picture may hold. Returns the number of
   elements, 0 where the text is not well-formed. */
static uint32_t count_elements(const char *text)
{
    enum { DEPTH = 64, NAME = 64 };
    char open[DEPTH][NAME];
    uint32_t depth = 0, count = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        char name[NAME] = "";
        if (!end || sscanf(at, at[1] == '/' ? "</%63[^ />\n]" : "<%63[^ />\n]", name) != 1)
            return 0;
        if (at[1] == '/' && (!depth || strcmp(open[--depth], name) != 0))
            return 0;
        if (at[1] != '/' && at[1] != '?' && at[1] != '!' && end[-1] != '/') {
            if (depth == DEPTH)
                return 0;
            memcpy(open[depth++], name, NAME);
        }
        count += at[1] != '/';
        at = end;
    }
    return depth ? 0 : count;
}

static void test_svg(void **state)
{
    (void)state;
    struct mask *m = load_text("dam-s-example", 128);
    char path[64], *text[2];
    for (int k = 0; k < 2; k++) {
        struct file f;
        struct error e = {0};
        draw(m, ".svg", path);
        assert_int_equal(file_open(path, &f, &e), 0);
        text[k] = memory_new(f.size + 1, 1);
        memcpy(text[k], f.bytes, f.size);
        file_close(&f);
        unlink(path);
    }
    assert_non_null(strstr(text[0], "<svg"));
    assert_true(count_elements(text[0]) > 12);
    uint32_t images = 0;
    for (const char *at = text[0]; (at = strstr(at, "<image")); at++)
        images++;
    assert_int_equal(images, m->n_patterns); /* equal heads share one */
    free(text[0]);
    free(text[1]);
    mask_destroy(m);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels), cmocka_unit_test(test_large),
        cmocka_unit_test(test_panels), cmocka_unit_test(test_many_heads),
        cmocka_unit_test(test_svg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
