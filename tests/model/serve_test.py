#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_test.py MASKBERT [--model DIR] [--seconds S] [--connections N]: maskbert serve under load.

Clients with texts of mixed lengths keep asking and compare every answer with what `maskbert embed`
says, beside clients that hang, cut off, send 100 MB, trickle, or send garbage. At the end the server
must have answered right, hold at most 200 MB more than after its first answer, and end with 0 on
SIGTERM. Closes with cmocka's lines, so that tools/count_tests adds it up; the long run of the
documents is --seconds 120 --connections 64 --model DIR.
"""
import argparse
import http.client
import json
import pathlib
import random
import select
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

WORDS = ("the a of river stone light morning water under over hand green old small great house "
         "north winter bird paper glass bread iron silver quiet early").split()
MORE_MEMORY = 200 << 20


def texts_of(count, longest):
    draw = random.Random(7)
    return [" ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest)))
            for _ in range(count)]


def run(*command, stdin=None):
    made = subprocess.run([str(c) for c in command], input=stdin, capture_output=True, text=True,
                          check=False)
    if made.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {made.stderr}")
    return made.stdout


def make_model(maskbert, folder):
    """A small model with a vocabulary of the words above."""
    vocabulary = folder / "vocab.txt"
    run(maskbert, "vocab", "--size", "200", "-o", vocabulary, stdin=" ".join(WORDS * 3) + "\n")
    run(maskbert, "init", "--size", "2x64x2", "--vocab", vocabulary, "--std", "0.1", "-o",
        folder / "model")
    return folder / "model"


class Server:
    def __init__(self, maskbert, model, log, *more):
        self.log = open(log, "w+", encoding="utf-8")
        self.process = subprocess.Popen([maskbert, "serve", model, "--port", "0", *more],
                                        stderr=self.log)
        self.port = self.wait_for_port()

    def wait_for_port(self):
        for _ in range(1200):
            self.log.seek(0)
            found = re.search(r"listening on http://[^:]+:(\d+)", self.log.read())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.log.seek(0)
        raise SystemExit(f"the server did not start: {self.log.read()}")

    def ask(self, method, path, body=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body)
        except BrokenPipeError:
            pass  # refused before all of the body was sent: the answer is there
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def post(self, path, value):
        status, content = self.ask("POST", path, json.dumps(value))
        return status, json.loads(content)

    def metric(self, name):
        _, text = self.ask("GET", "/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines()
                   if line.startswith(name))

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


# ---- clients ----

class Load:
    """Requests of well-behaved clients, with their times, wrong answers and refusals."""

    def __init__(self, server, texts, vectors, deadline):
        self.server, self.texts, self.vectors, self.deadline = server, texts, vectors, deadline
        self.lock = threading.Lock()
        self.times, self.wrong, self.refused = [], [], 0

    def client(self, seed):
        draw = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while time.monotonic() < self.deadline:
            chosen = [draw.randrange(len(self.texts)) for _ in range(draw.choice((1, 1, 1, 4)))]
            path, key = draw.choice((("/embed", "inputs"), ("/v1/embeddings", "input")))
            begin = time.monotonic()
            try:
                connection.request("POST", path, json.dumps({key: [self.texts[k] for k in chosen]}))
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as e:
                with self.lock:
                    self.wrong.append(f"no answer: {e}")
                connection.close()
                continue
            self.note(answer.status, content, chosen, time.monotonic() - begin)
        connection.close()

    def note(self, status, content, chosen, seconds):
        right = status == 200
        if right:
            said = json.loads(content)
            for k, vector in zip(chosen, [x["embedding"] for x in said["data"]] if isinstance(said, dict) else said, strict=True):
                far = max(abs(a - b) for a, b in zip(vector, self.vectors[k]))
                right = right and far < 1e-4 * max(map(abs, self.vectors[k]))
        with self.lock:
            if status == 503:
                self.refused += 1
            elif right:
                self.times.append(seconds)
            else:
                self.wrong.append(f"status {status}, texts {chosen}")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def hang(port):
    s = connect(port)
    s.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    return s


def cut_off(port):
    s = connect(port)
    s.sendall(b'POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n{"inputs":"the river ston"}')
    s.close()


def send_much(port):
    s = connect(port)
    try:
        s.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(100):
            s.sendall(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
    except OSError:
        pass
    s.close()


def send_garbage(port):
    s = connect(port)
    try:
        s.sendall(random.Random(3).randbytes(5000))
        s.recv(100)
    except OSError:
        pass
    s.close()


def be_bad(port, deadline):
    held = []
    while time.monotonic() < deadline:
        try:
            held.append(hang(port))
            cut_off(port)
            send_garbage(port)
            send_much(port)
        except OSError:
            pass
        time.sleep(0.2)
    return held


# ---- checks ----

def check_words(server, fails):
    """Statuses, one by one."""
    many = {"inputs": ["a"] * 257}
    for method, path, body, status in (
            ("GET", "/health", None, 200), ("HEAD", "/metrics", None, 200), ("GET", "/embed", None, 405), ("GET", "/nope", None, 404),
            ("POST", "/embed", "{", 400), ("POST", "/embed", '{"inputs":3}', 400),
            ("POST", "/embed", '{"inputs":["a",3]}', 400), ("POST", "/embed", "[]", 400),
            ("POST", "/embed", '{"inputs":"a","x":1}', 400), ("POST", "/embed", '{"inputs":[]}', 200),
            ("POST", "/embed", '{"inputs":"\\u0000"}', 200), ("POST", "/embed", '{"inputs":"\\ud83d"}', 400), ("POST", "/embed", b'{"inputs":"\xff"}', 400),
            ("POST", "/embed", json.dumps(many), 413), ("POST", "/embed", '{"inputs":""}', 200),
            ("POST", "/embed", " " * (1 << 20) + "{}", 413), ("POST", "/classify", "{}", 404),
            ("POST", "/embed", '{"inputs":"a","truncate":1}', 400),
            ("POST", "/embed", '{"inputs":"' + "the " * 5000 + '"}', 413),
            ("POST", "/embed", '{"inputs":"' + "the " * 5000 + '","truncate":true}', 200)):
        said, content = server.ask(method, path, body)
        if said != status:
            fails.append(f"{method} {path} {str(body)[:40]}: {said}, {status} expected")
        if path != "/metrics" and not isinstance(json.loads(content), (dict, list)):
            fails.append(f"{path}: {content[:80]}")


def check_contents(server, fails):
    """A NUL changes nothing, as on a line of `maskbert embed`. Long texts are refused beside others in the same batch."""
    _, plain = server.post("/embed", {"inputs": ["the river", "river the"]})
    status, nul = server.post("/embed", {"inputs": ["the ri\0ver\0", "\0river the"]})
    if status != 200 or nul != plain:
        fails.append(f"a NUL in a text: {status}, {str(nul)[:60]}, {str(plain)[:60]}")
    long = "the " * 5000
    asked = [({"inputs": ["the river", "river the"]}, 200), ({"inputs": ["a", long]}, 413), ({"inputs": long, "truncate": True}, 200)] * 4
    seen = [None] * len(asked)

    def ask(k):
        seen[k] = server.post("/embed", asked[k][0])
    clients = [threading.Thread(target=ask, args=(k,)) for k in range(len(asked))]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    for (body, status), (said, content) in zip(asked, seen):
        right = said == status and (status != 200 or len(content) == (2 if isinstance(body["inputs"], list) else 1))
        if status == 413:
            right = right and "text 1 has more than" in content["error"]
        elif isinstance(body["inputs"], list) and right:
            right = all(abs(a - b) < 1e-5 for one, other in zip(content, plain) for a, b in zip(one, other))
        if not right:
            fails.append(f"{str(body)[:40]}: {said}, {status} expected: {str(content)[:80]}")


def check_slow(server, fails):
    """A client that sends a byte a second receives 408 and is cut off. One that sends nothing is cut off before that."""
    with connect(server.port) as s, connect(server.port) as silent:
        s.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
        begin, said = time.monotonic(), b""
        s.settimeout(0.5)
        while time.monotonic() - begin < 20 and not said:
            try:
                s.sendall(b"{")
                said = s.recv(100)
            except TimeoutError:
                continue
            except OSError:
                break
        fails += [f"a slow client was told {said[:40]}"] * (not said.startswith(b"HTTP/1.1 408"))
        fails += ["a silent client is kept"] * (not select.select([silent], [], [], 0)[0])


def check_fill(server, fails):
    status, said = server.post("/fill-mask", {"inputs": ["the [MASK] house", "no gap"]})
    if status == 404:
        return
    counts = [len(one["masks"]) for one in said]
    if status != 200 or counts != [1, 0] or len(said[0]["masks"][0]["words"]) != 5:
        fails.append(f"/fill-mask: {status} {str(said)[:100]}")
    for more, expected in (({}, 413), ({"truncate": True}, 200)):
        status = server.post("/fill-mask", {"inputs": ["a", "the " * 5000], **more})[0]
        fails += [f"/fill-mask, a long text: {status}, {expected} expected"] if status != expected else []


def vectors_of(maskbert, model, texts, folder):
    out = folder / "vectors.jsonl"
    lines = folder / "lines.txt"
    lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
    run(maskbert, "embed", model, "--input", lines, "-o", out)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def load(server, texts, vectors, o, fails):
    server.post("/embed", {"inputs": texts[:8]})
    before = server.metric("process_resident_memory_bytes")
    deadline = time.monotonic() + o.seconds
    seen = Load(server, texts, vectors, deadline)
    clients = [threading.Thread(target=seen.client, args=(k,)) for k in range(o.connections)]
    clients.append(threading.Thread(target=be_bad, args=(server.port, deadline)))
    most = before
    for c in clients:
        c.start()
    while any(c.is_alive() for c in clients):
        most = max(most, server.metric("process_resident_memory_bytes"))
        time.sleep(0.5)
    for c in clients:
        c.join()
    if seen.wrong or not seen.times:
        fails.append(f"{len(seen.wrong)} wrong of {len(seen.times)}: {seen.wrong[:3]}")
    if most - before > MORE_MEMORY and not o.any_memory:
        fails.append(f"memory grew by {(most - before) / 2**20:.0f} MB")
    times = sorted(seen.times) or [0]
    print(f"{o.connections} connections, {o.seconds} s: {len(times) / o.seconds:.0f} requests/s, median "
          f"{1e3 * times[len(times) // 2]:.1f} ms, 99 % {1e3 * times[len(times) * 99 // 100]:.1f} ms; "
          f"{len(seen.wrong)} wrong, {seen.refused} refused (503); memory {before / 2**20:.0f} MB, at "
          f"most {most / 2**20:.0f} MB")


def check(o):
    fails = []
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        folder = pathlib.Path(folder)
        model = o.model or make_model(o.maskbert, folder)
        texts = texts_of(200, 100)
        vectors = vectors_of(o.maskbert, model, texts, folder)
        server = Server(o.maskbert, model, folder / "log")
        try:
            check_words(server, fails)
            check_fill(server, fails)
            check_contents(server, fails)
            slow = threading.Thread(target=check_slow, args=(server, fails))
            slow.start()
            load(server, texts, vectors, o, fails)
            slow.join()
        finally:
            code = server.stop()
        if code:
            server.log.seek(0)
            fails.append(f"the server ended with {code}: {server.log.read()[-2000:]}")
    return fails


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("maskbert")
    p.add_argument("--model", type=pathlib.Path, help="default: a small random one")
    p.add_argument("--seconds", type=int, default=5)
    p.add_argument("--connections", type=int, default=16)
    p.add_argument("--any-memory", action="store_true", help="for a build with sanitizers")
    o = p.parse_args()
    if subprocess.run([o.maskbert, "serve", "--help"], capture_output=True, check=False).returncode:
        print("this maskbert has no serve\n[  SKIPPED ] 1 test(s).")
        return 0
    fails = check(o)
    for fail in fails:
        print(fail)
    print(f"[  PASSED  ] {int(not fails)} test(s).\n[  FAILED  ] {int(bool(fails))} test(s).")
    return int(bool(fails))


if __name__ == "__main__":
    sys.exit(main())
