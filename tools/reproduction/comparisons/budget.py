# SPDX-License-Identifier: Apache-2.0
"""Which blocks of cells have time. A block is a task with a seed, and has every mask."""
from . import cells

DEFAULT, LEAST = 4096, 64  # training examples of a cell


def blocks(tasks, seeds):
    """In the order in which time is spent: all tasks with the first seed, then with the next one."""
    return [(seed, task) for seed in range(seeds) for task in tasks]


def fit(order, seconds, left):
    """Number of leading blocks that fit the time, at least one. So seeds are left out first, then tasks."""
    used = 0.0
    for k, block in enumerate(order):
        used += seconds(block)
        if used > left:
            return max(1, k)
    return len(order)


def choose_examples(c, rows, left):
    """Fewer where not even the first task with one seed fits."""
    examples = DEFAULT
    while examples > LEAST and block_seconds(c, rows, c.tasks[0], examples) > left:
        examples //= 2
    return max(examples, c.s.batch)


def block_seconds(c, rows, task, examples):
    return rows * (cells.START + c.work(task, examples) / c.rate(task))


def missing(c, variants, block):
    """Cells of a block that are not done."""
    seed, task = block
    return [cell for v in variants if (cell := cells.Cell(v, task, seed)) and c.done(cell) is None]


def seconds_of(c, variants, block):
    return len(missing(c, variants, block)) * c.seconds(block[1])


def describe(c, variants, left):
    """The plan in lines."""
    order = blocks(c.tasks, c.s.seeds)
    kept = order[:fit(order, lambda b: seconds_of(c, variants, b), left)]
    lines = [f"plan: {len(variants)} masks x {len({t.name for _, t in kept})} tasks x {len({s for s, _ in kept})} seeds in {left / 60:.1f} minutes; "
             f"{c.steps() * c.s.batch} training examples a cell"]
    for task in c.tasks:
        seeds = sum(t.name == task.name for _, t in kept)
        dev = c.dev.get(task.name)
        lines.append(f"  {task.name:12} {len(variants):3} masks x {seeds} of {c.s.seeds} seeds, {dev if dev is not None else 'all'} examples of dev, "
                     f"about {c.seconds(task):.0f} s a cell" + ("" if seeds else ": no time left"))
    over = sum(seconds_of(c, variants, b) for b in kept) - left
    if over > 0:
        lines.append(f"  about {over / 60:.1f} minutes more than there are; no mask is left out: the same command goes on")
    return lines


def run(c, variants):
    """Makes the blocks that have time, measured anew before each."""
    order = blocks(c.tasks, c.s.seeds)
    for k, block in enumerate(order):
        todo = missing(c, variants, block)
        begun = 0 < len(todo) < len(variants)
        if todo and k and not begun and seconds_of(c, variants, block) > c.clock.left():
            return
        for cell in todo:
            if c.clock.spent() > cells.LATE * c.clock.seconds:
                return
            c.tell(f"{cell.variant.label}, {cell.task.name}, seed {cell.seed}")
            say_result(c, c.make(cell))


def say_result(c, result):
    c.say(f"{'':17}{result['metric']} {result['value']:.2f}" if result["value"] is not None else f"{'':17}{result.get('why', 'no score')}")
