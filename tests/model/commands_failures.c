/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/commands_failures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

/* Bad input: exit code 2, and "maskbert: ERROR" on stderr. */
static const struct shell_failure failures[] = {
    {"fly", "'fly' is not a command; maskbert alone lists them\n"},
    {"info nowhere", "nowhere/config.json: No such file or directory\n"},
    {"info made/config.json",
     "made/config.json: not a directory, a model's folder is expected\n"},
    {"tokenize nowhere", "nowhere: no tokenizer.json and no vocab.txt\n"},
    {"tokenize made --max-length 2", "--max-length 2: at least 3 is expected\n"},
    {"tokenize made --tokenizer-compat x", "--tokenizer-compat x: hf or google is expected\n"},
    {"convert made", "convert: -o DIR is expected\n"},
    {"convert made -o ''", "-o: a name is expected\n"},
    {"init --size 2x16x4 -o ''", "-o: a name is expected\n"},
    {"convert made -o ./made/", "./made/: a folder other than the model's is expected\n"},
    {"convert made -o new --dtype int8", "--dtype int8: f32, bf16 or f16 is expected\n"},
    {"convert made -o new --transform softmax",
     "--transform is stored with a mask: --mask is expected\n"},
    {"convert wide -o new --positions 16",
     "wide has a mask: with --positions, --mask is expected\n"},
    {"convert made -o new --mask blockbert-2",
     "the mask has 12 heads, the model 4; 1 or as many are expected\n"},
    {"init --size 2x16x4 -o wide",
     "wide: vocab.txt of another model is there and would stay; a folder without it "
     "is expected\n"},
    {"convert made -o other",
     "other: modules.json of another model is there and would stay; a folder without "
     "it is expected\n"},
    {"bench made --seconds -1", "--seconds -1: a time above 0 is expected\n"},
    {"init --size mini --start warm -o new", "--start warm: random or mimetic is expected\n"},
    {"init --size huge -o new",
     "--size huge: tiny, mini, small, medium, base, large or LxHxA is expected\n"},
    {"init --size 2x10x3 -o new",
     "init: hidden_size 10 is no multiple of num_attention_heads 3\n"},
    {"vocab --size 9 -o new",
     "9 tokens do not hold the text's characters: at least 10 are expected\n", TEXT},
    {"embed made", "embed: -o FILE.npy or -o FILE.jsonl is expected\n"},
    {"embed made -o x.npy --pooling max",
     "pooling 'max': mean, cls, pooler or none is expected\n"},
    {"embed made -o x.npy --input nowhere", "nowhere: No such file or directory\n"},
    {"embed made -o x.npy --dtype f16", "--dtype f16: f32 or bf16 is expected\n"},
    {"embed made -o x.npy --device tpu",
     "unknown device 'tpu'; known are cpu, cuda, cuda:N, emulated\n"},
    {"embed made -o x.npy --max-length 33", "--max-length 33: the model has 32 positions\n"},
    {"embed made -o x.npy --mask blockbert-2",
     "the mask has 12 heads, the model 4; 1 or as many are expected\n"},
    {"answer made", "made: the model has no span head\n"},
    {"answer ../odd",
     "../odd: architecture 'BertCrf' is not supported, BertModel, BertForPreTraining, "
     "BertForMaskedLM, BertForNextSentencePrediction, BertForSequenceClassification, "
     "BertForMultipleChoice, BertForTokenClassification or BertForQuestionAnswering is "
     "expected\n",
     "cp -r made ../odd && sed -i s/BertForPreTraining/BertCrf/ ../odd/config.json && "},
    {"attention made",
     "attention: -o FIGURE.pdf, -o FIGURE.svg, -o FIGURE.png or --json is expected\n"},
    {"attention made --json", "attention: one line of text is expected, not 2\n",
     "printf 'b\\nb\\n' | "},
    {"attention made --json --head 4", "--head 4: 0..3 is expected\n"},
    {"bench made -n 33", "-n 33: the model has 32 positions\n"},
    {"bench made --lengths odd", "--lengths odd: same or mixed is expected\n"},
    {"vocab --size 9 -o new", "the text has no words\n", "true | "},
    {"info made",
     "MASKC_MAX_CPU=avx2: expected x86-64-v2, x86-64-v3, x86-64-v4, x86-64-bf16 or "
     "x86-64-amx\n",
     "MASKC_MAX_CPU=avx2"},
};

/* The tokenizer's files are written before the weights. */
static const struct shell_failure full[] = {
    {"init --size mini --vocab made/vocab.txt -o new",
     "new/model.safetensors: cannot be written: File too large\n"},
    {"convert made -o new", "new/model.safetensors: cannot be written: File too large\n"},
};

void failures_say_one_line(void **state)
{
    (void)state;
    shell_refuses("maskbert", NULL, failures, sizeof failures / sizeof *failures);
}

void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof full / sizeof *full; k++) {
        char *before = shell_files();
        struct outcome o = shell_run("ulimit -f 8;", full[k].line);
        char *after = shell_files();
        assert_int_equal(o.code, 3);
        assert_string_equal(strchr(o.err, ' ') + 1, full[k].error);
        assert_string_equal(before, after);
        outcome_finish(&o);
        free(before);
        free(after);
    }
}
