/* SPDX-License-Identifier: Apache-2.0 */
/* What is going on, on one line of stderr that is overwritten: for a person at a terminal; into a
   file or a pipe nothing is written. */
#pragma once

void progress_show(const char *what);
void progress_clear(void); /* before anything else is printed */
