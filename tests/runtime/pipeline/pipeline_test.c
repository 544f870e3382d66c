/* SPDX-License-Identifier: Apache-2.0 */
/* Is the kernel file of a plan that the caller made the one that the pipeline makes with a plan of its own? Does it learn how a compiler ended?
   Does it find CUDA's libraries in Python's packages? */
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "runtime/base/process.h"
#include "runtime/base/toolkit.h"
#include "runtime/pipeline/measured_plans.h"
#include "runtime/pipeline/pipeline.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t *compile(const struct compile_request *r, uint64_t *ret_size)
{
    struct error e = {0};
    uint8_t *bytes = NULL;
    if (kernel_compile(r, &bytes, ret_size, &e))
        fail_msg("%s", e.text);
    return bytes;
}

static struct plan *plan_for(const struct compile_request *r, const char *machine)
{
    struct error e = {0};
    struct plan *p = plan_build(r->mask, r->targets[0], &r->request, machine_find(machine, &e),
                                &r->plan, &e);
    if (!p)
        fail_msg("%s", e.text);
    return p;
}

/* Whether the file with a plan for this machine is the file without. */
static bool is_same(struct compile_request r, const char *machine)
{
    uint64_t size, planned_size;
    uint8_t *bytes = compile(&r, &size);
    r.planned = plan_for(&r, machine);
    uint8_t *planned = compile(&r, &planned_size);
    const bool same = size == planned_size && !memcmp(bytes, planned, size);
    free(bytes);
    free(planned);
    plan_destroy(r.planned); /* it stayed the caller's */
    return same;
}

static void a_plan_of_the_caller_is_taken(void **state)
{
    (void)state;
    struct error e = {0};
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = "bigbird", .n = 200};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    const struct target *t = target_find("sm_80", &e);
    const struct compile_request r = {
        .mask = m,
        .targets = &t,
        .n_targets = 1,
        .request = {.head_dim = 64, .backward = true, .length = 200},
        .plan.plain = true,
        .text_only = true};
    const char *machine = family_machine(t, &r.request);
    assert_true(is_same(r, machine));
    assert_false(is_same(r, strcmp(machine, "h100") ? "h100" : "a100"));
    mask_destroy(m);
}

static const char *choice(const struct measured_plans *p, const struct mask *m,
                          struct kernel_request r, const struct kernel_family *f)
{
    r.head_dim = 64;
    return measured_options(p, m, target_find("x86-64-v2", NULL), &r,
                            machine_find("x86-avx2", NULL), f)
        .forward;
}

/* Another request or forced family has no choice. */
static void a_measured_plan_is_of_its_request_and_family(void **state)
{
    (void)state;
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = "star", .n = 32};
    struct mask *m = mask_load(&request, NULL, NULL);
    const struct kernel_request r = {.head_dim = 64};
    struct measured_plans all = {0};
    char key[33];
    measured_key(m, target_find("x86-64-v2", NULL), &r, machine_find("x86-avx2", NULL), NULL,
                 key);
    measured_add(&all, key, &(struct plan_choice){.forward = "tiles", .seconds = 1});
    assert_string_equal(choice(&all, m, (struct kernel_request){0}, NULL), "tiles");
    assert_null(choice(&all, m, (struct kernel_request){0}, kernel_families[0]));
    assert_null(choice(&all, m, (struct kernel_request){.kv_heads = 1}, NULL));
    assert_null(choice(&all, m, (struct kernel_request){.queries = 16, .keys = 32}, NULL));
    measured_finish(&all);
    mask_destroy(m);
}

/* Ends a child of this process while a program runs, which leaves no zombie. */
static void end_another_child(void)
{
    static const char end_it[] = "kill $0; sleep .05; echo $1; cat; kill -9 $$";
    struct text output = {0};
    char number[16];
    const pid_t other = fork();
    if (!other)
        for (;;)
            pause();
    snprintf(number, sizeof number, "%d", (int)other);
    const char *const argument[] = {"sh", "-c", end_it, number, "a 'b\"", NULL};
    assert_int_equal(process_feed(argument, "c", 1, &output, NULL), 128 + 9);
    assert_int_equal(strncmp(text_get(&output), "a 'b\"\nc", 7), 0);
    assert_int_equal(waitpid(other, NULL, WNOHANG), -1);
    text_finish(&output);
}

/* Servers often have it so, and programs inherit it. */
static void a_childs_status_is_known_where_sigchld_is_ignored(void **state)
{
    (void)state;
    struct text output = {0};
    struct sigaction after;
    struct error e;
    signal(SIGCHLD, SIG_IGN);
    end_another_child();
    assert_int_equal(process_run((const char *[]){"false", NULL}, &output, NULL), 1);
    assert_int_equal(process_run((const char *[]){"/nonexistent/x", NULL}, &output, &e), -1);
    assert_string_equal(e.text, "/nonexistent/x: No such file or directory");
    sigaction(SIGCHLD, NULL, &after);
    assert_ptr_equal(after.sa_handler, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    text_finish(&output);
}

static bool keep_path(const char *path, void *ret)
{
    const bool packaged = strstr(path, "/nvidia/") != NULL;
    if (packaged)
        snprintf(ret, 256, "%s", path);
    return packaged;
}

/* As of an environment that was not activated. Another one, which was, comes after it. */
static void libraries_of_the_python_that_runs_are_found(void **state)
{
    (void)state;
    const struct toolkit_library files = {"MASKC_NONE", "libnone.so*", {"libnone.so"}};
    char folder[] = "/tmp/maskc-toolkit-XXXXXX", command[512], wanted[128], found[256] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(wanted, sizeof wanted,
             "%s/own/lib/python3.12/site-packages/nvidia/x/lib/libnone.so.12", folder);
    snprintf(command, sizeof command,
             "cd %s && f=own/lib/python3.12/site-packages/nvidia/x/lib && mkdir -p $f && "
             "touch $f/libnone.so.12 && cp -r own active",
             folder);
    assert_int_equal(system(command), 0);
    setenv("MASKC_PREFIX", strcat(strcpy(command, folder), "/own"), 1);
    setenv("VIRTUAL_ENV", strcat(strcpy(command, folder), "/active"), 1);
    assert_true(toolkit_find(&files, keep_path, found));
    assert_string_equal(found, wanted);
    unsetenv("MASKC_PREFIX");
    unsetenv("VIRTUAL_ENV");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_of_the_caller_is_taken),
        cmocka_unit_test(a_measured_plan_is_of_its_request_and_family),
        cmocka_unit_test(a_childs_status_is_known_where_sigchld_is_ignored),
        cmocka_unit_test(libraries_of_the_python_that_runs_are_found),
    };
    return cmocka_run_group_tests_name("runtime/pipeline", tests, NULL, NULL);
}
