"""Small models with random weights for what no trained file of the repository has: the recipe of this folder's files.

    python make_models.py FOLDER     writes NAME.gguf for each model below (packages: numpy, gguf)

Weights are F16, norms, biases and divisors F32, from a generator with a fixed seed; the same file on every machine.
"""

import sys

import gguf
import numpy as np

VOCABULARY, WIDTH, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 64, 32, 4, 2, 48, 256


def llama_3_divisors(dimensions, base, factor=8.0, low=1.0, high=4.0, original=128):
    """Divisors of frequencies by the formula that Llama 3.1 was published with."""
    frequencies = np.float64(base) ** (-2 * np.arange(dimensions // 2) / dimensions)
    wavelengths = 2 * np.pi / frequencies
    smooth = np.clip((original / wavelengths - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def write(path, architecture, seed, head, extra, biases=False, divisors=None, layers=2):
    random = np.random.Generator(np.random.PCG64(seed))
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    extra(writer)
    gemma = architecture == "gemma3"

    def matrix(name, rows, columns, scale=1.0):
        values = random.standard_normal((rows, columns)) * scale / np.sqrt(columns)
        writer.add_tensor(f"{name}.weight", values.astype(np.float16))

    def vector(name, values):
        writer.add_tensor(name, values.astype(np.float32))

    matrix("token_embd", VOCABULARY, WIDTH, 0.7 if gemma else 4.0)
    if divisors is not None:
        vector("rope_freqs.weight", divisors)
    for layer in range(layers):
        block = f"blk.{layer}"
        vector(f"{block}.attn_norm.weight", 1 + 0.2 * random.standard_normal(WIDTH))
        matrix(f"{block}.attn_q", HEADS * head, WIDTH, 2.0)
        matrix(f"{block}.attn_k", KV_HEADS * head, WIDTH, 2.0)
        matrix(f"{block}.attn_v", KV_HEADS * head, WIDTH)
        if biases:
            vector(f"{block}.attn_q.bias", random.standard_normal(HEADS * head))
            vector(f"{block}.attn_k.bias", random.standard_normal(KV_HEADS * head))
            vector(f"{block}.attn_v.bias", random.standard_normal(KV_HEADS * head))
        if gemma:
            vector(f"{block}.attn_q_norm.weight", 1 + 0.2 * random.standard_normal(head))
            vector(f"{block}.attn_k_norm.weight", 1 + 0.2 * random.standard_normal(head))
            vector(f"{block}.post_attention_norm.weight", 1 + 0.2 * random.standard_normal(WIDTH))
            vector(f"{block}.post_ffw_norm.weight", 1 + 0.2 * random.standard_normal(WIDTH))
        matrix(f"{block}.attn_output", WIDTH, HEADS * head)
        vector(f"{block}.ffn_norm.weight", 1 + 0.2 * random.standard_normal(WIDTH))
        matrix(f"{block}.ffn_gate", FEED_FORWARD, WIDTH)
        matrix(f"{block}.ffn_up", FEED_FORWARD, WIDTH)
        matrix(f"{block}.ffn_down", WIDTH, FEED_FORWARD)
    vector("output_norm.weight", 1 + 0.2 * random.standard_normal(WIDTH))
    if not gemma:
        matrix("output", VOCABULARY, WIDTH, 3.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def yarn(writer):
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(4.0)
    writer.add_rope_scaling_orig_ctx_len(64)


def linear(writer):
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(2.5)


def wide_heads(writer):
    writer.add_key_length(12)
    writer.add_value_length(12)
    writer.add_rope_dimension_count(12)


def gemma(writer):
    """A window of 20 positions in layers 0, 1 and 3; layer 2 has full attention and scaled rotary positions."""
    writer.add_sliding_window(20)
    writer.add_uint32("gemma3.attention.sliding_window_pattern", 3)
    writer.add_rope_freq_base(1000000.0)
    writer.add_float32("gemma3.rope.freq_base_swa", 5000.0)
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(4.0)


def capped_gemma(writer):
    gemma(writer)
    writer.add_final_logit_softcapping(3.0)


def main():
    folder = sys.argv[1]
    write(f"{folder}/random-qwen2.gguf", "qwen2", 1, 8, lambda writer: None, biases=True)
    write(f"{folder}/random-qwen2-yarn.gguf", "qwen2", 2, 8, yarn, biases=True)
    write(f"{folder}/random-llama-3.gguf", "llama", 3, 8, lambda writer: None, divisors=llama_3_divisors(8, 10000.0))
    write(f"{folder}/random-llama-linear.gguf", "llama", 4, 8, linear)
    # Heads that are not the width divided by their number, as in Mistral Nemo.
    write(f"{folder}/random-llama-heads-of-12.gguf", "llama", 5, 12, wide_heads)
    write(f"{folder}/random-gemma3.gguf", "gemma3", 6, 8, gemma, layers=4)
    write(f"{folder}/random-gemma3-capped.gguf", "gemma3", 7, 8, capped_gemma, layers=4)


if __name__ == "__main__":
    main()
