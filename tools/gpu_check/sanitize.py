# SPDX-License-Identifier: Apache-2.0
"""Stage sanitize: kernels under compute-sanitizer, memcheck and racecheck. Failed calls of the driver are counted apart
from wrong accesses, and the text of every report is kept.
"""
import pathlib
import re
import shutil
import tempfile

from gpu_check import cases, expected
from gpu_check.verify import verify_kernel
from gpu_check.work import Item, Stage, dead

TOOL, CHECKS = "compute-sanitizer", ("memcheck", "racecheck")
MOST_TEXT = 8000  # characters of a report that are kept
MARK = "========="
API = re.compile(r"^=+ +((?:Program hit|CUDA API Error).*)$", re.M)
CALL = re.compile(r"hit (\S+) .*on CUDA API call to (\w+)")
ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
HAZARDS = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)")


def call_of(line):
    """The failed call of a report's line, with its error."""
    found = CALL.search(line)
    return f"{found[2]}: {found[1]}" if found else line.strip()


def counted(text):
    """{"api", "access", "hazards", "calls"} of a report, or None where it has no summary. `calls` names each failed
    call of the driver with its error."""
    calls = [call_of(line) for line in API.findall(text)]
    errors, hazards = ERRORS.search(text), HAZARDS.search(text)
    if not errors and not hazards:
        return None
    total = int(errors[1]) if errors else len(calls)
    return {"api": len(calls), "access": max(0, total - len(calls)), "hazards": int(hazards[1]) if hazards else 0,
            "calls": sorted(set(calls))}


def findings(text):
    """Lines of a report without its header and empty lines; nothing where nothing was found."""
    lines = [line.removeprefix(MARK).strip() for line in text.splitlines() if line.startswith(MARK)]
    lines = [line for line in lines if line and line != "COMPUTE-SANITIZER"]
    return "\n".join(lines)[:MOST_TEXT]


def said_of(found):
    words = [f"{found['access']} wrong accesses" if found["access"] else "",
             f"{found['hazards']} hazards" if found["hazards"] else "",
             f"{found['api']} failed calls of the driver ({'; '.join(found['calls'])})" if found["api"] else ""]
    return ", ".join(filter(None, words))


def judged(result, text):
    """The result of `maskc verify` together with the report."""
    found = counted(text)
    if found is None:
        why = f"{TOOL}: no summary" + (f"; {result['said']}" if result.get("said") else "")
        return dead(why) | {"report": findings(text)}
    clean = not (found["access"] or found["hazards"] or found["api"])
    said = "; ".join(filter(None, [said_of(found), result.get("said", "")]))
    return result | found | {"ok": result["ok"] and clean, "said": said,
                             "report": "" if clean else findings(text)}


def sanitize_kernel(attempt, check, kernel):
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        path = pathlib.Path(folder) / "report"
        result = verify_kernel(attempt, kernel, (TOOL, "--tool", check, "--log-file", path))
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return result if result["said"].startswith("compile: ") else judged(result, text)


def missing(call):
    return "" if shutil.which(TOOL, path=call.environment["PATH"]) else f"{TOOL} is not in PATH: it comes with the CUDA toolkit"


def stage(o):
    seconds = expected.of("sanitize", o.device)
    items = [Item(f"{check} {k.name}", seconds, lambda attempt, check=check, k=k: sanitize_kernel(attempt, check, k))
             for k in cases.sanitized(o) for check in CHECKS]
    return Stage("sanitize", items, o.jobs, missing=missing)
