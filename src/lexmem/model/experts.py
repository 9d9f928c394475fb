"""Products grouped by expert: SwiGLU experts over assignments sorted by expert.

Shapes: A assignments (tokens x top_k) sorted by expert, E experts, D model width, F expert width.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Backend = Literal["loop", "grouped_mm", "megablocks"]
# (x_AD, sizes_E, gate_EDF, up_EDF, down_EFD) -> y_AD
GroupedFFN = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def loop_ffn(x_AD: Tensor, sizes_E: Tensor, gate_EDF: Tensor, up_EDF: Tensor, down_EFD: Tensor) -> Tensor:
    """One product an expert. ``unbind`` keeps the backward pass from a full-size zero gradient an expert."""
    groups = zip(x_AD.split(sizes_E.tolist()), gate_EDF.unbind(0), up_EDF.unbind(0), down_EFD.unbind(0), strict=True)
    return torch.cat([(F.silu(x @ gate) * (x @ up)) @ down for x, gate, up, down in groups])


def grouped_mm_ffn(x_AD: Tensor, sizes_E: Tensor, gate_EDF: Tensor, up_EDF: Tensor, down_EFD: Tensor) -> Tensor:
    """torch's grouped matrix product; widths must be multiples of 16 bytes. Autocast knows nothing of it yet."""
    device = x_AD.device.type
    if torch.is_autocast_enabled(device):
        narrow = torch.get_autocast_dtype(device)
        x_AD, gate_EDF, up_EDF, down_EFD = (t.to(narrow) for t in (x_AD, gate_EDF, up_EDF, down_EFD))
    ends = sizes_E.cumsum(0).to(torch.int32)
    gate, up = F.grouped_mm(x_AD, gate_EDF, offs=ends), F.grouped_mm(x_AD, up_EDF, offs=ends)
    return F.grouped_mm(F.silu(gate) * up, down_EFD, offs=ends)


def megablocks_ffn(x_AD: Tensor, sizes_E: Tensor, gate_EDF: Tensor, up_EDF: Tensor, down_EFD: Tensor) -> Tensor:
    """MegaBlocks' grouped GEMM (CUDA, bfloat16); see ``requirements-megablocks.txt``."""
    from megablocks import grouped_gemm_util

    gmm = grouped_gemm_util.ops.gmm
    sizes = sizes_E.cpu().long()
    x = x_AD.bfloat16()
    gate, up = gmm(x, gate_EDF.bfloat16(), sizes), gmm(x, up_EDF.bfloat16(), sizes)
    return gmm(F.silu(gate) * up, down_EFD.bfloat16(), sizes).to(x_AD.dtype)


BACKENDS: dict[Backend, GroupedFFN] = {
    "loop": loop_ffn,
    "grouped_mm": grouped_mm_ffn,
    "megablocks": megablocks_ffn,
}
