#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the tasks of tools/fetch-text --labelled what their rules say: no source and no text in two parts, offsets in code points, labels that
no text tells by itself, the same bytes for the same lists and seed, whatever the records hold? No network. Closes with cmocka's lines."""
import collections
import csv
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("tools/labelled", "tools", "tests/support", "tests/data")]
import cmocka_count  # noqa: E402
import labelled_lists as lists  # noqa: E402
import make_labelled  # noqa: E402
import names  # noqa: E402
import records  # noqa: E402
import splits  # noqa: E402

FILES = {"section": ".tsv", "synopsis": ".tsv", "endings": ".csv", "subject": ".json"}
PARTS = splits.PARTS


@functools.lru_cache(maxsize=None)
def made(seed=0):
    """(folder, what make() returned): once for all tests."""
    folder = pathlib.Path(WORK.name)
    source = folder / "lists"
    if not source.exists():
        lists.write(source)
    return folder / f"out-{seed}", make_labelled.make(source, folder / f"out-{seed}", seed)


def tsv(path):
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def endings(part):
    with open(made()[0] / "endings" / f"{part}.csv", encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def paragraphs(part):
    data = json.loads((made()[0] / "subject" / f"{part}.json").read_text(encoding="utf-8"))
    return [p for article in data["data"] for p in article["paragraphs"]]


def texts_of(task, part):
    """All texts of a part."""
    if task == "subject":
        return {t for p in paragraphs(part) for t in (p["context"], *(q["question"] for q in p["qas"]))}
    if task == "endings":
        return {row[f] for row in endings(part) for f in ("sent1", "ending0", "ending1", "ending2", "ending3")}
    return {row[f] for row in tsv(made()[0] / task / f"{part}.tsv") for f in ("text", "text2") if f in row}


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Records(unittest.TestCase):
    def test_hostile_records(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = collections.Counter()
            source = lists.write(pathlib.Path(folder), 0)
            found = records.load(source, counts)
            self.assertEqual([r.package for r in found], ["folded"])
            self.assertEqual(found[0], records.Record("folded", "folded-source", "extra", "\"folded\" line here", (
                "First line goes on to 'here', " + " ".join(lists.pick(9, "folded")) + ".", "Said: \"a\", b.")))
            self.assertEqual(dict(counts), {"without a description": 4, "too short": 1, "placeholders": 1, "common sentences": 0})

    def test_packed_lists_are_read_as_apt_packs_them(self):
        if not os.access(records.APT_HELPER, os.X_OK):
            self.skipTest("no apt-helper")
        with tempfile.TemporaryDirectory() as folder:
            source = lists.write(pathlib.Path(folder), 3)
            before = records.load(source, collections.Counter())
            for path in source.glob("x_main_*"):
                subprocess.run(["gzip", str(path)], check=True)
            self.assertEqual(records.load(source, collections.Counter()), before)
            self.assertEqual(len(before), 4)

    def test_what_three_families_say_of_a_kind_of_package_is_dropped(self):
        def one(name, source):
            return records.Record(name, source, "net", "s", (f"This has the {name.split('-')[1]} crate.", f"Only {name} 7."))
        some = [one("lib-one", "a1"), one("lib-two", "b"), one("lib-three", "c")]
        kept = list(records.without_common_sentences(some, collections.Counter()))
        self.assertEqual([r.sentences for r in kept], [()] * 3)
        some[2] = one("lib-three", "a2")  # of a1's family
        kept = list(records.without_common_sentences(some, collections.Counter()))
        self.assertEqual([len(r.sentences) for r in kept], [2] * 3)

    def test_no_descriptions(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, ROOT / "tools/fetch-text", "--labelled", "--lists", folder, folder + "/out"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
            self.assertIn("no descriptions (Translation-en", done.stderr)


class Splits(unittest.TestCase):
    def test_near_copies_are_dropped_from_dev_and_test(self):
        def one(number, text):
            return records.Record(f"p{number}", f"source{lists.WORDS[number]}", "net", "s", (text,))
        some = [one(k, lists.sentence(30, k)) for k in range(100)]
        part = {p: [r for r in some if splits.part_of(r.source, 0) == p] for p in PARTS}
        half = " ".join(part["train"][0].body.split()[:20]).upper() + " " + lists.sentence(5, "new")
        tail = " ".join(part["train"][0].body.split()[:9]) + " " + lists.sentence(30, "new")
        some = [*part["train"], records.dataclasses.replace(part["dev"][0], sentences=(half,)), records.dataclasses.replace(
            part["dev"][1], sentences=(tail,)), records.dataclasses.replace(part["test"][0], sentences=(tail.replace("new", "newer"),))]
        counts = collections.Counter()
        found = splits.by_part(some, 0, counts)
        self.assertEqual([len(found[p]) for p in PARTS], [len(part["train"]), 1, 0])
        self.assertEqual(dict(counts), {"near copies, dev": 1, "near copies, test": 1})

    def test_families_of_versions(self):
        for a, b in (("llvm-toolchain-14", "llvm-toolchain-15"), ("php8.2", "php7"), ("gtk+2.0", "gtk+3.0")):
            self.assertEqual(records.family(a), records.family(b))
        self.assertEqual(records.family("42"), "42")
        self.assertNotEqual(records.family("git"), records.family("gitg"))
        for word in lists.WORDS:
            self.assertEqual(splits.part_of(f"{word}-14", 3), splits.part_of(f"{word}-15.1", 3))

    def test_partners_are_of_other_families_and_as_often_each(self):
        for count, number in ((9, 3), (40, 3), (12, 1), (3, 1)):
            rows = [records.Record(f"p{k}", "big" if k < count // 3 else f"s{lists.WORDS[k]}", "net", "s", ()) for k in range(count)]
            found = splits.with_partners(rows, number, 5, "x")
            self.assertTrue(found)
            for r, others in found:
                self.assertEqual(len({o.source for o in [r, *others]}), 1 + number)
            self.assertEqual(set(collections.Counter(o.package for _, others in found for o in others).values()), {number})
        self.assertEqual(splits.with_partners(rows[:2] * 2, 3, 5, "x"), [])

    def test_a_leak_is_noticed(self):
        fine = {part: [([f"s{part}"], [f"text {part}"])] for part in PARTS}
        splits.check(fine)
        for bad in (["strain2"], ["new"]), (["new"], ["Text  TRAIN!"]):
            with self.assertRaises(AssertionError):
                splits.check({**fine, "test": [bad]})


class Tasks(unittest.TestCase):
    def test_no_source_and_no_text_is_in_two_parts(self):
        for task in FILES:
            where, said = {}, {}
            for row in tsv(made()[0] / task / "packages.tsv"):
                self.assertEqual(where.setdefault(row["source"], row["part"]), row["part"])
            for part in PARTS:
                for text in texts_of(task, part):
                    self.assertEqual(said.setdefault(records.key(text), part), part)
            self.assertEqual({*where.values()}, {*PARTS})
            self.assertEqual({*said.values()}, {*PARTS})

    def test_sizes_are_those_that_are_told(self):
        out, told = made()
        for part in PARTS:
            counts = {"section": len(tsv(out / f"section/{part}.tsv")), "synopsis": len(tsv(out / f"synopsis/{part}.tsv")),
                      "endings": len(endings(part)), "subject": sum(len(p["qas"]) for p in paragraphs(part))}
            self.assertEqual(counts, {task: told["tasks"][task]["parts"][part]["examples"] for task in FILES})
            self.assertGreater(min(counts.values()), 2)
        for task in ("synopsis", "subject"):
            dropped = told["tasks"][task]["dropped"]
            self.assertEqual((sum(dropped.values()), {*dropped}), (lists.REPEATED, {"texts of another part", "texts twice in a part"}))
        self.assertEqual(told["releases"], [{"origin": "Test", "suite": "", "codename": "testing", "date": "today"}])
        for task in FILES:
            self.assertIn("## Licence", (out / task / "README.md").read_text(encoding="utf-8"))

    def test_a_label_of_section_is_the_packages_section(self):
        for part in PARTS:
            of = {(row["part"], row["example"]): row["section"] for row in tsv(made()[0] / "section/packages.tsv")}
            for k, row in enumerate(tsv(made()[0] / f"section/{part}.tsv")):
                self.assertEqual(row["label"], of[part, str(k)])
                self.assertIn(row["label"], ("net", "games", "science"))

    def test_neither_text_of_a_pair_tells_its_label(self):
        for part in PARTS:
            rows = tsv(made()[0] / f"synopsis/{part}.tsv")
            for field in ("text", "text2"):
                labels = collections.defaultdict(list)
                for row in rows:
                    labels[row[field]].append(row["label"])
                self.assertTrue(all(sorted(found) == ["0", "1"] for found in labels.values()))
            right = {row["text2"]: row["text"] for row in rows if row["label"] == "1"}
            self.assertTrue(all((right[row["text2"]] == row["text"]) == (row["label"] == "1") for row in rows))
            of = collections.defaultdict(list)
            for row in tsv(made()[0] / "synopsis/packages.tsv"):
                of[row["part"], row["example"]].append(row["package"])
            self.assertTrue(all(len(of[part, str(k)]) == 2 - int(row["label"]) for k, row in enumerate(rows)))

    def test_endings_are_right_once_and_wrong_three_times(self):
        for part in PARTS:
            right, wrong = collections.Counter(), collections.Counter()
            for row in endings(part):
                self.assertEqual(row["sent2"], "")
                four = [row[f"ending{k}"] for k in range(4)]
                right[four.pop(int(row["label"]))] += 1
                wrong.update(four)
            self.assertEqual(({*right.values()}, {*wrong.values()}), ({1}, {3}))
            self.assertEqual({*right}, {*wrong})

    def test_packages_of_an_example_are_of_one_section_and_different_families(self):
        for task, count in (("synopsis", 0), ("endings", 4), ("subject", 4)):
            of = collections.defaultdict(list)
            for row in tsv(made()[0] / task / "packages.tsv"):
                of[row["part"], row["example"]].append(row)
            for rows in of.values():
                self.assertEqual(len({row["section"] for row in rows}), 1)
                self.assertEqual(len({records.family(row["source"]) for row in rows}), count or len(rows))

    def test_answers_stand_where_they_are_said_to_in_code_points(self):
        moved = 0
        for part in PARTS:
            for p in paragraphs(part):
                for a in (a for q in p["qas"] for a in q["answers"]):
                    before = p["context"][:a["answer_start"]]
                    self.assertEqual(p["context"][len(before):][:len(a["text"])], a["text"])
                    self.assertNotIn(a["text"], before)
                    moved += len(before.encode("utf-16-le")) // 2 != len(before) != len(before.encode())
        self.assertGreater(moved, 20)

    def test_a_third_has_no_answer_and_its_package_is_not_in_the_text(self):
        for part in PARTS:
            ids = collections.Counter()
            for p in paragraphs(part):
                self.assertEqual(sorted(q["is_impossible"] for q in p["qas"]), [False, False, True])
                for q in p["qas"]:
                    ids[q["id"]] += 1
                    form = q["id"].rsplit("-", 1)[0]
                    self.assertEqual(form in p["context"].lower(), not q["is_impossible"])
                    self.assertNotIn(form, q["question"])
                    self.assertEqual(bool(q["answers"]), not q["is_impossible"])
            self.assertEqual({*ids.values()}, {1})

    def test_names_in_texts(self):
        def found(package, text, families=None):
            return [(m[0], m.start()) for m in names.find(records.Record(package, package, "net", "", ()), text, families or {})]
        self.assertEqual(found("gnome-terminal", "The \U0001f600 GNOME Terminal, gnome-terminal."), [("GNOME Terminal", 6), ("gnome-terminal", 22)])
        self.assertEqual(found("libfoo-bar-perl", "x Foo::Bar, not Foo::Bar::Baz"), [("Foo::Bar", 2)])
        self.assertEqual(found("python3-baz2", "bazaar, Baz. www.baz.org"), [("Baz", 8)])
        self.assertEqual(found("units", "all units", {"units": 11}), [])
        self.assertEqual(found("foo-tools", "Foo tools by foo"), [("Foo tools", 0), ("foo", 13)])
        self.assertEqual(found("-", "- --"), [])

    def test_the_same_lists_and_seed_make_the_same_bytes(self):
        out, told = made()
        again = pathlib.Path(WORK.name) / "again"
        done = subprocess.run([sys.executable, ROOT / "tools/fetch-text", "--labelled", "--lists", WORK.name + "/lists", "--json", again],
                              capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
        self.assertEqual(bytes_of(again), bytes_of(out))
        self.assertEqual({**json.loads(done.stdout)["dropped"]}, told["dropped"])
        other = bytes_of(made(1)[0])
        for task, ending in FILES.items():
            self.assertNotEqual(other[f"{task}/train{ending}"], bytes_of(out)[f"{task}/train{ending}"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        WORK = type("Work", (), {"name": work})
        cmocka_count.run_cases()
