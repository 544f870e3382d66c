/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on one line of stderr that is overwritten, only on a terminal: nothing is written to a
   file or a pipe. */
#pragma once

void progress_show(const char *what);
void progress_clear(void); /* before anything else is printed */
