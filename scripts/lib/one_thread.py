"""Prints a pattern of the suites of a test target in which no two threads can meet.

  one_thread.py TARGET

Such a suite has no word of concurrency in any file that declares or extends it: its tests run on one thread
from begin to end. Prints nothing that matches if there is no such suite.
"""
import pathlib
import re
import sys

DECLARED = re.compile(r'^(?:final )?(?:struct|class|enum|actor|extension) (\w+Tests)\b', re.M)
CONCURRENT = re.compile(r'\b(?:async|await|Thread|Task|concurrentPerform|Dispatch\w*)\b')

target = sys.argv[1]
files = sorted(pathlib.Path('Tests', target).rglob('*.swift'))
if not files:
    sys.exit(f'one_thread: there are no tests in Tests/{target}')
suites, concurrent = set(), set()
for file in files:
    text = file.read_text()
    names = DECLARED.findall(text)
    suites.update(names)
    if CONCURRENT.search(text):
        concurrent.update(names)
names = '|'.join(sorted(suites - concurrent)) or '^$'
print(rf'{target}\.({names})(/|$)')
