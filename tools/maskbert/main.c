/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert: the table of its commands. */
#include "runtime/device/machine.h"
#include "runtime/maskc.h"
#include "tools/maskbert/command.h"

#define O(id) OPTION_BIT(OPTION_##id)
#define RUN_OPTIONS                                                                       \
    (O(MASK) | O(RUN_TRANSFORM) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(MAX_LENGTH) | \
     O(BATCH_TOKENS) | O(COMPAT))

#define TRAINING_OPTIONS                                                                   \
    (O(TRAIN_BATCH) | O(ACCUMULATE) | O(RATE) | O(SCHEDULE) | O(WARMUP) | O(OPTIMIZER) |   \
     O(NO_BIAS_CORRECTION) | O(BETAS) | O(EPS) | O(WEIGHT_DECAY) | O(CLIP) | O(DROPOUT) |  \
     O(ATTENTION_DROPOUT) | O(RUN_DTYPE) | O(RECOMPUTE) | O(SAVE_EVERY) | O(KEEP_STATES) | \
     O(EVAL_EVERY) | O(GOES_ON) | O(NOT_BITWISE) | O(RANKS) | O(RENDEZVOUS) | O(ZERO) |    \
     O(NO_GRAPHS) | O(SEED) | O(THREADS) | O(DEVICE) | O(OVERFIT) | O(SAVE_GRADIENTS) |    \
     O(JSON))

#define LEARNING_OPTIONS                                                              \
    (O(LEARN_MASK) | O(DAM_CODE) | O(PER_LAYER) | O(SYMMETRIC) | O(LAMBDA) | O(TAU) | \
     O(SOFT_SAMPLE) | O(LEAK) | O(MASK_SCALE) | O(MASK_RATE) | O(MASK_RATE_RATIO) |   \
     O(BI_LEVEL) | O(SNAP) | O(SETTLE) | O(THRESHOLD) | O(ALPHA))

