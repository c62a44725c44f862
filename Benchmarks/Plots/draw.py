#!/usr/bin/env python3
"""draw.py LINES FOLDER [png]: draws records.svg and devices.svg; the same lines give the same bytes."""
import collections
import json
import os
import sys

import matplotlib

matplotlib.use('svg')
matplotlib.rcParams.update({
    'svg.hashsalt': 'martlet', 'svg.fonttype': 'none', 'font.family': 'DejaVu Sans', 'font.size': 9,
    'axes.grid': True, 'grid.color': '#dddddd', 'axes.axisbelow': True,
})
import matplotlib.pyplot as plt  # noqa: E402

COLORS = ['#1b5e9b', '#c8501e', '#2e7d4f', '#7a4fa3']
PARTS = {
    'records': ('records in the data set', [
        ('To a usable store, from a snapshot', 's', [
            ('snapshot, to a usable store', 'to a usable store', {100_000: 1.2, 1_000_000: 10}),
            ('snapshot, server CPU of a download', 'server CPU of a download', {100_000: 0.1}),
            ('making a snapshot, server CPU', 'server CPU of making one', {}),
        ]),
        ('Bytes of a snapshot, gzip', 'MB', [('snapshot, gzip', 'gzip', {100_000: 7, 1_000_000: 80})]),
        ('POST /sync, median', 'ms', [
            ('100 behind, latency', '100 behind', 2), ('1 behind, latency', '1 behind', 0.5),
            ('idle sync, latency', 'nothing new', 0.3),
        ]),
        ('Server CPU of a /sync', 'ms', [
            ('100 behind, server CPU', '100 behind', {}), ('1 behind, server CPU', '1 behind', {}),
            ('idle sync, server CPU', 'nothing new', 0.08),
        ]),
        ('On the device, median', 'ms', [
            ('durable local save of one record', 'durable save of one record', {}),
            ('query by key on the device', 'query by key', {}),
        ]),
        ('Server memory, resident', 'MiB', [('server resident memory', 'after all of this', {})]),
    ]),
    'devices': ('devices at once', [
        ('Sets of one record, durable', 'sets/s', [
            ('file, sets of one record: rate', 'file', {50: 4_000}),
            ('PostgreSQL, sets of one record: rate', 'PostgreSQL + Redis', {50: 2_500}),
        ]),
        ('Latency of a set of one record', 'ms', [
            ('file, sets of one record: median latency', 'file, p50', {}),
            ('file, sets of one record: 99th percentile latency', 'file, p99', {50: 30}),
            ('PostgreSQL, sets of one record: median latency', 'PostgreSQL + Redis, p50', {}),
            ('PostgreSQL, sets of one record: 99th percentile latency', 'PostgreSQL + Redis, p99', {50: 50}),
        ]),
        ('Server CPU of a set of one record', 'ms', [
            ('file, sets of one record: server CPU', 'file', {50: 0.25}),
            ('PostgreSQL, sets of one record: server CPU', 'PostgreSQL + Redis', {50: 0.3}),
        ]),
        ('Idle syncs', 'syncs/s', [
            ('file, idle syncs: rate', 'file', {50: 6_000}),
            ('PostgreSQL, idle syncs: rate', 'PostgreSQL + Redis', {}),
        ]),
    ]),
}


def read(path):
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(path) as file:
        for line in file:
            entry = json.loads(line)
            _, series, rest = entry['name'].split('/', 2)
            point, what = rest.split(': ', 1)
            found[series][what][int(point)] = entry['median']
    return found


def draw(series, found, path):
    axis_name, parts = PARTS[series]
    columns = 3 if len(parts) > 4 else 2
    figure, axes = plt.subplots(len(parts) // columns, columns, figsize=(4.2 * columns, 3.4 * (len(parts) // columns)))
    for axis, (title, unit, lines) in zip(axes.flat, parts):
        for color, (what, label, target) in zip(COLORS, lines):
            points = sorted(found[what].items())
            # A logarithm has no place for what is below the clock's resolution.
            points = [(x, y) for x, y in points if y > 0]
            if not points:
                continue
            axis.plot(*zip(*points), marker='o', markersize=4, color=color, label=label)
            if isinstance(target, dict):
                marks = sorted(target.items())
                if marks:
                    axis.plot(*zip(*marks), marker='x', markersize=8, linestyle='none', color=color,
                              label='target: ' + label)
            else:
                axis.axhline(target, linestyle='--', linewidth=1, color=color, label='target: ' + label)
        axis.set(title=title, xlabel=axis_name, ylabel=unit, xscale='log', yscale='log')
        ticks = sorted({x for what, _, _ in lines for x in found[what]})
        axis.set_xticks(ticks, [f'{x:,}' for x in ticks])
        axis.minorticks_off()
        low, high = axis.get_ylim()
        # At least a decade, so that what is flat looks flat.
        while high / low < 10:
            low, high = low / 1.3, high * 1.3
        axis.set_ylim(low, high)
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5), numticks=12))
        axis.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda y, _: f'{y:,.6g}'))
        axis.legend(fontsize=7, framealpha=0.5)
    figure.tight_layout()
    metadata = {'Date': None, 'Creator': None} if path.endswith('svg') else None
    figure.savefig(path, metadata=metadata, dpi=110)
    plt.close(figure)


found = read(sys.argv[1])
ending = sys.argv[3] if len(sys.argv) > 3 else 'svg'
for series in PARTS:
    if found[series]:
        draw(series, found[series], os.path.join(sys.argv[2], f'{series}.{ending}'))
