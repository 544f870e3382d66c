/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/aside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { LETTERS = 6, TRIES = 100 };

static int open_new(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make_new(const char *name)
{
    return mkdir(name, 0777);
}

static int draw_letters(char *at)
{
    static const char letter[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t draw[LETTERS];
    if (getentropy(draw, sizeof draw) < 0)
        return -1;
    for (int k = 0; k < LETTERS; k++)
        at[k] = letter[draw[k] % (sizeof letter - 1)];
    return 0;
}

static int make(char *name, int (*try)(const char *name))
{
    char *at = name + strlen(name) - LETTERS;
    int ret = -1;
    for (int k = 0; k < TRIES && ret < 0; k++)
        if (draw_letters(at) < 0 || ((ret = try(name)) < 0 && errno != EEXIST))
            return -1;
    return ret;
}

int aside_file(char *name)
{
    return make(name, open_new);
}

int aside_folder(char *name)
{
    return make(name, make_new);
}
