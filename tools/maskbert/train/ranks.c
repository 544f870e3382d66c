/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/ranks.h"
#include <stdlib.h>

/* Slurm sets its variables for the steps of a job; a step without a rank is none of ours. */
static const struct {
    const char *launcher, *size, *rank; /* rank: must be set as well, or null */
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", NULL}, {"mpirun", "PMI_SIZE", NULL},
    {"mpirun", "MV2_COMM_WORLD_SIZE", NULL},  {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {"torchrun", "WORLD_SIZE", NULL},
};

int ranks_check(const struct options *o, struct error *e)
{
    if (o->ranks > 1)
        return error_set(e, ERROR_INPUT, "--ranks %u: 1 is expected, several are not supported",
                         o->ranks);
    for (size_t k = 0; k < sizeof launchers / sizeof *launchers && !o->ranks; k++) {
        const char *size = getenv(launchers[k].size), *rank = launchers[k].rank;
        long processes = size && (!rank || getenv(rank)) ? strtol(size, NULL, 10) : 1;
        if (processes > 1)
            return error_set(e, ERROR_INPUT,
                             "%s started %ld processes (%s), but training by several is not "
                             "supported; one process or --ranks 1, which ignores the launcher, "
                             "is expected",
                             launchers[k].launcher, processes, launchers[k].size);
    }
    return 0;
}
