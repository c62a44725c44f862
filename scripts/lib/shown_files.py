"""Checks that each block of a page that names a Swift file (```swift NAME.swift) is in that file.

  shown_files.py PAGE FOLDER     the files are below FOLDER
"""
import pathlib
import re
import sys

page, folder = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r'^```swift (\S+\.swift)\n(.*?)^```$', page.read_text(), re.M | re.S)
if not blocks:
    sys.exit(f'shown-files: {page} shows no file')
wrong = [name for name, block in blocks if block not in (folder / name).read_text()]
if wrong:
    sys.exit(f'shown-files: {page} shows text that is not in {wrong}')
