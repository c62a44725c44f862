"""What the runs came to: a line of JSON for each case, as in the other benchmarks, and a table."""
import json
import statistics

# Whose figures stand beside whose: they keep the data in the same way.
PAIRS = (('Martlet, PostgreSQL', 'Kinto'), ('Martlet, SQLite', 'Anki'))


def rounded(number):
    return float(f'{number:.4g}')


def shown(number):
    return f'{rounded(number):,.0f}' if abs(number) >= 1_000 else f'{float(f"{number:.3g}"):g}'


class Report:
    """Samples of the rounds: those of one round were taken one after the other."""

    def __init__(self, group, machine):
        self.group, self.machine = group, machine
        self.samples = {}

    def add(self, peer, cases):
        for name, unit, value in cases:
            self.samples.setdefault((name, unit), {}).setdefault(peer, []).append(value)

    def ratio(self, players, pair):
        """Martlet's figure over the peer's, the middle of the rounds; nothing where one has none."""
        mine, theirs = (players.get(name, []) for name in pair)
        found = [one / other for one, other in zip(mine, theirs) if other]
        return statistics.median(found) if found else None

    def line(self, name, unit, samples):
        ordered = sorted(samples)
        middle = statistics.median(ordered)
        distance = ordered[len(ordered) * 3 // 4] - ordered[len(ordered) // 4]
        print(json.dumps({
            'machine': self.machine, 'median': rounded(middle), 'name': f'peers/{self.group}/{name}',
            'samples': len(samples), 'spread': rounded(distance / middle) if middle else 0,
            'unit': unit}, ensure_ascii=False), flush=True)

    def print(self, names):
        for (case, unit), players in self.samples.items():
            for name, samples in players.items():
                self.line(f'{name}: {case}', unit, samples)
            for pair in PAIRS:
                ratio = self.ratio(players, pair)
                if ratio is not None:
                    self.line(f'{pair[0]} ÷ {pair[1]}: {case}', 'x', [
                        one / other for one, other in zip(*(players[name] for name in pair)) if other])
        print()
        pairs = [pair for pair in PAIRS if set(pair) <= set(names)]
        heads = [self.group, *names, *(' ÷ '.join(pair) for pair in pairs)]
        print(f'| {" | ".join(heads)} |\n|{" --- |" * len(heads)}')
        for (case, unit), players in self.samples.items():
            cells = [f'{case}, {unit}']
            cells += [shown(statistics.median(players[name])) if name in players else ''
                      for name in names]
            ratios = [self.ratio(players, pair) for pair in pairs]
            cells += ['' if ratio is None else shown(ratio) for ratio in ratios]
            print(f'| {" | ".join(cells)} |')
        print(flush=True)
