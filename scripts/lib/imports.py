"""Prints the modules that a kit or another target of the product imports, as Package.swift names them,
without the C libraries.

  imports.py TARGET
"""
import re
import sys

manifest = open('Package.swift').read()
found = re.search(r'^    (?:kit|code)\(\s*"%s",?([^)]*)\),' % sys.argv[1], manifest, re.M)
names = re.findall(r'"(\w+)"', found.group(1)) if found else []
print(*[name for name in names if not re.match(r'C[A-Z]', name)])
