"""Gathers the repository's pages as one DocC catalogue, and checks the links of the site that DocC makes from it.

  site.py catalogue GRAPHS FOLDER    writes FOLDER; GRAPHS has the symbol graphs of the libraries
  site.py finish SITE                checks that each link inside the site leads to a page, and to a place on it, and puts
                                     the guides' headings into the search

The last section of README.md is the table of contents: it groups the guides, in the order in which to read them.
A name of a public type in a guide becomes a link to its page.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTENTS = '\n## Further\n'
FRONT = 'guides'
# Code stays as it is, and what a reader does not see is left out.
CODE = re.compile(r'(^```.*?^```$)|^<!--.*?-->\n', re.S | re.M)
LINK = re.compile(r'(!?)\[([^\]]+)\]\(([^)\s]+)\)')
SPAN = re.compile(r'(?<!`)`([A-Z]\w+)`(?!`)')


def pages():
    """The name of each page in the site, by its path."""
    found = {'README.md': FRONT, 'SECURITY.md': 'security-policy', 'Benchmarks/README.md': 'benchmarks',
             'Benchmarks/reliability.md': 'measurements'}
    found |= {path.name: path.stem.lower() for path in ROOT.glob('*.md') if path.name not in found}
    for folder in 'docs', 'docs/decisions':
        found |= {f'{folder}/{path.name}': path.stem for path in (ROOT / folder).glob('*.md')}
    found |= {str(path.relative_to(ROOT)): path.stem for path in ROOT.glob('Sources/*/*.docc/*.md')}
    return found | {'docs/decisions': 'decisions'}


def headings(text):
    return re.findall(r'^#+ (.+)$', CODE.sub('', text), re.M)


def anchor(heading):
    """A heading's anchor on the pages of the repository."""
    return re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')


def fragment(heading):
    """A heading's anchor in DocC: words joined by hyphens, without punctuation."""
    return re.sub(r'-+', '-', re.sub(r'[^\w\-]', '', heading.strip().replace(' ', '-')))


class Catalogue:
    def __init__(self, graphs, folder):
        self.folder = folder
        self.pages = pages()
        self.faults = []
        self.modules = {}
        for path in graphs.glob('*.symbols.json'):
            graph = json.loads(path.read_text())
            self.modules[graph['module']['name']] = {symbol['pathComponents'][0] for symbol in graph['symbols']}

    def symbol(self, name):
        """The place of a public type; nil if several modules have the name, or none."""
        found = [module for module, names in self.modules.items() if name in names]
        return f'``{found[0]}/{name}``' if len(found) == 1 else None

    def write(self):
        for path, name in self.pages.items():
            if path.startswith('Sources/'):
                self.article(ROOT / path)
            elif path != 'docs/decisions':
                self.page(path, name)
        decisions = sorted(name for path, name in self.pages.items() if path.startswith('docs/decisions/'))
        (self.folder / 'decisions.md').write_text(
            '# Decisions\n\nDecisions that were weighed, each with its context, its reasons and what was rejected.\n\n'
            '## Topics\n\n### In their order\n' + ''.join(f'- <doc:{name}>\n' for name in decisions))
        if self.faults:
            sys.exit('\n'.join(self.faults))

    def article(self, path):
        """A page of a library's own catalogue: its links to names begin in this library."""
        module = path.parent.stem
        (self.folder / path.name).write_text(re.sub(
            r'(?<!# )``(?=(\w+))', lambda match: f'``{module}/' if match[1] in self.modules[module] else '``',
            path.read_text()))

    def page(self, path, name):
        """A page that people also read in the repository."""
        text = (ROOT / path).read_text()
        contents = ''
        if name == FRONT:
            text, table = text.split(CONTENTS)
            contents = self.contents(table)
            text = text.replace('\n', '\n\n@Metadata {\n  @TechnologyRoot\n}\n', 1)
        begin, said = 0, []
        for code in CODE.finditer(text):
            said += [self.prose(path, text[begin:code.start()]), code[1] or '']
            begin = code.end()
        said.append(self.prose(path, text[begin:]))
        (self.folder / f'{name}.md').write_text(''.join(said) + contents)

    def prose(self, path, text):
        said, begin = [], 0
        for link in LINK.finditer(text):
            said += [self.named(text[begin:link.start()]), self.link(path, link)]
            begin = link.end()
        return ''.join(said) + self.named(text[begin:])

    def named(self, text):
        lines = [line if line.startswith('#') else
                 SPAN.sub(lambda match: self.symbol(match[1]) or match[0], line) for line in text.split('\n')]
        return '\n'.join(lines)

    def link(self, path, link):
        image, words, target = link.groups()
        if re.match(r'https?:', target):
            return link[0]
        place, _, wanted = target.partition('#')
        file = (ROOT / path).parent.joinpath(place).resolve() if place else ROOT / path
        if not file.exists():
            self.faults.append(f'{path}: there is no {target}')
            return words
        local = str(file.relative_to(ROOT))
        if image:
            (self.folder / file.name).write_bytes(file.read_bytes())
            return f'![{words}]({file.name})'
        name = self.pages.get(local)
        if name is None:
            # A file of the repository has no page: its path tells where it is.
            return words if words.strip('`') == local else f'{words} (`{local}`)'
        if not wanted or name == FRONT and wanted in map(anchor, headings(file.read_text())):
            return f'[{words}](doc:{name})'
        for heading in headings(file.read_text()):
            if anchor(heading) == wanted:
                return f'[{words}](doc:{name}#{fragment(heading)})'
        self.faults.append(f'{path}: {local} has no heading “{wanted}”')
        return words

    def contents(self, table):
        """The topics of the front page; each guide has its place there."""
        said, listed = ['\n## Topics\n'], []
        for line in table.split('\n'):
            if line.startswith('### '):
                said.append(f'\n{line}\n')
            elif row := re.match(r'\| \[[^\]]+\]\(([^)]+)\)', line):
                listed.append(self.pages.get(row[1]))
                said.append(f'- <doc:{listed[-1]}>\n')
        said.append('\n### Libraries\n' + ''.join(f'- ``{module}``\n' for module in sorted(self.modules)))
        wanted = {name for path, name in self.pages.items() if not path.startswith(('docs/decisions/', 'Sources/'))}
        missing = sorted(wanted - set(listed) - {FRONT})
        if missing or None in listed or len(set(listed)) != len(listed):
            self.faults.append(f'README.md: “Further” lacks {missing}, or lists a page twice or one that is not there')
        return ''.join(said)


