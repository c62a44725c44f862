"""Prints free ports of the loopback interface, each another one.

  free_ports.py COUNT
"""
import socket
import sys

sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(('127.0.0.1', 0))
print(*[one.getsockname()[1] for one in sockets])
