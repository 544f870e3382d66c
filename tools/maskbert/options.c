/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each option; see tools/common/program.h. */
#include "tools/maskbert/options.h"

enum group {
    GROUP_COMMON = 1,
    GROUP_TEXT,
    GROUP_OPTIMIZER,
    GROUP_MASK,
    GROUP_LEARN,
    GROUP_RUN,
    GROUP_OUTPUT
};

const char *const option_titles[] = {
    [GROUP_COMMON] = "Most used:",    [GROUP_TEXT] = "Texts and objective:",
    [GROUP_OPTIMIZER] = "Optimizer:", [GROUP_MASK] = "Mask:",
    [GROUP_LEARN] = "Learned mask:",  [GROUP_RUN] = "States, ranks, memory:",
    [GROUP_OUTPUT] = "Output:",
};

static int read_port(const char *text, struct options *ret, struct error *e)
{
    uint64_t port;
    if (!whole_number(text, UINT16_MAX, &port))
        return error_set(e, ERROR_INPUT, "--port: '%s' is not a port, 0 to 65535", text);
    ret->port = (uint16_t)port;
    return 0;
}

/* run.json and JSON on stdout have signed numbers. */
static int read_seed(const char *text, struct options *ret, struct error *e)
{
    return whole_number(text, INT64_MAX, &ret->seed)
               ? 0
               : error_set(e, ERROR_INPUT,
                           "--seed: '%s' is not a whole number from 0 to 2^63 - 1", text);
}

#define AT(field) offsetof(struct options, field)

_Static_assert(OPTION_COUNT <= 8 * sizeof(option_set), "a bit for each option");

