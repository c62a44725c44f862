"""Simulates worlds until they have done a million steps, or until the time is over.

  simulate.py MARTLET SEED JOBS     worlds with the seeds from SEED on, JOBS of them at a time

The time is three minutes of processor time for each job: the time of other programs does not count.
Fails if a world fails, if a kind of fault did not occur, or if fewer than a third of a million steps
were done.
"""
import json
import resource
import subprocess
import sys
import time

martlet, seed, jobs = sys.argv[1], int(sys.argv[2]), sys.argv[3]
wanted, least, seconds, at_once = 1_000_000, 330_000, 180 * int(jobs), 50
total, faults, longest = {}, {}, 0
start = time.monotonic()


def used():
    """Seconds of processor time that the worlds have taken."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


print(f'seeds from {seed} on')
# The last round begins only if it will end in time.
while total.get('steps', 0) < wanted and used() + longest < seconds:
    begun = used()
    said = subprocess.run(
        [martlet, 'simulate', '--seed', str(seed), '--seeds', str(at_once), '--jobs', jobs,
         '--repeat', '50', '--json'], stdout=subprocess.PIPE)
    if said.returncode:
        sys.exit(said.returncode)
    result = json.loads(said.stdout)
    for name, count in result.pop('faults').items():
        faults[name] = faults.get(name, 0) + count
    for name in ('trace', 'missing'):
        result.pop(name)
    for name, count in result.items():
        total[name] = total.get(name, 0) + count
    seed += at_once
    longest = max(longest, used() - begun)
print(', '.join(f'{count:,} {name}' for name, count in total.items()))
print('faults:', ', '.join(f'{count:,} {name}' for name, count in faults.items()))
print(f'{total["steps"]:,} of {wanted:,} steps wanted, in {time.monotonic() - start:.0f} s, '
      f'{used():.0f} s of processor time')
missing = [name for name, count in faults.items() if not count]
if missing:
    sys.exit(f'simulate: faults that did not occur: {", ".join(missing)}')
if total['steps'] < least:
    sys.exit(f'simulate: only {total["steps"]} steps, at least {least} wanted; is the machine so slow?')
if not total['externalWrites']:
    sys.exit("simulate: no other program wrote to the server's file")