/* clang-format off */
static const struct command commands[] = {
    {"info", "DIR", "what a model's folder holds",
     "Reads everything and checks it: names, shapes, no NaN, no infinity.", O(JSON), 1, 1, command_info},
    {"convert", "DIR", "a model into a new folder that transformers loads",
     "Reads weights under any of BERT's usual names, in any floating type. Heads that the architecture names but the "
     "files lack are initialised and listed. --positions cuts the position table, or repeats it.",
     O(OUTPUT) | O(DTYPE) | O(MASK) | O(TRANSFORM) | O(POSITIONS) | O(SEED), 1, 1, command_convert},
    {"init", "", "a new model with random weights",
     "It has the heads of pre-training. Without --vocab it has 30522 tokens and no tokenizer.",
     O(SIZE) | O(VOCABULARY) | O(POSITIONS) | O(DTYPE) | O(DEVIATION) | O(START) | O(SEED) | O(OUTPUT), 0, 0, command_init},
    {"vocab", "", "a WordPiece vocabulary from the text on stdin",
     "Joins the pair of pieces that is most frequent, again and again, until there are V tokens. Keeps the 1000 most "
     "frequent characters.", O(TOKENS) | O(CASED) | O(MIN_FREQUENCY) | O(OUTPUT), 0, 0, command_vocab},
    {"prep", "TEXT..", "text to samples for pre-training",
     "TEXT is plain text with a sentence on each line and a blank line between documents, or NAME.jsonl with {\"text\": "
     "\"..\"} on each line, a document whose lines are sentences. Either may be NAME.gz or NAME.zst. Text is UTF-8: stderr "
     "says how many other bytes were replaced, and a file that is mostly not text is refused. Writes a folder of "
     "token ids and of samples, the documents that are held out apart. Samples are pairs by the rules of Google's "
     "create_pretraining_data.py: in half of them the second part is of another document. With --pairing full they are "
     "whole sentences up to N tokens, no further than a document's end. Masks are drawn in training, anew in each epoch. "
     "The vocabulary is taken as cased where it has the token A.",
     O(WORDS) | O(PREP_LENGTH) | O(OUTPUT) | O(PAIRING) | O(SHORT) | O(DUPE) | O(HELD_OUT) | O(JOBS) | O(SEED) | O(SPLIT) |
     O(STATS) | O(COMPAT) | O(JSON), 1, MAX_ARGUMENTS, command_prep},
    {"pretrain", "DIR", "a model trained on masked words and next sentences",
     "DIR is any BERT or DistilBERT; heads that it lacks are initialised. RUN is a new model's folder that transformers loads at any "
     "time, with run.json (the options), log.jsonl (a line each step) and state/ (what --resume reads). One of --steps, "
     "--tokens, --minutes says how long. The same command gives the same bits for any number of threads, also where it "
     "was killed and goes on with --resume. SIGTERM, SIGINT and SIGHUP (unless ignored, as under nohup) save and exit with 4; a loss that is not finite ends the "
     "run with 1. stderr has a line of progress (each step on a terminal; else after 1, 2, 4, 8, 16 seconds and every 10 from then on), "
     "one for each evaluation (--eval-every), and a summary. mpirun -n N maskbert pretrain .. trains on N ranks, which share each batch: 1, 2 and 4 have the same bits. --learn-mask learns the mask with the model (SparseBERT, Shi et al. 2021), P = sigmoid(alpha): p adds "
     "(c/2) tanh(alpha/2) to the scores; dam-u draws each entry anew in every step, dam-s each distance |i - j|, by "
     "Gumbel-sigmoid, shared by the batch and the layers. RUN then has alpha.safetensors (maskc --dam reads it) and the mask "
     "of what has alpha above 0, which all other commands use. The gradient of a key that is off is that of the penalty alone. "
     "--device cuda trains on a GPU, which has been proven on --device emulated (the same kernels on this CPU, slowly) and not run on a GPU yet.",
     TRAINING_OPTIONS | LEARNING_OPTIONS | O(DATA) | O(RUN) | O(STEPS) | O(RUN_TOKENS) | O(MINUTES) | O(OBJECTIVE) | O(MLM_PROBABILITY) | O(WHOLE_WORD) |
     O(MORE_POSITIONS) | O(MASK) | O(RUN_TRANSFORM) | O(DROP) | O(REPEATS), 1, 1, command_pretrain},
    {"finetune", "DIR", "a model trained on a task, from the task's own files",
     "DIR is any encoder that maskbert reads. FOLDER has train and dev files (and test) as the task has them, in the forms of `maskbert score`; GLUE's names of folders and files are "
     "found. sst-1 trains on all phrases of the trees and is judged on sentences; mrqa on the first span of the first answer. The model gets the task's head, freshly initialised and listed on stderr unless DIR has it with the same labels, in any order and case. At the end of each epoch (and every "
     "--eval-every steps) the dev file is predicted and scored; RUN holds the model that was best there by the first metric (SQuAD: F1), a "
     "folder that transformers loads, with run.json, log.jsonl and state/ as of pretrain. --seeds N trains N times, with seeds from --seed on, "
     "into RUN/seed-S; --grid trains each combination with the first seed into RUN/grid/.., and the seeds with the best. --drop random:K --repeats N: "
     "RUN/repeat-1 to RUN/repeat-N. RUN/summary.json has mean, deviation and each of every metric. --resume goes on where a run was interrupted, also by SIGTERM, SIGINT or SIGHUP, which save and exit with 4; runs "
     "that are done end at once. The same bits for any number of threads.",
     (TRAINING_OPTIONS & ~(O(RATE) | O(WARMUP))) | O(TUNE_RATE) | O(TUNE_WARMUP) | O(TASK) | O(TASK_DATA) | O(RUN) | O(EPOCHS) | O(STEPS) | O(MINUTES) | O(SEEDS) |
     O(GRID) | O(LAYER_DECAY) | O(MAX_LENGTH) | O(STRIDE) | O(REGRESSION) | O(NULL_THRESHOLD) | O(CSV) | O(MORE_POSITIONS) | O(MASK) | O(RUN_TRANSFORM) |
     O(DROP) | O(REPEATS), 1, 1, command_finetune},
    {"eval", "DIR", "the loss on the held-out part of a DATA folder, or a task's metrics",
     "With --task a model with a head for it predicts the dev file of FOLDER (--split test, train: those), and the task's metrics are printed, MNLI's of "
     "both dev files; the predictions are those of `maskbert classify` and `answer`. --predictions writes them: JSONL {\"id\", \"prediction\", "
     "\"probabilities\" in the order of id2label}, for SQuAD and MRQA {id: text}; where the name ends in .tsv, the rows of a GLUE submission. Those of MNLI's mismatched file are in a second file: MNLI-mm.tsv for --predictions MNLI-m.tsv, dev-mm.jsonl for dev.jsonl. Labels are numbers where the model answers with one number. squad2 also prints which --null-threshold would be best for each metric on that file. Without --task: masks are drawn once and for all: two models see the same. Accuracy is the share of masked tokens that are found, "
     "perplexity is exp of their mean loss, the MLM loss. --drop random:K draws by --seed, as in training: the same entries, for the same DATA or --max-length. "
     "Next sentences (NSP) are judged where DATA has pairs and the model a head for them, unless the run had --objective mlm. "
     "JSON: loss is the sum of mlm and nsp; nsp is null where it is not judged.",
     O(DATA) | O(MLM_PROBABILITY) | O(WHOLE_WORD) | O(MASK) | O(RUN_TRANSFORM) | O(DROP) | O(SEED) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(JSON) | O(TASK) |
     O(MAX_LENGTH) | O(STRIDE) | O(REGRESSION) | O(NULL_THRESHOLD) | O(PREDICTIONS) | O(NBEST) | O(SPLIT_NAME), 1, 1, command_eval},
    {"score", "TASK PREDICTIONS GOLD", "a task's metrics, from files of any program",
     "TASK: cola sst-2 mrpc qqp sts-b mnli qnli rte wnli (GOLD is GLUE's TSV: its train or dev file; QQP's broken rows and MNLI's rows "
     "without a label are skipped and counted), squad1 squad2 (SQuAD's JSON), mrqa (the JSONL of MRQA 2019), swag (CSV), sst-1 (trees of the "
     "Stanford Sentiment Treebank; sentences are judged), semeval (2013 to 2017: ids, label, text; deleted tweets, Not Available, are skipped and "
     "counted), sentube (a folder with neg.txt and pos.txt, a text a line, as Barnes et al. 2017 distribute it; rows of neg.txt come first), scitail (its "
     "tsv_format), text pair (TSV with a header text[, text2], label, or JSONL with these names; labels are numbers where all are and one has a decimal "
     "point, or with --regression), tokens (a word, a tab, a label a line, a blank line between sentences). A name in .gz or .zst is unpacked. PREDICTIONS: "
     "JSONL {\"id\", \"prediction\"}, tokens with a list of labels; or index TAB prediction, as GLUE takes it; for SQuAD and MRQA also {id: text}. "
     "An id is the number of the row from 0, header and blank lines apart. Each example has exactly one. Metrics: accuracy; with F1 of class 1 "
     "(mrpc, qqp); Matthews (cola; text and pair beside accuracy); Pearson and Spearman (sts-b, and numbers); exact match and F1 in percent as "
     "SQuAD's and MRQA's own scripts have them, squad2 also of questions with and without an answer. What is undefined, as a correlation with a constant, is null in JSON.",
     O(JSON) | O(REGRESSION), 3, 3, command_score},
    {"plot", "LOG.jsonl..", "the logs of runs as curves",
     "LOG is a log.jsonl or a run's folder. The values are pale, their running mean in colour, evaluations are marks. --y is "
     "any field of the log: loss, mlm, nsp, lr, grad_norm, tokens_per_s, mfu; where a mask is learned l1, density, entropy, p_diagonal, p_neighbour, p_special.",
     O(OUTPUT) | O(PLOT_X) | O(PLOT_Y) | O(COLUMNS), 1, MAX_ARGUMENTS, command_plot},
    {"importance", "RUN", "what a learned mask looks like",
     "RUN is a run of pretrain --learn-mask. Prints means of P = sigmoid(alpha) over the diagonal, over |i - j| = 1, over the first and "
     "last position, and the share of entries with P above 1/2, for each head (each layer and head with --per-layer). -o FIGURE also "
     "draws P, without a border that is forced on: averaged over all heads, over the distance |i - j|, in the first and last row, and for each head. "
     "--film draws what has alpha above 0 in each state that the run has kept, which pretrain's --save-every and --keep decide: a column "
     "for each (5 at most, evenly; 3 with --columns 1), a row for each head (6 at most).",
     O(OUTPUT) | O(FILM) | O(COLUMNS) | O(JSON), 1, 1, command_importance},
    {"tokenize", "DIR", "text to token ids, a line each",
     "Reads lines from stdin. Only a newline ends a line; a tab makes it a pair. Adds [CLS] and [SEP]. With --json each "
     "line gives {\"ids\":[..],\"tokens\":[..],\"types\":[..],\"offsets\":[[BEGIN,END],..]}. Offsets are bytes; those of "
     "the second part of a pair count from its own beginning.",
     O(OFFSETS) | O(MAX_LENGTH) | O(COMPAT) | O(THREADS) | O(JSON), 1, 1, command_tokenize},
    {"embed", "DIR", "a vector for each line of text",
     "Writes f32 [lines, hidden size] to a .npy file, or one JSON array a line to a .jsonl file. --pooling none writes the "
     "last hidden states: [lines, longest, hidden size], zero after each line's end. A tab makes a line a pair. A "
     "sentence-transformers folder has its own pooling and normalisation, which --pooling replaces. Its default prompt goes "
     "before each line, and its truncate_dim cuts the vectors. Lines that are too long are cut.",
     O(INPUT) | O(OUTPUT) | O(POOLING) | O(NORMALIZE) | O(PROMPT) | O(PROMPT_NAME) | RUN_OPTIONS, 1, 1, command_embed},
    {"fill-mask", "DIR", "the likeliest words for each [MASK]", "Reads lines from stdin.",
     O(TOP) | O(JSON) | RUN_OPTIONS, 1, 1, command_fill_mask},
    {"classify", "DIR", "labels of each line of text, or of its tokens",
     "Reads lines from stdin. A tab makes a line a pair; for multiple choice, tabs separate the question and its choices. "
     "The architecture decides what is printed: one label or many with probabilities (a single label has a sigmoid, unless problem_type is regression), a number, a label for each token, "
     "or a choice.",
     O(JSON) | RUN_OPTIONS, 1, 1, command_classify},
    {"answer", "DIR", "where in a text the answer to a question stands",
     "Reads lines from stdin: a question, a tab, the text. A text beyond --max-length tokens is read in "
     "windows, two of which share --stride tokens; a fine-tuned model keeps the two that it was trained with, others have 384 and 128. Prints the best answer, however poor; with --null-threshold an empty line where the model finds none. With --json the five best, with the bytes "
     "where they stand, and the score of no answer; probabilities are those among the five.",
     O(STRIDE) | O(NULL_THRESHOLD) | O(JSON) | RUN_OPTIONS, 1, 1, command_answer},
    {"attention", "DIR", "a figure of where each head looks",
     "Reads one line from stdin. Draws the attention maps, with the tokens' names. Prints how many keys a query looks at; "
     "with sparsegen only those whose probability is not zero.",
     O(OUTPUT) | O(LAYER) | O(HEAD) | O(COLUMNS) | O(JSON) | RUN_OPTIONS, 1, 1, command_attention},
    {"prune", "DIR", "masks of the pairs that matter most on a text, within a time",
     "Takes the importance of each pair of positions, for each layer and head, from three of every four lines of text: the "
     "mean over the lines that have both positions. Every fourth line (512 at most) is held out. Writes masks into -o DIR: "
     "keep-P.npy for each P of --keep, the P percent of each head's entries with the most importance; snap-S.npy for each "
     "share of --snap, the mask that keeps the most within S percent of dense's predicted time, and beside it the best "
     "that each plainer way finds within that time: magnitude (one percentage of all heads), tiles (of 32x32), window (with the first "
     "and last token), distances. Prints for each mask: density; retained, its part of the importance; predicted and "
     "measured time of all layers' attention, for one batch of texts of n tokens, dense beside it; cosine, the mean over the "
     "held-out lines to their sentence vectors before pruning; neighbours, how many of these lines keep the nearest other "
     "line. A mask of n below the model's positions serves a model cut to n: maskbert convert DIR -o NEW --positions n "
     "--mask MASK.",
     O(INPUT) | O(IMPORTANCE) | O(KEEP) | O(SHARES) | O(SAVE_IMPORTANCE) | O(DROP_DIAGONAL) | O(RANDOM) | O(SEED) | O(OUTPUT) |
     O(PICTURE) | O(COLUMNS) | O(ONE_LAYER) | O(ONE_HEAD) | O(LENGTH) | O(PRICED_BATCH) | O(JSON) | O(MASK) | O(RUN_TRANSFORM) |
     O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(BATCH_TOKENS) | O(COMPAT), 1, 1, command_prune},
    {"bench", "DIR", "how fast the model is with its mask, and dense beside it",
     "Interleaves both on random tokens. Prints texts a second, milliseconds, the share of each phase, and the ceiling "
     "of any mask: the speedup if attention cost nothing.",
     O(MASK) | O(RUN_TRANSFORM) | O(RUN_DTYPE) | O(DEVICE) | O(THREADS) | O(BATCH) | O(LENGTH) | O(LENGTHS) |
     O(SECONDS) | O(JSON), 1, 1, command_bench},
    {"memory", "DIR", "what a step of pre-training takes, part by part",
     "Predicts it from sizes: config.json is enough, and weights are neither read nor packed. With --measure it also "
     "loads the model in a process of its own, runs one step on random tokens (forward, backward, optimiser) and "
     "reads how much anonymous memory is resident at the peak. Gradients, moments and attention's arrays are counted page by page; "
     "parameters are what loading added beside them (the kernel included), activations what the step added. A step "
     "has the objective's heads: pairs where the architecture has them. Options that do not change memory are taken, so that "
     "pretrain's own can stand here.",
     TRAINING_OPTIONS | O(STEP_LENGTH) | O(MEASURE) | O(OBJECTIVE) | O(MORE_POSITIONS) | O(MASK) | O(RUN_TRANSFORM) | O(DROP), 1, 1,
     command_memory},
#if MASKBERT_SERVE
    {"serve", "DIR", "a model behind HTTP",
     "POST /embed {\"inputs\": TEXT or [TEXT, ..]} gives [[..], ..]; \"normalize\": true or false replaces the model's own "
     "setting. POST /v1/embeddings is OpenAI's: \"input\" is a text, texts, ids of tokens or lists of ids (whole sequences, as "
     "tokenize prints them), with \"dimensions\" and \"encoding_format\". POST /rerank {\"query\": TEXT, \"texts\": [TEXT, ..]} "
     "gives [{\"index\", \"score\"}, ..] by a model with one label, the best first; with \"documents\" it is Cohere's and Jina's "
     "/v1/rerank or /v2/rerank. /fill-mask and /classify take \"inputs\" and give a list of what the commands print with --json. "
     "A text that is too long gets 413; with \"truncate\": true it is cut. GET /v1/models, /health and /metrics (Prometheus). "
     "Requests that wait run in one batch of up to --batch-tokens. SIGINT or SIGTERM ends it, after all waiting requests are "
     "answered.",
     O(HOST) | O(PORT) | O(POOLING) | O(NORMALIZE) | O(PROMPT) | O(PROMPT_NAME) | O(TOP) | RUN_OPTIONS, 1, 1, command_serve},
#endif
    {0},
};
/* clang-format on */

static const struct program maskbert = {
    .name = "maskbert",
    .version = MASKC_VERSION,
    .purpose =
        "BERT models, as HuggingFace lays them out on disk, through compiled attention masks.",
    .closing =
        "maskbert COMMAND --help lists the options of a command; maskbert --version the "
        "version.\n"
        "MASKC_MAX_CPU=x86-64-v3 (or -v2, -v4, -bf16, -amx) in the environment limits the "
        "CPU's\n"
        "instruction set.\n"
        "Exit codes: 0 done, 1 a loss or an output is not finite or a rank was lost, 2 bad "
        "input, 3 this "
        "machine cannot, 4 "
        "interrupted and saved.",
    .commands = commands,
    .rows = option_rows,
    .n_rows = OPTION_COUNT,
    .titles = option_titles,
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
    struct error e = {0};
    if (!c)
        return code;
    return program_end(&maskbert, machine_check_cap(&e) < 0 ? command_fail(&e) : c->run(&o));
}