/* clang-format off */
const struct option_row option_rows[OPTION_COUNT] = {
    [OPTION_OUTPUT]     = {"output", 'o', "PATH", "Where to write the result", GROUP_COMMON, VALUE_TEXT, AT(output)},
    [OPTION_DTYPE]      = {"dtype", 0, "T", "f32, bf16 or f16 (default: as the model has it)", GROUP_COMMON, VALUE_TEXT, AT(dtype)},
    [OPTION_MASK]       = {"mask", 0, "MASK", "A file, a gallery name or an expression, as maskc takes it", GROUP_COMMON, VALUE_TEXT, AT(mask)},
    [OPTION_TRANSFORM]  = {"transform", 0, "T", "softmax (default) or sparsegen=LAMBDA, stored with the mask", GROUP_MASK, VALUE_TEXT, AT(transform)},
    [OPTION_POSITIONS]  = {"positions", 0, "N", "Longest text in tokens", GROUP_TEXT, VALUE_COUNT, AT(positions)},
    [OPTION_SIZE]       = {"size", 0, "SIZE", "tiny, mini, small, medium, base, large or LxHxA: layers, hidden size, heads", GROUP_COMMON, VALUE_TEXT, AT(size)},
    [OPTION_TOKENS]     = {"size", 0, "V", "Tokens of the vocabulary", GROUP_COMMON, VALUE_TEXT, AT(size)},
    [OPTION_CASED]      = {"cased", 0, 0, "Keep case and accents (default: not)", GROUP_TEXT, VALUE_FLAG, AT(cased)},
    [OPTION_MIN_FREQUENCY] = {"min-frequency", 0, "N", "Pairs of pieces less frequent than N are not joined (default 2)", GROUP_TEXT, VALUE_COUNT, AT(min_frequency)},
    [OPTION_VOCABULARY] = {"vocab", 0, "FILE", "A vocab.txt", GROUP_COMMON, VALUE_TEXT, AT(vocabulary)},
    [OPTION_DEVIATION]  = {"std", 0, "S", "Standard deviation of the weights (default 0.02)", GROUP_TEXT, VALUE_REAL, AT(deviation)},
    [OPTION_START]      = {"start", 0, "random|mimetic", "random (default), or mimetic: attention that finds equal and near words from the first step, for trainings of minutes", GROUP_TEXT, VALUE_TEXT, AT(start)},
    [OPTION_SEED]       = {"seed", 0, "S", "Seed of the random numbers (default 0)", GROUP_COMMON, VALUE_OWN, .read = read_seed, .given = AT(seed_given)},
    [OPTION_OFFSETS]    = {"offsets", 0, 0, "Print the bytes of each token: ID:BEGIN-END", GROUP_TEXT, VALUE_FLAG, AT(offsets)},
    [OPTION_MAX_LENGTH] = {"max-length", 0, "N", "Cut texts to N tokens, [CLS] and [SEP] included (default: the limit in the model's folder; tokenize: no cut; questions: see --stride)", GROUP_TEXT, VALUE_COUNT, AT(max_length)},
    [OPTION_COMPAT]     = {"tokenizer-compat", 0, "hf|google", "Tokenize as HuggingFace's fast tokenizer (default) or as Google's", GROUP_TEXT, VALUE_TEXT, AT(compat)},
    [OPTION_THREADS]    = {"threads", 0, "N", "Threads (default: all)", GROUP_COMMON, VALUE_COUNT, AT(threads), .most = THREADS_MOST},
    [OPTION_JSON]       = {"json", 0, 0, "JSON on stdout and nothing else", GROUP_COMMON, VALUE_FLAG, AT(json)},
    [OPTION_INPUT]      = {"input", 0, "FILE", "Lines of text (default: stdin)", GROUP_COMMON, VALUE_TEXT, AT(input)},
    [OPTION_POOLING]    = {"pooling", 0, "P", "mean (default), cls, pooler or none", GROUP_COMMON, VALUE_TEXT, AT(pooling)},
    [OPTION_NORMALIZE]  = {"normalize", 0, 0, "Scale vectors to length 1", GROUP_TEXT, VALUE_FLAG, AT(normalize)},
    [OPTION_PROMPT]     = {"prompt", 0, "TEXT", "Text before each line (default: default_prompt_name's of config_sentence_transformers.json)", GROUP_TEXT, VALUE_TEXT, AT(prompt)},
    [OPTION_PROMPT_NAME] = {"prompt-name", 0, "NAME", "The prompt with this name in config_sentence_transformers.json", GROUP_TEXT, VALUE_TEXT, AT(prompt_name)},
    [OPTION_RUN_DTYPE]  = {"dtype", 0, "T", "f32 (default) or bf16", GROUP_COMMON, VALUE_TEXT, AT(dtype)},
    [OPTION_RUN_TRANSFORM] = {"transform", 0, "T", "softmax or sparsegen=LAMBDA (default: the model's own, else softmax)", GROUP_MASK, VALUE_TEXT, AT(transform)},
    [OPTION_DEVICE]     = {"device", 0, "D", "cpu (default), cuda, cuda:N or emulated", GROUP_COMMON, VALUE_TEXT, AT(device)},
    [OPTION_BATCH_TOKENS] = {"batch-tokens", 0, "N", "Tokens of a batch (default 4096)", GROUP_TEXT, VALUE_COUNT, AT(batch_tokens)},
    [OPTION_TOP]        = {"top", 0, "K", "Words to print for each [MASK] (default 5)", GROUP_TEXT, VALUE_COUNT, AT(top)},
    [OPTION_LAYER]      = {"layer", 0, "L", "One layer, from 0 (default: all)", GROUP_OUTPUT, VALUE_TEXT, AT(layer)},
    [OPTION_HEAD]       = {"head", 0, "H", "One head, from 0 (default: all)", GROUP_OUTPUT, VALUE_TEXT, AT(head)},
    [OPTION_KEEP]       = {"keep", 0, "P[,P..]", "Percent of the entries of each head to keep", GROUP_COMMON, VALUE_TEXT, AT(keep)},
    [OPTION_DROP_DIAGONAL] = {"drop-diagonal", 0, 0, "Write masks without the diagonal, too", GROUP_MASK, VALUE_FLAG, AT(drop_diagonal)},
    [OPTION_RANDOM]     = {"random", 0, 0, "Write random masks of the same size, too, to compare with", GROUP_MASK, VALUE_FLAG, AT(random)},
    [OPTION_BATCH]      = {"batch", 0, "B", "Texts of the batch (default 32)", GROUP_COMMON, VALUE_COUNT, AT(batch)},
    [OPTION_LENGTH]     = {"length", 'n', "N", "Tokens of the longest text (bench: 128; prune: the positions)", GROUP_COMMON, VALUE_COUNT, AT(length)},
    [OPTION_LENGTHS]    = {"lengths", 0, "same|mixed", "All texts of N tokens (default), or of N/8 to N", GROUP_TEXT, VALUE_TEXT, AT(lengths)},
    [OPTION_WORDS]      = {"vocab", 0, "FILE|DIR", "A vocab.txt, or a model's folder", GROUP_COMMON, VALUE_TEXT, AT(vocabulary)},
    [OPTION_PREP_LENGTH] = {"length", 'n', "N", "Tokens of the longest sample, [CLS] and [SEP] included", GROUP_COMMON, VALUE_COUNT, AT(length)},
    [OPTION_PAIRING]    = {"pairing", 0, "nsp|full", "nsp (default): pairs for next-sentence prediction; full: whole sentences", GROUP_TEXT, VALUE_TEXT, AT(pairing)},
    [OPTION_SHORT]      = {"short", 0, "P", "Share of the documents with a shorter target length (default: nsp 0.1, full 0)", GROUP_TEXT, VALUE_REAL, AT(short_share), .given = AT(short_given)},
    [OPTION_DUPE]       = {"dupe", 0, "K", "Pairs are drawn K times from each training document (default: nsp 10; full has no such draws)", GROUP_TEXT, VALUE_COUNT, AT(dupe)},
    [OPTION_HELD_OUT]   = {"held-out", 0, "P", "Share of the documents that are kept for evaluation (default 0.01)", GROUP_TEXT, VALUE_REAL, AT(held_out), .given = AT(held_out_given)},
    [OPTION_JOBS]       = {"jobs", 'j', "N", "Threads that tokenise (default: all); the result is the same", GROUP_TEXT, VALUE_COUNT, AT(threads), .most = THREADS_MOST},
    [OPTION_SPLIT]      = {"split", 0, 0, "A line is a paragraph: cut it into sentences (rules for English)", GROUP_TEXT, VALUE_FLAG, AT(split)},
    [OPTION_STATS]      = {"stats", 0, 0, "Print lengths as a histogram, and the unigram entropy of the training tokens in nats", GROUP_OUTPUT, VALUE_FLAG, AT(stats)},
    [OPTION_HOST]       = {"host", 0, "ADDRESS", "Address to listen on (default 127.0.0.1: this machine alone)", GROUP_TEXT, VALUE_TEXT, AT(host)},
    [OPTION_PORT]       = {"port", 0, "P", "Port to listen on; 0: any free one (default 8080)", GROUP_COMMON, VALUE_OWN, .read = read_port, .given = AT(port_given)},
    [OPTION_DATA]       = {"data", 0, "DATA", "The folder that maskbert prep wrote", GROUP_COMMON, VALUE_TEXT, AT(data)},
    [OPTION_RUN]        = {"output", 'o', "RUN", "The folder of the run, a new one", GROUP_COMMON, VALUE_TEXT, AT(output)},
    [OPTION_STEPS]      = {"steps", 0, "N", "Steps of the optimiser", GROUP_COMMON, VALUE_WHOLE, AT(steps), .given = AT(steps_given)},
    [OPTION_RUN_TOKENS] = {"tokens", 0, "N", "As many steps as N tokens take, by the samples' mean length", GROUP_COMMON, VALUE_WHOLE, AT(tokens), .given = AT(tokens_given)},
    [OPTION_MINUTES]    = {"minutes", 0, "M", "Train for M minutes; the schedule follows the time", GROUP_COMMON, VALUE_REAL, AT(minutes), .given = AT(minutes_given)},
    [OPTION_TRAIN_BATCH] = {"batch", 0, "N", "Sequences of a step (default 32)", GROUP_COMMON, VALUE_COUNT, AT(batch)},
    [OPTION_ACCUMULATE] = {"accumulate", 0, "K", "Take them in K parts, whose gradients add up: less memory. Ranks share the parts (default 1; under a launcher of ranks 4)", GROUP_OPTIMIZER, VALUE_COUNT, AT(accumulate)},
    [OPTION_RATE]       = {"lr", 0, "X", "Learning rate at its peak (default 1e-4)", GROUP_COMMON, VALUE_REAL, AT(rate), .given = AT(rate_given)},
    [OPTION_SCHEDULE]   = {"schedule", 0, "S", "linear (default), poly, cosine or constant, after the warm-up", GROUP_OPTIMIZER, VALUE_TEXT, AT(schedule)},
    [OPTION_WARMUP]     = {"warmup", 0, "X", "Steps of the warm-up; below 1: this share of the run (default 0.01)", GROUP_OPTIMIZER, VALUE_REAL, AT(warmup), .given = AT(warmup_given)},
    [OPTION_OPTIMIZER]  = {"optimizer", 0, "O", "adamw (default) or lamb", GROUP_OPTIMIZER, VALUE_TEXT, AT(optimizer)},
    [OPTION_NO_BIAS_CORRECTION] = {"no-bias-correction", 0, 0, "AdamW as Google's BERT has it", GROUP_OPTIMIZER, VALUE_FLAG, AT(no_bias_correction)},
    [OPTION_BETAS]      = {"betas", 0, "B1,B2", "Decay of the two moments (default 0.9,0.999)", GROUP_OPTIMIZER, VALUE_TEXT, AT(betas)},
    [OPTION_EPS]        = {"eps", 0, "X", "Added to the root of the second moment (default: adamw 1e-8, without bias correction and lamb 1e-6)", GROUP_OPTIMIZER, VALUE_REAL, AT(eps), .given = AT(eps_given)},
    [OPTION_WEIGHT_DECAY] = {"weight-decay", 0, "X", "Of weights, not of biases and LayerNorm (default 0.01)", GROUP_OPTIMIZER, VALUE_REAL, AT(weight_decay), .given = AT(weight_decay_given)},
    [OPTION_CLIP]       = {"clip", 0, "X", "Largest global norm of the gradients (default 1; 0: none)", GROUP_OPTIMIZER, VALUE_REAL, AT(clip), .given = AT(clip_given)},
    [OPTION_DROPOUT]    = {"dropout", 0, "P", "Dropout of hidden states, and of attention unless that is given (default: the model's own)", GROUP_OPTIMIZER, VALUE_REAL, AT(dropout), .given = AT(dropout_given)},
    [OPTION_ATTENTION_DROPOUT] = {"attention-dropout", 0, "P", "Dropout of attention probabilities (default: the model's own)", GROUP_OPTIMIZER, VALUE_REAL, AT(attention_dropout), .given = AT(attention_dropout_given)},
    [OPTION_RECOMPUTE]  = {"recompute", 0, "R", "none (default), attention or layer: what the backward pass computes again to save memory; the bits stay", GROUP_RUN, VALUE_TEXT, AT(recompute)},
    [OPTION_SAVE_EVERY] = {"save-every", 0, "N", "Steps between states on the disk (default 1000; 0: at the end alone)", GROUP_RUN, VALUE_WHOLE, AT(save_every), .given = AT(save_every_given)},
    [OPTION_KEEP_STATES] = {"keep", 0, "N", "States that are kept (default 2)", GROUP_RUN, VALUE_COUNT, AT(keep_states)},
    [OPTION_EVAL_EVERY] = {"eval-every", 0, "N", "Steps between evaluations on the held-out part (default: none)", GROUP_RUN, VALUE_WHOLE, AT(eval_every)},
    [OPTION_GOES_ON]     = {"resume", 0, 0, "Go on with RUN from its newest state, by the same command; without RUN, begin", GROUP_COMMON, VALUE_FLAG, AT(goes_on)},
    [OPTION_NOT_BITWISE] = {"not-bitwise", 0, 0, "Resume where other instructions or another oneDNN computed the state", GROUP_RUN, VALUE_FLAG, AT(not_bitwise)},
    [OPTION_RANKS]      = {"ranks", 0, "N", "Processes that train together, as mpirun -n N, srun or torchrun starts them. 1 ignores the variables of a launcher", GROUP_RUN, VALUE_COUNT, AT(ranks)},
    [OPTION_RENDEZVOUS] = {"rendezvous", 0, "WHERE", "Where ranks on GPUs meet without MPI: a file that all of them see, or tcp://HOST:PORT of rank 0 (default: MASTER_ADDR and MASTER_PORT)", GROUP_RUN, VALUE_TEXT, AT(rendezvous)},
    [OPTION_ZERO]       = {"zero", 0, 0, "Ranks share the optimizer's moments (ZeRO-1): less memory on each, the same bits", GROUP_RUN, VALUE_FLAG, AT(zero)},
    [OPTION_NO_GRAPHS]  = {"no-graphs", 0, 0, "On a GPU: submit each kernel by itself instead of CUDA graphs; the bits are the same", GROUP_RUN, VALUE_FLAG, AT(no_graphs)},
    [OPTION_OVERFIT]    = {"overfit-one-batch", 0, 0, "Train on the first batch alone, to see the loss go to 0 (no dropout unless given)", GROUP_OPTIMIZER, VALUE_FLAG, AT(overfit)},
    [OPTION_SAVE_GRADIENTS] = {"save-gradients", 0, "FILE", "Write the last step's gradients and batch as safetensors", GROUP_RUN, VALUE_TEXT, AT(save_gradients)},
    [OPTION_OBJECTIVE]  = {"objective", 0, "O", "mlm+nsp or mlm (default: mlm+nsp where DATA has pairs and the model that head)", GROUP_TEXT, VALUE_TEXT, AT(objective)},
    [OPTION_MLM_PROBABILITY] = {"mlm-probability", 0, "P", "Share of the tokens that are masked (default 0.15)", GROUP_TEXT, VALUE_REAL, AT(mlm_probability), .given = AT(mlm_probability_given)},
    [OPTION_WHOLE_WORD] = {"whole-word", 0, 0, "Mask all pieces of a word or none, as Google's create_pretraining_data does with --do_whole_word_mask", GROUP_TEXT, VALUE_FLAG, AT(whole_word)},
    [OPTION_MORE_POSITIONS] = {"positions", 0, "N", "Extend the model to N positions", GROUP_TEXT, VALUE_COUNT, AT(positions)},
    [OPTION_DROP]       = {"drop", 0, "WHAT", "Take entries out of the mask: diagonal, or random:K of each layer and head, of those that texts of --max-length tokens have (default: of the longest training sample; eval --task: of the model's limit)", GROUP_MASK, VALUE_TEXT, AT(drop)},
    [OPTION_REPEATS]    = {"repeats", 0, "N", "With --drop random:K: N runs, RUN-1 to RUN-N (finetune: RUN/repeat-1 to RUN/repeat-N), each with other entries", GROUP_MASK, VALUE_COUNT, AT(repeats)},
    [OPTION_PLOT_X]     = {"x", 0, "X", "step (default), tokens or time", GROUP_OUTPUT, VALUE_TEXT, AT(x)},
    [OPTION_PLOT_Y]     = {"y", 0, "Y", "Field of the log (default loss)", GROUP_OUTPUT, VALUE_TEXT, AT(y)},
    [OPTION_COLUMNS]    = {"columns", 0, "N", "Width of the figure: 1 column of a paper (3.3 in) or 2 (6.9 in, default)", GROUP_OUTPUT, VALUE_COUNT, AT(columns)},
    [OPTION_SECONDS]    = {"seconds", 0, "S", "Time for each measurement (default 2)", GROUP_OUTPUT, VALUE_REAL, AT(seconds)},
    [OPTION_STEP_LENGTH] = {"length", 'n', "N", "Tokens of each sequence (default: the model's positions)", GROUP_COMMON, VALUE_COUNT, AT(length)},
    [OPTION_LEARN_MASK] = {"learn-mask", 0, "KIND", "Learn the mask: p, dam-u or dam-s", GROUP_LEARN, VALUE_TEXT, AT(learn_mask)},
    [OPTION_DAM_CODE]   = {"dam-code", 0, 0, "dam-s as SparseBERT's code has it: two logits for each of n distances, no border", GROUP_LEARN, VALUE_FLAG, AT(dam_code)},
    [OPTION_PER_LAYER]  = {"per-layer", 0, 0, "Each layer learns a mask of its own (default: all share one)", GROUP_LEARN, VALUE_FLAG, AT(per_layer)},
    [OPTION_SYMMETRIC]  = {"symmetric", 0, 0, "dam-u: alpha_ij = alpha_ji, as p always has it", GROUP_LEARN, VALUE_FLAG, AT(symmetric)},
    [OPTION_LAMBDA]     = {"lambda", 0, "X", "Penalty of an entry: X times the sum of M (or P) over heads, queries and keys is added to the loss (default: p 0, dam-u and dam-s 1e-8 times c, as the paper's least is 1e-4 at a c of 10000)", GROUP_LEARN, VALUE_REAL, AT(lambda), .given = AT(lambda_given)},
    [OPTION_TAU]        = {"tau", 0, "X[..Y]", "Temperature of samples; from X to Y over the run, by equal factors (default 1)", GROUP_LEARN, VALUE_TEXT, AT(tau)},
    [OPTION_SOFT_SAMPLE] = {"soft-sample", 0, 0, "Samples between 0 and 1; their bias is -c(1-M) (default: 0 or 1, straight-through)", GROUP_LEARN, VALUE_FLAG, AT(relaxed)},
    [OPTION_LEAK]       = {"leak", 0, 0, "An off key's bias is -c, and the task's gradient reaches it (default: -inf, and the penalty alone does)", GROUP_LEARN, VALUE_FLAG, AT(leaks)},
    [OPTION_MASK_SCALE] = {"mask-scale", 0, "C", "c: what a mask's change of 1 adds to a score (default 10; the paper's code has 10000)", GROUP_LEARN, VALUE_REAL, AT(mask_scale), .given = AT(mask_scale_given)},
    [OPTION_MASK_RATE]  = {"mask-lr", 0, "X", "Learning rate of alpha at its peak (default: 10 times --lr)", GROUP_LEARN, VALUE_REAL, AT(mask_rate), .given = AT(mask_rate_given)},
    [OPTION_MASK_RATE_RATIO] = {"mask-lr-ratio", 0, "R", "The same as R times --lr", GROUP_LEARN, VALUE_REAL, AT(mask_rate_ratio), .given = AT(mask_rate_ratio_given)},
    [OPTION_BI_LEVEL]   = {"bi-level", 0, 0, "Weights learn from the first half of each batch, alpha from the second", GROUP_LEARN, VALUE_FLAG, AT(bi_level)},
    [OPTION_SNAP]       = {"snap", 0, "SHARE", "Settle on the mask that keeps the most of P within SHARE of dense's predicted time (default: on what has alpha above 0)", GROUP_LEARN, VALUE_REAL, AT(settle_share), .given = AT(settle_share_given)},
    [OPTION_SETTLE]     = {"settle", 0, "STEPS", "For the last STEPS the mask is fixed and compiled, and the weights alone learn", GROUP_LEARN, VALUE_WHOLE, AT(settle), .given = AT(settle_given)},
    [OPTION_THRESHOLD]  = {"threshold", 0, "SHARE", "In place of --snap: settle on the largest P of each head, as many as SHARE of dense's predicted time allows", GROUP_LEARN, VALUE_REAL, AT(threshold), .given = AT(threshold_given)},
    [OPTION_ALPHA]      = {"alpha", 0, "RUN", "Begin with the alpha of this run, or of a .safetensors file (default: small random numbers); --settle may then be all steps", GROUP_LEARN, VALUE_TEXT, AT(alpha)},
    [OPTION_IMPORTANCE] = {"importance", 0, "I", "attention (default): each entry's mean attention, rows sum to 1; output: how far it moves the layer's output, E[A_ij |W_O (v_j - o_i)| / |x_i|]", GROUP_MASK, VALUE_TEXT, AT(importance)},
    [OPTION_FILM]       = {"film", 0, 0, "Draw the masks over the steps instead: a column for each state that the run has kept", GROUP_OUTPUT, VALUE_FLAG, AT(film)},
    [OPTION_SAVE_IMPORTANCE] = {"save", 0, "P.npy", "Write the importance, f32 [layers, heads, n, n], which maskc snap and maskc show --keep take", GROUP_OUTPUT, VALUE_TEXT, AT(save)},
    [OPTION_SHARES]     = {"snap", 0, "SHARE[,SHARE..]", "Masks that keep the most of the importance within that share of dense's predicted time, 0 to 1", GROUP_COMMON, VALUE_TEXT, AT(snap)},
    [OPTION_PICTURE]    = {"plot", 0, "FIGURE", "Draw the importance and the masks of one head, .pdf, .svg or .png", GROUP_OUTPUT, VALUE_TEXT, AT(picture)},
    [OPTION_PRICED_BATCH] = {"batch", 0, "B", "Texts of the batch that times are of (default 1)", GROUP_MASK, VALUE_COUNT, AT(batch)},
    [OPTION_ONE_LAYER]  = {"layer", 0, "L", "The layer to draw, from 0 (default 0)", GROUP_OUTPUT, VALUE_TEXT, AT(layer)},
    [OPTION_ONE_HEAD]   = {"head", 0, "H", "The head to draw, from 0 (default 0)", GROUP_OUTPUT, VALUE_TEXT, AT(head)},
    [OPTION_MEASURE]    = {"measure", 0, 0, "Run one step and measure", GROUP_OUTPUT, VALUE_FLAG, AT(measure)},
    [OPTION_TASK]       = {"task", 0, "TASK", "What the files are of: cola sst-2 mrpc qqp sts-b mnli qnli rte wnli, squad1 squad2, swag, text, pair, tokens, ..; see maskbert score --help", GROUP_COMMON, VALUE_TEXT, AT(task)},
    [OPTION_TASK_DATA]  = {"data", 0, "FOLDER", "The task's files: train, dev and test as the task has them", GROUP_COMMON, VALUE_TEXT, AT(data)},
    [OPTION_EPOCHS]     = {"epochs", 0, "N", "Times that each example is seen (default 3)", GROUP_COMMON, VALUE_REAL, AT(epochs), .given = AT(epochs_given)},
    [OPTION_SEEDS]      = {"seeds", 0, "N", "N runs, RUN/seed-S on: mean, deviation and each in RUN/summary.json", GROUP_OPTIMIZER, VALUE_COUNT, AT(seeds)},
    [OPTION_GRID]       = {"grid", 0, "GRID", "Try each: \"lr=1e-4,3e-4 batch=16,32\"; what is best on dev is taken", GROUP_OPTIMIZER, VALUE_TEXT, AT(grid)},
    [OPTION_LAYER_DECAY] = {"layer-decay", 0, "X", "A layer learns at X times the rate of the one above it (default: all at the same)", GROUP_OPTIMIZER, VALUE_REAL, AT(layer_decay), .given = AT(layer_decay_given)},
    [OPTION_STRIDE]     = {"stride", 0, "N", "Tokens that two windows of a long text share (questions; default: as the model was fine-tuned with, else 128; their --max-length likewise, else 384 or the folder's limit if less)", GROUP_TEXT, VALUE_COUNT, AT(stride)},
    [OPTION_REGRESSION] = {"regression", 0, 0, "Labels of text and pair are numbers (default: where all are and one has a decimal point)", GROUP_TEXT, VALUE_FLAG, AT(regression)},
    [OPTION_NULL_THRESHOLD] = {"null-threshold", 0, "X", "No answer where its score is more than X above the best answer's (squad2: default 0; answer: give one always unless told)", GROUP_TEXT, VALUE_REAL, AT(null_threshold), .given = AT(null_threshold_given)},
    [OPTION_CSV]        = {"csv", 0, 0, "The runs as CSV on stdout", GROUP_OUTPUT, VALUE_FLAG, AT(csv)},
    [OPTION_PREDICTIONS] = {"predictions", 0, "FILE", "Write what the model predicts: JSONL, for SQuAD {id: text}, or NAME.tsv as GLUE takes it", GROUP_OUTPUT, VALUE_TEXT, AT(predictions)},
    [OPTION_NBEST]      = {"nbest", 0, "FILE", "Of questions: write the five best answers of each, {id: [{text, score, probability}, ..]}", GROUP_OUTPUT, VALUE_TEXT, AT(nbest)},
    [OPTION_SPLIT_NAME] = {"split", 0, "PART", "dev (default), test or train", GROUP_TEXT, VALUE_TEXT, AT(part)},
    [OPTION_TUNE_RATE]  = {"lr", 0, "X", "Learning rate at its peak (default 5e-5)", GROUP_COMMON, VALUE_REAL, AT(rate), .given = AT(rate_given)},
    [OPTION_TUNE_WARMUP] = {"warmup", 0, "X", "Steps of the warm-up; below 1: this share of the run (default 0.1)", GROUP_OPTIMIZER, VALUE_REAL, AT(warmup), .given = AT(warmup_given)},
};
/* clang-format on */
