"""Whether a command that says it is done has written through to the disk what it made.

Of each file that is there at the end: after its last write came an fsync of it, and its name was
written through by an fsync of its folder after it was given. Otherwise a power failure just after the
command could leave the name without the content, or nothing. SQLite's own side files are SQLite's
affair, and so are files whose content can be made again (snapshots for devices, locks).
"""
import os
import re

from world import Failure

PASSED_OVER = re.compile(r'-(wal|shm|journal)$|\.lock$|/snapshots/|/bash_jobs')


def read(path):
    """The log's operations, as (name, path)."""
    with open(path, errors='replace') as file:
        lines = [line.rstrip('\n').split('\t') for line in file]
    return [(line[1], line[2]) for line in lines if len(line) == 3]


def check(operations, world):
    """Fails for what is there at the end and would not be, or not whole, after a power failure."""
    written, named = {}, {}
    source = None
    for name, path in operations:
        if name == 'from':
            source = path
        elif name == 'rename':
            if source in written:
                raise Failure(f'{source} was not written through before it was renamed to {path}')
            named.pop(source, None)
            named[path] = True
        elif name in ('link', 'linkat', 'symlink'):
            named[path] = True
        elif name in ('fsync', 'fdatasync'):
            written.pop(path, None)
            for other in [one for one in named if os.path.dirname(one) == path]:
                del named[other]
        elif name in ('unlink', 'unlinkat'):
            written.pop(path, None)
            named.pop(path, None)
        elif name == 'open':
            named.setdefault(path, True)
        elif 'write' in name or 'truncate' in name or 'sendfile' in name or name == 'copy_file_range':
            written[path] = True
    for path in sorted(set(written) | set(named)):
        if not path.startswith(world.folder) or PASSED_OVER.search(path) or not os.path.isfile(path):
            continue
        if path in written:
            raise Failure(f'{path} is there and was not written through')
        if path in named and not world.given(path):
            raise Failure(f'{path} is there, and its name was not written through')
