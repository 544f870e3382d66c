/* SPDX-License-Identifier: Apache-2.0 */
/* The names of templates/cuda/hopper/device.h and wgmma.h, on a CPU. An address in shared memory is an offset. */
#pragma once

/* clang-format off */
#define smem_base()             MACHINE->smem_base(HERE)
#define smem_get_u32(at)        (*(const u32 *)MACHINE->smem_read(at, 4, HERE))
#define smem_put_u32(at, x)     ((void)(*(u32 *)MACHINE->smem_write(at, 4, HERE) = (x)))
#define smem_get_u32x4(at)      (*(const struct u32x4 *)MACHINE->smem_read(at, 16, HERE))
#define smem_put_u32x4(at, x)   ((void)(*(struct u32x4 *)MACHINE->smem_write(at, 16, HERE) = (x)))
#define smem_get_f2(at)         (*(const struct f2 *)MACHINE->smem_read(at, 8, HERE))
#define smem_put_f32(at, x)     ((void)(*(float *)MACHINE->smem_write(at, 4, HERE) = (x)))
#define smem_load4(r, row)      MACHINE->load4(r, row, HERE)
#define smem_store4(row, a, b, c, d) MACHINE->store4(row, (const u32[]){a, b, c, d}, HERE)

#define mbarrier_init(at, count)     MACHINE->mbarrier_init(at, count, HERE)
#define mbarrier_init_fence()        MACHINE->mbarrier_init_fence()
#define mbarrier_expect(at, bytes)   MACHINE->mbarrier_expect(at, bytes, HERE)
#define mbarrier_arrive(at)          MACHINE->mbarrier_arrive(at, HERE)
#define mbarrier_arrive_if(at, condition) ((condition) ? mbarrier_arrive(at) : (void)0)
#define mbarrier_wait(at, parity)    MACHINE->mbarrier_wait(at, parity, HERE)
#define async_fence()                MACHINE->async_fence()
#define group_sync(id, threads)      MACHINE->group_sync(id, threads, HERE)
#define group_arrive(id, threads)    MACHINE->group_arrive(id, threads, HERE)

#define tma_load(to, map, bar, d, h, row, b) \
    MACHINE->tma_load(to, map, bar, (const i32[]){(i32)(d), (i32)(h), (i32)(row), (i32)(b)}, HERE)
#define tma_store(map, from, d, h, row, b) \
    MACHINE->tma_store(map, from, (const i32[]){(i32)(d), (i32)(h), (i32)(row), (i32)(b)}, HERE)
#define bulk_load(to, from, bytes, bar) MACHINE->bulk_load(to, from, bytes, bar, HERE)
#define bulk_commit()                MACHINE->bulk_commit()
#define bulk_wait_read()             bulk_wait()
#define bulk_wait()                  MACHINE->bulk_wait()

#define PRODUCT(n, d, a, a_at, b_at, accumulate, transposed) \
    MACHINE->wgmma(&(const struct emulation_product){d, a, a_at, b_at, n, (accumulate) != 0, transposed, IS_F16}, HERE)
#define wgmma_ss(n, d, a, b, accumulate) PRODUCT(n, d, 0, a, b, accumulate, 0)
#define wgmma_rs(n, d, a, b, accumulate) PRODUCT(n, d, a, 0, b, accumulate, 1)
#define wgmma_rk(n, d, a, b, accumulate) PRODUCT(n, d, a, 0, b, accumulate, 0)
#define wgmma_fence()                MACHINE->wgmma_fence(HERE)
#define wgmma_commit()               MACHINE->wgmma_commit(HERE)
#define WGMMA_WAIT(n)                MACHINE->wgmma_wait(n, HERE)
#define hold_floats(x, n)            ((void)(x), (void)(n))
#define hold_words(x, n)             ((void)(x), (void)(n))

#define SET_REGISTERS_UP(n)          MACHINE->set_registers(n, HERE)
#define SET_REGISTERS_DOWN(n)        MACHINE->set_registers(n, HERE)
#define shuffle_u32(x, lane)         bits_of(MACHINE->exchange(float_of(x), lane, HERE))
#define warp_ballot(x)                    MACHINE->reduce_or((u32)((x) != 0) << THREAD % 32, HERE)
#define elect()                      (THREAD % 32 == 0)
#define HOPPER_ARGS                  const struct hopper_args
#define uniform(x)                   bits_of(MACHINE->exchange(float_of(x), 0, HERE))
/* clang-format on */
