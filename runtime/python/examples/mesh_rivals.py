# SPDX-License-Identifier: Apache-2.0
"""Ways to compute the attention of mesh.py, each a function that returns the seconds of a forward and a backward pass. All of them are
compared with the first one before they are measured."""
import time

import numpy

import maskc

try:
    import torch
except ImportError:
    torch = None


CLOCK = time.perf_counter  # mesh.py sets it


def timed(function):
    began = CLOCK()
    result = function()
    return result, CLOCK() - began


def both_passes(attend, tensors, grad, backward=True):
    """(out, (forward, backward)) of attend(q, k, v)."""
    leaves = [t.detach().requires_grad_(backward) for t in tensors]
    with torch.set_grad_enabled(backward):
        out, forward = timed(lambda: attend(*leaves))
    if not backward:
        return out, (forward, None)
    seconds = timed(lambda: out.backward(grad))[1]
    return out, (forward, seconds)


def forward_alone(attend, tensors):
    return both_passes(attend, tensors, None, False)


def additive(mask):
    """The mask as torch's kernels read it: of booleans each call would make this anew."""
    return torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)


class Rivals:
    """torch's ways. Tensors are in the order of tokens; a way that wants another order brings them there before it is timed."""

    def __init__(self, problem):
        self.rows = torch.from_numpy(problem.rows)
        self.keys = torch.from_numpy(problem.keys)
        self.n = problem.n
        self.order = torch.from_numpy(problem.orders["ordered"]) if "ordered" in problem.orders else torch.arange(self.n)

    def table(self, order):
        """The mask as bool [n, n] in that order."""
        at = order.argsort()
        table = torch.zeros(self.n, self.n, dtype=torch.bool)
        query = torch.repeat_interleave(torch.arange(self.n), self.rows.diff())
        table[at[query], at[self.keys]] = True
        return table

    def dense(self):
        """scaled_dot_product_attention with a mask [n, n]."""
        bias = additive(self.table(torch.arange(self.n)))
        return None, lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def flex(self):
        """FlexAttention, compiled, in the order of `maskc order`."""
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        table = self.table(self.order)
        blocks = create_block_mask(lambda b, h, i, j: table[i, j], None, None, self.n, self.n, device="cpu")
        compiled = torch.compile(flex_attention)
        return self.order, lambda q, k, v: compiled(q, k, v, block_mask=blocks)

    def blocks(self):
        """Block-diagonal attention: in the order of least bandwidth, each block of queries sees its own block of keys and its two
        neighbours, under the mask."""
        query = torch.repeat_interleave(torch.arange(self.n), self.rows.diff())
        import scipy.sparse
        from scipy.sparse.csgraph import reverse_cuthill_mckee
        graph = scipy.sparse.csr_matrix((numpy.ones(len(self.keys), bool), self.keys.numpy(), self.rows.numpy()), (self.n, self.n))
        order = torch.from_numpy(reverse_cuthill_mckee(graph + graph.T, True).astype(numpy.int64))
        at = order.argsort()
        size = int((at[query] - at[self.keys]).abs().max())
        count = -(-self.n // size)
        padded = count * size
        i, j = at[query], at[self.keys]
        mask = torch.zeros(count, size, 3 * size, dtype=torch.bool)
        mask[i // size, i % size, j - (i // size - 1) * size] = True
        mask[-1, self.n - (count - 1) * size:] = True  # rows that are padding: anything but nothing
        bias = additive(mask[:, None])

        def spread(t):
            """[count, H, 3 size, D]: each block with its neighbours."""
            t = torch.nn.functional.pad(t[0], (0, 0, size, padded - self.n + size))
            return t.unfold(1, 3 * size, size).permute(1, 0, 3, 2)

        def attend(q, k, v):
            q = torch.nn.functional.pad(q[0], (0, 0, 0, padded - self.n)).unflatten(1, (count, size)).transpose(0, 1)
            out = torch.nn.functional.scaled_dot_product_attention(q, spread(k), spread(v), attn_mask=bias)
            return out.transpose(0, 1).flatten(1, 2)[None, :, :self.n]
        return order, attend

    def gather(self):
        """Keys and values of each query gathered, [n, most, D], and one batch of tiny attentions."""
        count = self.rows.diff()
        most = int(count.max())
        mask = torch.arange(most) < count[:, None]
        index = torch.zeros(self.n, most, dtype=torch.int64)
        index[mask] = self.keys
        bias = additive(mask[:, None])

        def attend(q, k, v):
            out = []
            for head in range(q.shape[1]):  # all at once would need gigabytes
                keys, values = k[0, head][index], v[0, head][index]
                made = torch.nn.functional.scaled_dot_product_attention(q[0, head][:, None], keys, values, attn_mask=bias)
                out.append(made[:, 0])
            return torch.stack(out)[None]
        return None, attend

    def sparse(self):
        """torch's sparse tensors: scores of the entries, sparse softmax, sparse product."""
        query = torch.repeat_interleave(torch.arange(self.n), self.rows.diff())
        at = torch.stack((query, self.keys))

        def attend(q, k, v):
            out = []
            for head in range(q.shape[1]):
                score = (q[0, head][query] * k[0, head][self.keys]).sum(-1) * q.shape[-1] ** -0.5
                weights = torch.sparse.softmax(torch.sparse_coo_tensor(at, score, (self.n, self.n), is_coalesced=True, check_invariants=False), 1)
                out.append(torch.sparse.mm(weights, v[0, head]))
            return torch.stack(out)[None]
        return None, attend


def close(a, b, name):
    error = float(numpy.linalg.norm(a - b) / numpy.linalg.norm(b))
    if not error < 1e-4:
        raise ValueError(f"{name}: differs by {error:.2g}")


def rival(make, name, tensors, grad, expected):
    """A way that is made at its first call, and checked there."""
    made = {}

    def way():
        if not made:
            order, attend = make()
            order = torch.arange(tensors[0].shape[2]) if order is None else order
            moved = [t[:, :, order].contiguous() for t in (*tensors, grad)]
            made.update(attend=attend, tensors=moved[:3], grad=moved[3])
            out = forward_alone(attend, moved[:3])[0]
            close(out[:, :, order.argsort()].numpy(), expected, name)
        if made.get("backward", True):
            try:
                return both_passes(made["attend"], made["tensors"], made["grad"])[1]
            except (NotImplementedError, RuntimeError, torch._dynamo.exc.TorchDynamoException) as e:
                print(f"{name}: no backward pass: {str(e).splitlines()[0][:90]}")
                made["backward"] = False
        return forward_alone(made["attend"], made["tensors"])[1]
    return way


def use_clock(name):
    global CLOCK
    CLOCK = {"wall": time.perf_counter, "cpu": time.process_time}[name]


def ways(problem, arrays, names, threads):
    """By name: ours in each order, then the rivals. Ours include bringing tensors to the kernel's order and back."""
    first = next(iter(problem.kernels.values()))
    expected = maskc.attention(*arrays[:3], first)
    for name, kernel in problem.kernels.items():
        close(maskc.attention(*arrays[:3], kernel), expected, name)
    if not torch:
        return {f"maskc, {name}": (lambda k=kernel: (timed(lambda: maskc.attention(*arrays[:3], k))[1], None))
                for name, kernel in problem.kernels.items()}
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(a) for a in arrays]
    ret = {f"maskc, {name}": (lambda k=kernel: both_passes(lambda *t: maskc.attention(*t, k), tensors[:3], tensors[3])[1])
           for name, kernel in problem.kernels.items()}
    rivals = Rivals(problem) if names else None
    for name in names:
        ret[name] = rival(getattr(rivals, name), name, tensors[:3], tensors[3], expected)
    return ret
