"""Prints the arguments of each process that has a text in them, except this one.

  processes.py TEXT
"""
import glob
import subprocess
import sys


def running():
    if not glob.glob('/proc/[0-9]*'):
        yield from subprocess.run(
            ['ps', '-axo', 'args'], capture_output=True, text=True).stdout.splitlines()
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            yield open(path).read().replace('\0', ' ')
        except OSError:
            pass  # It has ended.


for line in running():
    if sys.argv[1] in line and f'{sys.argv[0]} {sys.argv[1]}' not in line:
        print(line)
