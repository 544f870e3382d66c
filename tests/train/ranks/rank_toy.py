# SPDX-License-Identifier: Apache-2.0
"""A toy whose commands mpirun starts as several ranks."""
import copy
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pretrain_toy import Toy, alive  # noqa: E402

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
# Started as each rank: writes its process number to a file, and gives one rank more options, other templates or a file size limit.
WRAPPER = """#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" != "$ODD_RANK" ] || { set -- "$@" $ODD_OPTIONS; [ -z "$ODD_TEMPLATES" ] || export MASKC_TEMPLATES="$ODD_TEMPLATES"; }
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || [ -z "$MOST_BLOCKS" ] || ulimit -f "$MOST_BLOCKS"
echo $$ > pid.$OMPI_COMM_WORLD_RANK
exec "$@"
"""
SECONDS = 30


class RankToy(Toy):
    def __init__(self, maskbert, work):
        super().__init__(maskbert, work)
        path = self.work / "wrapper"
        path.write_text(WRAPPER)
        path.chmod(0o755)

    def apart(self, name):
        """The same toy in a folder of its own."""
        made = copy.copy(self)
        made.work = self.work / name
        made.work.mkdir()
        for path in ("model", "data", "wrapper"):
            (made.work / path).symlink_to(self.work / path)
        return made

    def start(self, ranks, *command, wrapped=False, **env):
        """mpirun as a process, with pipes."""
        wrapper = ["./wrapper"] if wrapped else []
        return subprocess.Popen([*MPIRUN, "-n", str(ranks), *wrapper, self.maskbert, *map(str, command)], cwd=self.work, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1", **env})

    def ranks(self, ranks, *command, **more):
        child = self.start(ranks, *command, **more)
        out, err = child.communicate(timeout=300)
        assert child.returncode == 0, f"{command}: {child.returncode}: {err}"
        return out, err

    def ends(self, ranks, says, *command, code=1, **more):
        """All ranks end in time with that code; one line of maskbert's says why."""
        child = self.start(ranks, *command, wrapped=True, **more)
        self.ended(child, says, code)

    def ended(self, child, says, *codes):
        begin = time.time()
        err = child.communicate(timeout=SECONDS)[1]
        assert time.time() - begin < SECONDS and child.returncode in codes, (child.returncode, err)
        said = [x for x in err.splitlines() if x.startswith("maskbert: ") and not any(w in x for w in ("tokens/s", "unigram entropy", "held-out"))]
        assert len(said) == 1 and says in said[0], err
        pids = [int(p.read_text()) for p in self.work.glob("pid.*")]
        while any(alive(p) for p in pids) and time.time() - begin < SECONDS:  # on a busy machine mpirun ends before its processes
            time.sleep(0.01)
        assert len(pids) > 1 and not any(alive(p) for p in pids), pids
        self.forget()

    def pid(self, rank):
        path = self.work / f"pid.{rank}"
        while not path.exists() or not path.read_text().endswith("\n"):
            time.sleep(0.01)
        return int(path.read_text())

    def forget(self):
        for path in self.work.glob("pid.*"):
            path.unlink()

    def saved(self, run, *children):
        """Waits for a first state of a run of these processes."""
        folder = self.work / run / "state"
        while not folder.exists() or not [p for p in folder.iterdir() if p.name.endswith("safetensors")]:
            for child in children:
                assert child.poll() is None, (child.returncode, child.stderr.read())
            time.sleep(0.01)
