"""A character GPT on tiny Shakespeare, trained by PyTorch in f32 and, from the same start, in f64.

    python3 scripts/golden/char_gpt.py [--full-run] tinyshakespeare.txt tests/golden

Writes char_gpt.json, char_gpt_weights.bin and char_gpt_tokens.bin; tests/golden/README.md has the
formats. The configuration is the one nanoGPT documents for its character run on a CPU: no biases
anywhere, exact GELU, output head tied to the token embedding, learned positions, AdamW with decay
on matrices and embeddings only. --full-run trains the f32 model on to the last step of the schedule
and records its validation loss; it takes minutes where the first 100 steps take seconds.
"""

import argparse
import hashlib
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from golden_io import generator_command, write_json

RECORDED_STEPS = 100
VALIDATION_BATCH = 64
# Absolute. Measured: f32 and f64 differ by 6e-7 in the losses and 9e-7 in the norms, and an f64 run
# whose weights start 1e-15 off differs by 2e-15, so these steps do not amplify rounding.
TOLERANCE = {
    "losses_f32": 1e-4,
    "losses_f64": 1e-10,
    "gradient_norms_f32": 1e-4,
    "gradient_norms_f64": 1e-10,
    "first_gradient_norms_f64": 1e-10,
    "validation_loss_f32_step_100": 1e-4,
    "validation_loss_f64_step_100": 1e-10,
}
CONFIG = {
    "seed": 1337,
    "vocab": 65,
    "context": 64,
    "num_layers": 4,
    "num_heads": 4,
    "width": 128,
    "norm_eps": 1e-5,
    "batch": 12,
    "steps": 2000,
    "peak_lr": 1e-3,
    "min_lr": 1e-4,
    "warmup_steps": 100,
    "beta1": 0.9,
    "beta2": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "grad_clip_norm": 1.0,
    "init_std": 0.02,
    "train_fraction": 0.9,
}


class Attention(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x_BTD):
        B, T, D = x_BTD.shape
        heads = self.qkv(x_BTD).view(B, T, 3, self.num_heads, D // self.num_heads)
        q_BHTK, k_BHTK, v_BHTK = heads.permute(2, 0, 3, 1, 4)
        y_BHTK = F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, is_causal=True)
        return self.proj(y_BHTK.transpose(1, 2).reshape(B, T, D))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Layer(nn.Module):
    def __init__(self, width, num_heads, eps):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=eps, bias=False)
        self.attn = Attention(width, num_heads)
        self.ln_2 = nn.LayerNorm(width, eps=eps, bias=False)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class CharGpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.wte = nn.Parameter(torch.empty(c["vocab"], width))
        self.wpe = nn.Parameter(torch.empty(c["context"], width))
        layers = [Layer(width, c["num_heads"], c["norm_eps"]) for _ in range(c["num_layers"])]
        self.layers = nn.ModuleList(layers)
        self.ln_f = nn.LayerNorm(width, eps=c["norm_eps"], bias=False)

    def forward(self, ids_BT, targets_BT):
        """Mean cross-entropy in nats."""
        x_BTD = F.embedding(ids_BT, self.wte) + self.wpe[: ids_BT.shape[1]]
        for layer in self.layers:
            x_BTD = layer(x_BTD)
        logits = self.ln_f(x_BTD) @ self.wte.T
        return F.cross_entropy(logits.flatten(0, 1), targets_BT.flatten())


@torch.no_grad()
def initialise(model, c, generator):
    """Normal, narrower where a layer adds to the residual stream; on f16 values, as stored."""
    residual_std = c["init_std"] / math.sqrt(2 * c["num_layers"])
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.fill_(1.0)
        else:
            is_residual = name.endswith(("attn.proj.weight", "mlp.down.weight"))
            p.normal_(0.0, residual_std if is_residual else c["init_std"], generator=generator)
            p.copy_(p.half().float())


def learning_rate(step, c):
    if step < c["warmup_steps"]:
        return c["peak_lr"] * (step + 1) / (c["warmup_steps"] + 1)
    progress = min(1.0, (step - c["warmup_steps"]) / (c["steps"] - c["warmup_steps"]))
    return c["min_lr"] + 0.5 * (1 + math.cos(math.pi * progress)) * (c["peak_lr"] - c["min_lr"])


def make_optimizer(model, c):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": c["weight_decay"]},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(c["beta1"], c["beta2"]), eps=c["eps"])


