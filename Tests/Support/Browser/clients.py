"""A WebSocket client and a real browser as listeners of a running server.

clients.py ADDRESS OTHER ALLOWED CHROMIUM: ADDRESS is the server's, OTHER and ALLOWED are ports on
which to serve a page of an origin the server refuses, and of one it was told of. The token is
"falcon-secret"; the data set has the type teams(id, name).
"""

import asyncio
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import websockets
from websockets.asyncio.client import connect

TOKEN = "falcon-secret"
PAGE = b"<!doctype html><title>Martlet</title>"
sent = 0


def commit(address):
    """Makes one team; returns its name and the moment of the answer."""
    global sent
    sent += 1
    name = f"Team {sent}"
    request = json.dumps({
        "clientId": "device-1", "protocol": 1, "maxRevision": sent - 1, "changeSets": [{
            "identifier": f"set-{sent}", "sequence": sent, "types": ["teams"],
            "teams": {"create": [-sent], "update": [], "delete": [],
                      "attributes": {f"-{sent}": {"name": name}}}}]})
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(
            address + "/sync", request.encode(), headers)) as answer:
        assert answer.status == 200
    return name, time.monotonic()


def check(condition, sentence):
    if not condition:
        sys.exit(f"websocket: {sentence}")


async def library(address):
    """The client from PyPI: header, first message, push, ping, refusals, closing."""
    url = address.replace("http", "ws", 1) + "/deltas?since=0"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    name, _ = commit(address)
    # It offers permessage-deflate; the server passes that over.
    async with connect(url, additional_headers=headers) as socket:
        batch = json.loads(await socket.recv())
        check(name in batch["deltas"][0]["p"], "the first batch lacks the first team")
        check(not socket.protocol.extensions, "an extension was agreed on")
        await (await socket.ping())
        name, moment = commit(address)
        batch = json.loads(await asyncio.wait_for(socket.recv(), 5))
        check(time.monotonic() - moment < 1, "a change took longer than a second")
        check(name in batch["deltas"][0]["p"], "another change came")
        # In fragments, as a library may send.
        pull = json.dumps({"id": 7, "sync": {"maxRevision": sent, "changeSets": []}})
        await socket.send([pull[:20], pull[20:21], pull[21:]])
        answer = json.loads(await asyncio.wait_for(socket.recv(), 5))
        check(answer["id"] == 7 and answer["answer"]["maxRevision"] == sent, "no answer to a pull")
    check(socket.close_code == 1000, f"closed with {socket.close_code}")
    async with connect(url) as socket:
        await socket.send(json.dumps({"token": TOKEN}))
        check(json.loads(await socket.recv())["nextVersion"] == sent, "no batch after the token")
    async with connect(url) as socket:
        await socket.send(json.dumps({"token": "wrong"}))
        try:
            await socket.recv()
            check(False, "a wrong token was taken")
        except websockets.ConnectionClosed as closed:
            check(closed.rcvd.code == 4001, f"a wrong token closed with {closed.rcvd.code}")
    for extra, status in [({}, 101), ({"Origin": "https://evil.example"}, 403),
                          ({"Authorization": "Bearer wrong"}, 401)]:
        try:
            async with connect(url, additional_headers={**headers, **extra}
                               if "Authorization" not in extra else extra):
                found = 101
        except websockets.InvalidStatus as refused:
            found = refused.response.status_code
        check(found == status, f"{extra} was answered {found}, not {status}")


def serve_page(port):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()


# In the page: opens the socket, says the token, and keeps what happens.
LISTEN = """
window.seen = []; window.state = 'opening';
var socket = new WebSocket(%s + '/deltas?since=%d');
socket.onopen = () => { window.state = 'open'; socket.send(JSON.stringify({token: %s})); };
socket.onmessage = event => window.seen.push(event.data);
socket.onclose = event => { window.state = 'closed ' + event.code; };
"""


class Browser:
    """Chromium over its DevTools protocol."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking",
             "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"ws://\S+", line)
            if found:
                break
        else:
            sys.exit("websocket: the browser did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        port = re.search(r":(\d+)/", found[0])[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            pages = json.load(answer)
        self.url = next(p for p in pages if p["type"] == "page")["webSocketDebuggerUrl"]
        self.number = 0

    async def open(self):
        self.socket = await connect(self.url, max_size=None)

    async def call(self, method, **parameters):
        self.number += 1
        await self.socket.send(json.dumps(
            {"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await asyncio.wait_for(self.socket.recv(), 20))
            if answer.get("id") == self.number:
                return answer["result"]

    async def run(self, script):
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        check("exceptionDetails" not in result, f"the page failed: {result}")
        return result["result"].get("value")

    async def show(self, url):
        await self.call("Page.navigate", url=url)
        await self.until("document.title == 'Martlet' || document.readyState == 'complete'")

    async def until(self, condition):
        end = time.monotonic() + 20
        while not await self.run(f"Boolean({condition})"):
            check(time.monotonic() < end, f"the browser waited in vain for: {condition}")
            await asyncio.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait()


async def browser(address, other, allowed, program):
    """A page receives a change within a second; a page of another origin gets no connection."""
    socket = json.dumps(address.replace("http", "ws", 1))
    serve_page(other)
    serve_page(allowed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Browser(program, folder)
        try:
            await page.open()
            await page.call("Page.enable")
            await page.show(f"http://127.0.0.1:{allowed}/")
            await page.run(LISTEN % (socket, sent, json.dumps(TOKEN)))
            await page.until("window.state == 'open'")
            for _ in range(3):
                name, moment = await asyncio.to_thread(commit, address)
                await page.until(f"window.seen.join().includes('{name}')")
                took = time.monotonic() - moment
                check(took < 1, f"the page had the change after {took:.3f} s")
                print(f"a page in the browser had the change after {took * 1000:.0f} ms")
            await page.run("socket.send(JSON.stringify({id: 1, sync: "
                           "{maxRevision: %d, changeSets: []}}))" % sent)
            await page.until("window.seen.join().includes('\"answer\"')")
            await page.run(LISTEN % (socket, sent, json.dumps("wrong")))
            await page.until("window.state == 'closed 4001'")
            await page.show(f"http://127.0.0.1:{other}/")
            await page.run(LISTEN % (socket, sent, json.dumps(TOKEN)))
            # A refused handshake is 1006 to a page, and it learns nothing more.
            await page.until("window.state == 'closed 1006'")
            check(await page.run("window.seen.length") == 0, "a page of another origin has data")
        finally:
            page.stop()


if __name__ == "__main__":
    address, other, allowed, program = sys.argv[1:]
    asyncio.run(library(address))
    asyncio.run(browser(address, int(other), int(allowed), program))
    print("websocket: fine")
