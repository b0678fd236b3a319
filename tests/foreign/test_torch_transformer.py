"""Our blocks beside `torch.nn.Transformer`, with its weights."""

import numpy as np
import pytest

from tests.foreign.stacks import assert_close, encoder_decoder, normal, randomize
from tests.gradients import numpy_of, values_and_gradients

torch = pytest.importorskip("torch")


def foreign_name(path):
    """Translates `encoder_block_0/self_attention/query/kernel` into torch's parameter, a row block of it, and transposition."""
    parts = path.split("/")
    if parts[0] in ("encoder_norm", "decoder_norm"):
        stem = parts[0].split("_")[0] + ".norm"
        return f"{stem}.{'weight' if parts[1] == 'gamma' else 'bias'}", None
    side, _, index = parts[0].split("_")
    stem = f"{side}.layers.{index}"
    attention = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    norms = ["self_attention_norm", "feed_forward_norm"]
    if side == "decoder":
        norms.insert(1, "cross_attention_norm")
    if parts[1] in norms:
        return f"{stem}.norm{norms.index(parts[1]) + 1}.{'weight' if parts[2] == 'gamma' else 'bias'}", None
    kind = "weight" if parts[3] == "kernel" else "bias"
    if parts[1] == "feed_forward":
        return f"{stem}.{'linear1' if parts[2] == 'hidden' else 'linear2'}.{kind}", None
    if parts[2] == "output":
        return f"{stem}.{attention[parts[1]]}.out_proj.{kind}", None
    return f"{stem}.{attention[parts[1]]}.in_proj_{kind}", ["query", "key", "value"].index(parts[2])


def part_of(array, block):
    array = array if block is None else np.split(array, 3)[block]
    return array.T


def torch_transformer(num_layers, model_dim, feed_forward_dim, num_heads, norm, activation):
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre", "activation": activation}
    encoder_layer = torch.nn.TransformerEncoderLayer(model_dim, num_heads, feed_forward_dim, **options)
    decoder_layer = torch.nn.TransformerDecoderLayer(model_dim, num_heads, feed_forward_dim, **options)
    last = [torch.nn.LayerNorm(model_dim) if norm == "pre" else None for _ in range(2)]
    return torch.nn.Transformer(
        model_dim,
        num_heads,
        batch_first=True,
        custom_encoder=torch.nn.TransformerEncoder(encoder_layer, num_layers, norm=last[0], enable_nested_tensor=False),
        custom_decoder=torch.nn.TransformerDecoder(decoder_layer, num_layers, norm=last[1]),
    )


def run_torch(transformer, source, target, mask, cotangent):
    source = torch.tensor(source, requires_grad=True)
    target = torch.tensor(target, requires_grad=True)
    padding = torch.tensor(~mask)
    output = transformer(
        source,
        target,
        tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    (output * torch.tensor(cotangent)).sum().backward()
    gradients = {name: p.grad.numpy() for name, p in transformer.named_parameters()}
    return output.detach().numpy(), gradients, [source.grad.numpy(), target.grad.numpy()]


@pytest.mark.proof("With the weights of torch.nn.Transformer: outputs within 1e-5, gradients within 1e-4")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch(norm, activation, random, size, seen):
    num_layers, model_dim, feed_forward_dim, num_heads = size((2, 32, 48, 4), full=(6, 512, 2048, 8))
    lengths, target_length = size(([9, 6, 1], 7), full=([31, 20, 9, 1], 25))
    ours = encoder_decoder(num_layers, model_dim, feed_forward_dim, num_heads, norm, activation)
    randomize(ours, random)
    theirs = torch_transformer(num_layers, model_dim, feed_forward_dim, num_heads, norm, activation)
    with torch.no_grad():
        for variable in ours.weights:
            name, block = foreign_name(variable.path)
            parameter = dict(theirs.named_parameters())[name]
            rows = parameter if block is None else parameter.chunk(3)[block]
            rows.copy_(torch.tensor(numpy_of(variable)).T)

    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    source = normal(random, len(lengths), max(lengths), model_dim)
    target = normal(random, len(lengths), target_length, model_dim)
    cotangent = normal(random, *target.shape)
    expected, expected_gradients, expected_input_gradients = run_torch(theirs, source, target, mask, cotangent)
    output, gradients, input_gradients = values_and_gradients(ours, [source, target, mask], cotangent, wanted=[0, 1])

    output_difference = assert_close("output", output, expected, 1e-5)
    shape = f"{num_layers}+{num_layers} layers of {model_dim}, {norm}-norm, {activation}"
    if activation == "relu" and size(False, full=True):
        # Among millions of activations a few are so near zero that rounding decides on which side of relu's corner they fall,
        # where the gradient jumps: at full size gradients are compared with an activation that has no corner.
        seen(f"{shape}: outputs {output_difference:.1e}")
        return
    differences = []
    for path, gradient in gradients.items():
        name, block = foreign_name(path)
        differences.append(assert_close(path, gradient, part_of(expected_gradients[name], block), 1e-4))
    for gradient, wanted in zip(input_gradients, expected_input_gradients, strict=True):
        differences.append(assert_close("input", gradient, wanted, 1e-4))
    seen(f"{shape}: outputs {output_difference:.1e}, gradients {max(differences):.1e}")