class Trainer:
    """Takes steps over given batches [B, T + 1] and keeps losses, gradient norms and times."""

    def __init__(self, weights, c, dtype, compiled=False):
        self.c = c
        self.model = CharGpt(c)
        self.model.load_state_dict(weights)
        self.model.to(dtype)
        self.loss = torch.compile(self.model) if compiled else self.model
        self.optimizer = make_optimizer(self.model, c)
        self.losses, self.gradient_norms, self.seconds = [], [], []
        self.first_gradient_norms = {}

    def step(self, batch):
        start = time.perf_counter()
        loss = self.loss(batch[:, :-1], batch[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        if not self.losses:
            named = self.model.named_parameters()
            self.first_gradient_norms = {name: p.grad.norm().item() for name, p in named}
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.c["grad_clip_norm"])
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(len(self.losses), self.c)
        self.optimizer.step()
        self.losses.append(loss.item())
        self.gradient_norms.append(norm.item())
        self.seconds.append(time.perf_counter() - start)

    @torch.no_grad()
    def validation_loss(self, ids):
        """Mean over the non-overlapping full windows of the split."""
        context = self.c["context"]
        count = (len(ids) - 1) // context
        inputs = ids[: count * context].view(count, context)
        targets = ids[1 : count * context + 1].view(count, context)
        total = 0.0
        for begin in range(0, count, VALIDATION_BATCH):
            rows = slice(begin, begin + VALIDATION_BATCH)
            total += self.model(inputs[rows], targets[rows]).item() * inputs[rows].numel()
        return total / (count * context)

    def report(self, what):
        milliseconds = sorted(1e3 * s for s in self.seconds)
        median, best = milliseconds[len(milliseconds) // 2], milliseconds[0]
        print(f"{what}: {len(milliseconds)} steps, last loss {self.losses[-1]:.6f}, ", end="")
        print(f"median {median:.1f} ms, best {best:.1f} ms a step")


def read_characters(path, c):
    with open(path, "rb") as file:
        raw = file.read()
    text = raw.decode("ascii")
    characters = sorted(set(text))
    if len(characters) != c["vocab"]:
        raise SystemExit(
            f"{path}: {c['vocab']} different characters expected, got {len(characters)}"
        )
    ids = {character: i for i, character in enumerate(characters)}
    tokens = torch.tensor([ids[character] for character in text])
    split = int(len(tokens) * c["train_fraction"])
    return characters, tokens[:split], tokens[split:], hashlib.sha256(raw).hexdigest()


def draw_batch(train, c, generator):
    """Windows of context + 1 tokens at uniform places, with replacement."""
    starts = torch.randint(len(train) - c["context"], (c["batch"],), generator=generator)
    return torch.stack([train[s : s + c["context"] + 1] for s in starts])


def write_weights(folder, weights):
    """All tensors one after the other as little-endian f16; returns their table."""
    table, offset = [], 0
    path = os.path.join(folder, "char_gpt_weights.bin")
    with open(path, "wb") as out:
        for name, tensor in weights.items():
            half = tensor.numpy().astype("<f2")
            if not np.array_equal(half.astype(np.float32), tensor.numpy()):
                raise SystemExit(f"{name} holds values that f16 cannot")
            out.write(half.tobytes())
            table.append({"name": name, "shape": list(tensor.shape), "offset_bytes": offset})
            offset += half.nbytes
    print(f"{path}: {offset} bytes")
    return table


def write_tokens(folder, batches):
    path = os.path.join(folder, "char_gpt_tokens.bin")
    tokens = torch.stack(batches).numpy().astype(np.uint8)
    tokens.tofile(path)
    print(f"{path}: {tokens.nbytes} bytes")
    return list(tokens.shape)


def train(weights, c, dtype, batches):
    trainer = Trainer(weights, c, dtype)
    for batch in batches:
        trainer.step(batch)
    return trainer


def main():
    parser = argparse.ArgumentParser(
        description="Goldens of the character GPT; see the head of this file."
    )
    parser.add_argument("--full-run", action="store_true")
    parser.add_argument("data")
    parser.add_argument("out")
    arguments = parser.parse_args()
    torch.set_num_threads(2)

    c = CONFIG
    characters, train_ids, validation_ids, sha256 = read_characters(arguments.data, c)
    generator = torch.Generator().manual_seed(c["seed"])
    model = CharGpt(c)
    initialise(model, c, generator)
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    batches = [draw_batch(train_ids, c, generator) for _ in range(RECORDED_STEPS)]

    f32 = train(weights, c, torch.float32, batches)
    f32.report("f32")
    f64 = train(weights, c, torch.float64, batches)
    f64.report("f64")
    worst = max(abs(a - b) for a, b in zip(f32.losses, f64.losses))
    print(f"largest difference of a step loss, f32 against f64: {worst:.3g}")

    document = {
        "generator": generator_command(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "tolerance": TOLERANCE,
        "data": {
            "name": "tinyshakespeare.txt",
            "sha256": sha256,
            "train_tokens": len(train_ids),
            "validation_tokens": len(validation_ids),
        },
        "config": c,
        "characters": characters,
        "tokens": {"file": "char_gpt_tokens.bin", "dtype": "u8", "shape": None},
        "weights": {"file": "char_gpt_weights.bin", "dtype": "f16", "tensors": None},
        "learning_rates": [learning_rate(i, c) for i in range(RECORDED_STEPS)],
        "losses_f32": list(f32.losses),
        "losses_f64": list(f64.losses),
        "gradient_norms_f32": list(f32.gradient_norms),
        "gradient_norms_f64": list(f64.gradient_norms),
        "first_gradient_norms_f64": f64.first_gradient_norms,
        "validation_loss_f32": {str(RECORDED_STEPS): f32.validation_loss(validation_ids)},
        "validation_loss_f64": {str(RECORDED_STEPS): f64.validation_loss(validation_ids)},
    }
    document["tokens"]["shape"] = write_tokens(arguments.out, batches)
    document["weights"]["tensors"] = write_weights(arguments.out, weights)
    if arguments.full_run:
        while len(f32.losses) < c["steps"]:
            f32.step(draw_batch(train_ids, c, generator))
        f32.report("f32, full run")
        document["validation_loss_f32"][str(c["steps"])] = f32.validation_loss(validation_ids)
    write_json(arguments.out, "char_gpt.json", document)


if __name__ == "__main__":
    main()
