"""Checks that a library's first page lists each public name of the library once, under one of its headings.

  api_list.py GRAPH PAGE     GRAPH is the library's symbol graph, as `swift symbolgraph-extract` writes it
"""
import json
import pathlib
import re
import sys

graph, page = map(pathlib.Path, sys.argv[1:])
symbols = json.loads(graph.read_text())['symbols']
names = {symbol['pathComponents'][0] for symbol in symbols if len(symbol['pathComponents']) == 1}
listed = re.findall(r'^- ``([A-Za-z]+)``$', page.read_text(), re.M)
missing = sorted(names - set(listed))
double = sorted({name for name in listed if listed.count(name) > 1})
if missing or double:
    sys.exit(f'docs: {page.name} lists no place for {missing}, and twice {double}')
