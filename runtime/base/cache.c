/* SPDX-License-Identifier: Apache-2.0 */
/* One file an entry, named by its key: a fixed head (magic, key, size, checksum) and the content.
   Processes share the folder without locks: an entry appears whole by rename, readers check all of
   it, and removing a file that another process has open does not hurt that process. An entry's time
   of last use is its file's modification time. */
#include "runtime/base/cache.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/base/cache_folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { NAME_DIGITS = 32, STALE_SECONDS = 3600 };

static const uint64_t default_limit = UINT64_C(512) << 20;

struct cache {
    char *directory; /* "" : none */
    uint64_t limit;  /* bytes of all entries together */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct cache_key *begun; /* [n_begun] */
    uint32_t n_begun, capacity;
};

struct head {
    char magic[8];
    struct cache_key key;
    uint64_t size, checksum;
};

static const char magic[8] = "maskc 1";

static uint64_t read_limit(void)
{
    const char *text = getenv("MASKC_CACHE_LIMIT");
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return default_limit;
    errno = 0;
    uint64_t limit = strtoull(text, &end, 10);
    return *end || errno ? default_limit : limit;
}

struct cache *cache_open(const char *directory)
{
    struct cache *c = memory_new(1, sizeof *c);
    c->directory = directory ? memory_text(directory) : cache_folder_default();
    c->limit = read_limit();
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
    if (cache_folder_trusted(c->directory, NULL) < 0)
        c->directory[0] = 0;
    return c;
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c->begun);
    free(c->directory);
    free(c);
}

const char *cache_directory(const struct cache *c)
{
    return c ? c->directory : "";
}

static char *entry_path(const struct cache *c, const char *name)
{
    size_t capacity = strlen(c->directory) + 1 + strlen(name) + 1;
    char *path = memory_new(capacity, 1);
    snprintf(path, capacity, "%s/%s", c->directory, name);
    return path;
}

static char *key_path(const struct cache *c, struct cache_key key)
{
    char name[NAME_DIGITS + 1];
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)key.high,
             (unsigned long long)key.low);
    return entry_path(c, name);
}

/* ---- entries ---- */

struct cache_key cache_key(const void *bytes, uint64_t size)
{
    XXH128_hash_t h = XXH3_128bits(bytes, size);
    return (struct cache_key){h.low64, h.high64};
}

static bool is_sound(const struct file *f, struct cache_key key)
{
    struct head h;
    if (f->size < sizeof h)
        return false;
    memcpy(&h, f->bytes, sizeof h);
    return !memcmp(h.magic, magic, sizeof magic) && h.key.low == key.low &&
           h.key.high == key.high && h.size == f->size - sizeof h &&
           h.checksum == XXH3_64bits(f->bytes + sizeof h, h.size);
}

/* The place of a key among those that are begun, or n_begun. */
static uint32_t find_begun(const struct cache *c, struct cache_key key)
{
    uint32_t k = 0;
    while (k < c->n_begun && memcmp(&c->begun[k], &key, sizeof key) != 0)
        k++;
    return k;
}

void cache_begin(struct cache *c, struct cache_key key)
{
    if (!c || !c->directory[0])
        return;
    pthread_mutex_lock(&c->lock);
    while (find_begun(c, key) < c->n_begun)
        pthread_cond_wait(&c->ended, &c->lock);
    *MEMORY_PUSH(c->begun, c->n_begun, c->capacity) = key;
    pthread_mutex_unlock(&c->lock);
}

