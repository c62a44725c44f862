"""Processes: their start and end, what they have cost, and the machine they run on."""
import ctypes
import os
import platform
import signal
import socket
import subprocess
import threading
import time


class Failure(Exception):
    """A sentence for whoever runs the comparison."""


def describe():
    """Processor, cores, system."""
    with open('/proc/cpuinfo') as file:
        names = [line.split(':')[1].strip() for line in file if line.startswith('model name')]
    system = platform.freedesktop_os_release().get('PRETTY_NAME', platform.system())
    return f'{(names or ["unknown processor"])[0]}, {os.cpu_count()} cores, {system}'


def tree(root):
    """A process and all that came from it."""
    children = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open(f'/proc/{name}/stat') as file:
                    parent = int(file.read().rsplit(')', 1)[1].split()[1])
                children.setdefault(parent, []).append(int(name))
            except OSError:
                pass  # gone meanwhile
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def processor_seconds(roots):
    """CPU seconds of process trees by now, exact to the nanosecond. What has ended no longer counts;
    the servers keep their processes while they are measured."""
    total = 0
    for process in {process for root in roots for process in tree(root)}:
        try:
            total += time.clock_gettime((~process << 3) | 2)  # clock_getcpuclockid(3)
        except OSError:
            pass
    return total


def named(parent, prefix):
    """The children of a process whose names begin so."""
    found = []
    for process in tree(parent):
        try:
            with open(f'/proc/{process}/comm') as file:
                if process != parent and file.read().startswith(prefix):
                    found.append(process)
        except OSError:
            pass
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def until(answers, process, name, patience=60):
    """Waits for a server to answer."""
    limit = time.monotonic() + patience
    while not answers():
        if process.poll() is not None:
            raise Failure(f'{name} ended at once')
        if time.monotonic() > limit:
            raise Failure(f'{name} does not answer')
        time.sleep(0.02)


def listens(port):
    try:
        with socket.create_connection(('127.0.0.1', port), 1):
            return True
    except OSError:
        return False


class Child:
    """A server of ours: it goes when we go, even where we are killed."""

    def __init__(self, command, log, **more):
        self.log = log
        with open(log, 'ab') as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=file, start_new_session=True,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGTERM),  # PR_SET_PDEATHSIG
                **({'stdout': file} | more))

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Relay:
    """Passes bytes on and counts them: for clients that do not say how much they transfer. Runs that
    are timed do not go through it."""

    def __init__(self, port):
        self.target = port
        self.received = 0
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
                server = socket.create_connection(('127.0.0.1', self.target))
            except OSError:
                return
            for source, sink, down in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=(source, sink, down), daemon=True).start()

    def pump(self, source, sink, down):
        try:
            while part := source.recv(1 << 16):
                if down:
                    self.received += len(part)
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.socket.close()
