"""Starts scripts/databases twice. Kills the process that started it the first time, and the script itself
the second time, with SIGKILL. The servers must end then; the caller checks this.

  killed_databases.py           does both
  killed_databases.py start     starts the script, prints its process id when it is ready, and waits
"""
import os
import signal
import subprocess
import sys


def start():
    script = subprocess.Popen(
        ['scripts/databases', 'serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in script.stdout:
        if line.strip() == 'ready':
            print(script.pid, flush=True)
            break
    script.wait()


def kill(victim):
    starter = subprocess.Popen(
        [sys.executable, sys.argv[0], 'start'], stdout=subprocess.PIPE, text=True)
    script = int(starter.stdout.readline())
    os.kill(starter.pid if victim == 'starter' else script, signal.SIGKILL)
    starter.wait()


if sys.argv[1:] == ['start']:
    start()
else:
    kill('starter')
    kill('script')
