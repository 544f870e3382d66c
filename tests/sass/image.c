/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a cubin: .nv.constantK.NAME are its constant banks (bank 0 has the parameters at its end),
   .nv.info.NAME says where those begin, .nv.shared.NAME is static shared memory. */
#include "tests/sass/image.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ATTRIBUTE_PARAMETERS = 0x0a, /* {symbol, u16 offset, u16 size} */
    ATTRIBUTE_ARGUMENT =
        0x17, /* {u32, u16 number, u16 offset, u32 with the size in bits 18.. } */
    ATTRIBUTE_REGISTERS = 0x2f, /* {symbol, u32 count}, in .nv.info */
    ARGUMENTS_ADDRESS = 0x198,  /* in bank 0: where the parameters are, as a generic address */
    ARGUMENTS_SM_90 = 0x210,
    BANK_ALIGN = 256,
    FORMAT_SIZED = 4,
    BANK_0_BYTES = 65536,
    SYSTEM_SHARED = 1024, /* of sm_90 and later: the first bytes are the system's */
};

struct cubin {
    const uint8_t *bytes;
    uint64_t size;
    Elf64_Ehdr head;
};

static bool section(const struct cubin *c, uint32_t k, Elf64_Shdr *ret)
{
    const uint64_t at = c->head.e_shoff + (uint64_t)k * sizeof *ret;
    if (k >= c->head.e_shnum || at + sizeof *ret > c->size)
        return false;
    memcpy(ret, c->bytes + at, sizeof *ret);
    return ret->sh_type == SHT_NOBITS || ret->sh_offset + ret->sh_size <= c->size;
}

static const char *section_name(const struct cubin *c, const Elf64_Shdr *s)
{
    Elf64_Shdr names;
    return section(c, c->head.e_shstrndx, &names) && s->sh_name < names.sh_size
               ? (const char *)c->bytes + names.sh_offset + s->sh_name
               : "";
}

/* The section called prefix + entry. */
static bool find_section(const struct cubin *c, const char *prefix, const char *entry,
                         Elf64_Shdr *ret)
{
    const size_t n = strlen(prefix);
    for (uint32_t k = 0; section(c, k, ret); k++) {
        const char *name = section_name(c, ret);
        if (!strncmp(name, prefix, n) && !strcmp(name + n, entry))
            return true;
    }
    return false;
}

static uint32_t word16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t word32(const uint8_t *at)
{
    return word16(at) | word16(at + 2) << 16;
}

/* One attribute of a section .nv.info; those of other formats than FORMAT_SIZED have no bytes. */
typedef void see_attribute(struct program *p, uint32_t which, const uint8_t *at, uint32_t size);

static void see_attributes(const struct cubin *c, const Elf64_Shdr *s, struct program *p,
                           see_attribute *see)
{
    const uint8_t *at = c->bytes + s->sh_offset, *end = at + s->sh_size;
    while (end - at >= 4) {
        const uint32_t size = at[0] == FORMAT_SIZED ? word16(at + 2) : 0;
        if (size > (uint32_t)(end - at - 4))
            return;
        if (size)
            see(p, at[1], at + 4, size);
        at += 4 + size;
    }
}

static void see_argument(struct program *p, uint32_t which, const uint8_t *at, uint32_t size)
{
    if (which == ATTRIBUTE_PARAMETERS && size == 8)
        p->parameters = word16(at + 4);
    if (which != ATTRIBUTE_ARGUMENT || size != 12)
        return;
    const uint32_t number = word16(at + 4);
    if (number >= MAX_ARGUMENTS)
        return;
    p->argument[number] = (struct argument){word16(at + 6), word32(at + 8) >> 18};
    p->arguments = number + 1 > p->arguments ? number + 1 : p->arguments;
}

static bool symbol_is(const struct cubin *c, uint32_t symbol, const char *name)
{
    Elf64_Shdr s, names;
    Elf64_Sym one;
    for (uint32_t k = 0; section(c, k, &s); k++) {
        if (s.sh_type != SHT_SYMTAB || !section(c, s.sh_link, &names) ||
            (uint64_t)(symbol + 1) * sizeof one > s.sh_size)
            continue;
        memcpy(&one, c->bytes + s.sh_offset + symbol * sizeof one, sizeof one);
        return one.st_name < names.sh_size &&
               !strcmp((const char *)c->bytes + names.sh_offset + one.st_name, name);
    }
    return false;
}

/* Registers of a thread at launch. */
static uint32_t registers_of(const struct cubin *c, const char *entry)
{
    Elf64_Shdr s;
    if (!find_section(c, ".nv.info", "", &s))
        return 0;
    const uint8_t *at = c->bytes + s.sh_offset, *end = at + s.sh_size;
    while (end - at >= 12) {
        if (at[0] == FORMAT_SIZED && at[1] == ATTRIBUTE_REGISTERS &&
            symbol_is(c, word32(at + 4), entry))
            return (word32(at + 8) + 7) / 8 * 8;
        at += 4 + (at[0] == FORMAT_SIZED ? word16(at + 2) : 0);
    }
    return 0;
}

