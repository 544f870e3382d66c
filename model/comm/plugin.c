/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/plugin.h"
#include <dlfcn.h>
#include <unistd.h>

typedef const struct comm *open_function(struct error *e);

/* RTLD_GLOBAL: Open MPI loads parts of its own that look for its symbols. */
static const struct comm *load(const char *file, struct error *e)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        error_set(e, ERROR_UNAVAILABLE, "%s", dlerror());
        return NULL;
    }
    open_function *open = (open_function *)dlsym(library, "maskbert_mpi_open_2");
    if (!open) {
        error_set(e, ERROR_UNAVAILABLE, "%s: not a plug-in of this maskbert", file);
        return NULL;
    }
    return open(e);
}

const struct comm *comm_mpi(const char *const *files, uint32_t count, struct error *e)
{
    for (uint32_t k = 0; k < count; k++)
        if (files[k] && access(files[k], R_OK) == 0)
            return load(files[k], e);
    error_set(e, ERROR_UNAVAILABLE,
              "maskbert-mpi.so, the plug-in for several ranks, is missing");
    return NULL;
}
