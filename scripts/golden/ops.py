"""Values and gradients of single ops, computed by PyTorch in f64. Writes ops.json.

The format is described in tests/golden/README.md.

    python3 scripts/golden/ops.py tests/golden

Every input and cotangent is a multiple of 1/256 or a small power of two times that, so it is exact
in f32 as well and the f32 tests start from the same numbers (the learning rates of AdamW are
scalars and stay f64). The f32 tolerances are checked here: each case is computed once more by
PyTorch in f32, and that run must agree within half of the tolerance, which leaves room for another
order of summation.
"""

import sys
import zlib

import torch
import torch.nn.functional as F

from golden_io import generator_command, write_json

TOLERANCE_RULE = (
    "|got - want| <= tolerance[dtype] * max(tolerance.floor, |want|), element by element"
)
F64, F32 = torch.float64, torch.float32
IGNORED = -1
NORM_EPS = 1e-5


class Draw:
    """Reproducible numbers on the grid 1/256: normal ones, and class ids."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, mean=0.0, std=1.0):
        value = torch.randn(shape, generator=self.generator, dtype=F64) * std
        return torch.round(value * 256) / 256 + mean

    def ids(self, bound, *shape):
        return torch.randint(bound, shape, generator=self.generator)


def array(tensor):
    dtype = "i64" if tensor.dtype == torch.int64 else "f64"
    return {"shape": list(tensor.shape), "dtype": dtype, "data": tensor.detach().flatten().tolist()}


def arrays(tensors):
    return {name: array(t) for name, t in tensors.items()}


def run(function, inputs, cotangents, dtype):
    """Outputs, and gradients of sum(output * cotangent) for each floating-point input."""
    leaves = {}
    for name, value in inputs.items():
        is_id = value.dtype == torch.int64
        leaves[name] = value if is_id else value.to(dtype).clone().requires_grad_()
    outputs = function(**leaves)
    total = sum((out * cotangents[name].to(dtype)).sum() for name, out in outputs.items())
    total.backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.requires_grad}
    return outputs, gradients


def check_f32(name, wanted, got, tolerance):
    for key, want in wanted.items():
        bound = tolerance["f32"] * want.abs().clamp(min=tolerance["floor"])
        error = (got[key].to(F64) - want).abs()
        worst = torch.where(error == 0, 0.0, error / bound).max().item()
        if not worst <= 0.5:
            sys.exit(
                f"{name}: PyTorch's f32 run misses '{key}' by {worst:.3g} tolerances, above 0.5"
            )


class Cases:
    def __init__(self):
        self.table = {}

    def add(self, name, op, function, inputs, attributes=None, f64=1e-12, f32=2e-6, floor=1.0):
        """A differentiable op. Its name seeds the cotangents: a new case changes no other."""
        draw = Draw(zlib.crc32(name.encode()))
        tolerance = {"f64": f64, "f32": f32, "floor": floor}
        with torch.no_grad():
            shapes = {key: out.shape for key, out in function(**inputs).items()}
        cotangents = {key: draw.normal(*shape) for key, shape in shapes.items()}
        outputs, gradients = run(function, inputs, cotangents, F64)
        outputs_f32, gradients_f32 = run(function, inputs, cotangents, F32)
        check_f32(name, outputs, outputs_f32, tolerance)
        check_f32(name, gradients, gradients_f32, tolerance)
        self._store(name, op, attributes, inputs, outputs, tolerance, cotangents, gradients)

    def add_update(self, name, op, function, inputs, attributes, f64=1e-12, f32=2e-6, floor=1.0):
        """Arithmetic of the optimizer, which has no gradients of its own."""
        tolerance = {"f64": f64, "f32": f32, "floor": floor}
        outputs = function(inputs, F64)
        check_f32(name, outputs, function(inputs, F32), tolerance)
        self._store(name, op, attributes, inputs, outputs, tolerance, {}, {})

    def _store(self, name, op, attributes, inputs, outputs, tolerance, cotangents, gradients):
        if name in self.table:
            sys.exit(f"two cases are named {name}")
        for key, value in inputs.items():
            if key != "lr" and value.is_floating_point() and not value.equal(value.to(F32).to(F64)):
                sys.exit(f"{name}: input '{key}' is not exact in f32")
        self.table[name] = {
            "op": op,
            "tolerance": tolerance,
            "attributes": attributes or {},
            "inputs": arrays(inputs),
            "outputs": arrays(outputs),
            "cotangents": arrays(cotangents),
            "gradients": arrays(gradients),
        }


def add_gelu(cases):
    x = torch.tensor(
        [
            0.0,
            1e-3,
            -1e-3,
            0.125,
            -0.125,
            0.5,
            -0.5,
            0.75,
            -0.75,
            1,
            -1,
            1.5,
            -1.5,
            2,
            -2,
            3,
            -3,
            6,
            -6,
            30,
            -30,
        ],
        dtype=F32,
    ).to(
        F64
    )  # 1e-3 is the one value off the grid; rounded to f32 it is exact in both
    for torch_name, form in (("none", "erf"), ("tanh", "tanh")):
        cases.add(
            f"gelu_{form}",
            "gelu",
            lambda x, approximate=torch_name: {"y": F.gelu(x, approximate=approximate)},
            {"x": x},
            {"form": form},
        )


def layer_norm(x, weight, bias=None):
    return {"y": F.layer_norm(x, x.shape[-1:], weight, bias, NORM_EPS)}


def residual_layer_norm(x, residual, weight, bias=None):
    total = x + residual
    return {"sum": total, **layer_norm(total, weight, bias)}


def add_layer_norm(cases):
    attributes = {"eps": NORM_EPS}
    draw = Draw(2)
    for width in (1, 5, 64):
        # One column: dx = rstd * (g - g) = 0, and rstd = 1 / sqrt(eps) = 316 scales its rounding.
        f32 = 1e-4 if width == 1 else 2e-6
        inputs = {"x": draw.normal(2, 3, width), "weight": draw.normal(width)}
        cases.add(
            f"layer_norm_width_{width}", "layer_norm", layer_norm, inputs, attributes, f32=f32
        )
        inputs = {**inputs, "bias": draw.normal(width)}
        cases.add(
            f"layer_norm_width_{width}_bias", "layer_norm", layer_norm, inputs, attributes, f32=f32
        )

    # Mean 1e4, deviation 1: f32 knows the mean to 5e-4 only; E[x^2] - E[x]^2 would be off by units.
    inputs = {"x": draw.normal(4, 48, mean=1e4), "weight": draw.normal(48), "bias": draw.normal(48)}
    cases.add(
        "layer_norm_large_mean", "layer_norm", layer_norm, inputs, attributes, f64=1e-10, f32=5e-3
    )

    inputs = {
        "x": draw.normal(2, 3, 20),
        "residual": draw.normal(2, 3, 20),
        "weight": draw.normal(20),
    }
    cases.add("residual_layer_norm", "residual_layer_norm", residual_layer_norm, inputs, attributes)
    inputs = {**inputs, "bias": draw.normal(20)}
    cases.add(
        "residual_layer_norm_bias", "residual_layer_norm", residual_layer_norm, inputs, attributes
    )


def causal_attention(q, k, v):
    """[B, T, H, D] in and out; PyTorch wants heads before positions. Scale 1 / sqrt(D)."""
    q_BHTD, k_BHTD, v_BHTD = (t.transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(
        q_BHTD, k_BHTD, v_BHTD, is_causal=True, enable_gqa=q.shape[2] != k.shape[2]
    )
    return {"y": out.transpose(1, 2)}


def add_attention(cases):
    draw = Draw(3)
    for batch, length, heads, kv_heads, width in (
        (1, 1, 1, 1, 4),
        (2, 7, 3, 3, 5),
        (1, 33, 2, 2, 16),
        (2, 5, 4, 2, 6),
    ):
        inputs = {
            "q": draw.normal(batch, length, heads, width),
            "k": draw.normal(batch, length, kv_heads, width),
            "v": draw.normal(batch, length, kv_heads, width),
        }
        name = f"attention_b{batch}_t{length}_h{heads}_kv{kv_heads}_d{width}"
        attributes = {"causal": True, "scale": width**-0.5}
        cases.add(name, "attention", causal_attention, inputs, attributes, f32=1e-5)


def cross_entropy(logits, targets):
    return {"loss": F.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")}


def linear_cross_entropy(x, weight, targets):
    return cross_entropy(x @ weight.T, targets)


def ignore_some(targets):
    """Every third target, the second one first, is left out of the loss."""
    targets[1::3] = IGNORED
    return targets


def add_cross_entropy(cases):
    attributes = {"ignore_index": IGNORED, "reduction": "sum"}
    draw = Draw(4)
    for rows, vocab in ((3, 1), (6, 7), (5, 65)):
        inputs = {
            "logits": draw.normal(rows, vocab, std=3.0),
            "targets": ignore_some(draw.ids(vocab, rows)),
        }
        cases.add(
            f"cross_entropy_vocab_{vocab}", "cross_entropy", cross_entropy, inputs, attributes
        )
    inputs = {"logits": draw.normal(6, 7, mean=1e4), "targets": ignore_some(draw.ids(7, 6))}
    cases.add("cross_entropy_large_offset", "cross_entropy", cross_entropy, inputs, attributes)
    inputs = {"logits": draw.normal(2, 7), "targets": torch.tensor([IGNORED, IGNORED])}
    cases.add("cross_entropy_all_ignored", "cross_entropy", cross_entropy, inputs, attributes)

    for rows, width, vocab in ((1, 1, 1), (7, 3, 5), (11, 16, 65)):
        inputs = {
            "x": draw.normal(rows, width),
            "weight": draw.normal(vocab, width),
            "targets": ignore_some(draw.ids(vocab, rows)),
        }
        name = f"linear_cross_entropy_n{rows}_d{width}_v{vocab}"
        cases.add(name, "linear_cross_entropy", linear_cross_entropy, inputs, attributes, f32=1e-5)


def add_embedding(cases):
    draw = Draw(5)
    inputs = {"ids": torch.tensor([[3, 0, 3, 6, 3], [6, 1, 0, 3, 5]]), "weight": draw.normal(7, 3)}
    cases.add(
        "embedding_repeated_ids",
        "embedding",
        lambda ids, weight: {"y": F.embedding(ids, weight)},
        inputs,
    )


def add_softmax(cases):
    draw = Draw(6)
    inputs = {
        "one_column": draw.normal(2, 1),
        "odd": draw.normal(3, 7, std=3.0),
        "large_offset": draw.normal(4, 5, mean=1e4),
    }
    for name, x in inputs.items():
        cases.add(
            f"softmax_{name}",
            "softmax",
            lambda x: {"y": F.softmax(x, dim=-1)},
            {"x": x},
            {"dim": -1},
        )


def adamw(weight_decay, inputs, dtype):
    """The vector and both moments after each step, as rows."""
    betas, eps = (0.9, 0.99), 1e-8
    weight = inputs["weight"].to(dtype).clone().requires_grad_()
    optimizer = torch.optim.AdamW(
        [weight], betas=betas, eps=eps, weight_decay=weight_decay, foreach=False
    )
    rows = {"weight": [], "m": [], "v": []}
    for gradient, lr in zip(inputs["gradients"], inputs["lr"].tolist()):
        weight.grad = gradient.to(dtype).clone()
        optimizer.param_groups[0]["lr"] = lr
        optimizer.step()
        state = optimizer.state[weight]
        for key, value in (("weight", weight), ("m", state["exp_avg"]), ("v", state["exp_avg_sq"])):
            rows[key].append(value.detach().clone())
    return {key: torch.stack(values) for key, values in rows.items()}


def add_adamw(cases):
    steps, count = 10, 9
    draw = Draw(7)
    gradients = draw.normal(steps, count)
    gradients[:, 1] = 0.0  # never a gradient: decay alone moves it
    gradients[:, 2] *= 2.0**-12
    gradients[:, 3] = 2.0**-20  # eps starts to show: 1e-8 against 1e-6
    gradients[:, 4] *= 1024.0
    gradients[3, 5] = 0.0
    warmup = [0.01 * (i + 1) / 4 for i in range(4)]
    lr = torch.tensor(
        warmup + [0.01 * (0.1 + 0.15 * (steps - i)) for i in range(4, steps)], dtype=F64
    )
    inputs = {"weight": draw.normal(count), "gradients": gradients, "lr": lr}
    for name, decay in (("adamw", 0.1), ("adamw_no_decay", 0.0)):
        attributes = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": decay}
        cases.add_update(
            name,
            "adamw",
            lambda i, dtype, d=decay: adamw(d, i, dtype),
            inputs,
            attributes,
            f32=1e-5,
            floor=0.0,
        )


def clip_grad_norm(max_norm, inputs, dtype):
    parameters = []
    for gradient in inputs.values():
        parameter = torch.zeros_like(gradient, dtype=dtype).requires_grad_()
        parameter.grad = gradient.to(dtype).clone()
        parameters.append(parameter)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return {"norm": norm, **{name: p.grad for name, p in zip(inputs, parameters)}}


def add_clip(cases):
    # torch multiplies by min(1, max_norm / (norm + 1e-6)); the 1e-6 shows in the clipped values.
    draw = Draw(8)
    large = {"a": draw.normal(3, 5), "b": draw.normal(7), "c": draw.normal(1)}
    small = {name: value / 16 for name, value in large.items()}
    zero = {name: value * 0 for name, value in large.items()}
    for name, inputs in (("clipped", large), ("untouched", small), ("zero", zero)):
        attributes = {"max_norm": 1.0, "eps": 1e-6}
        name = f"clip_grad_norm_{name}"
        cases.add_update(
            name,
            "clip_grad_norm",
            lambda i, dtype: clip_grad_norm(1.0, i, dtype),
            inputs,
            attributes,
        )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 scripts/golden/ops.py OUTPUT_FOLDER")
    torch.set_num_threads(1)
    cases = Cases()
    for add in (
        add_gelu,
        add_layer_norm,
        add_attention,
        add_cross_entropy,
        add_embedding,
        add_softmax,
        add_adamw,
        add_clip,
    ):
        add(cases)
    document = {
        "generator": generator_command(),
        "torch": torch.__version__,
        "tolerance": TOLERANCE_RULE,
        "cases": cases.table,
    }
    write_json(sys.argv[1], "ops.json", document)


if __name__ == "__main__":
    main()
