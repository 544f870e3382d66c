/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin is an ELF file. Section .text.NAME is an entry's code, .nv.shared.NAME its static
   shared memory; .nv.info holds records {format, attribute, size} and for attribute 0x2f
   {symbol, registers}, for 0x11 {symbol, bytes of stack frame}. */
#include "runtime/compile/cubin.h"
#include <elf.h>
#include <string.h>

enum { ATTRIBUTE_FRAME = 0x11, ATTRIBUTE_REGISTERS = 0x2f, FORMAT_SIZED = 4 };

struct cubin {
    const uint8_t *bytes;
    uint64_t size;
    Elf64_Ehdr head;
    Elf64_Shdr names; /* the section of section names */
};

static bool inside(const struct cubin *c, uint64_t offset, uint64_t size)
{
    return offset <= c->size && size <= c->size - offset;
}

static bool section(const struct cubin *c, uint32_t index, Elf64_Shdr *ret)
{
    uint64_t at = c->head.e_shoff + (uint64_t)index * sizeof *ret;
    if (index >= c->head.e_shnum || at < c->head.e_shoff || !inside(c, at, sizeof *ret))
        return false;
    memcpy(ret, c->bytes + at, sizeof *ret);
    return ret->sh_type == SHT_NOBITS || inside(c, ret->sh_offset, ret->sh_size);
}

/* A string that ends inside its table; else "". */
static const char *string_at(const struct cubin *c, const Elf64_Shdr *table, uint64_t offset)
{
    if (table->sh_type == SHT_NOBITS || offset >= table->sh_size)
        return "";
    const char *s = (const char *)c->bytes + table->sh_offset + offset;
    return memchr(s, 0, table->sh_size - offset) ? s : "";
}

static bool open_cubin(struct cubin *c)
{
    if (!inside(c, 0, sizeof c->head))
        return false;
    memcpy(&c->head, c->bytes, sizeof c->head);
    return !memcmp(c->head.e_ident, ELFMAG, SELFMAG) &&
           c->head.e_ident[EI_CLASS] == ELFCLASS64 &&
           c->head.e_shentsize == sizeof(Elf64_Shdr) &&
           section(c, c->head.e_shstrndx, &c->names);
}

/* The part of a section's name after `prefix`, or null. */
static const char *entry_of(const struct cubin *c, const Elf64_Shdr *s, const char *prefix)
{
    const char *name = string_at(c, &c->names, s->sh_name);
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) ? NULL : name + length;
}

static struct kernel_resources *find(struct kernel_resources *r, uint32_t count,
                                     const char *entry)
{
    for (uint32_t k = 0; k < count; k++)
        if (!strcmp(r[k].entry, entry))
            return &r[k];
    return NULL;
}

static uint32_t list_entries(const struct cubin *c, struct kernel_resources *ret,
                             uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->head.e_shnum && count < capacity; k++) {
        Elf64_Shdr s;
        const char *entry = section(c, k, &s) ? entry_of(c, &s, ".text.") : NULL;
        if (!entry || strlen(entry) >= sizeof ret->entry)
            continue;
        ret[count] = (struct kernel_resources){.code_bytes = (uint32_t)s.sh_size};
        strcpy(ret[count++].entry, entry);
    }
    return count;
}

/* The name of a symbol of the symbol table. */
static const char *symbol(const struct cubin *c, uint32_t index)
{
    for (uint32_t k = 0; k < c->head.e_shnum; k++) {
        Elf64_Shdr s, strings;
        Elf64_Sym sym;
        if (!section(c, k, &s) || s.sh_type != SHT_SYMTAB || !section(c, s.sh_link, &strings))
            continue;
        if ((uint64_t)index >= s.sh_size / sizeof sym)
            return "";
        memcpy(&sym, c->bytes + s.sh_offset + index * sizeof sym, sizeof sym);
        return string_at(c, &strings, sym.st_name);
    }
    return "";
}

static void read_record(const struct cubin *c, const uint8_t *record,
                        struct kernel_resources *r, uint32_t count)
{
    uint32_t value[2];
    memcpy(value, record + 4, sizeof value);
    struct kernel_resources *k = find(r, count, symbol(c, value[0]));
    if (k && record[1] == ATTRIBUTE_REGISTERS)
        k->registers = value[1];
    if (k && record[1] == ATTRIBUTE_FRAME)
        k->spill_bytes = value[1];
}

static void read_info(const struct cubin *c, const Elf64_Shdr *s, struct kernel_resources *r,
                      uint32_t count)
{
    const uint8_t *at = c->bytes + s->sh_offset, *end = at + s->sh_size;
    while (end - at >= 4) {
        uint32_t size = at[0] == FORMAT_SIZED ? at[2] | (uint32_t)at[3] << 8 : 0;
        if (end - at < 4 + (int64_t)size)
            return;
        if (size == 8)
            read_record(c, at, r, count);
        at += 4 + size;
    }
}

int cubin_resources(const uint8_t *bytes, uint64_t size, struct kernel_resources *ret,
                    uint32_t capacity, uint32_t *count, struct error *e)
{
    struct cubin c = {.bytes = bytes, .size = size};
    if (!open_cubin(&c))
        return error_set(e, ERROR_INPUT, "this is not a cubin (an ELF file is expected)");
    ret += *count;
    uint32_t added = list_entries(&c, ret, capacity - *count);
    for (uint32_t k = 0; k < c.head.e_shnum; k++) {
        Elf64_Shdr s;
        if (!section(&c, k, &s))
            continue;
        const char *shared = entry_of(&c, &s, ".nv.shared.");
        struct kernel_resources *kernel = shared ? find(ret, added, shared) : NULL;
        if (kernel)
            kernel->shared_bytes = (uint32_t)s.sh_size;
        if (!strcmp(string_at(&c, &c.names, s.sh_name), ".nv.info") && s.sh_type != SHT_NOBITS)
            read_info(&c, &s, ret, added);
    }
    *count += added;
    return 0;
}
