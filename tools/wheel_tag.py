#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel_tag.py WHEEL FOLDER: the wheel as py3-none, into FOLDER. Nothing in it depends on Python's own interface; meson-python
takes each .so beside Python modules for an extension module."""
import base64
import hashlib
import pathlib
import re
import sys
import zipfile


def retagged(data):
    return re.sub(rb"^Tag: cp\d+-cp\d+-", b"Tag: py3-none-", data, flags=re.M)


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    target = folder / re.sub(r"-cp\d+-cp\d+-", "-py3-none-", source.name)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        wheel = next(n for n in old.namelist() if n.endswith(".dist-info/WHEEL"))
        changed = retagged(old.read(wheel))
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == wheel:
                data = changed
            elif entry.filename.endswith(".dist-info/RECORD"):
                lines = data.decode().splitlines()
                data = ("\n".join(record_line(wheel, changed) if line.startswith(wheel + ",") else line for line in lines) + "\n").encode()
            new.writestr(entry, data)


if __name__ == "__main__":
    sys.exit(main())
