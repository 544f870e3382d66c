/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/sentences.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST_ABBREVIATION = 8 };

/* In lower case, without the last full stop. */
static const char *const abbreviations[] = {
    "mr",  "mrs",  "ms",   "dr",   "prof",   "st",  "sr",   "jr",  "rev", "hon",  "gen",
    "col", "maj",  "capt", "cmdr", "lt",     "sgt", "gov",  "sen", "rep", "pres", "mt",
    "ft",  "vs",   "cf",   "viz",  "e.g",    "i.e", "eg",   "ie",  "ca",  "al",   "approx",
    "esp", "resp", "incl", "ph.d", "messrs", "mme", "mlle", "op",
};
static const char *const before_digits[] = {
    "no",   "nos", "fig", "figs", "p",   "pp",   "vol", "vols", "sec", "sect", "ch",
    "chap", "eq",  "eqs", "art",  "ver", "v",    "par", "tab",  "jan", "feb",  "mar",
    "apr",  "jun", "jul", "aug",  "sep", "sept", "oct", "nov",  "dec",
};

struct paragraph {
    const char *text;
    size_t size;
};

static bool is_listed(const char *const *list, size_t count, const char *word, size_t size)
{
    char lower[LONGEST_ABBREVIATION + 1] = {0};
    if (size > LONGEST_ABBREVIATION)
        return false;
    for (size_t k = 0; k < size; k++)
        lower[k] = (char)tolower((unsigned char)word[k]);
    for (size_t k = 0; k < count; k++)
        if (!strcmp(list[k], lower))
            return true;
    return false;
}

/* The word whose full stop is at `stop`, from `from` on: without blanks and opening signs. */
static size_t word_before(const struct paragraph *p, size_t from, size_t stop)
{
    size_t begin = stop;
    while (begin > from && !isspace((unsigned char)p->text[begin - 1]) &&
           !strchr("([{\"'-/", p->text[begin - 1]))
        begin--;
    return begin;
}

static bool is_number(const char *word, size_t size)
{
    for (size_t k = 0; k < size; k++)
        if (!isdigit((unsigned char)word[k]) && word[k] != '.')
            return false;
    return size > 0;
}

/* A full stop at `stop` that belongs to its word; `next` is what follows the blanks. */
static bool is_part_of_word(const struct paragraph *p, size_t from, size_t stop, char next)
{
    size_t begin = word_before(p, from, stop), size = stop - begin;
    const char *word = p->text + begin;
    if (size == 1 && isupper((unsigned char)*word) && *word != 'I')
        return true;
    if (begin == from && is_number(word, size))
        return true;
    if (is_listed(abbreviations, sizeof abbreviations / sizeof *abbreviations, word, size))
        return true;
    return isdigit((unsigned char)next) &&
           is_listed(before_digits, sizeof before_digits / sizeof *before_digits, word, size);
}

static const char *const closing[] = {"\"",           "'",       ")", "]", "}", "\xe2\x80\x9d",
                                      "\xe2\x80\x99", "\xc2\xbb"};

static size_t skip_closing(const struct paragraph *p, size_t at)
{
    for (size_t k = 0; k < sizeof closing / sizeof *closing;) {
        size_t size = strlen(closing[k]);
        bool here = p->size - at >= size && !memcmp(p->text + at, closing[k], size);
        at += here ? size : 0;
        k = here ? 0 : k + 1;
    }
    return at;
}

static size_t skip_blanks(const struct paragraph *p, size_t at)
{
    while (at < p->size && isspace((unsigned char)p->text[at]))
        at++;
    return at;
}

static bool can_begin(const struct paragraph *p, size_t at)
{
    while (at < p->size && strchr("\"'([{", p->text[at]) && p->text[at])
        at++;
    unsigned char c = at < p->size ? (unsigned char)p->text[at] : 0;
    return isupper(c) || isdigit(c) || c >= 0x80;
}

/* The length of an ideographic end of a sentence at `at`, or 0. */
static size_t ideographic_end(const struct paragraph *p, size_t at)
{
    static const char ends[][4] = {"\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f"};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        if (p->size - at >= 3 && !memcmp(p->text + at, ends[k], 3))
            return 3;
    return 0;
}

static bool is_end(char c)
{
    return c == '.' || c == '!' || c == '?';
}

/* Where the sentence that begins at `from` ends if it does so at *at, else 0; *at then stands behind what was seen. */
static size_t end_at(const struct paragraph *p, size_t from, size_t *at)
{
    size_t wide = ideographic_end(p, *at), first = *at;
    if (wide)
        return skip_closing(p, first + wide);
    *at += 1;
    if (!is_end(p->text[first]))
        return 0;
    while (*at < p->size && is_end(p->text[*at]))
        *at += 1;
    size_t end = skip_closing(p, *at), next = skip_blanks(p, end);
    if (next == end || next == p->size || !can_begin(p, next))
        return 0;
    bool one_full_stop = p->text[first] == '.' && end == first + 1;
    return one_full_stop && is_part_of_word(p, from, first, p->text[next]) ? 0 : end;
}

void sentences_split(const char *text, size_t size,
                     void (*sink)(void *context, const char *sentence, size_t size),
                     void *context)
{
    const struct paragraph p = {text, size};
    size_t from = skip_blanks(&p, 0);
    for (size_t at = from; at < size;) {
        size_t end = end_at(&p, from, &at);
        if (!end)
            continue;
        sink(context, text + from, end - from);
        at = from = skip_blanks(&p, end);
    }
    while (size > from && isspace((unsigned char)text[size - 1]))
        size--;
    if (size > from)
        sink(context, text + from, size - from);
}
