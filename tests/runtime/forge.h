/* SPDX-License-Identifier: Apache-2.0 */
/* Lies told in kernel files whose checksum is right. */
#pragma once
#include "tests/runtime/fixture.h"
#include <stddef.h>

struct lie {
    const char *name;
    bool (*tell)(struct artifact *a); /* false: this plan has nothing to lie about */
};
#define NAMED(name) \
    {               \
#name, name \
    }

/* Tells each lie in each file of fixture_numbered() that it can be told in. All must be refused, each at least once. */
void forge_all(const struct lie *lies, size_t count);
