#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clients_judge.py MASKBERT: the official clients of OpenAI and of Cohere against maskbert serve, on small random models. Vectors are those
of /embed, rankings those of /rerank, refusals the clients' own exceptions. Exit code 77 (skipped) where a client is not installed."""
import pathlib
import sys
import tempfile

try:
    import cohere
    import openai
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.dont_write_bytecode = True
from routes_test import LONG, make_cross_encoder, unit, with_server  # noqa: E402
from serve_test import make_model, run, texts_of  # noqa: E402

TEXTS = texts_of(5, 30)


def close(ours, theirs):
    assert len(ours) == len(theirs) and all(abs(a - b) < 1e-6 for a, b in zip(ours, theirs)), (ours[:3], theirs[:3])


def check_openai(server, ids):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    _, plain = server.post("/embed", {"inputs": TEXTS})
    for named in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(model="any", input=TEXTS, **named)
        assert answer.model == "any" and answer.usage.total_tokens == sum(map(len, ids))
        for k, one in enumerate(answer.data):
            assert one.index == k
            if named.get("encoding_format") != "base64":  # which the client hands on as text if it was asked for
                close(one.embedding, plain[k])
    close(client.embeddings.create(model="any", input=TEXTS[0]).data[0].embedding, plain[0])
    close(client.embeddings.create(model="any", input=ids[1]).data[0].embedding, plain[1])
    for k, one in enumerate(client.embeddings.create(model="any", input=ids).data):
        close(one.embedding, plain[k])
    close(client.embeddings.create(model="any", input=TEXTS[0], dimensions=9).data[0].embedding, plain[0][:9])
    more = {"normalize": True, "truncate": True}
    close(client.embeddings.create(model="any", input=[TEXTS[0], LONG], dimensions=9, extra_body=more).data[0].embedding, unit(plain[0][:9]))
    assert [m.id for m in client.models.list()] == ["model"]
    for kind, named in ((openai.BadRequestError, {"input": [-1]}), (openai.BadRequestError, {"input": "a", "dimensions": 65}),
                        (openai.APIStatusError, {"input": LONG})):
        try:
            client.embeddings.create(model="any", **named)
        except kind as e:
            assert e.body["type"] == "invalid_request_error" and e.body["message"], e.body
        else:
            raise AssertionError(named)
    try:
        client.chat.completions.create(model="any", messages=[])
    except openai.NotFoundError as e:
        assert "/v1/embeddings" in str(e), e
    else:
        raise AssertionError("chat")


def check_cohere(server):
    _, truth = server.post("/rerank", {"query": "the river", "texts": TEXTS})
    url = f"http://127.0.0.1:{server.port}"
    for client in cohere.ClientV2(base_url=url, api_key="none"), cohere.Client(base_url=url, api_key="none"):
        answer = client.rerank(model="any", query="the river", documents=TEXTS, top_n=3)
        assert [(r.index, round(r.relevance_score, 6)) for r in answer.results] == [(r["index"], round(r["score"], 6)) for r in truth[:3]], answer


def main():
    maskbert = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        folder = pathlib.Path(folder)
        model = make_model(maskbert, folder)
        lines = run(maskbert, "tokenize", model, stdin="".join(f"{t}\n" for t in TEXTS))
        ids = [[int(k) for k in line.split()] for line in lines.splitlines()]
        cross = make_cross_encoder(model, folder / "cross")
        assert with_server(maskbert, model, folder / "log", lambda server: check_openai(server, ids)) == 0
        assert with_server(maskbert, cross, folder / "log2", check_cohere) == 0
    print(f"ok   openai {openai.__version__}, cohere {cohere.__version__}")


main()
