#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include graph of the sources, and the size of their folders.

    tools/include_graph.py              the edges between layers, each with the number of includes
    tools/include_graph.py --folders    how many files stand directly in each folder
    tools/include_graph.py --check      fails, naming each, where a folder has more than 40 files, or
                                        an #include "..." names no file of the project
    tools/include_graph.py --root DIR   the same of another tree

Layers are the folders of src/, include/outrider, apps and python; edges of unit tests are left out.
Which edges are allowed, tests/layers_test.cc knows. The standard library is enough.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

MOST_FILES = 40  # what a reader still takes in at a glance
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Where the compiler looks, beside the folder of the file itself.
PLACES = ["src", "include", ""]


def files_of(root):
    """All files but built ones and hidden ones, as paths from the root."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout.split("\0")
        return sorted(path for path in listed if path and not path.startswith(".") and
                      os.path.isfile(root / path))
    found = []
    for folder, folders, names in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name != "__pycache__" and
            not (here == pathlib.Path(".") and (name == "build" or name.startswith("build-"))))
        found += [(here / name).as_posix() for name in names if not name.startswith(".")]
    return sorted(found)


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    return "include/outrider" if parts[0] == "include" else parts[0]


def find(path, header, files):
    """The file that an #include names; None if there is none."""
    for place in [os.path.dirname(path), *PLACES]:
        named = os.path.normpath(os.path.join(place, header))
        if named in files:
            return named
    return None


def includes(root, files):
    """(file, header, what it names or None) of every #include "..."."""
    for path in sorted(files):
        if not path.endswith((".h", ".cc", ".cu", ".cuh")):
            continue
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        for header in INCLUDE.findall(text):
            yield path, header, find(path, header, files)


def print_edges(root, files):
    edges = collections.Counter()
    for path, _, named in includes(root, files):
        if not path.startswith(("src/", "include/", "apps/", "python/")) or named is None:
            continue
        if path.endswith("_test.cc") or layer_of(path) == layer_of(named):
            continue
        edges[layer_of(path), layer_of(named)] += 1
    for (user, used), number in sorted(edges.items()):
        print(f"{user:<20} -> {used:<20} {number:5}")
    print(f"{len(edges)} edges, {sum(edges.values())} includes")


def check(root, files):
    folders = collections.Counter(os.path.dirname(path) for path in files)
    findings = [f"{folder or '.'}: {number} files, at most {MOST_FILES}: make sub-folders by topic"
                for folder, number in sorted(folders.items()) if number > MOST_FILES]
    findings += [f'{path}: #include "{header}" names no file'
                 for path, header, named in includes(root, files) if named is None]
    for finding in findings:
        print(finding)
    print(f"{len(folders)} folders, the largest of {max(folders.values(), default=0)} files; "
          f"{len(findings)} finding{'' if len(findings) == 1 else 's'}")
    return 1 if findings else 0


def main():
    parser = argparse.ArgumentParser(description="The include graph, and the size of folders.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--edges", action="store_true", help="what it prints anyway")
    what.add_argument("--folders", action="store_true")
    what.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    files = set(files_of(arguments.root))
    if arguments.check:
        return check(arguments.root, files)
    if arguments.folders:
        folders = collections.Counter(os.path.dirname(path) or "." for path in files)
        for folder, number in folders.most_common():
            print(f"{number:5} {folder}")
    else:
        print_edges(arguments.root, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
