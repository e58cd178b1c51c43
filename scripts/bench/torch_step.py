"""PyTorch's side of vs_torch: the step of tests/bench/step.cpp, with the same arguments and the same
two commands on standard input (run N, quit).

    python3 scripts/bench/torch_step.py MODE LAYERS HEADS WIDTH VOCABULARY CONTEXT BIAS GELU B T PRECISION THREADS

MODE is eager or compile. bf16 is autocast over f32 parameters, PyTorch's recommended way on CPUs.
"""

import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (part.view(B, T, self.heads, D // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(D, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, width, heads, bias, gelu):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, bias=bias)
        self.attn = Attention(width, heads, bias)
        self.ln_2 = nn.LayerNorm(width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.gelu = gelu

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate=self.gelu))


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, vocabulary, context, bias, gelu):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, bias, gelu) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, bias=bias)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))


def peak_resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main():
    mode = sys.argv[1]
    layers, heads, width, vocabulary, context, bias = map(int, sys.argv[2:8])
    gelu = "none" if sys.argv[8] == "erf" else "tanh"
    batch, length = map(int, sys.argv[9:11])
    precision, threads = sys.argv[11], int(sys.argv[12])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Gpt2(layers, heads, width, vocabulary, context, bool(bias), gelu)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
         {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    forward = torch.compile(model) if mode == "compile" else model
    ids = torch.randint(vocabulary, (batch, length + 1))
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = forward(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.item()

    for line in sys.stdin:
        words = line.split()
        if words[0] != "run":
            break
        begin = time.perf_counter()
        loss = math.nan
        for _ in range(int(words[1])):
            loss = step()
        print(json.dumps({"seconds": time.perf_counter() - begin, "loss": loss}), flush=True)
    print(json.dumps({"peak_bytes": peak_resident(), "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
