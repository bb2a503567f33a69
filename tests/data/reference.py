"""Forward pass of GGUF models in float64, independent of this project's code: numpy and the `gguf` package only.

    python reference.py MODEL.gguf TRACE.json     prints mean loss and greedy tokens beside those of a trace
    python reference.py MODEL.gguf --trace OUT    makes a trace of prompts of fixed tokens

Written from the papers and from the model descriptions: Llama 3.1 (rope_freqs), YaRN, Qwen2, Qwen3, Gemma 3.
"""

import json
import sys

import gguf
import numpy as np


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items()}
        self.architecture = self.fields["general.architecture"]
        self.tensors = {}
        for tensor in reader.tensors:
            values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
            self.tensors[tensor.name] = values.reshape([int(n) for n in reversed(tensor.shape)])
        self.width = self.get("embedding_length")
        self.layers = self.get("block_count")
        self.heads = self.get("attention.head_count")
        self.kv_heads = self.get("attention.head_count_kv", self.heads)
        self.head = self.get("attention.key_length", self.width // self.heads)
        self.rotary = self.get("rope.dimension_count", self.head)
        self.epsilon = np.float64(np.float32(self.get("attention.layer_norm_rms_epsilon")))

    def get(self, key, default=None):
        return self.fields.get(f"{self.architecture}.{key}", default)

    def layer(self, layer, name):
        return self.tensors.get(f"blk.{layer}.{name}")

    def frequencies(self, is_local):
        base = self.get("rope.freq_base_swa" if is_local else "rope.freq_base", 10000.0)
        pairs = np.arange(self.rotary // 2, dtype=np.float64)
        plain = np.float64(base) ** (-2 * pairs / self.rotary)
        if "rope_freqs.weight" in self.tensors:
            plain = plain / self.tensors["rope_freqs.weight"]
        kind = self.get("rope.scaling.type", "linear")
        factor = self.get("rope.scaling.factor", 1.0)
        if is_local or kind == "none" or factor == 1.0:
            return plain, 1.0
        if kind == "linear":
            return plain / factor, 1.0
        assert kind == "yarn"
        original = self.get("rope.scaling.original_context_length", self.get("context_length"))

        def pair_of(turns):
            return self.rotary * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(base))

        low = max(np.floor(pair_of(self.get("rope.scaling.yarn_beta_fast", 32.0))), 0)
        high = min(np.ceil(pair_of(self.get("rope.scaling.yarn_beta_slow", 1.0))), self.rotary - 1)
        kept = 1 - np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
        return plain * kept + plain / factor * (1 - kept), 1 + 0.1 * np.log(factor)

    def logits(self, tokens, gelu=None):
        gemma = self.architecture == "gemma3"
        count = len(tokens)
        hidden = self.tensors["token_embd.weight"][tokens]
        if gemma:
            hidden = hidden * np.sqrt(self.width)
        window = self.get("attention.sliding_window", 0) if gemma else 0
        period = self.get("attention.sliding_window_pattern", 6)
        positions = np.arange(count)
        for i in range(self.layers):
            is_local = window > 0 and i % period != period - 1
            x = self.norm(hidden, self.layer(i, "attn_norm.weight"))
            q, k, v = (self.project(i, name, x) for name in ("attn_q", "attn_k", "attn_v"))
            q = q.reshape(count, self.heads, self.head)
            k = k.reshape(count, self.kv_heads, self.head)
            v = v.reshape(count, self.kv_heads, self.head)
            if self.layer(i, "attn_q_norm.weight") is not None:
                q = self.norm(q, self.layer(i, "attn_q_norm.weight"))
                k = self.norm(k, self.layer(i, "attn_k_norm.weight"))
            q, k = self.rotate(q, is_local), self.rotate(k, is_local)
            distance = positions[:, None] - positions[None, :]
            seen = (distance >= 0) & ((distance < window) if is_local else True)
            outputs = []
            for h in range(self.heads):
                g = h // (self.heads // self.kv_heads)
                scores = np.where(seen, q[:, h] @ k[:, g].T / np.sqrt(self.head), -np.inf)
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
                outputs.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, g])
            x = self.project(i, "attn_output", np.concatenate(outputs, axis=1))
            if gemma:
                x = self.norm(x, self.layer(i, "post_attention_norm.weight"))
            hidden = hidden + x
            x = self.norm(hidden, self.layer(i, "ffn_norm.weight"))
            gate, up = self.project(i, "ffn_gate", x), self.project(i, "ffn_up", x)
            if gemma:
                gate = (gelu or gelu_tanh)(gate)
            else:
                gate = gate / (1 + np.exp(-gate))
            x = self.project(i, "ffn_down", gate * up)
            if gemma:
                x = self.norm(x, self.layer(i, "post_ffw_norm.weight"))
            hidden = hidden + x
        x = self.norm(hidden, self.tensors["output_norm.weight"])
        logits = x @ self.tensors.get("output.weight", self.tensors["token_embd.weight"]).T
        cap = self.get("final_logit_softcapping", 0.0)
        return cap * np.tanh(logits / cap) if cap else logits

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon) * weight

    def project(self, layer, name, x):
        y = x @ self.layer(layer, f"{name}.weight").T
        bias = self.layer(layer, f"{name}.bias")
        return y if bias is None else y + bias

    def rotate(self, x, is_local):
        frequencies, magnitude = self.frequencies(is_local)
        angles = np.arange(len(x))[:, None] * frequencies[None, :]
        cos, sin = (magnitude * f(angles)[:, None, :] for f in (np.cos, np.sin))
        half = self.rotary // 2
        if self.architecture == "llama":
            first, second = slice(0, self.rotary, 2), slice(1, self.rotary, 2)
        else:
            first, second = slice(0, half), slice(half, self.rotary)
        a, b = x[..., first], x[..., second]
        turned = x.copy()
        turned[..., first] = a * cos - b * sin
        turned[..., second] = a * sin + b * cos
        return turned


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def losses(logits, tokens):
    top = logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0]
    return [log_sum[i] - logits[i, tokens[i + 1]] for i in range(len(tokens) - 1)]


