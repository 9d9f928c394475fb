"""The methods as dumb loops, one token and one row at a time, straight from the papers' equations.

Nothing here imports lexmem. Gradients come from autograd over the loops.
"""

import math

import torch
from torch import Tensor


def rms_norm(x: Tensor, gain: Tensor | None, eps: float) -> Tensor:
    y = x / torch.sqrt((x * x).sum() / len(x) + eps)
    return y if gain is None else y * gain


def softmax(scores: list[Tensor]) -> list[Tensor]:
    exponentials = [torch.exp(score) for score in scores]
    return [value / sum(exponentials) for value in exponentials]


def swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """``x W_gate``, ``x W_up`` of ``(D, F)``, ``W_down`` of ``(F, D)``."""
    g = x @ gate
    return (g * torch.sigmoid(g) * (x @ up)) @ down


def tide(n: Tensor, ids: Tensor, banks: Tensor, gain: Tensor | None, router: Tensor, null_bias: Tensor | None,
         eps: float) -> Tensor:  # fmt: skip
    """``sum_{k<=K} alpha_k RMSNorm(E_k[v])`` of every position.

    n ``(B, T, D)``, ids ``(B, T)``, banks ``(K, V, D)``, gain ``(K, D)``, router ``(K + 1, D)``, null_bias ``(1,)``.
    """
    rows = []
    for b in range(n.shape[0]):
        for t in range(n.shape[1]):
            logits = [router[k] @ n[b, t] for k in range(router.shape[0])]
            if null_bias is not None:
                logits[-1] = logits[-1] + null_bias[0]
            alpha = softmax(logits)
            y = torch.zeros_like(n[b, t])
            for k in range(banks.shape[0]):
                y = y + alpha[k] * rms_norm(banks[k, ids[b, t]], None if gain is None else gain[k], eps)
            rows.append(y)  # the null bank adds nothing
    return torch.stack(rows).view_as(n)


def l3(x: Tensor, ids: Tensor, rows_per_token: list[int], keys: Tensor, values: Tensor, up: Tensor, up_gain: Tensor,
       mix: Tensor, query_gain: Tensor | None, concat_gain: Tensor | None, scale: float, add: bool,
       eps: float, up_eps: float) -> Tensor:  # fmt: skip
    """``x + W_mix [RMSNorm(W_up(V_t^T softmax(K_t q))) ; x]`` (without ``x +`` if not ``add``) of every position.

    x ``(B, T, D)``, keys ``(v, D)``, values ``(v, E)``, up ``(U, E)``, mix ``(D, U + D)``. A gain of None leaves
    that norm (of the query, of the concatenated x) out.
    """
    first = [sum(rows_per_token[:token]) for token in range(len(rows_per_token))]
    outputs = []
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            here, token = x[b, t], int(ids[b, t])
            query = here if query_gain is None else rms_norm(here, query_gain, eps)
            own = range(first[token], first[token] + rows_per_token[token])
            weights = softmax([scale * (keys[row] @ query) for row in own])
            found = torch.zeros_like(values[0])
            for weight, row in zip(weights, own, strict=True):
                found = found + weight * values[row]
            lookup = rms_norm(up @ found, up_gain, up_eps)
            beside = here if concat_gain is None else rms_norm(here, concat_gain, eps)
            y = mix @ torch.cat([lookup, beside])
            outputs.append(here + y if add else y)
    return torch.stack(outputs).view_as(x)


def moe(n: Tensor, router: Tensor, gate: Tensor, up: Tensor, down: Tensor, top_k: int,
        renormalise: bool) -> tuple[Tensor, float | Tensor, Tensor]:  # fmt: skip
    """Token choice, dropless: outputs, the balance loss ``E sum_e f_e P_e`` and the z-loss of one layer.

    n ``(N, D)``, router ``(E, D)``, gate and up ``(E, D, F)``, down ``(E, F, D)``; ``f_e`` is the share of assignments.
    """
    experts = router.shape[0]
    outputs, assigned, probability, z = [], [0] * experts, [0.0] * experts, 0.0
    for x in n:
        logits = [router[e] @ x for e in range(experts)]
        probs = softmax(logits)
        chosen = sorted(range(experts), key=lambda e: -probs[e].item())[:top_k]
        total = sum(probs[e] for e in chosen) if renormalise else 1.0
        y = torch.zeros_like(x)
        for e in chosen:
            y = y + probs[e] / total * swiglu(x, gate[e], up[e], down[e])
            assigned[e] += 1
        outputs.append(y)
        probability = [sum_so_far + p for sum_so_far, p in zip(probability, probs, strict=True)]
        z = z + torch.log(sum(torch.exp(logit) for logit in logits)) ** 2
    positions = len(n)
    shares = [count / (positions * top_k) for count in assigned]
    balance = experts * sum(f * p / positions for f, p in zip(shares, probability, strict=True))
    return torch.stack(outputs), balance, z / positions


def cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor, z_loss: float) -> tuple[Tensor, Tensor]:
    """Mean of ``CE + z_loss lse^2`` and of CE over positions, from whole logits."""
    losses, plain = [], []
    for state, target in zip(hidden, targets, strict=True):
        logits = weight @ state
        lse = torch.log(torch.exp(logits).sum())
        plain.append(lse - logits[target])
        losses.append(plain[-1] + z_loss * lse * lse)
    return torch.stack(losses).mean(), torch.stack(plain).mean()


def decoder(ids: list[int], weights: dict[str, Tensor], layers: int, heads: int, kv_heads: int, theta: float,
            eps: float) -> Tensor:  # fmt: skip
    """Logits ``(T, V)`` of one sequence of the dense base model; every position and head by itself."""
    width = weights["embedding.weight"].shape[1]
    c = width // heads
    x = [weights["embedding.weight"][i] for i in ids]

    def turned(vector: Tensor, position: int) -> Tensor:
        out = []
        for i in range(c):
            pair = i % (c // 2)
            angle = position * theta ** (-2 * pair / c)
            partner = -vector[i + c // 2] if i < c // 2 else vector[i - c // 2]
            out.append(vector[i] * math.cos(angle) + partner * math.sin(angle))
        return torch.stack(out)

    for layer in range(layers):
        w = {name.removeprefix(f"blocks.{layer}."): value for name, value in weights.items()}
        n = [rms_norm(h, w["attention_norm.weight"], eps) for h in x]
        mixed = []
        for t in range(len(ids)):
            parts = []
            for head in range(heads):
                group = head // (heads // kv_heads)
                q = turned((w["attention.query.weight"] @ n[t])[head * c : (head + 1) * c], t)
                mine = slice(group * c, (group + 1) * c)
                scores = [q @ turned((w["attention.key.weight"] @ n[s])[mine], s) / math.sqrt(c) for s in range(t + 1)]
                values = [(w["attention.value.weight"] @ n[s])[mine] for s in range(t + 1)]
                parts.append(sum(a * v for a, v in zip(softmax(scores), values, strict=True)))
            mixed.append(w["attention.output.weight"] @ torch.cat(parts))
        x = [h + y for h, y in zip(x, mixed, strict=True)]
        for t, h in enumerate(x):
            normed = rms_norm(h, w["ffn_norm.weight"], eps)
            x[t] = h + swiglu(normed, w["ffn.gate.weight"].T, w["ffn.up.weight"].T, w["ffn.down.weight"].T)
    head = weights.get("head.weight", weights["embedding.weight"])
    return torch.stack([head @ rms_norm(h, weights["norm.weight"], eps) for h in x])
