# SPDX-License-Identifier: Apache-2.0
"""Stage peers: tools/peers over the gallery. It adds eager attention, torch with a dense mask, and smaller blocks of
FlexAttention to the contenders of the stage time, each compared with float64 on all heads.
"""
import json
import pathlib
import sys
import tempfile

from gpu_check import expected, timing
from gpu_check.timing_cases import TOKENS
from gpu_check.work import Item, Stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = ("star", "distance(1,2,4,7,12)|global(0,-1)-diagonal(0)", "longformer(64,2)", "fixed(45,1)",
        "logsparse", "strided(45)", "bigbird(1,2,2)", "blockbert-2", "blockbert-3")
SHORT = ("star", "logsparse", "strided", "fixed", "longformer", "bigbird", "fairseq-fixed", "blockbert-2", "blockbert-3",
         "dam-s-example")  # with the parameters of the gallery
BLOCKS = ("blockbert-2", "blockbert-3")
MASKS = {128: SHORT, 1024: BLOCKS}  # LONG at other lengths
LENGTHS = (2048, 512, 128, 1024)


def masks_at(o, n):
    masks = o.masks or MASKS.get(128 if n < 128 else n, LONG)
    if n % 2 or n < 256:  # the offsets of the long masks do not fit
        masks = [m for m in masks if "(" not in m] or masks
    return list(masks)


def finished(rows):
    """Masks that need no second try: none of our contenders failed."""
    failed = {r["mask"] for r in rows if r["contender"].startswith("ours") and r["verdict"] == "failed"}
    return {r["mask"] for r in rows} - failed


def run_peers(attempt, case, masks):
    """(reason of a failure, JSON of tools/peers). What was measured before an interrupt is kept."""
    n, dtype, direction = case
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "peers.json"
        code, _, said = attempt.command(sys.executable, ROOT / "tools/peers", "--device", "cuda", "-n", n, "--dtype", dtype,
                                        "--pass", direction, "--batch", max(1, TOKENS // n), "--masks", *masks,
                                        "--maskc", attempt.maskc, "--package", attempt.package, "--json", path, partial=True)
        made = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return said or (f"tools/peers: exit status {code}" if code else ""), made


def run_open(attempt, rows, masks, case):
    """Adds the missing rows: first all masks in one process. A kernel that crashes ends the process, so each mask that
    is still missing then gets a process of its own."""
    todo = [m for m in masks if m not in finished(rows)]
    if not todo:
        return "", {}
    said, header = run_peers(attempt, case, todo)
    rows += header.pop("results", [])
    for mask in [m for m in todo if m not in {r["mask"] for r in rows}] if len(todo) > 1 else []:
        if attempt.stopped or attempt.call.left() <= 0:
            break
        why, made = run_peers(attempt, case, [mask])
        rows += made.pop("results", [])
        said, header = said or why, header or made
    return said, header


def peers_one(attempt, stage, name, masks, case):
    """Masks that an earlier call finished are kept, the others are run again."""
    before = attempt.kept.stage(stage).get(name, {})
    kept = before.get("results", [])
    rows = [r for r in kept if r["mask"] in finished(kept)]
    said, made = run_open(attempt, rows, masks, case)
    left = [m for m in masks if m not in finished(rows)]
    bad = [r for r in rows if timing.is_bad(r)]
    if left:
        why = [r["reason"] for r in rows if r["mask"] in left and r["contender"].startswith("ours") and r.get("reason")]
        said = f"{(why or [said or 'ended'])[0]}; no figures of {', '.join(left)}"
    return before | made | {"results": rows, "ok": not (left or bad), "dead": bool(left), "said": said,
                            "cut": bool(left) and attempt.stopped}


def stage(o):
    items = []
    for dtype in ("bf16", "f32"):
        for n in o.length or LENGTHS:
            masks = masks_at(o, n)
            for direction in ("forward", "backward"):
                name, case = " ".join([f"n={n} {dtype} {direction}", *(o.masks or ())]), (n, dtype, direction)
                items.append(Item(name, expected.of("peers mask", o.device) * len(masks),
                                  lambda attempt, name=name, masks=masks, case=case: peers_one(attempt, "peers", name, masks, case),
                                  alone=True))
    return Stage("peers", items, missing=timing.missing)
