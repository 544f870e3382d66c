/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input to the commands of commands_test.c, which makes the folders `made` and `wide` first. */
#pragma once

/* A text of three sentences, piped to a command. */
#define TEXT "printf 'ab ab ab ba\\n\\nab cab\\n' | "

/* A cmocka test: each line of the table fails with exit code 2 and one line on stderr. */
void failures_say_one_line(void **state);

/* No byte above 4 KiB can be written: exit code 3, one line, no folder. */
void a_full_disk_leaves_nothing(void **state);
