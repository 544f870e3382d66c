/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert: the table of its commands, and which of them a command line means. */
#include "runtime/maskc.h"
#include "tools/maskbert/command.h"

#define O(id) OPTION_BIT(OPTION_##id)
#define RUN_OPTIONS                                                                       \
    (O(MASK) | O(RUN_TRANSFORM) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(MAX_LENGTH) | \
     O(BATCH_TOKENS) | O(COMPAT))

/* A command stands here once it works. */
/* clang-format off */
static const struct command commands[] = {
    {"info", "DIR", "what a model's folder holds",
     "Everything is read and checked: sizes, names, NaN and infinity.", O(JSON), 1, 1, command_info},
    {"convert", "DIR", "a model into a new folder that transformers loads",
     "Reads any of the names and types that BERT's weights come in. Heads that the architecture names and the files "
     "lack are newly initialised and listed. --positions cuts the table of positions or repeats it.",
     O(OUTPUT) | O(DTYPE) | O(MASK) | O(TRANSFORM) | O(POSITIONS) | O(SEED), 1, 1, command_convert},
    {"init", "", "a new model with random weights",
     "With the heads of pre-training. Without --vocab it has 30522 tokens and no tokenizer.",
     O(SIZE) | O(VOCABULARY) | O(POSITIONS) | O(DTYPE) | O(DEVIATION) | O(SEED) | O(OUTPUT), 0, 0, command_init},
    {"vocab", "", "a WordPiece vocabulary from the text on stdin",
     "Pieces that stand together most often are joined until there are V tokens. The 1000 most frequent characters "
     "are kept.", O(TOKENS) | O(CASED) | O(MIN_FREQUENCY) | O(OUTPUT), 0, 0, command_vocab},
    {"tokenize", "DIR", "text to token numbers, a line each",
     "Reads lines from stdin. A tab makes a pair; only a newline ends a line; [CLS] and [SEP] are added. "
     "With --json: {\"ids\":[..],\"tokens\":[..],\"types\":[..],\"offsets\":[[BEGIN,END],..]} a line. Offsets are "
     "bytes, counted from the beginning of the part (what follows a tab is the second).",
     O(OFFSETS) | O(MAX_LENGTH) | O(COMPAT) | O(THREADS) | O(JSON), 1, 1, command_tokenize},
    {"embed", "DIR", "a vector for each line of text",
     "Writes [lines, hidden size] as f32 to a .npy, or a JSON array a line to a .jsonl; --pooling none writes the last "
     "hidden states, [lines, longest, hidden size], zero after each line's end. A tab makes a pair. A "
     "sentence-transformers folder brings its own pooling and normalisation. Lines that are too long are cut.",
     O(INPUT) | O(OUTPUT) | O(POOLING) | O(NORMALIZE) | RUN_OPTIONS, 1, 1, command_embed},
    {"fill-mask", "DIR", "the likeliest words for each [MASK]", "Reads lines from stdin.",
     O(TOP) | O(JSON) | RUN_OPTIONS, 1, 1, command_fill_mask},
    {"classify", "DIR", "labels of each line of text, or of its tokens",
     "Reads lines from stdin. A tab makes a pair; for multiple choice, tabs part the question and its choices. What is "
     "printed is the architecture's: labels with probabilities (one or many), a number, labels of tokens, a choice.",
     O(JSON) | RUN_OPTIONS, 1, 1, command_classify},
    {"answer", "DIR", "where in a text the answer to a question stands",
     "Reads lines from stdin: a question, a tab, the text. Texts beyond --max-length (default 384) tokens are read in "
     "windows that overlap. Prints the best answer, or with --json the five best with their bytes in the text.",
     O(JSON) | RUN_OPTIONS, 1, 1, command_answer},
    {"attention", "DIR", "where each head of each layer looks, drawn",
     "Reads one line from stdin. Draws the attention maps with the names of the tokens, and prints how many keys a "
     "query looks at: with sparsegen, those that are not exactly zero.",
     O(OUTPUT) | O(LAYER) | O(HEAD) | O(JSON) | RUN_OPTIONS, 1, 1, command_attention},
    {"prune", "DIR", "masks of the pairs that get most attention on a text",
     "Adds up attention over all lines, per layer and head, and writes DIR/keep-P.npy for each P: the P percent of the "
     "entries with most of it. Prints the share of all attention that falls on each mask.",
     O(INPUT) | O(KEEP) | O(DROP_DIAGONAL) | O(RANDOM) | O(SEED) | O(OUTPUT) | O(LENGTH) | O(JSON) | O(MASK) |
     O(RUN_TRANSFORM) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(BATCH_TOKENS) | O(COMPAT), 1, 1, command_prune},
    {"bench", "DIR", "how fast the model is with its mask, and dense beside it",
     "Runs both by turns on random tokens: texts a second, milliseconds, the share of each phase and of attention, and "
     "the ceiling of any mask: what would be left if attention cost nothing.",
     O(MASK) | O(RUN_TRANSFORM) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(BATCH) | O(LENGTH) | O(LENGTHS) |
     O(SECONDS) | O(JSON), 1, 1, command_bench},
#if MASKBERT_SERVE
    {"serve", "DIR", "a model behind HTTP",
     "POST /embed {\"inputs\": TEXT or [TEXT, ..]} gives [[..], ..]; /fill-mask and /classify give what the commands' "
     "--json does, in a list. GET /health, /metrics (Prometheus). Requests that wait are run together. Ends with "
     "SIGINT or SIGTERM, when all that wait are answered.",
     O(HOST) | O(PORT) | O(POOLING) | O(NORMALIZE) | O(TOP) | RUN_OPTIONS, 1, 1, command_serve},
#endif
    {0},
};
/* clang-format on */

static const struct program maskbert = {
    .name = "maskbert",
    .version = MASKC_VERSION,
    .purpose =
        "BERT models, as HuggingFace lays them out on disk, through compiled attention masks.",
    .closing = "maskbert COMMAND --help lists the options of a command; maskbert --version the "
               "version.\n"
               "Exit codes: 0 done, 2 bad input, 3 this machine cannot.",
    .commands = commands,
    .rows = option_rows,
    .n_rows = OPTION_COUNT,
    .arguments_at = offsetof(struct options, argument),
    .n_arguments_at = offsetof(struct options, n_arguments),
};

int command_fail(const struct error *e)
{
    return program_fail(&maskbert, e);
}

int main(int argc, char **argv)
{
    struct options o = {0};
    int code;
    const struct command *c = program_begin(&maskbert, argc, argv, &o, &code);
    return c ? program_end(&maskbert, c->run(&o)) : code;
}
