# SPDX-License-Identifier: Apache-2.0
"""libmaskc-runtime reads, checks and launches kernel files: no source of it reaches the planner or jansson through any
chain of includes. The sources are those that runtime/meson.build lists."""
import re

import arrows
import sources

BUILD = "runtime/meson.build"
LISTS = (r"^loader_sources = files\(([^)]*)\)", r"shared_library\('maskc-runtime', ([^,]*),",
         r"static_library\('maskc_threads_\w+', ([^,]*),")
FORBIDDEN = ("gen/plan/", "gen/lowering/", "gen/emit/", "gen/snap/", "jansson.h")


def loader_sources():
    build = sources.text(BUILD)
    lists = [m for pattern in LISTS for m in re.findall(pattern, build, re.M)]
    return [f"runtime/{name}" for text in lists for name in re.findall(r"'([^']+\.c)'", text)]


def chains():
    """The shortest chain of includes to each file that a source of the loader reaches."""
    found = {path: [path] for path in loader_sources()}
    queue = list(found)
    for path in queue:
        if path.startswith(FORBIDDEN) or not (sources.ROOT / path).is_file():
            continue
        for included in (ours or system for ours, system in arrows.includes_of(path)):
            if included not in found:
                found[included] = [*found[path], included]
                queue.append(included)
    return found


def complaints():
    if not (sources.ROOT / BUILD).is_file():
        return
    found = chains()
    if not found:
        yield f"{BUILD}: found no loader_sources"
    for path, chain in sorted(found.items()):
        if path.startswith(FORBIDDEN):
            yield f"libmaskc-runtime includes {path}: {' -> '.join(chain)}"
