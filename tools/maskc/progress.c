/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/progress.h"
#include <stdio.h>
#include <unistd.h>

void progress_show(const char *what)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%.70s ...", what);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}
