# SPDX-License-Identifier: Apache-2.0
"""A tiny Llama as a Hugging Face folder: real names and a real architecture, made-up weights."""

import hashlib
import json
import pathlib
import struct

LAYERS, HIDDEN, HEADS, HEAD_SIZE, INNER, VOCABULARY = 2, 64, 2, 32, 128, 512
ONE = struct.pack("<H", 0x3F80)  # 1.0 as bfloat16


def values(name, count, seed):
    """`count` bfloat16 numbers of either sign and of the size that such weights have."""
    noise = hashlib.shake_128(f"{name}/{seed}".encode()).digest(2 * count)
    out = bytearray(2 * count)
    out[0::2] = noise[0::2]
    out[1::2] = bytes(0x3C | (byte & 0x80) for byte in noise[1::2])
    return bytes(out)


def shapes():
    yield "model.embed_tokens.weight", [VOCABULARY, HIDDEN]
    heads = HEADS * HEAD_SIZE
    for layer in range(LAYERS):
        start = f"model.layers.{layer}."
        yield start + "input_layernorm.weight", [HIDDEN]
        for part in "qkv":
            yield f"{start}self_attn.{part}_proj.weight", [heads, HIDDEN]
        yield start + "self_attn.o_proj.weight", [HIDDEN, heads]
        yield start + "post_attention_layernorm.weight", [HIDDEN]
        yield start + "mlp.gate_proj.weight", [INNER, HIDDEN]
        yield start + "mlp.up_proj.weight", [INNER, HIDDEN]
        yield start + "mlp.down_proj.weight", [HIDDEN, INNER]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCABULARY, HIDDEN]


def write(folder, seed=1):
    """Makes the folder anew, equal for equal seeds."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header, blocks, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        block = values(name, count, seed) if len(shape) > 1 else ONE * count
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [offset, offset + len(block)]}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(blocks))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS, "head_dim": HEAD_SIZE, "intermediate_size": INNER,
        "vocab_size": VOCABULARY, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}, indent=1))
