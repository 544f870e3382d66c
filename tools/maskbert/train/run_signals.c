/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/run_signals.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Signals that end a run are blocked in all its threads and asked for between steps. A handler would not do: while
   oneDNN multiplies f32 matrices (gemm:jit), rsp points into its work area, and Linux writes a handler's frame below
   rsp, over what lies there on the heap. A file that may not grow fails as a full disk does. A reader of the progress that
   goes away ends no run. */
void run_hold_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

bool run_asked_to_stop(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}