def trace(model, prompt, count):
    """Mean loss of the prompt, and `count` greedy tokens with their margins."""
    logits = model.logits(prompt)
    known, margins = list(prompt), []
    for _ in range(count):
        last = model.logits(known)[-1]
        order = np.argsort(-last, kind="stable")
        margins.append(float(last[order[0]] - last[order[1]]))
        known.append(int(order[0]))
    return {
        "prompt": f"{len(prompt)} tokens",
        "prompt_token_ids": [int(token) for token in prompt],
        "prompt_nll_mean": float(np.mean(losses(logits, prompt))),
        "greedy_token_ids": known[len(prompt):],
        "greedy_margins": margins,
        "logits_after_prompt": [round(float(logit), 9) for logit in logits[-1]],
    }


def main():
    model = Model(sys.argv[1])
    if sys.argv[2] == "--trace":
        vocabulary = len(model.tensors["token_embd.weight"])
        prompts = [[3, 1, 4, 1, 5, 9, 2, 6], [(7 * i * i + 3 * i + 1) % vocabulary for i in range(70)]]
        traces = [trace(model, prompt, 24) for prompt in prompts]
        with open(sys.argv[3], "w") as file:
            json.dump({"traces": traces}, file, indent=0)
        return
    with open(sys.argv[2]) as file:
        golden = json.load(file)
    for one in golden["traces"]:
        prompt, greedy = one["prompt_token_ids"], one["greedy_token_ids"]
        logits = model.logits(prompt + greedy)
        loss = np.mean(losses(logits[: len(prompt)], prompt))
        chosen = logits[len(prompt) - 1 : -1].argmax(axis=1)
        agree = int((chosen == greedy[: len(chosen)]).sum())
        print(f"loss {loss:.6f}, trace {one['prompt_nll_mean']:.6f}; {agree} of {len(chosen)} choices agree")


if __name__ == "__main__":
    main()
