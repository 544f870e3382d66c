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
    [OPTION_SEED]       = {"seed", 0, "S", "Seed of the random numbers (default 0)", 0, VALUE_WHOLE, AT(seed)},
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
    [OPTION_SECONDS]    = {"seconds", 0, "S", "Time for each measurement (default 2)", 0, VALUE_REAL, AT(seconds)},
    [OPTION_STEP_BATCH] = {"batch", 0, "B", "Sequences of a step", 0, VALUE_COUNT, AT(batch)},
    [OPTION_STEP_LENGTH] = {"length", 'n', "N", "Tokens of each sequence", 0, VALUE_COUNT, AT(length)},
    [OPTION_ACCUMULATE] = {"accumulate", 0, "K", "Take the batch in K parts (default 1)", 0, VALUE_COUNT, AT(accumulate)},
    [OPTION_RECOMPUTE]  = {"recompute", 0, "R", "none (default), attention or layer: what the backward pass computes again, to save memory", 0, VALUE_TEXT, AT(recompute)},
    [OPTION_MEASURE]    = {"measure", 0, 0, "Run one step and measure", 0, VALUE_FLAG, AT(measure)},
};
/* clang-format on */