void cache_end(struct cache *c, struct cache_key key)
{
    if (!c || !c->directory[0])
        return;
    pthread_mutex_lock(&c->lock);
    c->begun[find_begun(c, key)] = c->begun[c->n_begun - 1];
    c->n_begun--;
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

bool cache_get(struct cache *c, struct cache_key key, uint8_t **ret, uint64_t *ret_size)
{
    struct file f;
    if (!c || !c->directory[0])
        return false;
    char *path = key_path(c, key);
    bool found = file_open(path, &f, NULL) == 0;
    if (found && !is_sound(&f, key)) {
        unlink(path);
        file_close(&f);
        found = false;
    }
    if (found) {
        utimensat(AT_FDCWD, path, NULL, 0);
        *ret_size = f.size - sizeof(struct head);
        *ret = memory_copy(f.bytes + sizeof(struct head), *ret_size);
        file_close(&f);
    }
    free(path);
    return found;
}

/* ---- the folder ---- */

static bool is_entry_name(const char *name)
{
    return strlen(name) == NAME_DIGITS && strspn(name, "0123456789abcdef") == NAME_DIGITS;
}

/* A file that a writer left behind: the name of an entry, a dot and something. */
static bool is_left_over(const char *name, const struct stat *s)
{
    return strlen(name) > NAME_DIGITS && name[NAME_DIGITS] == '.' &&
           strspn(name, "0123456789abcdef") == NAME_DIGITS &&
           s->st_mtime < time(NULL) - STALE_SECONDS;
}

static int newest_first(const void *a, const void *b)
{
    const struct cache_entry *x = a, *y = b;
    if (x->used != y->used)
        return x->used < y->used ? 1 : -1;
    if (x->used_ns != y->used_ns)
        return x->used_ns < y->used_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

struct cache_entry *cache_list(struct cache *c, uint32_t *ret_count)
{
    struct cache_entry *list = NULL;
    uint32_t count = 0, capacity = 0;
    DIR *d = c && c->directory[0] ? opendir(c->directory) : NULL;
    for (struct dirent *at; d && (at = readdir(d));) {
        struct stat s;
        if (fstatat(dirfd(d), at->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(s.st_mode))
            continue;
        if (is_left_over(at->d_name, &s))
            unlinkat(dirfd(d), at->d_name, 0);
        if (!is_entry_name(at->d_name))
            continue;
        struct cache_entry *entry = MEMORY_PUSH(list, count, capacity);
        *entry = (struct cache_entry){.size = (uint64_t)s.st_size,
                                      .used = s.st_mtim.tv_sec,
                                      .used_ns = s.st_mtim.tv_nsec};
        strcpy(entry->name, at->d_name);
    }
    if (d)
        closedir(d);
    if (count)
        qsort(list, count, sizeof *list, newest_first);
    *ret_count = count;
    return list;
}

/* The key that an entry's name says; false for what is no name of this higher half. */
static bool read_name(const char *name, uint64_t high, struct cache_key *ret)
{
    char digits[NAME_DIGITS / 2 + 1] = {0};
    memcpy(digits, name, NAME_DIGITS / 2);
    ret->high = strtoull(digits, NULL, 16);
    ret->low = strtoull(name + NAME_DIGITS / 2, NULL, 16);
    return ret->high == high;
}

bool cache_get_any(struct cache *c, struct cache_key key, uint8_t **ret, uint64_t *ret_size)
{
    uint32_t count;
    bool found = false;
    struct cache_entry *list = cache_list(c, &count);
    for (uint32_t k = 0; k < count && !found; k++) {
        struct cache_key other;
        found = read_name(list[k].name, key.high, &other) && cache_get(c, other, ret, ret_size);
    }
    free(list);
    return found;
}

static bool remove_entry(const struct cache *c, const char *name)
{
    char *path = entry_path(c, name);
    bool done = unlink(path) == 0;
    free(path);
    return done;
}

/* Keeps the newest entries that fit into the limit together. */
static void keep_limit(struct cache *c)
{
    uint32_t count;
    uint64_t sum = 0;
    struct cache_entry *list = cache_list(c, &count);
    for (uint32_t i = 0; i < count; i++) {
        sum += list[i].size;
        if (sum > c->limit)
            remove_entry(c, list[i].name);
    }
    free(list);
}

void cache_put(struct cache *c, struct cache_key key, const void *bytes, uint64_t size)
{
    struct head h = {.key = key, .size = size, .checksum = XXH3_64bits(bytes, size)};
    memcpy(h.magic, magic, sizeof magic);
    if (!c || !c->directory[0] || size > c->limit || sizeof h > c->limit - size)
        return;
    uint8_t *content = memory_new(sizeof h + size, 1);
    memcpy(content, &h, sizeof h);
    if (size)
        memcpy(content + sizeof h, bytes, size);
    char *path = key_path(c, key);
    if (file_make_directory(c->directory, NULL) == 0 &&
        file_write(path, content, sizeof h + size, NULL) == 0)
        keep_limit(c);
    free(path);
    free(content);
}

uint32_t cache_clear(struct cache *c)
{
    uint32_t count, removed = 0;
    struct cache_entry *list = cache_list(c, &count);
    for (uint32_t i = 0; i < count; i++)
        removed += remove_entry(c, list[i].name);
    free(list);
    return removed;
}
