/* SPDX-License-Identifier: Apache-2.0 */
/* maskc emit: the source that compile would compile, as a folder: template files and kernel_config.h, the
   plan as text, its tables, and the command that compiles it by hand. */
#include "masks/base/file.h"
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "runtime/artifact/tables.h"
#include "runtime/compile/compile.h"
#include "tools/maskc/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `name` may hold slashes: the folders between are made. */
static int write_file(const char *folder, const char *name, const void *bytes, size_t size,
                      struct error *e)
{
    struct text path = {0};
    text_add(&path, "%s/%s", folder, name);
    char *slash = strrchr(path.bytes, '/');
    *slash = 0;
    int code = file_make_directory(path.bytes, e);
    *slash = '/';
    if (!code)
        code = file_write(path.bytes, bytes, size, e);
    text_finish(&path);
    return code;
}

enum { NAME_CAPACITY = 40 };

static void add_pass(struct safetensors *file, const char *direction, struct plan_pass *p,
                     const struct plan *plan, char name[PLAN_TABLES][NAME_CAPACITY])
{
    struct plan_extent extent = {(uint64_t)plan->n_masks + 1, plan->layers};
    struct plan_table table[PLAN_TABLES];
    plan_tables(p, &extent, plan->block_rows, table);
    for (int k = 0; k < PLAN_TABLES; k++) {
        void *data;
        memcpy(&data, table[k].data, sizeof data);
        uint64_t shape[] = {*table[k].count, table[k].columns};
        snprintf(name[k], NAME_CAPACITY, "%s/%s", direction, table[k].name);
        if (shape[0])
            safetensors_add(file, name[k], table[k].dtype, 2, shape, data);
    }
}

static int write_tables(const char *folder, struct plan *p, struct error *e)
{
    struct safetensors file = {0};
    char name[2][PLAN_TABLES][NAME_CAPACITY];
    uint64_t shape[] = {p->layers, p->heads}, size = 0;
    safetensors_add(&file, "at", "U32", 2, shape, p->at);
    add_pass(&file, "forward", &p->forward, p, name[0]);
    if (p->config.request.backward)
        add_pass(&file, "transposed", &p->transposed, p, name[1]);
    uint8_t *bytes = safetensors_write(&file, &size);
    int code = write_file(folder, "tables.safetensors", bytes, size, e);
    free(bytes);
    safetensors_finish(&file);
    return code;
}

static int write_plan(const char *folder, const struct plan *p, struct error *e)
{
    struct text text = {0};
    plan_print(p, 1, 1, &text);
    int code = write_file(folder, "plan.txt", text_get(&text), text.length, e);
    text_finish(&text);
    return code;
}

static int write_source(const char *folder, const struct source *s, struct error *e)
{
    for (uint32_t k = 0; k < s->n_files; k++)
        if (write_file(folder, s->files[k].name, s->files[k].text, strlen(s->files[k].text), e))
            return -1;
    return 0;
}

static int write_all(const char *path, struct plan *p, const struct source *s, struct error *e)
{
    struct folder f;
    int r = folder_begin(path, &f, e);
    if (r == 0)
        r = write_source(f.aside, s, e);
    if (r == 0)
        r = write_plan(f.aside, p, e);
    if (r == 0)
        r = write_tables(f.aside, p, e);
    return folder_end(&f, r, e);
}

static void say(const char *folder, const struct plan *p, const struct source *s)
{
    struct text command = {0}, word = {0};
    compile_command(s, p->target, &command);
    text_add_word(&word, folder);
    printf("%s: %u source files, plan.txt, tables.safetensors\n  cd %s && %s\n", folder,
           s->n_files, text_get(&word), text_get(&command));
    text_finish(&command);
    text_finish(&word);
}

static int emit(const struct options *o, struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request r;
    if (!o->output)
        return error_set(e, ERROR_INPUT, "emit needs -o DIR");
    if (command_one_target(o, "cpu", target, &r, e))
        return -1;
    if (r.n_targets != 1)
        return error_set(e, ERROR_INPUT, "--target %s: one target is expected, not %u",
                         o->target, r.n_targets);
    struct mask *m = options_kernel_mask(o, o->argument[0], o->length[0], 0, &r.request, e);
    const struct machine *machine =
        machine_choose(r.machine, r.calibration, target[0], &r.request, e);
    r.request.length = m ? m->n : 0;
    const bool known = m && !kernel_request_check(&r.request, target[0], e);
    struct plan *p =
        known && machine ? plan_build(m, target[0], &r.request, machine, &r.plan, e) : NULL;
    int code = -1;
    if (p) {
        struct source *s = emit_source(target[0], &p->config);
        code = write_all(o->output, p, s, e);
        if (code == 0)
            say(o->output, p, s);
        source_destroy(s);
    }
    plan_destroy(p);
    mask_destroy(m);
    return code;
}

int command_emit(const struct options *o)
{
    struct error e = {0};
    return emit(o, &e) ? command_fail(&e) : 0;
}
