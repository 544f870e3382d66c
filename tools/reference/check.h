/* SPDX-License-Identifier: Apache-2.0 */
/* The reference: plain float64 attention, forward and backward, full loops over i, j and d, never
   optimised; random problems; the error measure of the contract. `maskc verify`, the tests and the
   benchmarks all check kernels against it. */
#pragma once
#include "gen/target.h"
#include "masks/mask.h"
#include "runtime/load/load.h"
#include <jansson.h>

/* One problem: sizes and features of a launch. */
struct problem {
    const struct mask *mask;
    uint32_t layer, batch, length, head_dim; /* length: N of the padded layout */
    const int32_t *lengths;                  /* [batch], or null */
    const int32_t *
        starts; /* [batch], the launch's row of each sequence's first token, or null; not packed */
    bool packed; /* sequences of `lengths` stand end to end */
    enum abi_dtype dtype;
    enum abi_transform transform;
    double lambda, scale; /* scale 0: 1 / sqrt(head_dim), unless scale_given */
    bool scale_given;
    double dropout;
    enum abi_bias bias;
    uint64_t seed;
    const uint32_t *samples; /* [batch], or null */
    /* K and V of a shape of their own: heads, N and lengths; 0 and null: those of Q. Not with packed or starts, but
       for the heads. */
    uint32_t kv_heads, key_length;
    const int32_t *key_lengths;
    enum {
        LAYOUT_BNHD,
        LAYOUT_BHND,
        LAYOUT_QKV
    } layout;             /* strides: plain, heads first, fused QKV */
    uint64_t random_seed; /* of the inputs */
    /* A sample: only rows i with sample[i] != 0 are checked. d_o is 0 elsewhere, so that the
       gradients of all keys follow from these rows alone. Null: all. */
    const uint8_t *sample; /* [length] */
};

/* Dense host tensors [B, N, H, D] in double (k, v and theirs with N and H of their own), whatever the launch's layout (packed, or with starts: B sequences
   right-padded to N). Rounded to the dtype already, so that kernel and reference see equal inputs. */
struct problem_data {
    double *q, *k, *v, *d_o;
    double *o, *lse, *d_q, *d_k, *d_v; /* outputs; lse [B, H, N]; null where not computed */
    /* A bias, null where there is none: [H, n, n] with the mask's length n, rounded to f32. */
    double *x, *d_x;
    double *d_diagonal; /* [H, 2n - 1]: sums of d_x, offset j - i = o at o + n - 1 */
    /* Reference alone. d_x of a bias is a difference, P dP - P delta, and so 0 where a query sees one
       key, though neither part is: the norm of the larger part of each entry and sequence. */
    double d_x_parts;
};

/* One sequence of the whole mask, with the features that the kernel was compiled with, but for dropout. */
struct problem problem_of(const struct maskc_kernel *k);
uint32_t problem_sample(const struct problem *p, uint32_t b); /* whose draws sequence b has */
uint32_t problem_rows(const struct problem *p, uint32_t b);   /* length of sequence b, <= N */
uint64_t problem_elements(const struct problem *p);           /* B N H D */
uint32_t problem_kv_heads(const struct problem *p);
uint32_t problem_keys(const struct problem *p);                 /* N of K and V */
uint32_t problem_key_rows(const struct problem *p, uint32_t b); /* of sequence b, <= that N */
uint64_t problem_key_elements(const struct problem *p);         /* of K or V */
uint64_t problem_multiply_adds(const struct problem *p, bool backward); /* of the reference */
uint64_t problem_bias_elements(const struct problem *p);     /* H n n, or 0 without a bias */
uint64_t problem_diagonal_elements(const struct problem *p); /* H (2 n - 1), or 0 */
double problem_scale(const struct problem *p);
/* Fails (unavailable) where the tensors alone would not fit in this machine's memory: sizes come
   from the command line. */
int problem_fits(const struct problem *p, struct error *e);

/* One element, to nearest with ties to even; `to` and `from` need no alignment. */
double dtype_round(enum abi_dtype dtype, double x);
/* The same as a tensor of that type holds it: tf32 is f32 in memory. */
double dtype_held(enum abi_dtype dtype, double x);
void dtype_encode(enum abi_dtype dtype, double x, void *to);
double dtype_decode(enum abi_dtype dtype, const void *from);

