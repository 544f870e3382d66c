/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of training: the work between a model's matrix products, forward with a tape and backward, and
   the loops of the optimiser. Plain C, read by the host and by the kernels; stands after abi.h.

   T is the kernel's dtype (f32 or bf16), H its HIDDEN. Matrices are dense, one row after another, and begin at multiples of
   16 bytes. Nothing is added by atomics; every sum has one order, whatever the number of blocks and the order of threads. */
#ifndef MASKC_TRAIN_ARGS_H
#define MASKC_TRAIN_ARGS_H

enum {
    TRAIN_THREADS = 128,
    TRAIN_ROWS_OF_BLOCK = TRAIN_THREADS / 32, /* a warp takes a row */
    TRAIN_CHUNK = 64,                         /* rows that a partial sum of columns is of */
    TRAIN_PART = 8192, /* elements that a partial sum of an array is of */
    TRAIN_SUMS = 16,   /* sums that one launch ends */
    TRAIN_PACKS = 16,  /* matrices that one launch copies */
    TRAIN_TILE = 32,   /* train_pack: side of what is transposed at once */
    TRAIN_SHARED =
        TRAIN_TILE * (TRAIN_TILE + 1) * 4 /* bytes of dynamic shared memory, of every launch */
};

/* A row of this target or label adds nothing. */
#define TRAIN_NOWHERE 0xffffffffu

/* Steps of train_update for each element, bit by bit. */
enum train_update_mode {
    TRAIN_MOVE_MOMENTS = 1,
    TRAIN_MEASURE =
        2, /* part[2 k], part[2 k + 1]: sums of squares of value and update of block k */
    TRAIN_MOVE_VALUES = 4
};

/* At most TRAIN_PART elements of one parameter. */
struct train_block {
    u64 first;
    u32 count;
    float decay, scale; /* scale: of the update */
};

/* A matrix that is copied: element (o, i) lies at o * row + i * column of x. */
struct train_pack {
    const float *x;
    void *y;
    u64 row, column;
    u32 rows, columns, wide_y;
    u32 tiles; /* of TRAIN_TILE x TRAIN_TILE, row by row */
};

/* Numbers of a row of logits: its loss is log(sum) + most - logit. */
struct train_row_loss {
    float most, sum, logit,
        right; /* right: 1 where the label's is the first of the largest, else 0 */
};

/* Partial sums of columns and where to add them: `rows` for each column, `stride` floats apart. */
struct train_sum {
    const float *part;
    float *y;
    u32 rows, columns, stride;
    u32 head,
        padded; /* columns of a head, and with its padding, which y has not; 0: no heads */
};

/* Each entry reads `rows` and the members whose comments name it. */
struct train_args {
    u32 rows, columns;
    u32 wide, wide_y, wide_z; /* elements of x, y, z are f32 whatever T is */
    u32 after;                /* enum rows_after of encoder_ops/args.h */
    u32 adds; /* train_segments: y is added to; train_add: from is left as it is */
    u32 mode; /* train_update: bits; train_reduce: 1: sums of 0 x in place of squares */
    float eps;
    /* dropout, by Philox: counter (column / 8, position, sample, site); keep_below 0: none */
    u64 seed;
    u32 site, keep_below;
    float keep_scale;
    const u32 *place;                    /* [rows][2]: sample, position */
    u64 count;                           /* elements of an array */
    const u32 *number, *position, *type; /* train_embed: [rows] each */
    const u32 *begin, *from, *target;    /* train_segments; target[s] may be TRAIN_NOWHERE */
    const u32 *label;                    /* train_cross_entropy: [rows], or TRAIN_NOWHERE */
    const float *weight;                 /* train_cross_entropy */
    const float *words;
    const float *positions, *types;
    const float *gain, *shift; /* [H] */
    const float *bias;         /* or null */
    const void *x;
    const void *residual; /* [rows][H] of T, or null */
    void *z;              /* (x - mean) * inverse of a norm */
    float *inverse;       /* [rows] */
    float *d;             /* gradients, f32 */
    float *part;          /* partial sums */
    void *y;
    struct train_row_loss *loss;
    const struct train_block *block;
    float *value, *gradient, *first_moment, *second_moment; /* of train_block.first on */
    float rate, gradient_scale, beta1, rest1, beta2, rest2, first_scale, second_scale;
    u32 sums; /* train_add_parts: of no y twice; their columns together are `columns` */
    struct train_sum sum[TRAIN_SUMS];
    u32 packs; /* train_pack: their tiles together are `count` */
    struct train_pack pack[TRAIN_PACKS];
};

/* The entries, D being dropout:
     train_embed          v = words[number] + positions[position] + types[type]; z [rows][H] f32 and inverse of its norm;
                          y = D(z gain + shift)
     train_norm           v = D(x + bias) + residual, x f32 or null; y = v without a gain, else as before, z of T
     train_norm_back      d [rows][H], in place: through the norm where there is a gain; y = D(d), of T or f32, or null
     train_columns        part[c][k]: sums of x[r][k] over chunk c, and where there is a z [rows][columns], behind all of
                          these, of x z
     train_add_parts      of each sum: y[k] += part[0][k] + part[1][k] + ..
     train_activate_back  y = d * after'(x), x of T or f32, d [rows][columns], y of T
     train_glu_back       y[r][k] = d x[r][columns + k] after'(x[r][k]), y[r][columns + k] = d after(x[r][k]);
                          d [rows][columns]
     train_segments       y[target[s]] = (or +=) sum of x[from[k]] over k from begin[s] to begin[s + 1] - 1, x of T or
                          f32, y f32; begin null: of one each; from null: of x[k]; target null: s
     train_cross_entropy  loss [rows]; y = *weight (softmax(x) - onehot(label)), of T, or null; x [rows][columns] f32, may be y
     train_labels         y[r][c] = x[r] . words[c] + bias[c], c < columns, all f32
     train_labels_back    y[r] = sum over c < columns of d[r][c] words[c], f32
     train_reduce         part[k]: sum of squares of the k-th TRAIN_PART elements of x [count]
     train_add            y += x, count elements; then x = 0 unless adds
     train_pack           of each: y[o][k] = x(o, k), of T or f32, o < rows, k < columns
     train_update         over blocks: see struct update of model/backend/training.h */

#endif
