/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation's text, embedded at build time (generated: emulation_embedded.c), for the host
   compiler. Ended by a null name. */
#pragma once

struct emulation_file {
    const char *name, *text;
};

extern const struct emulation_file emulation_embedded[];
