#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""toys_test.py [MASKC FOLDER]: a new lowering, kernel family, architecture of models or objective needs one file and one row.

The patches beside this file add one each. Without arguments: each patch applies to this tree and changes only the files
that HACKING.md lists. With arguments: each patch is also built on a copy of the tree in FOLDER, and plans, kernels and
results of that build are checked. MASKC is the program without patches."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402

NEW = None
# For each patch its new files, and the words that it adds to existing files.
CHANGES = {
    "lowering": {
        "gen/lowering/common.c": NEW,
        "gen/lowering/lowering.c": "lowering_common",
        "gen/meson.build": "gen_sources files lowering common c",
    },
    "family": {
        "gen/family/cuda_toy.c": NEW,
        "gen/family/family.c": "family_cuda_toy",
        "gen/meson.build": "gen_sources files family cuda_toy c",
        "templates/cuda/toy/forward.cu": NEW,
        "templates/cuda/toy/kernel_config_default.h": NEW,
        "templates/meson.build": "template_files files cuda toy forward cu",
    },
    "architecture": {
        "model/arch/first.c": NEW,
        "model/arch/arch.c": "arch_first",
        "model/arch/arch.h": "extern const struct arch arch_first",
        "model/meson.build": "arch first c",
    },
    "objective": {
        "model/objective/tags.c": NEW,
        "model/objective/objective.c": "objective_tags",
        "model/meson.build": "objective tags c",
    },
}
LENGTHS = (100, 512)
# All rows see a run of keys, and a band beside it: lines, or tiles under patterns.
THIN, THICK = "columns(0..15) | window(3)", "columns(0..15) | (random(0.3) & window(64))"


def run(*words, cwd=ROOT, code=0, **environment):
    """Standard output of a program that ends with `code`."""
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}: {' '.join(map(str, words))}\n"
                             f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def apply(name, root, *options):
    """Runs git apply; a git repository around `root` is not considered."""
    try:
        return run("git", "apply", *options, HERE / f"{name}.patch", cwd=root, GIT_CEILING_DIRECTORIES=str(root.parent))
    except AssertionError as e:
        reason = [line for line in str(e).splitlines() if line.startswith("error: ")]
        raise AssertionError(f"{name}.patch does not apply, rebase it as HACKING.md says: "
                             f"{reason[0] if reason else e}") from None


def changed_words(name):
    """{file: (words that the patch adds, words that it removes)}; a moved word is neither."""
    words = {}
    for line in (HERE / f"{name}.patch").read_text(encoding="utf-8").splitlines():
        if line.startswith("+++ b/"):
            added, removed = words[line[6:]] = collections.Counter(), collections.Counter()
        elif line[:1] in ("+", "-") and not line.startswith("--- "):
            (added if line[0] == "+" else removed).update(re.findall(r"\w+", line[1:]))
    return {path: (set(a - r), set(r - a)) for path, (a, r) in words.items()}


class PatchTest(unittest.TestCase):
    def check(self, name):
        apply(name, ROOT, "--check")
        allowed = CHANGES[name]
        for path, (added, removed) in changed_words(name).items():
            self.assertIn(path, allowed, f"{name}.patch changes a file that a {name} must not need")
            self.assertEqual((ROOT / path).exists(), allowed[path] is not NEW, path)
            if allowed[path] is not NEW:
                self.assertFalse(removed, f"{name}.patch removes words from {path}")
                self.assertLessEqual(added, set(allowed[path].split()), f"{name}.patch adds more than a row to {path}")
        self.assertEqual(set(changed_words(name)), set(allowed))

    def test_lowering_is_one_file_and_one_row(self):
        self.check("lowering")

    def test_family_is_one_file_one_row_and_its_templates(self):
        self.check("family")

    def test_architecture_is_one_file_and_one_row(self):
        self.check("architecture")

    def test_objective_is_one_file_and_one_row(self):
        self.check("objective")


