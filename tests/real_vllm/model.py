# SPDX-License-Identifier: Apache-2.0
"""Tiny models as Hugging Face folders: real names and real architectures, made-up weights."""

import hashlib
import json
import pathlib
import struct

LAYERS, HIDDEN, HEADS, HEAD_SIZE, INNER, VOCABULARY = 2, 64, 2, 32, 128, 512
EXPERTS, EXPERT_INNER = 4, 64
ONE = struct.pack("<H", 0x3F80)  # 1.0 as bfloat16

COMMON = {
    "num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS, "head_dim": HEAD_SIZE, "intermediate_size": INNER,
    "vocab_size": VOCABULARY, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
    "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
# What each kind says of itself beside that: plain, with one matrix for embedding and output head,
# and with experts.
KINDS = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "tied": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
             "tie_word_embeddings": True},
    "moe": {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
            "num_experts": EXPERTS, "num_experts_per_tok": 2, "norm_topk_prob": True,
            "moe_intermediate_size": EXPERT_INNER, "decoder_sparse_step": 1,
            "mlp_only_layers": []},
}


def values(name, count, seed):
    """`count` bfloat16 numbers of either sign and of the size that such weights have."""
    noise = hashlib.shake_128(f"{name}/{seed}".encode()).digest(2 * count)
    out = bytearray(2 * count)
    out[0::2] = noise[0::2]
    out[1::2] = bytes(0x3C | (byte & 0x80) for byte in noise[1::2])
    return bytes(out)


def signs(name, count, seed):
    """`count` bfloat16 numbers, each 1 or -1. In the last norm they keep a tied model from saying
    its last token for ever."""
    noise = hashlib.shake_128(f"{name}/{seed}".encode()).digest(count)
    return b"".join(struct.pack("<H", 0x3F80 | (byte & 0x80) << 8) for byte in noise)


def content(name, shape, seed):
    if len(shape) > 1:
        return values(name, shape[0] * shape[1], seed)
    return signs(name, shape[0], seed) if name == "model.norm.weight" else ONE * shape[0]


def mlp(start, inner):
    yield start + "gate_proj.weight", [inner, HIDDEN]
    yield start + "up_proj.weight", [inner, HIDDEN]
    yield start + "down_proj.weight", [HIDDEN, inner]


def shapes(kind="llama"):
    yield "model.embed_tokens.weight", [VOCABULARY, HIDDEN]
    heads = HEADS * HEAD_SIZE
    for layer in range(LAYERS):
        start = f"model.layers.{layer}."
        yield start + "input_layernorm.weight", [HIDDEN]
        for part in "qkv":
            yield f"{start}self_attn.{part}_proj.weight", [heads, HIDDEN]
        if kind != "llama":
            for part in "qk":
                yield f"{start}self_attn.{part}_norm.weight", [HEAD_SIZE]
        yield start + "self_attn.o_proj.weight", [HIDDEN, heads]
        yield start + "post_attention_layernorm.weight", [HIDDEN]
        if kind == "moe":
            yield start + "mlp.gate.weight", [EXPERTS, HIDDEN]
            for expert in range(EXPERTS):
                yield from mlp(f"{start}mlp.experts.{expert}.", EXPERT_INNER)
        else:
            yield from mlp(start + "mlp.", INNER)
    yield "model.norm.weight", [HIDDEN]
    if kind != "tied":
        yield "lm_head.weight", [VOCABULARY, HIDDEN]


def write_tokenizer(folder):
    """Token i is the word "t<i>": what a server says in words is a list of ids."""
    words = {f"t{token}": token for token in range(VOCABULARY)}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None,
        "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "t0"}}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "t0"}))


def write(folder, seed=1, kind="llama", change=None):
    """Makes the folder anew, equal for equal seeds. `change`: names with another shape."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header, blocks, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape in (dict(shapes(kind)) | (change or {})).items():
        block = content(name, shape, seed)
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [offset, offset + len(block)]}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(blocks))
    (folder / "config.json").write_text(json.dumps(COMMON | KINDS[kind], indent=1))
    write_tokenizer(folder)
    return folder
