"""Writes the documentation's Swift as files, so that a build tells whether it compiles.

  snippets.py FOLDER             makes a module, FOLDER/Page…/Page.swift, for each page with ```swift blocks
  snippets.py --examples FOLDER  makes FOLDER/….swift for each source file whose doc comments have such blocks

Declarations at the margin stand at the top of the page's module; all else is the body of one
function, one block after the other, so that a block may use what one above it has made. What a
reader needs not see stands in comments:

  <!-- swift                  code that is compiled with the page's blocks
  let token = "…"
  -->
  <!-- swift: new scope -->   what comes next may use names again

The example of a doc comment is the body of a function of its own, apart from its extensions. It may use the names that
example_names.swift declares.
"""
import pathlib
import re
import sys

DECLARATION = re.compile(
    r'(@\w+(\([^)]*\))?\s+)*(public |private |final |indirect )*'
    r'(struct|class|enum|actor|protocol|extension|func)\b')


def pages(root):
    yield root / 'README.md'
    yield from sorted((root / 'docs').glob('*.md'))
    yield from sorted((root / 'Sources').glob('*/*.docc/**/*.md'))


def pieces(text):
    """(line number, kind, code) of all blocks and hidden pieces, in order."""
    pattern = re.compile(
        r'^```swift\n(.*?)^```$|^<!-- swift\n(.*?)^-->$|^(<!-- swift: new scope -->)$',
        re.M | re.S)
    for match in pattern.finditer(text):
        line = text.count('\n', 0, match.start()) + 2
        if match.group(3):
            yield line, 'scope', ''
        else:
            yield line, 'code', match.group(1) if match.group(1) is not None else match.group(2)


def chunks(lines):
    """(first line, whether it is a declaration, lines): a declaration ends with its last brace."""
    chunk, begin, depth, inside = [], 0, 0, False
    for index, text in enumerate(lines):
        if not inside and DECLARATION.match(text):
            if any(line.strip() for line in chunk):
                yield begin, False, chunk
            chunk, begin, depth, inside = [], index, 0, True
        chunk.append(text)
        if inside:
            depth += text.count('{') - text.count('}')
            if depth <= 0 and '}' in text:
                yield begin, True, chunk
                chunk, begin, inside = [], index + 1, False
    if any(line.strip() for line in chunk):
        yield begin, inside, chunk


def module(path, root):
    """The page as a Swift file; None for a page without blocks."""
    name = path.relative_to(root)
    imports, top, body = ['import Martlet'], [], []
    found = False
    for line, kind, code in pieces(path.read_text()):
        found = True
        if kind == 'scope':
            body.append('}\ndo {\n')
            continue
        lines = code.split('\n')
        for index, text in enumerate(lines):
            if text.startswith('import '):
                imports.append(text)
                lines[index] = ''
        for start, is_declaration, chunk in chunks(lines):
            place = f'#sourceLocation(file: "{name}", line: {line + start})\n'
            code = place + '\n'.join(chunk) + '\n#sourceLocation()\n'
            (top if is_declaration else body).append(code)
    if not found:
        return None
    return ('\n'.join(dict.fromkeys(imports)) + '\n\n' + ''.join(top)
            + 'func page() async throws {\ndo {\n' + ''.join(body) + '}\n}\n')


EXAMPLE = re.compile(r'^( *)/// ```swift\n(.*?)^\1/// ```$', re.M | re.S)


def examples(path, root):
    """The examples of a file's doc comments, as a Swift file; None if there are none."""
    name, text = path.relative_to(root), path.read_text()
    functions, top = [], []
    for number, match in enumerate(EXAMPLE.finditer(text)):
        line = text.count('\n', 0, match.start()) + 2
        code = re.sub(rf'^{match[1]}/// ?', '', match[2], flags=re.M)
        body = []
        for start, _, chunk in chunks(code.split('\n')):
            place = f'#sourceLocation(file: "{name}", line: {line + start})\n'
            is_extension = chunk[0].startswith('extension ')
            (top if is_extension else body).append(place + '\n'.join(chunk) + '\n#sourceLocation()\n')
        actor = '@MainActor ' if '@MainActor' in text else ''
        functions.append(f'{actor}private func example{number}() async throws {{\n' + ''.join(body) + '}\n')
    if not functions:
        return None
    modules = ['Foundation', 'Martlet', path.parts[path.parts.index('Sources') + 1]]
    modules += re.findall(r'^(?:\w+ )?import ((?!C[A-Z])\w+)$', text, re.M)
    said = ''.join(f'import {module}\n' for module in dict.fromkeys(modules)) + ''.join(top) + ''.join(functions)
    # Code for one platform has its examples there.
    for condition in dict.fromkeys(re.findall(r'^#if (canImport\(\w+\))', text, re.M)):
        said = f'#if {condition}\n{said}#endif\n'
    return said


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    if sys.argv[1] == '--examples':
        out = pathlib.Path(sys.argv[2])
        out.mkdir(parents=True)
        for path in sorted((root / 'Sources').rglob('*.swift')):
            if text := examples(path, root):
                (out / path.name).write_text(text)
        return
    out = pathlib.Path(sys.argv[1])
    count = 0
    for path in pages(root):
        text = module(path, root)
        if text is None:
            continue
        name = 'Page' + ''.join(
            word.capitalize() for word in re.findall(r'[A-Za-z0-9]+', path.stem))
        (out / name).mkdir(parents=True)
        (out / name / 'Page.swift').write_text(text)
        count += 1
    print(f'snippets: {count} pages')


main()
