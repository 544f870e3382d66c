/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka, and the standard headers that it needs before itself. A test includes this one header instead. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the four above */
#include <cmocka.h>
