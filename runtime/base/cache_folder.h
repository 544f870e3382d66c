/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the cache: where it is, and whether it can serve. */
#pragma once
#include "masks/base/error.h"

char *cache_folder_default(
    void); /* "": neither XDG_CACHE_HOME nor HOME names one; caller frees */

/* Entries are native code: -1 for a folder of another user (but root), or one that others may write to. One that is missing is no error. */
int cache_folder_trusted(const char *folder, struct error *e);
/* -1 where no entry can be written: the folder itself, or the nearest that it would be made in, is read-only or full. */
int cache_folder_writable(const char *folder, struct error *e);
