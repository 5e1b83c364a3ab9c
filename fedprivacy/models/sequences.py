"""Models of the next token at each position of a text: a recurrent network and a small transformer.

Both are written out of linear layers, for which `torch.func.vmap` has rules: it has none for `nn.GRU`.
Tokens become one-hot vectors, whose product with a matrix is the row of the token: a number that is no token
has none, and raises nothing.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn


class OneHot(nn.Module):
    """Tokens as vectors with a single 1, shape (..., tokens).

    Args:
        tokens: The number of tokens.
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens

    def extra_repr(self) -> str:
        return f"tokens={self.tokens}"

    def forward(self, records: Tensor) -> Tensor:
        return (records[..., None] == torch.arange(self.tokens, device=records.device)).to(records.dtype)


class _Recurrence(torch.autograd.Function):
    """The states of a gated recurrent layer (Cho et al. 2014), with the cell of `nn.GRU`.

    Autograd would add a matrix to the gradient of the weights at each position, for each client or record;
    here it is one product over all positions.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(inputs: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """The states after each position, and what the way back reads; each (records, positions, width).

        Args:
            inputs: What tokens add to the gates, shape (records, positions, 3 width).
            weight: What states add to them, shape (3 width, width).
            bias: Shape (3 width,).
        """
        state = torch.zeros_like(inputs[:, 0, : weight.shape[1]])
        steps: list[tuple[Tensor, ...]] = []
        for at_position in inputs.unbind(1):
            before, of_state = state, torch.nn.functional.linear(state, weight, bias)
            reset, update, new = at_position.chunk(3, dim=-1)
            reset_of_state, update_of_state, new_of_state = of_state.chunk(3, dim=-1)
            reset, update = torch.sigmoid(reset + reset_of_state), torch.sigmoid(update + update_of_state)
            new = torch.tanh(new + reset * new_of_state)
            state = new + update * (before - new)
            steps.append((state, before, reset, update, new, new_of_state))
        return tuple(torch.stack(parts, dim=1) for parts in zip(*steps, strict=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        """Keeps what the way back reads."""
        _, weight, _ = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(weight, *output[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of inputs, weight and bias from that of the states."""
        weight, *steps = ctx.saved_tensors
        back = torch.zeros_like(gradient[:, 0])
        of_inputs: list[Tensor] = []
        of_states: list[Tensor] = []
        positions = zip(gradient.unbind(1), *(part.unbind(1) for part in steps), strict=True)
        for at_position, before, reset, update, new, new_of_state in reversed(list(positions)):
            back = back + at_position
            of_new = back * (1.0 - update) * (1.0 - new * new)
            of_reset = of_new * new_of_state * reset * (1.0 - reset)
            of_update = back * (before - new) * update * (1.0 - update)
            of_inputs.append(torch.cat([of_reset, of_update, of_new], dim=-1))
            of_states.append(torch.cat([of_reset, of_update, of_new * reset], dim=-1))
            back = back * update + of_states[-1] @ weight
        by_state = torch.stack(of_states[::-1], dim=1).flatten(0, 1)
        return torch.stack(of_inputs[::-1], dim=1), by_state.mT @ steps[0].flatten(0, 1), by_state.sum(dim=0)


class Recurrent(nn.Module):
    """The recurrent weights of a gated layer: no linear layer, since each position applies them.

    Args:
        width: The width of the state.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3 * width, width))
        self.bias = nn.Parameter(torch.empty(3 * width))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def forward(self, inputs: Tensor) -> Tensor:
        """The states after each position, shape (records, positions, width)."""
        states: Tensor = _Recurrence.apply(inputs, self.weight, self.bias)[0]
        return states


class Gru(nn.Sequential):
    """A gated recurrent network of one layer: the logits of the next token at each position.

    From tokens, shape (records, positions), to shape (records, positions, tokens).

    Args:
        tokens: The number of tokens.
        embedding: The width of a token's embedding.
        width: The width of the state.
    """

    def __init__(self, tokens: int, embedding: int, width: int) -> None:
        super().__init__()
        self.one_hot = OneHot(tokens)
        self.embedding = nn.Linear(tokens, embedding, bias=False)
        self.input = nn.Linear(embedding, 3 * width)
        self.recurrent = Recurrent(width)
        self.output = nn.Linear(width, tokens)
        nn.init.normal_(self.embedding.weight)


class Attention(nn.Module):
    """Causal attention of several heads (Vaswani et al. 2017): a position reads those up to itself.

    Args:
        width: The width of a position.
        heads: The number of heads, a divisor of the width.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, inputs: Tensor) -> Tensor:
        """Attends, shape (records, positions, width)."""
        parts = self.input(inputs).unflatten(-1, (3, self.heads, -1)).movedim(1, 3)
        queries, keys, values = parts.unbind(1)  # (records, heads, positions, width of a head)
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        places = torch.arange(inputs.shape[1], device=inputs.device)
        weights = scores.masked_fill(places > places[:, None], -math.inf).softmax(dim=-1)
        outputs: Tensor = self.output((weights @ values).movedim(1, 2).flatten(2))
        return outputs


class Block(nn.Module):
    """One layer of a transformer: attention, then a network at each position, each after LayerNorm.

    Args:
        width: The width of a position.
        heads: The number of heads of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.network_norm = nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, inputs: Tensor) -> Tensor:
        inputs = inputs + self.attention(self.attention_norm(inputs))
        outputs: Tensor = inputs + self.network(self.network_norm(inputs))
        return outputs


class Transformer(nn.Module):
    """A causal transformer with learned positions.

    Args:
        tokens: The number of tokens.
        positions: The length of a text.
        width: The width of a position.
        layers: The number of layers.
        heads: The number of heads of each attention.
    """

    def __init__(self, tokens: int, positions: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.one_hot = OneHot(tokens)
        self.embedding = nn.Linear(tokens, width, bias=False)
        self.position = nn.Parameter(torch.empty(positions, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, tokens)
        nn.init.normal_(self.embedding.weight, std=0.1)
        nn.init.normal_(self.position, std=0.1)

    def forward(self, records: Tensor) -> Tensor:
        """The logits, from tokens of shape (records, positions) to shape (records, positions, tokens)."""
        outputs: Tensor = self.output(
            self.norm(self.blocks(self.embedding(self.one_hot(records)) + self.position))
        )
        return outputs


SEQUENCES = (Gru, Transformer)
