/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device, and how much of it a backend holds: bytes as asked for, of arrays, weights and workspaces. Code and
   attention's tables are the runtime's, the workspace of products the driver's. */
#include "masks/base/memory.h"
#include "model/backend/gpu/gpu.h"
#include <stdlib.h>

struct block {
    void *begin;
    uint64_t bytes;
};

struct gpu_memory {
    pthread_mutex_t lock;
    struct block *block;
    uint32_t count, capacity;
    uint64_t used, most;
};

struct gpu_memory *gpu_memory_new(void)
{
    struct gpu_memory *m = memory_new(1, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void gpu_memory_destroy(struct gpu_memory *m)
{
    pthread_mutex_destroy(&m->lock);
    free(m->block);
    free(m);
}

static void add(struct gpu_memory *m, void *begin, uint64_t bytes)
{
    pthread_mutex_lock(&m->lock);
    *MEMORY_PUSH(m->block, m->count, m->capacity) = (struct block){begin, bytes};
    m->used += bytes;
    m->most = m->used > m->most ? m->used : m->most;
    pthread_mutex_unlock(&m->lock);
}

static void drop(struct gpu_memory *m, const void *begin)
{
    pthread_mutex_lock(&m->lock);
    for (uint32_t k = m->count; k-- > 0;)
        if (m->block[k].begin == begin) {
            m->used -= m->block[k].bytes;
            m->block[k] = m->block[--m->count];
            break;
        }
    pthread_mutex_unlock(&m->lock);
}

void *gpu_allocate(const struct backend_state *s, uint64_t bytes, struct error *e)
{
    void *ret = s->driver->allocate(s->gpu, bytes, e);
    if (ret)
        add(s->memory, ret, bytes);
    return ret;
}

/* Before it is released: another thread may get the same address at once. */
void gpu_release(const struct backend_state *s, void *p)
{
    if (p)
        drop(s->memory, p);
    s->driver->release(s->gpu, p);
}

void gpu_memory_use(const struct backend_state *s, uint64_t *ret_used, uint64_t *ret_most)
{
    pthread_mutex_lock(&s->memory->lock);
    *ret_used = s->memory->used;
    *ret_most = s->memory->most;
    pthread_mutex_unlock(&s->memory->lock);
}