def copy_tree(to):
    """The files that git knows or would add."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    shutil.rmtree(to, ignore_errors=True)
    for path in filter(None, listed):
        if (ROOT / path).is_file():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, to / path)


def maskc(program, *words, **environment):
    own = {"XDG_CACHE_HOME": str(FOLDER / "cache"), "MASKC_TEMPLATES": "", "MASKC_AHEAD": "none"}
    return run(program, *words, **(own | environment))


class Toy:
    """maskc with a patch, built so that it checks each plan against its mask."""

    programs = ("tools/maskc/maskc", "tests/support/libnvrtc.so", "tests/gen/plan_test", "tests/gen/draft_price_test")

    def __init__(self, name):
        self.tree = FOLDER / name
        copy_tree(self.tree)
        run("git", "init", "--quiet", cwd=self.tree)
        apply(name, self.tree)
        run("git", "add", "--all", cwd=self.tree)
        setup = ("meson", "setup", "build", "--werror", "-Doptimization=1", "-Db_ndebug=false")
        run(*setup, cwd=self.tree, CC=os.environ.get("CC", "clang"))
        self.program = self.tree / "build/tools/maskc/maskc"
        self.mock_nvrtc = self.tree / "build/tests/support/libnvrtc.so"
        self.plan_tests = [self.tree / f"build/tests/gen/{t}_test" for t in ("plan", "draft_price")]
        run("ninja", "-C", "build", *self.programs, cwd=self.tree)
        self.kernel = self.tree / "build/kernel.mkb"

    def maskc(self, *words, **environment):
        return maskc(self.program, *words, **environment)

    def verify(self, device, *words, **environment):
        """Compiles a kernel and returns what `maskc verify` prints."""
        self.maskc("compile", *words, "-o", self.kernel, **environment)
        return self.maskc("verify", self.kernel, "--device", device, **environment)

    def without_nvrtc(self):
        """Environment with a mock NVRTC: the emulated device needs only the text. Its cache is its own."""
        return {"MASKC_NVRTC": str(self.mock_nvrtc), "XDG_CACHE_HOME": str(FOLDER / "mock-cache")}

    def check_style(self):
        run("tools/lint", cwd=self.tree)

    def check_plans(self):
        for program in self.plan_tests:
            run(program, "--few", cwd=self.tree)


def forward_microseconds(text):
    found = re.search(r"^  forward +predicted ([\d.]+) (us|ms)", text, re.M)
    return float(found[1]) * {"us": 1, "ms": 1000}[found[2]]


class LoweringCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.toy = Toy("lowering")

    def test_style(self):
        self.toy.check_style()

    def test_plans_of_random_masks(self):
        self.toy.check_plans()

    def test_wins_on_a_run_beside_a_band(self):
        for mask, target, machine in ((THIN, "x86-64-v4", "x86-avx512"), (THICK, "x86-64-v4", "x86-avx512"),
                                      (THICK, "x86-64-v3", "x86-avx2")):
            options = ("plan", mask, "-n", 512, "--target", target, "--machine", machine)
            ours, before = self.toy.maskc(*options), maskc(MASKC, *options)
            self.assertRegex(ours, r"blocks +1 range, 16 columns: 0\.\.15")
            self.assertLess(forward_microseconds(ours), 0.98 * forward_microseconds(before))

    def test_is_named_where_it_loses(self):
        text = self.toy.maskc("plan", THIN, "-n", 512, "--target", "x86-64-v3", "--machine", "x86-avx2")
        self.assertRegex(text, r"rejected .*\bcommon [\d.]+ us")

    def test_plans_are_their_masks(self):  # maskc checks each
        masks = [p.stem for p in sorted((ROOT / "masks/gallery").glob("*.mask"))]
        self.assertGreaterEqual(len(masks), 12)
        for mask in [THIN, THICK, *masks]:
            for n in LENGTHS:
                for target, dtype in (("x86-64-v3", "f32"), ("x86-64-amx", "bf16"), ("sm_90a", "bf16")):
                    self.toy.maskc("plan", mask, "-n", n, "--target", target, "--dtype", dtype)

    def test_results(self):
        for n in LENGTHS:
            for dtype in ("f32", "bf16"):
                for mask in (THIN, THICK):
                    text = self.toy.verify("cpu", mask, "-n", n, "--target", "x86-64-v3", "--machine", "x86-avx2", "--dtype", dtype)
                    self.assertRegex(text, "(?m)^verified on cpu")


class FamilyCase(unittest.TestCase):
    half = ("--dtype", "bf16", "--target", "sm_90a")
    length = 500  # longer masks also have cuda_hopper

    @classmethod
    def setUpClass(cls):
        cls.toy = Toy("family")

    def plan(self, mask, *options):
        return self.toy.maskc("plan", mask, "-n", self.length, *self.half, *options)

    def test_style(self):
        self.toy.check_style()

    def test_plans_of_random_masks(self):
        self.toy.check_plans()

    def test_wins_dense(self):
        text = self.plan("dense")
        self.assertIn("forward by cuda_toy, backward by cuda_tiled", text)
        self.assertRegex(text, r"rejected .*\bcuda_tiled: dense")

    def test_another_family_can_be_forced(self):
        self.assertIn("forward by cuda_tiled, backward by cuda_tiled", self.plan("dense", "--family", "cuda_tiled"))

    def test_loses_sparse(self):
        text = self.plan("window(3)")
        self.assertIn("forward by cuda_tiled, backward by cuda_tiled", text)
        self.assertRegex(text, r"rejected .*\bcuda_toy: fragments")

    def test_other_requests_keep_their_plans(self):
        for options in (("--dtype", "bf16", "--target", "sm_80"), ("--dtype", "f32", "--target", "sm_90a"),
                        ("--dtype", "bf16", "--target", "sm_90a", "--head-dim", 32)):
            words = ("plan", "dense", "-n", 512, *options)
            self.assertEqual(self.toy.maskc(*words), maskc(MASKC, *words))

    def check_results(self, mask, n, dtype):
        text = self.toy.verify("emulated", mask, "-n", n, "--dtype", dtype, "--target", "sm_90a", "--family", "cuda_toy",
                               **self.toy.without_nvrtc())
        self.assertRegex(text, "(?m)^verified on emulated")

    def test_results(self):
        for mask in ("dense", "causal", "random(0.3)"):
            for n in LENGTHS:
                self.check_results(mask, n, "bf16")

    def test_results_in_f16(self):
        self.check_results("causal", 100, "f16")

    def test_machine_code(self):
        if not re.search(r"^nvrtc +\d", self.toy.maskc("devices"), re.M):
            self.skipTest("no NVRTC")
        text = self.toy.maskc("compile", "dense", "-n", self.length, *self.half, "-o", self.toy.kernel)
        self.assertRegex(text, r"attention_forward +registers \d+, spills 0 bytes")


class Model(Toy):
    programs = ("tools/maskbert/maskbert", "tests/model/model_encoder_test", "tests/train/train_gradients_test")


class ArchitectureCase(unittest.TestCase):
    """The patch has the type of the tests' own architecture (tests/model/random/toy_arch.c), so that their models become its."""
    @classmethod
    def setUpClass(cls):
        cls.toy = Model("architecture")

    def test_style(self):
        self.toy.check_style()

    def test_is_named(self):
        folder = FOLDER / "unknown"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text('{"model_type": "other"}', encoding="utf-8")
        done = subprocess.run([self.toy.tree / "build/tools/maskbert/maskbert", "info", folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bert, camembert, distilbert, modernbert, mpnet, roberta, xlm-roberta or toy is expected", done.stderr)

    def test_results_and_gradients(self):
        for program in ("model/model_encoder_test", "train/train_gradients_test"):
            run(self.toy.tree / "build/tests" / program, cwd=self.toy.tree)


class Objective(Toy):
    programs = ("tools/maskbert/maskbert", "tests/train/train_objective_run")


class ObjectiveCase(unittest.TestCase):
    """Labels of tokens: 1 where a token continues a word. A model of one layer learns them."""
    @classmethod
    def setUpClass(cls):
        cls.toy = Objective("objective")

    def test_style(self):
        self.toy.check_style()

    def test_is_learned(self):
        sys.path[:0] = [str(ROOT / "tests/train")]
        import pretrain_toy  # noqa: PLC0415
        work = FOLDER / "objective-work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        pretrain_toy.Toy(self.toy.tree / "build/tools/maskbert/maskbert", work)
        lines = [line for line in (work / "text.txt").read_text(encoding="utf-8").splitlines() if line]
        (work / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        run(self.toy.tree / "build/tests/train/train_objective_run", "tags", "model", "lines.txt", "run", 60, cwd=work)
        log = [json.loads(line) for line in (work / "run/log.jsonl").read_text(encoding="utf-8").splitlines()]
        steps, last = [x for x in log if "lr" in x], [x for x in log if "eval" in x][-1]
        self.assertGreater(steps[0]["loss"], 0.5)
        self.assertLess(last["loss"], 0.05)
        self.assertGreater(last["tag_accuracy"], 0.99)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        MASKC, FOLDER = (pathlib.Path(p).resolve() for p in sys.argv[1:])
        sys.argv[1:] = []
    else:
        del LoweringCase, FamilyCase, ArchitectureCase, ObjectiveCase
    cmocka_count.run_cases()
