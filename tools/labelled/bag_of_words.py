# SPDX-License-Identifier: Apache-2.0
"""Bags of words with scikit-learn: one text in classes; two texts by what they share; the likeliest of four endings."""
import numpy
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # scikit-learn needs it, too

STRENGTHS = (1, 10)  # C, chosen on dev
PRODUCTS = 1 << 18  # hashed
WORDS_LEFT, WORDS_RIGHT = 12, 20  # of a text, those with the largest TF-IDF
ITERATIONS, TOLERANCE = 1000, 1e-3


def accuracy(labels, rows):
    return sum(found == row["label"] for found, row in zip(labels, rows)) / len(rows)


def choose(fit, label, rows):
    """The best on dev of what fit(C) makes: (model, C)."""
    models = [(fit(c), c) for c in STRENGTHS]
    return max(models, key=lambda m: accuracy(label(m[0]), rows))


# ---- One text.
def predict_text(parts):
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, max_features=100000)
    x = {"train": words.fit_transform(row["text"] for row in parts["train"])}
    x.update({part: words.transform(row["text"] for row in parts[part]) for part in ("dev", "test")})
    gold = [row["label"] for row in parts["train"]]
    model, c = choose(lambda c: LogisticRegression(C=c, max_iter=ITERATIONS, tol=TOLERANCE).fit(x["train"], gold), lambda m: m.predict(x["dev"]), parts["dev"])
    return {part: list(map(str, model.predict(x[part]))) for part in ("dev", "test")}, {"C": c, "features": len(words.vocabulary_)}


# ---- Two texts.
def strongest(row, most):
    """Columns of a sparse row's largest values."""
    if len(row.indices) <= most:
        return row.indices
    return row.indices[numpy.argsort(-row.data, kind="stable")[:most]]


class Pairs:
    """Features of pairs of texts: overlap, and products of words."""

    def __init__(self, pairs):
        texts = [t for pair in pairs for t in pair]
        self.words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts)
        self.characters = TfidfVectorizer(sublinear_tf=True, min_df=3, analyzer="char_wb", ngram_range=(4, 4), max_features=50000).fit(texts)
        self.scaler = self.kept = None  # those of the first pairs, which are train's

    def overlap(self, a, b, pairs):
        def cosine(v):
            return numpy.asarray(v.transform(p[0] for p in pairs).multiply(v.transform(p[1] for p in pairs)).sum(axis=1)).ravel()
        shared = a.astype(bool).multiply(b.astype(bool))
        idf = sparse.diags(self.words.idf_)
        weight = numpy.asarray((shared @ idf).sum(axis=1)).ravel()
        left, right = (numpy.asarray((m.astype(bool) @ idf).sum(axis=1)).ravel() for m in (a, b))
        columns = [cosine(self.words), cosine(self.characters), numpy.asarray(shared.sum(axis=1)).ravel(), weight,
                   weight / numpy.maximum(left, 1), weight / numpy.maximum(right, 1), numpy.log1p(left), numpy.log1p(right)]
        return numpy.stack(columns, axis=1)

    def products(self, a, b):
        indices, starts = [], [0]
        for k in range(a.shape[0]):
            left, right = strongest(a[k], WORDS_LEFT).astype(numpy.int64), strongest(b[k], WORDS_RIGHT).astype(numpy.int64)
            both = numpy.unique((left[:, None] * 1000003 + right[None, :] * 7919) % PRODUCTS)
            indices.append(both)
            starts.append(starts[-1] + len(both))
        sizes = numpy.maximum(numpy.diff(starts), 1)
        values = numpy.repeat(1 / numpy.sqrt(sizes), numpy.diff(starts))
        return sparse.csr_matrix((values, numpy.concatenate(indices), starts), shape=(a.shape[0], PRODUCTS))

    def features(self, pairs):
        a, b = (self.words.transform(p[k] for p in pairs).tocsr() for k in (0, 1))
        overlap, products = self.overlap(a, b, pairs), self.products(a, b)
        if not self.scaler:
            self.scaler = StandardScaler().fit(overlap)
            self.kept = numpy.flatnonzero(products.getnnz(axis=0) >= 2)
        return sparse.hstack([sparse.csr_matrix(self.scaler.transform(overlap)), products[:, self.kept]]).tocsr()


def fit_binary(x, gold):
    return lambda c: LogisticRegression(C=c, max_iter=ITERATIONS, tol=TOLERANCE).fit(x, gold)


def predict_pair(parts):
    texts = {part: [(row["text"], row["text2"]) for row in parts[part]] for part in parts}
    pairs = Pairs(texts["train"])
    x = {part: pairs.features(texts[part]) for part in ("train", "dev", "test")}
    gold = [row["label"] for row in parts["train"]]
    model, c = choose(fit_binary(x["train"], gold), lambda m: m.predict(x["dev"]), parts["dev"])
    return {part: list(map(str, model.predict(x[part]))) for part in ("dev", "test")}, {"C": c}


# ---- Four endings.
def predict_endings(parts):
    texts = {part: [(row["sent1"], row[f"ending{k}"]) for row in parts[part] for k in range(4)] for part in parts}
    pairs = Pairs(texts["train"])
    x = {part: pairs.features(texts[part]) for part in ("train", "dev", "test")}
    gold = [str(k) == row["label"] for row in parts["train"] for k in range(4)]

    def labels(model, part):
        return list(map(str, model.decision_function(x[part]).reshape(-1, 4).argmax(axis=1)))
    model, c = choose(fit_binary(x["train"], gold), lambda m: labels(m, "dev"), parts["dev"])
    return {part: labels(model, part) for part in ("dev", "test")}, {"C": c}


def predict(task, parts):
    """({part: labels}, what was chosen). On one thread: the same sums on every machine."""
    with threadpool_limits(1):
        return {"section": predict_text, "synopsis": predict_pair, "endings": predict_endings}[task](parts)
