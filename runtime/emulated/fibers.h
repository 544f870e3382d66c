/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the block is a fiber: a stack of its own, switched to and from by hand. */
#pragma once
#include <stdint.h>
#include <string.h>

/* Saves the registers that a call must keep (System V x86-64), leaves the stack pointer in
   *from, and goes on where `to` was left: by a jump, since a CPU predicts that a return goes to where the last call came from. */
void fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));

__asm__(".text\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    pop %rcx\n"
        "    jmp *%rcx\n"
        ".size fiber_switch, . - fiber_switch\n");

/* A stack on which the first switch calls body(); body never returns. */
static void *fiber_new(void *stack, size_t bytes, void (*body)(void))
{
    void **top = (void **)((uintptr_t)((char *)stack + bytes) & ~(uintptr_t)63);
    *--top =
        NULL; /* where a return address would be: keeps the stack aligned as after a call */
    *--top = (void *)body;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    return top;
}
