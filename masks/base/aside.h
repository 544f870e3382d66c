/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders that are filled beside their target and then renamed. Unlike those of mkstemp and mkdtemp, they have the
   rights that the umask leaves: the umask itself can only be read by changing it, for all threads at once. */
#pragma once

/* `name` ends in XXXXXX, which becomes letters that no other file has. Returns a descriptor to write to, or -1 with errno. */
int aside_file(char *name);

/* The same for a folder: 0, or -1 with errno. */
int aside_folder(char *name);
