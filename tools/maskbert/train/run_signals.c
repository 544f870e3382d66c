/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/run_signals.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Signals that end a run are blocked in all its threads and asked for between steps. A handler would not do: while
   oneDNN multiplies f32 matrices (gemm:jit), rsp points into its work area, and Linux writes a handler's frame below
   rsp, over what lies there on the heap. A reader of the progress that goes away ends no run. */
void run_hold_signals(void)
{
    struct sigaction hangup;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    /* nohup ignores it; blocked, it would be pending all the same */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool run_asked_to_stop(void)
{
    static const int each[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t pending;
    bool asked = false;
    sigpending(&pending);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        asked |= sigismember(&pending, each[k]) == 1;
    return asked;
}
