# SPDX-License-Identifier: Apache-2.0
"""Makes the operators maskc::forward and maskc::backward differentiable: once, in reverse mode."""
import torch
from torch._library.autograd import Info, make_autograd_impl
from torch.autograd import forward_ad

from ._library import Error
from .torch_numbers import BY_NUMBER, traced

forward_op, backward_op = torch.ops.maskc.forward.default, torch.ops.maskc.backward.default


def raise_plain(e):
    """The operator's "maskc[CODE]: text" as an Error."""
    text = str(e)
    at = text.find("maskc[")
    if at >= 0 and text[at + 7:at + 10] == "]: ":
        raise Error(int(text[at + 6]), text[at + 10:].split("\n")[0]) from None
    if isinstance(e, NotImplementedError) or text.startswith("Multiple dispatch failed"):  # the dispatcher's
        raise TypeError(f"a tensor of a kind that is not supported; dense tensors of the CPU or a GPU are expected: {text.splitlines()[0].split('. ')[0]}") from None
    if text.startswith("maskc::"):  # the dispatcher's: an argument of another kind
        raise TypeError(text.split("\n")[0].replace("maskc::forward()", "maskc.attention:")) from None


def refuse_vmap(info, in_dims, *arguments, **named):
    raise Error(2, "vmap is not supported by maskc.attention: give it the batch as its first dimension")


BELOW_AUTOGRAD = torch._C._AutoDispatchBelowAutograd


def call_below(op, *arguments):
    """The operator below autograd."""
    if torch.compiler.is_compiling():
        return op(*arguments)
    with BELOW_AUTOGRAD():
        return op._op(*arguments)


def keep(ctx, inputs, output):
    """For the backward pass. The kernel must live until then, and is the last input where the caller has it."""
    q, k, v, op, layer, scale, lengths, starts, offsets, dropout_p, seed, bias = inputs[:12]
    out, lse = output
    ctx.save_for_backward(q, k, v, bias, out, lse, lengths, starts, offsets, seed)
    ctx.numbers = op, layer, scale, dropout_p, inputs[12] if len(inputs) > 12 else BY_NUMBER.get(op)
    ctx.mark_non_differentiable(lse)
    ctx.set_materialize_grads(False)


def refuse_second(ctx, *grads):
    raise Error(2, "second derivatives of maskc.attention are not supported")


def refuse_forward_mode(ctx, *tangents):
    raise Error(2, "forward-mode derivatives of maskc.attention are not supported: use reverse mode, as backward() does")


class Backward(torch.autograd.Function):
    """The gradients where somebody asked for a graph of them: they are right, and have no derivative themselves."""

    @staticmethod
    def forward(*arguments):
        return call_below(backward_op, *arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(refuse_second)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return refuse_vmap(info, in_dims)


class BackwardOfDuals(Backward):
    jvp = staticmethod(refuse_second)


def differentiate(arguments):
    if forward_ad._current_level >= 0:
        return BackwardOfDuals.apply(*arguments)
    if torch.is_grad_enabled():
        return Backward.apply(*arguments)
    return call_below(backward_op, *arguments)


def gradients(ctx, grad_out, _=None):
    """Gradients of the arguments of maskc::forward."""
    if grad_out is None:
        return (None,) * 12
    q, k, v, bias, out, lse, lengths, starts, offsets, seed = ctx.saved_tensors
    op, layer, scale, dropout_p, _kernel = ctx.numbers
    wanted = ctx.needs_input_grad[11]
    arguments = grad_out, q, k, v, out, lse, op, layer, scale, lengths, starts, offsets, dropout_p, seed, bias, wanted
    try:
        dq, dk, dv, dx = differentiate(arguments)
    except RuntimeError as e:
        raise_plain(e)
        raise
    return dq, dk, dv, None, None, None, None, None, None, None, None, dx if wanted else None


def own_gradients(ctx, grad_out, _=None):
    """Gradients of the arguments of maskc::forward and of the kernel."""
    return (*gradients(ctx, grad_out), None)


class TracedAttention(torch.autograd.Function):
    """O alone: a second output would take 3 us. What register_autograd makes of the same takes 35 us more a call.
    torch.compile traces no function with a jvp."""

    @staticmethod
    def forward(ctx, q, k, v, op, layer, scale, lengths, starts, offsets, dropout_p, seed, bias, kernel):
        out, lse = call_below(forward_op, q, k, v, op, layer, scale, lengths, starts, offsets, dropout_p, seed, bias)
        ctx.save_for_backward(q, k, v, bias, out, lse, lengths, starts, offsets, seed)
        ctx.numbers = op, layer, scale, dropout_p, kernel
        return out

    backward = staticmethod(own_gradients)


class Attention(TracedAttention):
    jvp = staticmethod(refuse_forward_mode)


# Past the Python of Function.apply, which has nothing to do where no transform of torch.func is at work: 1 us.
apply_attention = super(torch.autograd.Function, Attention).apply


class TracedAttentionAndSums(torch.autograd.Function):
    """O and LSE."""

    @staticmethod
    def forward(ctx, *arguments):
        output = call_below(forward_op, *arguments[:12])
        keep(ctx, arguments, output)
        return output

    backward = staticmethod(own_gradients)


class AttentionAndSums(TracedAttentionAndSums):
    jvp = staticmethod(refuse_forward_mode)


class TransformedAttention(torch.autograd.Function):
    """O and LSE for torch.func, which wants forward and context apart; that form takes 70 us more a call."""
    @staticmethod
    def forward(*arguments):
        return call_below(forward_op, *arguments[:12])

    setup_context = staticmethod(keep)
    backward, jvp = staticmethod(own_gradients), staticmethod(refuse_forward_mode)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        return refuse_vmap(info, in_dims)


def differentiable(arguments, sums):
    """(O, LSE); LSE may be None if the caller does not ask for the sums."""
    if torch._C._are_functorch_transforms_active():
        return TransformedAttention.apply(*arguments)
    return AttentionAndSums.apply(*arguments) if sums else (apply_attention(*arguments), None)


def attend_traced(name, arguments, sums):
    """(O, LSE) in code that torch.compile makes. name: the kernel's number, as text."""
    if forward_ad._current_level >= 0:
        refuse_forward_mode(None)
    q, k, v, _, *others, bias = arguments
    arguments = q, k, v, traced(name), *others, bias
    if not (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (q, k, v, bias))):
        return forward_op(*arguments)
    return TracedAttentionAndSums.apply(*arguments, None) if sums else (TracedAttention.apply(*arguments, None), None)


# ---- the operators themselves ----

def register(op, of_duals, backward, setup_context=None):
    """Like torch.library.register_autograd, which drops tangents of forward mode: of_duals() is called where there may be some.
    torch.ops.maskc.forward has the gradients of attention(), and is slower."""
    plain = make_autograd_impl(op, Info(backward, setup_context))

    def kernel(keyset, *arguments, **named):
        if forward_ad._current_level >= 0 and not torch.compiler.is_compiling():
            return of_duals(*arguments)
        return plain(keyset, *arguments, **named)
    LIBRARY.impl(op._opname, kernel, "Autograd", with_keyset=True)


LIBRARY = torch.library.Library("maskc", "IMPL")
register(forward_op, lambda *a: TransformedAttention.apply(*a, BY_NUMBER.get(a[3])), gradients, keep)
register(backward_op, BackwardOfDuals.apply, refuse_second)