struct problem_data *problem_inputs(const struct problem *p);
/* Copies the inputs, without outputs: for a second way to compute them. */
struct problem_data *problem_data_copy(const struct problem *p, const struct problem_data *d);
void problem_data_destroy(struct problem_data *d); /* null is fine */
uint32_t problem_start(const struct problem *p,
                       uint32_t b); /* the launch's row of its first token */
/* Moves the sample's rows of o, lse and d_q to the front and returns how many elements of o they are:
   without a sample all. */
uint64_t problem_keep_sample(const struct problem *p, struct problem_data *d);

/* d_diagonal from d_x. */
void problem_sum_diagonals(const struct problem *p, struct problem_data *d);

/* Fills o, lse and with `backward` the gradients (those of the sample's rows where there is one). */
void reference_run(const struct problem *p, struct problem_data *d, bool backward);

/* The plain way in the dtype (contract: inputs in that type, scores f32, P and dS rounded, sums in
   f32, outputs rounded): sets the tolerance of bf16 and f16. */
void reference_plain(const struct problem *p, struct problem_data *d, bool backward);

/* norm(a - b) / max(norm(b), 0.1 sqrt(size)). Infinite if a or b has a NaN, or if an element is
   infinite in one of them and not equal in the other. */
double error_measure(const double *a, const double *b, uint64_t size);
/* The same for a b that is a difference of parts with this norm, where that is larger: rounding is
   relative to what is subtracted and not to what is left. */
double error_of_difference(const double *a, const double *b, uint64_t size, double parts);
/* The largest of all rows: norm(a - b) / max(norm(b), a tenth of the rows' root mean square, 0.01 sqrt(row)). A row whose true
   norm is below 0.01 sqrt(row) is what rounding left of larger parts: for it the last number is 0.1. */
double error_of_rows(const double *a, const double *b, uint64_t size, uint32_t row);

/* Philox4x32-10 (Salmon et al. 2011), the reference's own. */
void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4]);

/* The 16-bit dropout draw of (seed, sample, h, i, j), independent of the templates' code. */
uint32_t reference_draw(uint64_t seed, uint32_t sample, uint32_t h, uint32_t i, uint32_t j);

/* Runs a loaded kernel on the problem (layout, packing, guard bytes around every buffer) and fills
   the outputs of *d. Outputs start as NaN; a write outside a buffer is an error. */
int kernel_run_problem(const struct maskc_kernel *k, const struct problem *p,
                       struct problem_data *d, bool backward, uint32_t threads,
                       struct error *e);

/* The same in steps, for callers that launch often: a problem laid out on the kernel's device (the problem
   must outlive it), one pass launched and waited for, the outputs brought back. */
struct trial;
struct trial *trial_new(const struct maskc_kernel *k, const struct problem *p,
                        const struct problem_data *d, bool backward, uint32_t threads,
                        struct error *e); /* null with *e set */
int trial_run(struct trial *t, bool backward, struct error *e);
int trial_fetch(struct trial *t, struct problem_data *d, struct error *e);
/* Lets go of the images on the host: it can be run but no longer fetched. */
void trial_forget(struct trial *t);
void trial_destroy(struct trial *t); /* null is fine */

struct check_result {
    char name[200];
    double error, tolerance;
    bool ok;
};

/* Appends to a growing array. */
void check_push(struct check_result r, struct check_result **ret, uint32_t *ret_count);

/* Input of a check. */
struct check {
    const struct maskc_kernel *kernel;
    const struct problem *problem;
    bool backward; /* too */
    uint32_t threads;
    const char *name; /* of the results */
};

/* Runs the kernel and checks it: one result each for o, lse and the gradients, named "NAME: o". f32
   must be within 1e-5, other dtypes within 1.5 x the error of the plain way or half a unit in the
   last place, whichever is larger. In bf16 and f16 the worst row, too, must be within 4 x that of the plain way:
   an entry that is lost shows in its row alone. lse must be within 1e-5, except in tf32. The error of a bias's
   gradient is relative to its parts, and 1e-5 always passes. Results are pushed to *ret (growing
   array, freed by the caller). */
int check_problem(const struct check *check, struct check_result **ret, uint32_t *ret_count,
                  struct error *e);

/* Everything `maskc verify` checks of a loaded kernel. Results go to `ret` (growing array, freed by
   the caller); returns 0 where the checks could be run, even if some are not ok. */
int verify_kernel(const struct maskc_kernel *k, uint32_t threads,
                  void (*progress)(const char *what), struct check_result **ret,
                  uint32_t *ret_count, struct error *e);
