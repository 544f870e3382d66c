/* SPDX-License-Identifier: Apache-2.0 */
/* See canvas.h. */
#include "masks/picture/canvas.h"
#include "masks/base/file.h"
#include "masks/base/text.h"
#include <cairo-svg.h>
#include <stdbool.h>
#include <string.h>

#ifdef __has_feature
#define LEAKS_ARE_CHECKED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_CHECKED 1
#else
#define LEAKS_ARE_CHECKED 0
#endif
#if LEAKS_ARE_CHECKED
/* fontconfig keeps its configuration to the end of the process, and cairo has no call to drop it:
   a leak check of a program that draws is about our memory, not about theirs. Visible, so that the
   sanitizer of gcc, a shared library, finds them. */
#pragma GCC visibility push(default)
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}

const char *__lsan_default_options(void);
#pragma GCC visibility pop
const char *__lsan_default_options(void)
{
    return "print_suppressions=0"; /* stderr is the program's */
}
#endif

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    return length > tail && !strcmp(path + length - tail, suffix);
}

int canvas_check(const char *path, struct error *e)
{
    if (ends_in(path, ".svg") || ends_in(path, ".png"))
        return 0;
    return error_set(e, ERROR_INPUT, "%s: a picture is .png or .svg", path);
}

static cairo_status_t collect(void *to, const unsigned char *bytes, unsigned length)
{
    text_append(to, (const char *)bytes, length);
    return CAIRO_STATUS_SUCCESS;
}

static cairo_status_t draw_on(cairo_surface_t *on, const struct canvas *canvas)
{
    cairo_t *c = cairo_create(on);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    canvas->draw(c, canvas->context);
    cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    return status;
}

static cairo_status_t draw(const struct canvas *canvas, bool svg, struct text *out)
{
    const double width = canvas->width, height = canvas->height;
    cairo_surface_t *on =
        svg ? cairo_svg_surface_create_for_stream(collect, out, width, height)
            : cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    cairo_status_t status = draw_on(on, canvas);
    if (!status && !svg)
        status = cairo_surface_write_to_png_stream(on, collect, out);
    cairo_surface_finish(on);
    status = status ? status : cairo_surface_status(on);
    cairo_surface_destroy(on);
    return status;
}

int canvas_write(const struct canvas *canvas, const char *path, struct error *e)
{
    struct text out = {0};
    if (canvas_check(path, e) < 0)
        return -1;
    cairo_status_t status = draw(canvas, ends_in(path, ".svg"), &out);
    int r = status ? error_set(e, ERROR_UNAVAILABLE, "%s: cairo: %s", path,
                               cairo_status_to_string(status))
                   : file_write(path, text_get(&out), out.length, e);
    text_finish(&out);
    return r;
}
