#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""routes_test.py MASKBERT: what OpenAI's, Cohere's and Jina's clients send to maskbert serve, and what they get.

/v1/embeddings is compared with /embed, in floats and base64, with ids and dimensions; /rerank with the scores of `maskbert classify`
on a cross-encoder; errors with their documented form; a text whose output is not finite fails alone;
a request during the shutdown. Closes with cmocka's lines."""
import base64
import http.client
import json
import math
import pathlib
import random
import struct
import sys
import tempfile
import threading

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / x) for x in ("model", "train", "train/objective")]
import finetune_toy  # noqa: E402
from serve_test import Server, make_model, run, texts_of  # noqa: E402

LONG = "the " * 5000
WIDTH = 64  # of make_model


def make_cross_encoder(model, folder):
    """The model with a classifier of one label, whose values are random. `classify` prints its logits."""
    blob = (model / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header, data = json.loads(blob[8:8 + size]), blob[8 + size:]
    draw = random.Random(5)
    for name, shape in (("classifier.weight", [1, WIDTH]), ("classifier.bias", [1])):
        count = math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *(draw.gauss(0, 0.5) for _ in range(count)))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config.update(architectures=["BertForSequenceClassification"], problem_type="regression", id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for path in model.iterdir():
        if path.name not in ("model.safetensors", "config.json") and path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


class Checks:
    def __init__(self):
        self.count, self.fails = 0, []

    def that(self, holds, what):
        self.count += 1
        if not holds:
            self.fails.append(what)

    def near(self, ours, theirs, what, limit=1e-5):
        near = len(ours) == len(theirs) and all(abs(a - b) <= limit * max(1, abs(b)) for a, b in zip(ours, theirs))
        self.that(near, f"{what}: {str(ours)[:80]}, {str(theirs)[:80]} expected")


def unit(x):
    length = math.sqrt(sum(a * a for a in x))
    return [a / length for a in x]


def vectors_of(answer):
    ret = []
    for k, one in enumerate(answer["data"]):
        assert one["object"] == "embedding" and one["index"] == k
        x = one["embedding"]
        ret.append(list(struct.unpack(f"<{len(x) * 3 // 16}f", base64.b64decode(x))) if isinstance(x, str) else x)
    return ret


# ---- /v1/embeddings ----

def check_embeddings(c, server, ids):
    texts = texts_of(4, 30)
    _, plain = server.post("/embed", {"inputs": texts})
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        status, answer = server.post("/v1/embeddings", {"input": texts, "model": "any-name", "user": "u", **form})
        c.that(status == 200 and answer["object"] == "list" and answer["model"] == "any-name", f"embeddings: {status} {str(answer)[:90]}")
        used = sum(map(len, ids))
        c.that(answer["usage"] == {"prompt_tokens": used, "total_tokens": used}, f"usage {answer['usage']}, {used} tokens")
        for ours, theirs in zip(vectors_of(answer), plain):
            c.near(ours, theirs, f"vectors with {form}", 1e-6)
    for value, expected in ((texts[0], plain[:1]), (ids[0], plain[:1]), (ids, plain), ([ids[1]], plain[1:2])):
        status, answer = server.post("/v1/embeddings", {"input": value})
        c.that(status == 200 and len(answer["data"]) == len(expected), f"input {str(value)[:40]}: {status}")
        for ours, theirs in zip(vectors_of(answer), expected):
            c.near(ours, theirs, f"input {str(value)[:40]}")
    for more, expected in (({"dimensions": 10}, plain[0][:10]), ({"normalize": True}, unit(plain[0])), ({"normalize": False}, plain[0]),
                           ({"dimensions": 10, "normalize": True}, unit(plain[0][:10])), ({"dimensions": WIDTH}, plain[0])):
        _, answer = server.post("/v1/embeddings", {"input": texts[0], "encoding_format": "base64", **more})
        c.near(vectors_of(answer)[0], expected, f"vectors with {more}")
    _, answer = server.post("/embed", {"inputs": texts[0], "normalize": True})
    c.near(answer[0], unit(plain[0]), "/embed with normalize")


def check_refusals(c, server):
    for body, status, parameter in (
            ("{", 400, None), ("[]", 400, None), ({}, 400, "input"), ({"input": None}, 400, "input"), ({"input": []}, 400, "input"),
            ({"input": [[]]}, 400, "input"), ({"input": [1, "a"]}, 400, "input"), ({"input": ["a", 1]}, 400, "input"), ({"input": [[1], "a"]}, 400, "input"),
            ({"input": [1.5]}, 400, "input"), ({"input": [-1]}, 400, "input"), ({"input": [[10**9]]}, 400, "input"), ({"input": {}}, 400, "input"),
            ({"input": [5] * 5000}, 413, "input"), ({"input": ["a"] * 2049}, 413, "input"), ({"input": LONG}, 413, None),
            ({"input": "a", "dimensions": 0}, 400, "dimensions"), ({"input": "a", "dimensions": WIDTH + 1}, 400, "dimensions"),
            ({"input": "a", "dimensions": 1.5}, 400, "dimensions"), ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format"),
            ({"input": "a", "model": 3}, 400, "model"), ({"input": "a", "normalize": 1}, 400, "normalize"), ({"input": "a", "inputs": "a"}, 400, "inputs")):
        code, answer = server.ask("POST", "/v1/embeddings", body if isinstance(body, str) else json.dumps(body))
        error = json.loads(answer).get("error", {})
        c.that(code == status and isinstance(error.get("message"), str) and error.get("param") == parameter and "\n" not in error["message"]
               and error.get("type") == "invalid_request_error" and "code" in error, f"{str(body)[:40]}: {code} {answer[:120]}, {status} expected")
    code, answer = server.post("/v1/embeddings", {"input": LONG, "truncate": True})
    c.that(code == 200 and len(answer["data"]) == 1, f"truncate: {code}")
    code, _ = server.ask("GET", "/v1/embeddings")
    c.that(code == 405, f"GET /v1/embeddings: {code}")
    code, answer = server.post("/v1/rerank", {"query": "a", "texts": ["b"]})
    c.that(code == 404 and "message" in answer["error"], f"a model without classifier: {code} {answer}")
    code, answer = server.ask("GET", "/v1/models")
    models = json.loads(answer)
    c.that(code == 200 and models["object"] == "list" and [m["id"] for m in models["data"]] == ["model"], f"/v1/models: {answer[:99]}")
    for path in "/nope", "/v1/nope":
        code, answer = server.post(path, {})
        said = answer["error"]["message"] if path.startswith("/v1/") else answer["error"]
        c.that(code == 404 and "/v1/embeddings" in said, f"{path}: {answer}")


def check_mixed(c, server):
    """Requests that run together keep their own options, and a small budget of tokens changes no answer."""
    texts = texts_of(24, 60)
    _, plain = server.post("/embed", {"inputs": texts})
    seen = [None] * len(texts)

    def ask(k):
        more = {"normalize": bool(k % 2), "encoding_format": "base64" if k % 3 else "float"}
        seen[k] = server.post("/v1/embeddings", {"input": LONG if k % 8 == 7 else texts[k], **more})
    clients = [threading.Thread(target=ask, args=(k,)) for k in range(len(texts))]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for k, (code, answer) in enumerate(seen):
        if k % 8 == 7:
            c.that(code == 413, f"mixed {k}: {code}")
        else:
            c.near(vectors_of(answer)[0], unit(plain[k]) if k % 2 else plain[k], f"mixed {k}")


# ---- /rerank ----

def check_ranking(c, server, maskbert, model):
    query, texts = "the river", texts_of(9, 20)
    said = run(maskbert, "classify", model, "--json", stdin="".join(f"{query}\t{t}\n" for t in texts))
    logits = [json.loads(line)["values"][0] for line in said.splitlines()]
    order = sorted(range(len(texts)), key=lambda k: -logits[k])
    c.that(max(logits) - min(logits) > 1e-3, f"scores that differ: {logits}")
    code, answer = server.post("/rerank", {"query": query, "texts": texts})
    c.that(code == 200 and [r["index"] for r in answer] == order and all(set(r) == {"index", "score"} for r in answer), f"/rerank: {code} {str(answer)[:99]}")
    c.near([r["score"] for r in answer], [1 / (1 + math.exp(-logits[k])) for k in order], "scores")
    code, answer = server.post("/rerank", {"query": query, "texts": texts, "raw_scores": True, "return_text": True, "top_n": 3})
    c.near([r["score"] for r in answer], [logits[k] for k in order[:3]], "raw scores")
    c.that([r["text"] for r in answer] == [texts[k] for k in order[:3]], f"texts: {str(answer)[:99]}")
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        code, answer = server.post(path, {"model": "m", "query": query, "documents": texts[:-1] + [{"text": texts[-1]}], "top_n": 2, "return_documents": True, "max_tokens_per_doc": None})
        best = answer["results"]
        c.that(code == 200 and answer["model"] == "m" and [r["index"] for r in best] == order[:2] and answer["usage"]["total_tokens"] > 0
               and [r["document"]["text"] for r in best] == [texts[k] for k in order[:2]], f"{path}: {code} {str(answer)[:99]}")
        c.near([r["relevance_score"] for r in best], [1 / (1 + math.exp(-logits[k])) for k in order[:2]], f"scores of {path}")
    code, answer = server.post("/rerank", {"query": query, "texts": []})
    c.that(code == 200 and answer == [], f"no texts: {code} {answer}")
    for body, status in (({"texts": ["a"]}, 400), ({"query": "a"}, 400), ({"query": "a", "texts": "b"}, 400), ({"query": 3, "texts": ["b"]}, 400),
                         ({"query": "a", "texts": ["b"], "documents": ["b"]}, 400), ({"query": "a", "texts": [3]}, 400),
                         ({"query": "a", "documents": [{"text": "b", "x": 1}]}, 400), ({"query": "a", "texts": ["b"], "top_n": 0}, 400),
                         ({"query": "a", "texts": ["b"], "max_tokens_per_doc": 9}, 400), ({"query": "a", "texts": ["b", LONG]}, 413),
                         ({"query": LONG, "texts": ["b"]}, 413), ({"query": LONG, "texts": ["b"], "truncate": True}, 200)):
        code, answer = server.post("/rerank", body)
        c.that(code == status and (code == 200 or isinstance(answer["error"], str)), f"/rerank {str(body)[:50]}: {code} {str(answer)[:80]}, {status} expected")


def check_pairs(c, server, maskbert, model):
    """A tab makes a text a pair for /classify, as in a line of the command."""
    lines = ["the river\tstone light", "the river stone light", "a\tb\tc", "the\t", "\tof"]
    said = [json.loads(line)["values"] for line in run(maskbert, "classify", model, "--json", stdin="".join(f"{t}\n" for t in lines)).splitlines()]
    c.that(abs(said[0][0] - said[1][0]) > 1e-4, f"a pair is not its texts in one: {said[:2]}")
    for value, expected in ((lines, said), (lines[0], said[:1])):
        code, answer = server.post("/classify", {"inputs": value})
        c.that(code == 200, f"/classify: {code} {str(answer)[:80]}")
        for ours, theirs in zip(answer, expected, strict=True):
            c.near(ours["values"], theirs, f"/classify {str(value)[:40]}")


# ---- names in refusals ----

def check_names(c, server):
    """Refusals quote the beginning of a name in whole characters, and replace bytes that are not UTF-8."""
    name = "a" + "\u00e9" * 100
    for path, key in (("/v1/embeddings", "input"), ("/embed", "inputs")):
        code, answer = server.post(path, {key: "a", name: 1})
        said = answer["error"]["message"] if path.startswith("/v1/") else answer["error"]
        c.that(code == 400 and said.startswith(f"'{name[:32]}': only {key}"), f"{path}: {code} {str(answer)[:120]}")
        c.that(not path.startswith("/v1/") or answer["error"]["param"] == name, f"{path}: {str(answer)[:120]}")
    for path, quoted in (("/%ff%fe", "/\ufffd\ufffd"), ("/v1/x" + "%c3%a9" * 40, "/v1/x" + "\u00e9" * 29)):
        code, content = server.ask("GET", path)
        error = json.loads(content)["error"]
        said = error["message"] if path.startswith("/v1/") else error
        c.that(code == 404 and said.startswith(f"'{quoted}': /embed, "), f"{path}: {code} {content}")


# ---- the end ----

def refused_at_end(server, requests):
    """Status, header and reply of a request to a server that was told to end and still has this much work; None: it had ended."""
    def work():
        try:
            server.post("/embed", {"inputs": texts_of(256, 100)})
        except (OSError, http.client.HTTPException):
            pass  # it came too late
    clients = [threading.Thread(target=work) for _ in range(requests)]
    for client in clients:
        client.start()
    while server.metric("maskbert_waiting") < 2 and any(client.is_alive() for client in clients):
        pass
    watch, late = (http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(2))
    try:
        for connection in (watch, late):
            connection.request("GET", "/health")
            connection.getresponse().read()
        server.process.terminate()
        closes = None
        while closes != "close":
            watch.request("GET", "/health")
            reply = watch.getresponse()
            reply.read()
            closes = reply.headers["Connection"]
        late.request("POST", "/embed", '{"inputs": "a"}')
        reply = late.getresponse()
        return reply.status, reply.headers["Connection"], json.loads(reply.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        for client in clients:
            client.join()


def check_end(c, maskbert, model, folder):
    """A request in the time of the last replies is refused with the reason, and its connection is closed."""
    seen = None
    for requests in (8, 64, 256):  # a fast machine needs more work
        server = Server(maskbert, model, folder / "log4")
        seen = refused_at_end(server, requests)
        code = server.process.wait(timeout=60)
        c.that(code == 0, f"the server ended with {code}")
        if seen:
            break
    c.that(seen == (503, "close", {"error": "the server is ending"}), f"at the end: {seen}")


# ---- output that is not finite ----

def check_not_finite(c, server, path, key, word):
    """A text with this word overflows. It fails its own request with one error; those that run in the same batch are answered."""
    if path == "/fill-mask":
        code, answer = server.post(path, {key: f"the {word} [MASK]"})
        c.that(code == 500 and answer == {"error": "the model's output for text 0 is not finite"}, f"{path}: {code} {str(answer)[:80]}")
        return
    good, bad = texts_of(12, 9), [f"the {word} of stone"]
    good = [[" ".join(w for w in t.split() if w != word) or "the"] for t in good]
    asked = [x for pair in zip(good, [["the", *bad]] * len(good)) for x in pair]
    seen = [None] * len(asked)

    def ask(k):
        seen[k] = server.post(path, {key: asked[k], **({"query": "the"} if path == "/rerank" else {})})
    clients = [threading.Thread(target=ask, args=(k,)) for k in range(len(asked))]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for k, (code, answer) in enumerate(seen):
        if k % 2 == 0:
            c.that(code == 200, f"{path}: a good text: {code} {str(answer)[:80]}")
            continue
        error = answer.get("error", {}) if isinstance(answer, dict) else {}
        c.that(code == 500 and (error["message"] if path.startswith("/v1") else error) == "the model's output for text 1 is not finite", f"{path}: {code} {str(answer)[:80]}")


def check_overflow(c, maskbert, model, cross, folder):
    for of, asked in ((model, (("/embed", "inputs"), ("/v1/embeddings", "input"), ("/fill-mask", "inputs"))), (cross, (("/classify", "inputs"), ("/rerank", "texts")))):
        finetune_toy.overflow(of, "word_embeddings.weight", "river")
        c.that(with_server(maskbert, of, folder / "log3", lambda s, asked=asked: [check_not_finite(c, s, *a, "river") for a in asked]) == 0, "a server ended with an error")


def with_server(maskbert, model, log, check, *options):
    server = Server(maskbert, model, log, *options)
    try:
        check(server)
    finally:
        code = server.stop()
    return code


def main():
    maskbert, c = sys.argv[1], Checks()
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        folder = pathlib.Path(folder)
        model = make_model(maskbert, folder)
        lines = "".join(f"{t}\n" for t in texts_of(4, 30))
        ids = [[int(k) for k in line.split()] for line in run(maskbert, "tokenize", model, stdin=lines).splitlines()]

        def embeddings(server):
            check_embeddings(c, server, ids)
            check_refusals(c, server)
            check_mixed(c, server)
            check_names(c, server)
        c.that(with_server(maskbert, model, folder / "log", embeddings, "--batch-tokens", "128") == 0, "the server ended with an error")
        cross = make_cross_encoder(model, folder / "cross")

        def pairs(server):
            check_ranking(c, server, maskbert, cross)
            check_pairs(c, server, maskbert, cross)
        c.that(with_server(maskbert, cross, folder / "log2", pairs) == 0, "the second server ended with an error")
        check_end(c, maskbert, model, folder)
        check_overflow(c, maskbert, model, cross, folder)
    for fail in c.fails:
        print(fail)
    print(f"[  PASSED  ] {c.count - len(c.fails)} test(s).\n[  FAILED  ] {len(c.fails)} test(s).")
    return int(bool(c.fails))


if __name__ == "__main__":
    sys.exit(main())
