/* SPDX-License-Identifier: Apache-2.0 */
/* A locale with a decimal comma, made here: tests do not depend on the locales that are installed. */
#pragma once
#include <stdbool.h>

bool comma_locale(
    void); /* sets LC_NUMERIC; false if the C library reads another format of locales */
