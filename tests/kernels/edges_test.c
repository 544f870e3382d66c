/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that lie where memory ends: nothing before their first byte or behind their last can be touched,
   be it only read and thrown away. Each buffer of a launch has a page of its own before it or after it that
   nobody may access; a kernel that does ends the test. A CPU level, and the families of CUDA on the
   emulated device; padded with lengths, and packed. */
#include "runtime/maskc.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_TARGETS = 8, MAX_BUFFERS = 24, HEADS = 2, BATCH = 3 };

static const struct edge_case {
    const char *name, *mask;
    uint32_t n;
    struct kernel_request request;
} cases[] = {
    {"resident", "window(3)|global(0,-1)", 69, {.dtype = ABI_BF16, .head_dim = 64}},
    {"resident, a cut tile", "random(0.3)", 185, {.dtype = ABI_F16, .head_dim = 32}},
    {"resident sparsegen",
     "random(0.3)",
     42,
     {.dtype = ABI_BF16, .head_dim = 72, .transform = ABI_SPARSEGEN, .lambda = -2}},
    {"tiled", "window(2)|rows(5)|columns(7,100)", 205, {.dtype = ABI_BF16, .head_dim = 200}},
    {"tiled, strides", "stride(5)|window(1)", 205, {.dtype = ABI_F16, .head_dim = 136}},
    {"floats", "distance(1,3,9)|global(0,-1)", 71, {.dtype = ABI_F32, .head_dim = 40}},
    {"soft",
     "window(20)|columns(3)",
     77,
     {.dtype = ABI_BF16, .head_dim = 16, .bias = ABI_BIAS_ADD}},
    {"soft floats", "causal", 45, {.dtype = ABI_F32, .head_dim = 24, .bias = ABI_BIAS_SCALE}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- buffers ---- */

struct shore {
    bool at_end; /* of the memory, else at its beginning */
    uint32_t count;
    struct {
        void *map;
        size_t size;
    } mapped[MAX_BUFFERS];
};

/* `size` bytes, a multiple of 16 but for small tables, that end (or begin) where memory does. */
static void *shore_new(struct shore *s, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 storage = (size + page - 1) / page * page;
    char *map = mmap(NULL, storage + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED && s->count < MAX_BUFFERS);
    assert_int_equal(mprotect(map + page, storage, PROT_READ | PROT_WRITE), 0);
    s->mapped[s->count].map = map;
    s->mapped[s->count++].size = storage + 2 * page;
    return map + page + (s->at_end ? storage - size : 0);
}

static void shore_free(struct shore *s)
{
    while (s->count > 0) {
        s->count--;
        munmap(s->mapped[s->count].map, s->mapped[s->count].size);
    }
}

/* Small numbers of either sign, as halves of both kinds and as pairs of them, which are floats. */
static void *shore_filled(struct shore *s, size_t bytes)
{
    uint16_t *x = shore_new(s, bytes);
    for (size_t k = 0; k < bytes / 2; k++)
        x[k] = (uint16_t)(0x3400 | ((k * 31 + s->count * 17) % 1009 & 0x81ff));
    return x;
}

/* ---- launches ---- */

static const int32_t shares[BATCH][2] = {{1, 1}, {0, 1}, {3, 7}}; /* of the mask's length */

/* Lengths of padded sequences, or offsets of packed ones, whose last ends with the tensors. */
static uint64_t set_lengths(struct shore *s, struct maskc_launch *l, uint32_t n, bool packed)
{
    int32_t *x = shore_new(s, sizeof *x * (BATCH + packed)), sum = 0;
    for (uint32_t b = 0; b < BATCH; b++) {
        int32_t length = (int32_t)n * shares[b][0] / shares[b][1];
        x[b] = packed ? sum : length;
        sum += length;
    }
    if (!packed) {
        l->lengths = x;
        return (uint64_t)BATCH * n;
    }
    x[BATCH] = sum;
    l->offsets = x;
    l->tokens = (uint64_t)sum;
    return l->tokens;
}

static struct maskc_launch launch_of(struct shore *s, const struct edge_case *c, bool packed)
{
    struct maskc_launch l = {
        .struct_size = sizeof l, .batch = BATCH, .length = c->n, .dropout = 0.1f, .threads = 2};
    const uint64_t rows = set_lengths(s, &l, c->n, packed);
    const size_t bytes = rows * HEADS * c->request.head_dim * dtype_bytes(c->request.dtype);
    struct maskc_tensor *tensor[] = {&l.query,    &l.key,        &l.value,    &l.out,
                                     &l.grad_out, &l.grad_query, &l.grad_key, &l.grad_value};
    for (size_t t = 0; t < sizeof tensor / sizeof *tensor; t++)
        tensor[t]->data = shore_filled(s, bytes);
    l.lse = shore_new(s, rows * HEADS * sizeof *l.lse);
    if (c->request.bias) {
        const size_t bias = (size_t)HEADS * c->n * c->n * sizeof(float);
        l.soft = shore_filled(s, bias);
        l.grad_soft = shore_new(s, bias);
        l.grad_soft_diagonals = shore_new(s, HEADS * (2 * c->n - 1) * sizeof(float));
    }
    return l;
}

static void run(const struct maskc_kernel *k, struct shore *s, struct maskc_launch l,
                enum maskc_pass pass)
{
    struct maskc_error e = {0};
    l.pass = pass;
    if (pass == MASKC_FORWARD)
        l.grad_soft = l.grad_soft_diagonals = NULL;
    l.workspace_bytes = (maskc_workspace_bytes(k, &l) + 63) / 64 * 64;
    l.workspace = shore_new(s, l.workspace_bytes);
    if (maskc_run(k, &l, &e))
        fail_msg("%s", e.text);
}

static void check_case(const struct edge_case *c, const struct target *t, struct cache *cache)
{
    struct error e = {0};
    struct kernel_request f = c->request;
    f.backward = f.dropout = true;
    struct mask *one = subject_mask(c->mask, c->n), *m = mask_repeat_heads(one, HEADS, &e);
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    for (uint32_t way = 0; way < 4; way++) {
        struct shore s = {.at_end = way % 2 == 0};
        struct maskc_launch l = launch_of(&s, c, way / 2);
        run(k, &s, l, MASKC_FORWARD);
        run(k, &s, l, MASKC_BACKWARD);
        shore_free(&s);
    }
    maskc_kernel_destroy(k);
    mask_destroy(m);
    mask_destroy(one);
}

static void test_edges(void **state)
{
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS);
    for (uint32_t x = 0; x < 2 * CASES; x++) { /* a CPU level, another for each case; the GPU */
        const struct target *t = list[x % 2 ? count - 1 : (count - 2 + x / 2) % (count - 1)];
        print_message("%s, %s\n", cases[x / 2].name, subject_name(t)); /* before it may crash */
        check_case(&cases[x / 2], t, *state);
    }
}

int main(void)
{
    struct cache *cache = subject_start();
    setvbuf(stdout, NULL, _IONBF, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_edges, cache)};
    int failed = cmocka_run_group_tests_name("edges", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
