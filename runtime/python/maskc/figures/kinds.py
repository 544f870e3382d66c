# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures: what each shows, its JSON, an example."""
import collections
import json

Kind = collections.namedtuple("Kind", "module shows fields example")

AXIS = '{"label", "scale": "linear" (default), "log" or "log2", "least", "most"}'
KINDS = {
    "curves": Kind("curves", "logs of runs over steps, tokens or time (maskbert plot)",
                   '"x": "step", "tokens" or "time" in seconds; "y": a field of log.jsonl; "curves": each {"name", "steps": [[x, y], ..], '
                   '"evaluations": [[x, y], ..]}; "line": what a point of them is, where not a step; "levels"',
                   {"x": "tokens", "y": "mlm", "curves": [{"name": "dense", "steps": [[0, 6.9], [20000, 4.5], [40000, 3.5]], "evaluations": [[40000, 3.6]]}]}),
    "lines": Kind("series", "a metric over density or lambda, several series",
                  f'"x", "y": {AXIS}; "series": each {{"name", "points": [[x, y] or [x, y, deviation], ..], "joined": false for marks alone, "ring": true for '
                  'hollow marks around those of another series, "colour": of series number 0, 1, .., "names": of the points}}; "levels": horizontal lines, each {"name", "value", '
                  '"band": half of what is shaded around it}; "zoom": {"x": [from, to], "y": [from, to]}, drawn again, larger',
                  {"x": {"label": "density of the mask (%)"}, "y": {"label": "accuracy (%)"}, "levels": [{"name": "dense", "value": 81.2}],
                   "series": [{"name": "pruned by P", "points": [[10, 71, 0.8], [50, 79.5, 0.5]]}, {"name": "random", "points": [[10, 60, 2], [50, 72, 1.4]]}]}),
    "bars": Kind("bars", "a metric by method, with deviations, for one task or several",
                 f'"y": {AXIS}; "methods": each {{"name", "values": [one for each group, or null], "deviations": [..]}}; "groups": names of tasks; '
                 '"levels". Bars begin at 0; with "least" in "y" they are dots',
                 {"y": {"label": "accuracy (%)"}, "groups": ["section", "pairs"], "levels": [{"name": "majority", "value": 50}],
                  "methods": [{"name": "dense", "values": [81.2, 77], "deviations": [0.4, 0.9]}, {"name": "longformer", "values": [80.9, 76.1],
                                                                                                 "deviations": [0.5, 0.7]}]}),
    "dots": Kind("dots", "a number by row for one series or several; rows with a group stand under its name",
                 f'"x": {AXIS}; "rows": each {{"name", "group", "said": a text at its right end}}; "said": what these texts are; "series": each '
                 '{"name", "values": [one for each row, or null], "deviations": [..], "ring", "colour" as of lines}; "levels"',
                 {"x": {"label": "accuracy (%)"}, "rows": [{"name": "dense"}, {"name": "longformer", "group": "designed", "said": "88.7"}], "said": "sparsity (%)",
                  "levels": [{"name": "dense", "value": 81.2, "band": 0.5}],
                  "series": [{"name": "with the diagonal", "values": [81.2, 80.9]}, {"name": "without it", "values": [81.1, 80.8], "ring": True}]}),
    "scatter": Kind("series", "quality against time, each point with its name",
                    f'"x", "y": {AXIS}; "points": each {{"name", "x", "y", "dx", "dy": deviations, "group": shares colour and legend}}; "levels", "zoom" as of lines',
                    {"x": {"label": "time of a step (ms)"}, "y": {"label": "accuracy (%)"},
                     "points": [{"name": "dense", "x": 75, "y": 81.2, "dy": 0.4}, {"name": "longformer", "x": 31, "y": 80.9, "dy": 0.5, "group": "designed"}]}),
    "heatmaps": Kind("maps", "maps of queries by keys: heads of attention, or P (maskbert attention)",
                     '"label": of the scale; "panels": each {"values": array [n, n], "title"} or null; "rows", "columns": names of a grid that the panels '
                     'fill row by row; "tokens": n texts; "least", "most": ends of the scale; "scale": "root" shows small values; "corner": with one map, '
                     'its first rows and columns are drawn again, larger',
                     {"label": "attention probability", "least": 0, "most": 1, "tokens": ["[CLS]", "cat", "[SEP]"], "rows": ["layer 0"],
                      "columns": ["head 0", "head 1"], "panels": [{"values": [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]},
                                                                  {"values": [[0, 1, 0], [0, 0, 1], [1, 0, 0]]}]}),
    "importance": Kind("learned", "P of a learned mask: mean map, by distance, each head (maskbert importance)",
                       '"border": true where the first and last row and column are forced on, which are then left out; "mean": array [n, n]; '
                       '"by_distance": mean P of |i - j| = 0, 1, ..; "heads": each {"name", "values": array [n, n]}; "of_heads": how many there are, where not all are given',
                       {"border": False, "mean": [[0.2, 0.6, 0.3], [0.6, 0.2, 0.6], [0.3, 0.6, 0.2]], "by_distance": [0.2, 0.6, 0.3],
                        "heads": [{"name": "head 0", "values": [[0.1, 0.7, 0.3], [0.7, 0.1, 0.7], [0.3, 0.7, 0.1]]},
                                  {"name": "head 1", "values": [[0.3, 0.5, 0.3], [0.5, 0.3, 0.5], [0.3, 0.5, 0.3]]}]}),
    "film": Kind("film", "a learned mask over the steps (maskbert importance --film)",
                 '"heads": names; "frames": each {"step", "density" of all heads, "masks": array [heads, n, n] of 0 and 1}; '
                 '"of_heads": how many there are, where not all are given',
                 {"heads": ["head 0"], "frames": [{"step": 100, "density": 0.67, "masks": [[[1, 1, 0], [1, 1, 1], [0, 1, 0]]]},
                                                  {"step": 200, "density": 0.33, "masks": [[[0, 1, 0], [1, 0, 1], [0, 0, 0]]]}]}),
    "pruned": Kind("film", "the importance of one head, and what masks keep of it (maskbert prune --plot)",
                   '"label": of the importance; "importance": array [n, n]; "lines": each {"name", "masks": each {"name", "mask": array [n, n] of 0 and 1, '
                   'or null, "density", "cosine"}}',
                   {"label": "mean attention", "importance": [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]],
                    "lines": [{"name": "a third", "masks": [{"name": "keep", "mask": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "density": 0.33, "cosine": 0.98}]}]}),
    "times": Kind("bars", "times under masks and of our dense kernel: what maskc bench --json prints (maskc bench --plot)",
                  'its output as it is: "device", "threads", "results": each {"mask", "length", "heads", "batch", "head_dim", "dtype", "pass", "median_s", '
                  '"dense_s"}; other fields are ignored',
                  {"device": "cpu", "threads": 2, "results": [
                      {"mask": "star", "length": n, "heads": 12, "batch": 1, "head_dim": 64, "dtype": "f32", "pass": "forward", "median_s": n * 1e-6,
                       "dense_s": n * n * 5e-9} for n in (512, 1024)]}),
}


def paragraph(name, kind):
    import textwrap
    fields = textwrap.fill(kind.fields, 118, initial_indent="      ", subsequent_indent="      ")
    return f"  {name}: {kind.shows}\n{fields}\n      e.g. echo '{json.dumps(kind.example)}' | python3 -m maskc.figures {name} -o {name}.pdf"


PAGE = ("Draws a figure for a paper from JSON on stdin, with matplotlib: PDF, SVG or PNG by the suffix, one or two columns wide.\n"
        "Dark is active or important, light is off. Maps whose values are all equal are left out, and the figure says how many.\n\n"
        "Kinds, and their JSON. Each may have a \"title\" and a \"note\" below it. An array is nested lists of numbers, or {\"type\": \"f4\" or \"u1\", \"shape\": [..],\n"
        "\"base64\": \"..\"} (little-endian). Unknown fields are refused.\n\n" + "\n\n".join(paragraph(*x) for x in KINDS.items()) +
        "\n\nExit codes: 0 done; 2 bad input or option, nothing is written; 3 matplotlib is missing, or the disk is full.\n"
        "From Python: from maskc import figures; figures.draw(KIND, OBJECT, FILE, columns=2).")
