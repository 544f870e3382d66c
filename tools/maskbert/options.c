/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each option; see tools/common/program.h. */
#include "tools/maskbert/options.h"

static int read_port(const char *text, struct options *ret, struct error *e)
{
    uint64_t port;
    if (!whole_number(text, UINT16_MAX, &port))
        return error_set(e, ERROR_INPUT, "--port: '%s' is not a port, 0 to 65535", text);
    ret->port = (uint16_t)port;
    return 0;
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
const struct option_row option_rows[OPTION_COUNT] = {
    [OPTION_OUTPUT]     = {"output", 'o', "PATH", "Where to write the result", 0, VALUE_TEXT, AT(output)},
    [OPTION_DTYPE]      = {"dtype", 0, "T", "f32, bf16 or f16 (default: as the model has it)", 0, VALUE_TEXT, AT(dtype)},
    [OPTION_MASK]       = {"mask", 0, "MASK", "A file, a gallery name or an expression, as maskc takes it", 0, VALUE_TEXT, AT(mask)},
    [OPTION_TRANSFORM]  = {"transform", 0, "T", "softmax (default) or sparsegen=LAMBDA, stored with the mask", 0, VALUE_TEXT, AT(transform)},
    [OPTION_POSITIONS]  = {"positions", 0, "N", "Longest text in tokens", 0, VALUE_COUNT, AT(positions)},
    [OPTION_SIZE]       = {"size", 0, "SIZE", "tiny, mini, small, medium, base, large or LxHxA: layers, hidden size, heads", 0, VALUE_TEXT, AT(size)},
    [OPTION_TOKENS]     = {"size", 0, "V", "Tokens of the vocabulary", 0, VALUE_TEXT, AT(size)},
    [OPTION_CASED]      = {"cased", 0, 0, "Keep case and accents (default: not)", 0, VALUE_FLAG, AT(cased)},
    [OPTION_MIN_FREQUENCY] = {"min-frequency", 0, "N", "Pairs of pieces less frequent than N are not joined (default 2)", 0, VALUE_COUNT, AT(min_frequency)},
    [OPTION_VOCABULARY] = {"vocab", 0, "FILE", "A vocab.txt", 0, VALUE_TEXT, AT(vocabulary)},
    [OPTION_DEVIATION]  = {"std", 0, "S", "Standard deviation of the weights (default 0.02)", 0, VALUE_REAL, AT(deviation)},
    [OPTION_SEED]       = {"seed", 0, "S", "Seed of the random numbers (default 0)", 0, VALUE_WHOLE, AT(seed), .given = AT(seed_given)},
    [OPTION_OFFSETS]    = {"offsets", 0, 0, "Print the bytes of each token: ID:BEGIN-END", 0, VALUE_FLAG, AT(offsets)},
    [OPTION_MAX_LENGTH] = {"max-length", 0, "N", "Cut texts to N tokens, [CLS] and [SEP] included (default: what the model takes; tokenize: no cut; answer: 384)", 0, VALUE_COUNT, AT(max_length)},
    [OPTION_COMPAT]     = {"tokenizer-compat", 0, "hf|google", "Tokenize as HuggingFace's fast tokenizer (default) or as Google's", 0, VALUE_TEXT, AT(compat)},
    [OPTION_THREADS]    = {"threads", 0, "N", "Threads (default: all)", 0, VALUE_COUNT, AT(threads)},
    [OPTION_JSON]       = {"json", 0, 0, "JSON on stdout and nothing else", 0, VALUE_FLAG, AT(json)},
    [OPTION_INPUT]      = {"input", 0, "FILE", "Lines of text (default: stdin)", 0, VALUE_TEXT, AT(input)},
    [OPTION_POOLING]    = {"pooling", 0, "P", "mean (default), cls, pooler or none", 0, VALUE_TEXT, AT(pooling)},
    [OPTION_NORMALIZE]  = {"normalize", 0, 0, "Scale vectors to length 1", 0, VALUE_FLAG, AT(normalize)},
    [OPTION_RUN_DTYPE]  = {"dtype", 0, "T", "f32 (default) or bf16", 0, VALUE_TEXT, AT(dtype)},
    [OPTION_RUN_TRANSFORM] = {"transform", 0, "T", "softmax or sparsegen=LAMBDA (default: the model's own, else softmax)", 0, VALUE_TEXT, AT(transform)},
    [OPTION_DEVICE]     = {"device", 0, "D", "cpu (default), cuda, cuda:N or emulated", 0, VALUE_TEXT, AT(device)},
    [OPTION_BATCH_TOKENS] = {"batch-tokens", 0, "N", "Tokens of a batch (default 4096)", 0, VALUE_COUNT, AT(batch_tokens)},
    [OPTION_TOP]        = {"top", 0, "K", "Words to print for each [MASK] (default 5)", 0, VALUE_COUNT, AT(top)},
    [OPTION_LAYER]      = {"layer", 0, "L", "One layer, from 0 (default: all)", 0, VALUE_TEXT, AT(layer)},
    [OPTION_HEAD]       = {"head", 0, "H", "One head, from 0 (default: all)", 0, VALUE_TEXT, AT(head)},
    [OPTION_KEEP]       = {"keep", 0, "P[,P..]", "Percent of the entries to keep", 0, VALUE_TEXT, AT(keep)},
    [OPTION_DROP_DIAGONAL] = {"drop-diagonal", 0, 0, "Write masks without the diagonal, too", 0, VALUE_FLAG, AT(drop_diagonal)},
    [OPTION_RANDOM]     = {"random", 0, 0, "Write random masks of the same size, too, to compare with", 0, VALUE_FLAG, AT(random)},
    [OPTION_BATCH]      = {"batch", 0, "B", "Texts of the batch (default 32)", 0, VALUE_COUNT, AT(batch)},
    [OPTION_LENGTH]     = {"length", 'n', "N", "Tokens of the longest text (bench: 128; prune: the positions)", 0, VALUE_COUNT, AT(length)},
    [OPTION_LENGTHS]    = {"lengths", 0, "same|mixed", "All texts of N tokens (default), or of N/8 to N", 0, VALUE_TEXT, AT(lengths)},
    [OPTION_WORDS]      = {"vocab", 0, "FILE|DIR", "A vocab.txt, or a model's folder", 0, VALUE_TEXT, AT(vocabulary)},
    [OPTION_PREP_LENGTH] = {"length", 'n', "N", "Tokens of the longest sample, [CLS] and [SEP] included", 0, VALUE_COUNT, AT(length)},
    [OPTION_PAIRING]    = {"pairing", 0, "nsp|full", "nsp (default): pairs for next-sentence prediction; full: whole sentences", 0, VALUE_TEXT, AT(pairing)},
    [OPTION_SHORT]      = {"short", 0, "P", "Share of the documents with a shorter target length (default: nsp 0.1, full 0)", 0, VALUE_REAL, AT(short_share), .given = AT(short_given)},
    [OPTION_DUPE]       = {"dupe", 0, "K", "Pairs are drawn K times from each training document (default: nsp 10; full has no such draws)", 0, VALUE_COUNT, AT(dupe)},
    [OPTION_HELD_OUT]   = {"held-out", 0, "P", "Share of the documents that are kept for evaluation (default 0.01)", 0, VALUE_REAL, AT(held_out), .given = AT(held_out_given)},
    [OPTION_JOBS]       = {"jobs", 'j', "N", "Threads that tokenise (default: all); the result is the same", 0, VALUE_COUNT, AT(threads)},
    [OPTION_SPLIT]      = {"split", 0, 0, "A line is a paragraph: cut it into sentences (rules for English)", 0, VALUE_FLAG, AT(split)},
    [OPTION_STATS]      = {"stats", 0, 0, "Print lengths as a histogram, and the unigram entropy of the training tokens in nats", 0, VALUE_FLAG, AT(stats)},
    [OPTION_HOST]       = {"host", 0, "ADDRESS", "Address to listen on (default 127.0.0.1: this machine alone)", 0, VALUE_TEXT, AT(host)},
    [OPTION_PORT]       = {"port", 0, "P", "Port to listen on; 0: any free one (default 8080)", 0, VALUE_OWN, .read = read_port, .given = AT(port_given)},
    [OPTION_DATA]       = {"data", 0, "DATA", "The folder that maskbert prep wrote", 0, VALUE_TEXT, AT(data)},
    [OPTION_RUN]        = {"output", 'o', "RUN", "The folder of the run, a new one", 0, VALUE_TEXT, AT(output)},
    [OPTION_STEPS]      = {"steps", 0, "N", "Steps of the optimiser", 0, VALUE_WHOLE, AT(steps), .given = AT(steps_given)},
    [OPTION_RUN_TOKENS] = {"tokens", 0, "N", "As many steps as N tokens take, by the samples' mean length", 0, VALUE_WHOLE, AT(tokens), .given = AT(tokens_given)},
    [OPTION_MINUTES]    = {"minutes", 0, "M", "Train for M minutes; the schedule follows the time", 0, VALUE_REAL, AT(minutes), .given = AT(minutes_given)},
    [OPTION_TRAIN_BATCH] = {"batch", 0, "N", "Sequences of a step (default 32)", 0, VALUE_COUNT, AT(batch)},
    [OPTION_ACCUMULATE] = {"accumulate", 0, "K", "Take them in K parts, whose gradients add up: less memory (default 1)", 0, VALUE_COUNT, AT(accumulate)},
    [OPTION_RATE]       = {"lr", 0, "X", "Learning rate at its peak (default 1e-4)", 0, VALUE_REAL, AT(rate), .given = AT(rate_given)},
    [OPTION_SCHEDULE]   = {"schedule", 0, "S", "linear (default), poly, cosine or constant, after the warm-up", 0, VALUE_TEXT, AT(schedule)},
    [OPTION_WARMUP]     = {"warmup", 0, "X", "Steps of the warm-up; below 1: this share of the run (default 0.01)", 0, VALUE_REAL, AT(warmup), .given = AT(warmup_given)},
    [OPTION_OPTIMIZER]  = {"optimizer", 0, "O", "adamw (default) or lamb", 0, VALUE_TEXT, AT(optimizer)},
    [OPTION_NO_BIAS_CORRECTION] = {"no-bias-correction", 0, 0, "AdamW as Google's BERT has it", 0, VALUE_FLAG, AT(no_bias_correction)},
    [OPTION_BETAS]      = {"betas", 0, "B1,B2", "Decay of the two moments (default 0.9,0.999)", 0, VALUE_TEXT, AT(betas)},
    [OPTION_EPS]        = {"eps", 0, "X", "Added to the root of the second moment (default: adamw 1e-8, without bias correction and lamb 1e-6)", 0, VALUE_REAL, AT(eps), .given = AT(eps_given)},
    [OPTION_WEIGHT_DECAY] = {"weight-decay", 0, "X", "Of weights, not of biases and LayerNorm (default 0.01)", 0, VALUE_REAL, AT(weight_decay), .given = AT(weight_decay_given)},
    [OPTION_CLIP]       = {"clip", 0, "X", "Largest global norm of the gradients (default 1; 0: none)", 0, VALUE_REAL, AT(clip), .given = AT(clip_given)},
    [OPTION_DROPOUT]    = {"dropout", 0, "P", "Dropout of hidden states, and of attention unless that is given (default: the model's own)", 0, VALUE_REAL, AT(dropout), .given = AT(dropout_given)},
    [OPTION_ATTENTION_DROPOUT] = {"attention-dropout", 0, "P", "Dropout of attention probabilities (default: the model's own)", 0, VALUE_REAL, AT(attention_dropout), .given = AT(attention_dropout_given)},
    [OPTION_RECOMPUTE]  = {"recompute", 0, "R", "none (default), attention or layer: what the backward pass computes again to save memory; the bits stay", 0, VALUE_TEXT, AT(recompute)},
    [OPTION_SAVE_EVERY] = {"save-every", 0, "N", "Steps between states on the disk (default 1000; 0: at the end alone)", 0, VALUE_WHOLE, AT(save_every), .given = AT(save_every_given)},
    [OPTION_KEEP_STATES] = {"keep", 0, "N", "States that are kept (default 2)", 0, VALUE_COUNT, AT(keep_states)},
    [OPTION_EVAL_EVERY] = {"eval-every", 0, "N", "Steps between evaluations on the held-out part (default: none)", 0, VALUE_WHOLE, AT(eval_every)},
    [OPTION_GOES_ON]     = {"resume", 0, 0, "Go on with RUN from its newest state, by the same command; without RUN, begin", 0, VALUE_FLAG, AT(goes_on)},
    [OPTION_NOT_BITWISE] = {"not-bitwise", 0, 0, "Resume where other instructions or another oneDNN computed the state", 0, VALUE_FLAG, AT(not_bitwise)},
    [OPTION_OVERFIT]    = {"overfit-one-batch", 0, 0, "Train on the first batch alone, to see the loss go to 0 (no dropout unless given)", 0, VALUE_FLAG, AT(overfit)},
    [OPTION_SAVE_GRADIENTS] = {"save-gradients", 0, "FILE", "Write the last step's gradients and batch as safetensors", 0, VALUE_TEXT, AT(save_gradients)},
    [OPTION_OBJECTIVE]  = {"objective", 0, "O", "mlm+nsp or mlm (default: mlm+nsp where DATA has pairs)", 0, VALUE_TEXT, AT(objective)},
    [OPTION_MLM_PROBABILITY] = {"mlm-probability", 0, "P", "Share of the tokens that are masked (default 0.15)", 0, VALUE_REAL, AT(mlm_probability), .given = AT(mlm_probability_given)},
    [OPTION_MORE_POSITIONS] = {"positions", 0, "N", "Extend the model to N positions", 0, VALUE_COUNT, AT(positions)},
    [OPTION_DROP]       = {"drop", 0, "WHAT", "Take entries out of the mask: diagonal, or random:K of each layer and head", 0, VALUE_TEXT, AT(drop)},
    [OPTION_REPEATS]    = {"repeats", 0, "N", "With --drop random:K: N runs, RUN-1 to RUN-N, each with other entries", 0, VALUE_COUNT, AT(repeats)},
    [OPTION_PLOT_X]     = {"x", 0, "X", "step (default), tokens or time", 0, VALUE_TEXT, AT(x)},
    [OPTION_PLOT_Y]     = {"y", 0, "Y", "Field of the log (default loss)", 0, VALUE_TEXT, AT(y)},
    [OPTION_SECONDS]    = {"seconds", 0, "S", "Time for each measurement (default 2)", 0, VALUE_REAL, AT(seconds)},
    [OPTION_STEP_LENGTH] = {"length", 'n', "N", "Tokens of each sequence (default: the model's positions)", 0, VALUE_COUNT, AT(length)},
    [OPTION_MEASURE]    = {"measure", 0, 0, "Run one step and measure", 0, VALUE_FLAG, AT(measure)},
};
/* clang-format on */