static void take_bank(const struct cubin *c, struct program *p, uint32_t bank)
{
    char prefix[] = ".nv.constant0.";
    Elf64_Shdr s;
    prefix[12] = (char)('0' + bank);
    if (!find_section(c, prefix, p->entry, &s))
        return;
    p->bank_bytes[bank] = (uint32_t)s.sh_size + 16;
    p->bank[bank] = calloc(p->bank_bytes[bank], 1);
    memcpy(p->bank[bank], c->bytes + s.sh_offset, s.sh_size);
}

static void take_constants(const struct cubin *c, struct program *p)
{
    Elf64_Shdr s;
    for (uint32_t k = 1; k < BANKS; k++)
        take_bank(c, p, k);
    p->bank[0] = aligned_alloc(BANK_ALIGN, BANK_0_BYTES);
    memset(p->bank[0], 0, BANK_0_BYTES);
    p->bank_bytes[0] = BANK_0_BYTES;
    if (find_section(c, ".nv.info.", p->entry, &s))
        see_attributes(c, &s, p, see_argument);
    p->registers = registers_of(c, p->entry);
    if (find_section(c, ".nv.constant0.", p->entry, &s) && s.sh_size > p->parameters)
        p->parameter_bytes = (uint32_t)s.sh_size - p->parameters;
    p->shared_base = p->parameters > 0x160 ? SYSTEM_SHARED : 0;
    p->shared_static = find_section(c, ".nv.shared.", p->entry, &s) ? (uint32_t)s.sh_size : 0;
}

/* The part of nvdisasm's text that is one entry's. */
static char *entry_text(const char *text, const char *entry)
{
    char begin[80];
    snprintf(begin, sizeof begin, "\n.text.%s:", entry);
    const char *from = strstr(text, begin);
    if (!from)
        return NULL;
    const char *to = strstr(from, "\n//-----");
    return strndup(from + 1, to ? (size_t)(to - from) : strlen(from));
}

static int take_entry(struct image *i, const struct cubin *c, const char *name,
                      const char *text, char *why, size_t capacity)
{
    struct program *p = &i->entry[i->entries];
    char *own = entry_text(text, name);
    if (i->entries == IMAGE_ENTRIES || strlen(name) >= sizeof p->entry || !own) {
        snprintf(why, capacity, "nvdisasm's text has no entry %s", name);
        free(own);
        return -1;
    }
    i->entries++;
    strcpy(p->entry, name);
    take_constants(c, p);
    const int r = program_parse(p, own, why, capacity);
    free(own);
    return r;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t image_bytes(const uint8_t *cubin)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    memcpy(&h, cubin, sizeof h);
    uint64_t end = larger(h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize,
                          h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize);
    for (uint32_t k = 0; k < h.e_shnum; k++) {
        memcpy(&s, cubin + h.e_shoff + k * sizeof s, sizeof s);
        end = larger(end, s.sh_type == SHT_NOBITS ? 0 : s.sh_offset + s.sh_size);
    }
    return end;
}

int image_load_text(struct image *ret, const uint8_t *bytes, uint64_t size, const char *text,
                    char *why, size_t capacity)
{
    struct cubin c = {.bytes = bytes, .size = size};
    Elf64_Shdr s;
    int r = 0;
    memcpy(&c.head, bytes, sizeof c.head);
    for (uint32_t k = 0; r == 0 && section(&c, k, &s); k++) {
        const char *name = section_name(&c, &s);
        if (!strncmp(name, ".text.", 6))
            r = take_entry(ret, &c, name + 6, text, why, capacity);
    }
    return r;
}

int image_load(struct image *ret, const uint8_t *bytes, uint64_t size, char *why,
               size_t capacity)
{
    char *text = image_disassemble(bytes, size, why, capacity);
    const int r = text ? image_load_text(ret, bytes, size, text, why, capacity) : -1;
    free(text);
    return r;
}

void image_finish(struct image *i)
{
    for (uint32_t k = 0; k < i->entries; k++)
        program_finish(&i->entry[k]);
    i->entries = 0;
}

static void put(struct program *p, uint32_t at, uint32_t word)
{
    memcpy(p->bank[0] + at, &word, sizeof word);
}

/* Several arguments have a place each. */
static void put_arguments(struct program *p, void *const *arguments)
{
    uint8_t *to = p->bank[0] + p->parameters;
    if (!p->arguments)
        memcpy(to, arguments[0], p->parameter_bytes);
    for (uint32_t k = 0; k < p->arguments; k++)
        memcpy(to + p->argument[k].offset, arguments[k], p->argument[k].bytes);
}

void program_arguments(struct program *p, uint32_t threads, const uint32_t grid[3],
                       void *const *arguments)
{
    const bool newest = p->parameters >= 0x380;
    const uint32_t sizes = newest ? 0x360 : 0;
    memset(p->bank[0], 0, p->parameters);
    for (uint32_t k = 0; k < 3; k++) {
        put(p, sizes + 4 * k, k ? 1 : threads);
        put(p, sizes + (newest ? 16 : 12) + 4 * k, grid[k]);
    }
    put(p, 0x28, LOCAL_WORDS * 4);
    put(p, 0x37c < p->parameters ? 0x37c : 0x28, LOCAL_WORDS * 4);
    if (p->parameters == ARGUMENTS_SM_90) {
        const uint64_t address = (uint64_t)(uintptr_t)p->bank[0] + p->parameters;
        memcpy(p->bank[0] + ARGUMENTS_ADDRESS, &address, sizeof address);
    }
    put_arguments(p, arguments);
}
