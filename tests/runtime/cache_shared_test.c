/* SPDX-License-Identifier: Apache-2.0 */
/* A cache gives back what was put into it or nothing, whoever else is at work in the folder: processes, and threads
   of this one. */
#include "tests/runtime/cache_folder.h"
#include "tests/support/test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Eight processes put, read, damage and clear the same few keys: no read is ever wrong. */
static void processes_share_a_folder(void **state)
{
    (void)state;
    enum { PROCESSES = 8, ROUNDS = 150, KEYS = 5 };
    char *folder = cache_folder_new();
    pid_t child[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        if (child[p] == 0) {
            struct cache *c = cache_open(folder);
            int hits = 0;
            for (uint32_t r = 0; r < ROUNDS; r++) {
                uint32_t k = (r * 7 + (uint32_t)p) % KEYS;
                if (cache_content_hit(c, k))
                    hits++;
                else
                    cache_content_put(c, k);
                if (p == 0 && r % 20 == 19)
                    cache_clear(c);
            }
            _exit(hits > 0 ? 0 : 1);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(child[p], &status, 0), child[p]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    struct cache *c = cache_open(folder);
    assert_true(cache_content_count(c) <= KEYS);
    cache_close(c);
    cache_folder_remove(folder);
}

/* ---- threads ---- */

enum { MAKERS = 4, KEYS = 3 };

struct makers {
    struct cache *cache;
    atomic_uint made[KEYS], at_work[KEYS];
};

/* Makes what is not there, slowly; alone with its key. */
static void *make_all(void *context)
{
    struct makers *m = context;
    for (uint32_t k = 0; k < KEYS; k++) {
        uint8_t *bytes = NULL;
        uint64_t size;
        cache_begin(m->cache, cache_content_key(k));
        bool alone = atomic_fetch_add(&m->at_work[k], 1) == 0;
        if (!alone || !cache_get(m->cache, cache_content_key(k), &bytes, &size)) {
            atomic_fetch_add(&m->made[k], 1);
            usleep(20000);
            cache_content_put(m->cache, k);
        }
        free(bytes);
        atomic_fetch_sub(&m->at_work[k], 1);
        cache_end(m->cache, cache_content_key(k));
    }
    return NULL;
}

static void one_thread_makes_an_entry(void **state)
{
    (void)state;
    char *folder = cache_folder_new();
    struct makers m = {.cache = cache_open(folder)};
    pthread_t thread[MAKERS];
    for (int k = 0; k < MAKERS; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, make_all, &m), 0);
    for (int k = 0; k < MAKERS; k++)
        pthread_join(thread[k], NULL);
    for (uint32_t k = 0; k < KEYS; k++) {
        assert_int_equal(m.made[k], 1);
        assert_true(cache_content_hit(m.cache, k));
    }
    cache_close(m.cache);
    cache_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(one_thread_makes_an_entry),
    };
    return cmocka_run_group_tests_name("shared cache", tests, NULL, NULL);
}