def strings(value, key):
    """All strings that stand under a key, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key and isinstance(inner, str):
                yield inner
            yield from strings(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner, key)


def nodes(node):
    yield node
    for child in node.get('children', []):
        yield from nodes(child)


def index_headings(site, data):
    """Lists each guide's headings below it, so that the search finds them too."""
    file = site / 'index/index.json'
    index = json.loads(file.read_text())
    for node in [node for root in index['interfaceLanguages']['swift'] for node in nodes(root)]:
        path = node.get('path', '')
        if node['type'] == 'article' and not re.search(r'/\d{4}-', path):
            node['children'] = [
                {'title': part['text'], 'path': f"{path}#{part['anchor']}", 'type': 'article'}
                for section in data[path].get('primaryContentSections', []) for part in section.get('content', [])
                if part['type'] == 'heading' and part['level'] == 2]
    file.write_text(json.dumps(index))


def check(site, data):
    faults = []
    for path, page in data.items():
        for target in strings(page['references'], 'url'):
            place, _, wanted = target.partition('#')
            if place.startswith('/documentation/'):
                if place not in data or not (site / place[1:] / 'index.html').exists():
                    faults.append(f'{path}: there is no page {place}')
                elif wanted and wanted not in set(strings(data[place], 'anchor')):
                    faults.append(f'{path}: {place} has no “{wanted}”')
            elif place.startswith('/'):
                if not (site / place[1:]).exists():
                    faults.append(f'{path}: there is no file {place}')
            elif not target.startswith(('https:', 'http:')):
                faults.append(f'{path}: “{target}” leads nowhere')
    if faults or len(data) < 500:
        sys.exit('\n'.join(faults) or f'docs: only {len(data)} pages')
    print(f'docs: {len(data)} pages, and every link leads somewhere')


def main():
    if sys.argv[1] == 'catalogue':
        folder = pathlib.Path(sys.argv[3])
        folder.mkdir(parents=True)
        Catalogue(pathlib.Path(sys.argv[2]), folder).write()
    else:
        site = pathlib.Path(sys.argv[2])
        data = {f'/{path.relative_to(site / "data").with_suffix("")}': json.loads(path.read_text())
                for path in (site / 'data').rglob('*.json')}
        check(site, data)
        index_headings(site, data)
        # The site's own address leads to its first page.
        (site / 'index.html').write_text(f'<meta http-equiv="refresh" content="0; url=/documentation/{FRONT}/">')


main()
