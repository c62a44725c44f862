"""Checks that every file that a page links to exists: the pages of the top folder, docs and Benchmarks."""
import pathlib
import re
import sys

pages = [
    *pathlib.Path('.').glob('*.md'), *pathlib.Path('docs').rglob('*.md'),
    *pathlib.Path('Benchmarks').glob('*.md')]
broken = []
for page in pages:
    for target in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', page.read_text()):
        if not (page.parent / target).exists():
            broken.append(f'{page}: there is no {target}')
if broken:
    sys.exit('\n'.join(broken))
