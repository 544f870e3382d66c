#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""several.py TEST...: test programs in one process, which imports torch and transformers once."""
import os
import pathlib
import sys
import warnings

from common import cmocka_count

if __name__ == "__main__":
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    sys.path[1:1] = sorted({str(pathlib.Path(word).resolve().parent) for word in sys.argv[1:]})
    cmocka_count.run_cases([pathlib.Path(word).stem for word in sys.argv[1:]])
