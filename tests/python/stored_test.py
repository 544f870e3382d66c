#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mask in a model's folder: transformers computes what maskbert does, save_pretrained keeps the mask of apply(), and maskbert
reads it again. What a folder cannot hold is refused in one line."""
import contextlib
import copy
import functools
import io
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
from unittest import mock

from common import Transformers5, cmocka_count, needs_transformers
import maskc
from maskc import _library
from maskc.kernel import read_mask

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{k}" for k in range(40)]
LINES = [" ".join(WORDS[5 + (7 * k + 3 * row) % 40] for k in range(length)) for row, length in enumerate((24, 11, 1, 30))]
DESIGNED = "heads 4\nhead 0,1: window(2) | global(0)\nhead 2: dense\nhead 3: causal\n"


def maskbert(*arguments, code=0):
    """Returns the program's output, or its error line on failure."""
    done = subprocess.run([_library.program_path("maskbert"), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"maskbert {arguments[0]}: exit code {done.returncode}: {done.stderr}")
    return done.stderr if code else done.stdout


@functools.cache
def workplace():
    """A folder with a vocabulary, lines of text and an untrained model, kept for all tests."""
    kept = tempfile.TemporaryDirectory(prefix="maskc-stored-")
    folder = pathlib.Path(kept.name)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (folder / "lines").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    maskbert("init", "--size", "2x64x4", "--positions", 64, "--vocab", folder / "vocab.txt", "-o", folder / "dense")
    return kept, folder


def place(name):
    return workplace()[1] / name


def spread(folder):
    """Weights at which masks show, in the place of an untrained model's small ones."""
    import torch
    from safetensors.torch import load_file, save_file
    torch.manual_seed(3)
    weights = load_file(folder / "model.safetensors")
    save_file({name: torch.randn(w.shape) * 0.2 if w.dim() == 2 else w for name, w in weights.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})


@functools.cache
def designed():
    (place("d.mask")).write_text(DESIGNED, encoding="utf-8")
    maskbert("convert", place("dense"), "--mask", place("d.mask"), "-o", place("designed"))
    spread(place("designed"))
    return place("designed")


@functools.cache
def learned():
    """A run of two steps that learns a mask per head; its alphas are then spread, so that the heads differ."""
    text = "\n".join(LINES * 40)
    (place("corpus")).write_text(text + "\n\n" + text + "\n", encoding="utf-8")
    maskbert("prep", place("corpus"), "--vocab", place("vocab.txt"), "-n", 64, "-o", place("data"), "--pairing", "full")
    maskbert("pretrain", place("dense"), "--data", place("data"), "-o", place("learned"), "--steps", 2, "--batch", 2, "--dropout", 0,
             "--learn-mask", "dam-u", "--mask-lr", 0.5, "--objective", "mlm", "--per-layer")
    spread(place("learned"))
    return place("learned")


def token_ids():
    """(input_ids, attention_mask) of the lines."""
    import torch
    rows = [[2] + [WORDS.index(word) for word in line.split()] + [3] for line in LINES]
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, numbers in zip(ids, rows):
        row[:len(numbers)] = torch.tensor(numbers)
    return ids, (ids != 0).long()


def states(model):
    """Last hidden states, zero after each line's end."""
    import torch
    ids, mask = token_ids()
    with torch.no_grad():
        return model.eval()(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]


def embedded(folder, *options):
    import numpy
    import torch
    out = place("vectors.npy")
    if not (folder / "vocab.txt").exists():  # a model was saved without its tokenizer
        shutil.copy(place("vocab.txt"), folder)
    maskbert("embed", folder, "--input", place("lines"), "--pooling", "none", "-o", out, *options)
    return torch.from_numpy(numpy.load(out))


def load(folder, implementation="maskc", **named):
    import transformers
    return transformers.AutoModel.from_pretrained(folder, attn_implementation=implementation, **named)


def applied(model, *arguments, **named):
    """apply() without its line."""
    with contextlib.redirect_stderr(io.StringIO()):
        return maskc.apply(model, *arguments, **named)


class Stored(Transformers5):
    def same(self, a, b, most=1e-5):
        self.assertEqual(a.shape, b.shape)
        self.assertLess((a.double() - b.double()).abs().max().item(), most)

    def differ(self, a, b):
        self.assertGreater((a - b).abs().max().item(), 1e-2)

    def key(self, folder):
        return json.loads((folder / "config.json").read_text(encoding="utf-8")).get("maskc")


@needs_transformers
class RunTest(Stored):
    def test_designed_mask(self):
        import transformers
        folder = designed()
        wanted = embedded(folder)
        self.same(states(load(folder)), wanted)
        self.same(states(transformers.BertModel.from_pretrained(folder, attn_implementation="maskc")), wanted)
        self.same(states(load(folder, "sdpa")), embedded(folder, "--mask", "dense"))
        self.differ(wanted, embedded(folder, "--mask", "dense"))

    def test_learned_mask_of_each_head(self):
        folder = learned()
        bits = read_mask(str(folder / self.key(folder)["mask"]))
        self.assertEqual(bits.shape, (2, 4, 64, 64))
        self.assertTrue((bits[:, 0] != bits[:, 1]).any() and (bits[0] != bits[1]).any())
        self.same(states(load(folder)), embedded(folder))
        self.differ(states(load(folder)), states(load(folder, "eager")))

    def test_transform(self):
        config = json.loads((designed() / "config.json").read_text(encoding="utf-8"))
        folder = place("sparsegen")
        self.copy(designed(), folder, config | {"maskc": config["maskc"] | {"transform": "sparsegen=-4"}})
        wanted = embedded(folder)
        self.same(states(load(folder)), wanted)
        self.differ(wanted, embedded(designed()))
        load(folder).save_pretrained(place("sparsegen-again"))
        self.assertEqual(self.key(place("sparsegen-again"))["transform"], "sparsegen=-4")

    def copy(self, folder, to, config):
        """A model's folder with another config.json, by links."""
        to.mkdir()
        for path in folder.iterdir():
            if path.is_file() and path.name != "config.json":
                (to / path.name).symlink_to(path)
        (to / "config.json").write_text(json.dumps(config), encoding="utf-8")

    def test_fresh_process(self):
        """maskc comes first, and nothing else of transformers is imported yet."""
        import torch
        program = ("import sys, torch, maskc\nfrom transformers import AutoModel\n"
                   "model = AutoModel.from_pretrained(sys.argv[1], attn_implementation='maskc').eval()\n"
                   "torch.save(model(input_ids=torch.arange(5, 30)[None]).last_hidden_state.detach(), sys.argv[2])")
        subprocess.run([sys.executable, "-c", program, designed(), place("out.pt")], capture_output=True, check=True)
        wanted = load(designed()).eval()(input_ids=torch.arange(5, 30)[None]).last_hidden_state
        self.same(torch.load(place("out.pt")), wanted, 1e-6)

    def test_configuration_from_before(self):
        """It was loaded before maskc was imported, so that its mask file was not read."""
        import transformers
        config = transformers.AutoConfig.from_pretrained(designed())
        config.maskc = dict(config.maskc)
        self.same(states(load(designed(), config=config)), embedded(designed()))
        config.maskc, config._name_or_path = dict(config.maskc), "elsewhere"
        self.refused("was not read", transformers.AutoModel.from_config, config, attn_implementation="maskc")

    def test_switch_of_implementation(self):
        model = load(designed(), "sdpa")
        model.set_attn_implementation("maskc")
        self.same(states(model), embedded(designed()))

    def test_moved_folder_copies_and_relative_paths(self):
        moved, here = place("moved"), os.getcwd()
        self.copy(designed(), moved, json.loads((designed() / "config.json").read_text(encoding="utf-8")))
        os.chdir(moved.parent)
        try:
            model = load("moved")
        finally:
            os.chdir(here)
        moved.rename(place("gone"))
        wanted = embedded(designed())
        for made in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.same(states(made), wanted)
        copy.deepcopy(model).save_pretrained(place("from-copy"))
        self.same(embedded(place("from-copy")), wanted)

    def test_dense_load_keeps_the_mask(self):
        load(designed(), "sdpa").save_pretrained(place("kept"))
        self.assertEqual(self.key(place("kept")), self.key(designed()))
        self.same(embedded(place("kept")), embedded(designed()))

    def test_missing_file(self):
        import transformers
        config = json.loads((designed() / "config.json").read_text(encoding="utf-8"))
        folder = place("missing")
        self.copy(designed(), folder, config)
        (folder / "mask.mask").unlink()
        self.refused(f"{folder}/mask.mask: missing", load, folder)
        load(folder, "sdpa").save_pretrained(place("still-missing"))
        for broken in (folder, place("still-missing")):
            self.assertIn(f"{broken}/mask.mask: missing, but config.json names it", maskbert("info", broken, code=2))
        self.assertIn("missing", maskbert("embed", folder, "--input", place("lines"), "-o", place("v.npy"), code=2))
        model = transformers.BertModel(transformers.AutoConfig.from_pretrained(designed(), attn_implementation="maskc"))
        self.refused("did not receive", model, input_ids=token_ids()[0])

    def test_wrong_key_or_file(self):
        import numpy
        config = json.loads((designed() / "config.json").read_text(encoding="utf-8"))
        folder = place("wrong")
        for values, words in (({"mask": "a\0.mask"}, "a file beside it is expected"), ({"mask": "mask.mask", "layers": 1}, "layers: int"),
                              ({"mask": "mask.npy"}, f"{folder}/mask.npy: a float mask")):
            shutil.rmtree(folder, ignore_errors=True)
            self.copy(designed(), folder, config | {"maskc": values})
            numpy.save(folder / "mask.npy", numpy.full((64, 64), .5))
            self.refused(words, load, folder)

    def test_changed_file(self):
        folder = place("changed")
        self.copy(designed(), folder, json.loads((designed() / "config.json").read_text(encoding="utf-8")))
        (folder / "mask.mask").unlink()
        (folder / "mask.mask").write_text("window(1)\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = load(folder)
        self.assertTrue(any("has changed since" in str(w.message) for w in caught))
        self.same(states(model), embedded(folder))


@needs_transformers
class SaveTest(Stored):
    def back(self, model, name, form="mask.mask"):
        """The folder of a saved model computes the same in transformers and maskbert."""
        folder, wanted = place(name), states(model)
        model.save_pretrained(folder)
        self.assertEqual(self.key(folder)["mask"], form)
        self.same(states(load(folder)), wanted)
        self.same(embedded(folder), wanted)
        self.assertNotIn("changed", maskbert("info", folder))
        return folder

    def model(self):
        return load(designed(), "sdpa")

    def test_text_file_and_array(self):
        import numpy
        designed()
        for name, mask in (("text", "window(1) | global(0)"), ("path", place("d.mask")), ("short", numpy.tri(40, dtype=bool)),
                           ("noise", numpy.random.default_rng(1).random((2, 4, 64, 64)) < .3)):
            with self.subTest(name):
                self.back(applied(self.model(), mask), name, "mask.npy" if name == "short" else "mask.mask")
        long = place("long-line")
        long.write_text(" ".join(WORDS[5:] + WORDS[5:20]) + "\n", encoding="utf-8")
        maskbert("embed", place("short"), "--input", long, "--pooling", "none", "-o", place("v.npy"))
        self.assertEqual(numpy.load(place("v.npy")).shape, (1, 40, 64))

    def test_upload(self):
        """A configuration that is uploaded when it is saved brings its mask."""
        config = applied(self.model(), "window(1)").config
        with mock.patch("transformers.configuration_utils.hf_api"), mock.patch("transformers.utils.hub.hf_api") as api:
            config.save_pretrained(str(place("uploaded")), push_to_hub=True, repo_id="a/b")
        names = {operation.path_in_repo for operation in api().create_commit.call_args.kwargs["operations"]}
        self.assertEqual(names, {"config.json", "mask.mask"})

    def test_layers_and_second_apply(self):
        import numpy
        noise = numpy.random.default_rng(2).random((64, 64)) < .3
        model = applied(load(designed(), "sdpa"), "window(1)", layers=[1])
        folder = self.back(model, "one-layer")
        self.assertIn("layer 0", (folder / "mask.mask").read_text(encoding="utf-8"))
        self.back(applied(model, "causal", layers=[0]), "both-layers")
        self.back(applied(model, noise, layers=[0]), "noisy-layer")
        self.back(applied(model, "window(3)"), "second")
        changed = applied(load(designed()), "window(1)", layers=[1])
        self.back(changed, "run-and-layer")
        applied(changed, None).save_pretrained(place("undone"))
        self.assertIsNone(self.key(place("undone")))

    def test_layers_of_a_model_with_its_own_mask(self):
        import torch
        import transformers
        config = transformers.LlamaConfig(vocab_size=50, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                          intermediate_size=64, max_position_embeddings=64)
        model = applied(transformers.LlamaModel(config).eval(), "causal & window(2)", layers=[1])
        model.save_pretrained(place("llama"))
        self.assertEqual(self.key(place("llama"))["layers"], [1])
        again = transformers.LlamaModel.from_pretrained(place("llama"), attn_implementation="maskc").eval()
        ids = torch.randint(3, 50, (2, 40))
        self.same(again(input_ids=ids, use_cache=False)[0], model(input_ids=ids, use_cache=False)[0])

    def test_heads_and_other_layers(self):
        """A classifier, and a model whose layers take no implementation."""
        import torch
        import transformers
        model = applied(transformers.BertForSequenceClassification.from_pretrained(designed(), attn_implementation="sdpa"), "window(1)")
        model.save_pretrained(place("classifier"))
        (place("classifier") / "vocab.txt").write_bytes(place("vocab.txt").read_bytes())
        again = transformers.AutoModelForSequenceClassification.from_pretrained(place("classifier"), attn_implementation="maskc")
        ids = torch.randint(5, 40, (1, 30))
        self.same(again.eval()(input_ids=ids).logits, model.eval()(input_ids=ids).logits)
        self.assertIn("label", subprocess.run([_library.program_path("maskbert"), "classify", place("classifier"), "--json"], input=LINES[0] + "\n",
                                              capture_output=True, text=True, check=True).stdout.lower())
        config = transformers.MPNetConfig(vocab_size=50, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                          max_position_embeddings=66)
        model = applied(transformers.MPNetModel(config).eval(), "window(1)")
        model.save_pretrained(place("mpnet"))
        again = transformers.MPNetModel.from_pretrained(place("mpnet"), attn_implementation="maskc").eval()
        self.same(again(input_ids=ids)[0], model(input_ids=ids)[0])


if __name__ == "__main__":
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    cmocka_count.run_cases()
