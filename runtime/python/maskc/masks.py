# SPDX-License-Identifier: Apache-2.0
"""Masks that compile() and apply() accept: text for the library, an array of bytes [L, H, n, n], or Runs."""
import atexit
import os
import shutil
import tempfile
import threading

from ._library import Error
from .arguments import check_dense, path_of, text_of
from .hooks import is_torch
from .runs import MOST_ARRAY, Runs, from_array, from_sparse

LOCK = threading.Lock()
FILES = {}  # texts of several lines: where they were written, in FOLDER
FOLDER = 0, ""  # (the process, its folder), which live equally long

MOST_DENSE = 1 << 33  # bytes of an array
BATCH_HINT = "The sequences of a batch share the mask; lengths= (padding) or offsets= (a packed batch) tell them apart"


def is_block_mask(mask):
    return type(mask).__name__ == "BlockMask" and hasattr(mask, "mask_mod")


def is_sparse(mask):
    """A matrix or an array of scipy.sparse."""
    return hasattr(mask, "tocsr") and hasattr(mask, "nnz")


def is_mask_mod(mask):
    return callable(mask) and not hasattr(mask, "__array__") and not is_block_mask(mask)


def mask_argument(mask, n=None, heads=None):
    """(text, None), or (None, a contiguous numpy uint8 array [L, H, n, n], or Runs of a longer mask)."""
    if isinstance(mask, str):
        return (mask_file(mask) if "\n" in text_of("mask", mask) else mask), None
    if isinstance(mask, os.PathLike):
        return path_of("mask", mask), None
    if isinstance(mask, Runs):
        return None, mask
    if is_sparse(mask):
        return None, from_sparse(mask)
    if isinstance(mask, (list, tuple)) and any(is_sparse(m) for m in mask):
        raise Error(2, "mask: a sparse matrix is the mask of one head, a list of them is not accepted; an array [H, n, n] or maskc.Runs has several heads")
    if is_block_mask(mask) or is_mask_mod(mask):
        from .flex import flex_runs
        return None, flex_runs(mask, n, heads)
    return None, dense_array(mask)


def order_array(order):
    """None, or uint32 [n] of a list, an array or a .npy file. Whether it is a permutation is the library's to say."""
    if order is None:
        return None
    try:
        import numpy
    except ImportError:
        raise Error(3, "an order needs numpy") from None
    if isinstance(order, (str, os.PathLike)):
        try:
            order = numpy.load(path_of("order", order), allow_pickle=False)
        except (OSError, ValueError) as e:
            raise Error(2, f"order: {e}".split("\n", 1)[0]) from None
        if isinstance(order, numpy.lib.npyio.NpzFile):
            order.close()
            raise Error(2, "order: a .npz file; a .npy file with whole numbers [n] is expected")
    if is_torch(order):
        check_dense("order", order)
        order = order.detach().cpu()
    array = numpy.asarray(order)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise Error(2, f"order: {array.dtype} {list(array.shape)}; whole numbers [n] are expected")
    if array.min() < 0 or array.max() >= array.size:
        raise Error(2, f"order: numbers of 0 to {array.size - 1}, each once, are expected")
    return numpy.ascontiguousarray(array, dtype=numpy.uint32)


def remove_folder(process, path):
    """At exit. A forked child leaves its parent's folder."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def own_folder():
    """The folder of this process. Forked children make one of their own; so does a process whose folder was removed."""
    global FOLDER  # pylint: disable=global-statement
    if FOLDER[0] != os.getpid() or not os.path.isdir(FOLDER[1]):
        FOLDER = os.getpid(), tempfile.mkdtemp(prefix="maskc-")
        FILES.clear()
        atexit.register(remove_folder, *FOLDER)
    return FOLDER[1]


def mask_file(text):
    """Several lines of the mask language are a file to the library. It is written again if it was removed."""
    with LOCK:
        folder = own_folder()
        path = FILES.setdefault(text, os.path.join(folder, f"{len(FILES)}.mask"))
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return path


def dense_array(mask):
    """Makes runs from a bool or integer array [n, n], [H, n, n] or [L, H, n, n] of numpy or torch.
    A long array is not copied."""
    try:
        import numpy
    except ImportError:
        raise Error(3, "an array as mask needs numpy") from None
    if is_torch(mask):
        check_dense("mask", mask, other=", or a matrix of scipy.sparse")
        mask = mask.detach().cpu().numpy() if not mask.dtype.is_floating_point else mask.detach().float().cpu().numpy()
    try:
        array = numpy.asarray(mask)
    except ValueError:
        raise Error(2, "mask: rows of different lengths; [n, n], [H, n, n] or [L, H, n, n] is expected") from None
    if array.dtype.kind not in "biu":
        raise Error(2, f"mask: an array of {array.dtype}; bool is expected, True where a query sees a key (compare a float mask first: mask > t)")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise Error(2, "mask: negative values; bool is expected, True where a query sees a key")
    if array.ndim > 4:
        raise Error(2, f"mask: shape {list(array.shape)}; [n, n], [H, n, n] or [L, H, n, n] is expected. {BATCH_HINT}")
    if not 2 <= array.ndim <= 4 or array.shape[-1] != array.shape[-2] or 0 in array.shape:
        raise Error(2, f"mask: shape {list(array.shape)}; [n, n], [H, n, n] or [L, H, n, n] is expected")
    if array.size > MOST_DENSE:
        raise Error(2, f"mask: {array.size} entries; an array may have {MOST_DENSE}, a longer mask is given as text")
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if array.shape[-1] > MOST_ARRAY:
        return from_array(array if array.dtype == bool else array != 0)
    return numpy.ascontiguousarray(array != 0).view(numpy.uint8)
