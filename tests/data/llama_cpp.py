"""Traces of this folder's models by llama.cpp on the CPU, with nothing rounded that f32 would not round; and its losses.

    python llama_cpp.py NAME.gguf [NAME.gguf ...]     writes NAME.llama-cpp.json beside each
    python llama_cpp.py --quality TEXT NAME.gguf ...  prints what llama.cpp's rounding of activations costs each

The second form takes models with a vocabulary, and compares llama.cpp as it is (activations rounded to 8 bits before
products with quantised weights) with itself on an F32 copy, as `zrt perplexity` compares its arithmetics.

Packages: numpy, gguf, xllamacpp==0.2.8, which is llama.cpp's build 7551 (a52dc60ba) with its C interface exported; the
declarations below are those of that build's `llama.h`. llama.cpp multiplies F16 weights by activations in F16, so it is
given a copy with the weights in F32. The key-value cache is F32, flash attention off, one thread, one step a token.
GELU stays llama.cpp's own, a table of F16 values: traces of gemma3 are less exact than the others.
"""

import ctypes
import importlib.util
import json
import pathlib
import sys
import tempfile

import gguf
import numpy as np

GREEDY_TOKENS = 24
TYPE_F32 = 0


class ModelParams(ctypes.Structure):
    _fields_ = [
        ("devices", ctypes.c_void_p),
        ("buffer_overrides", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int),
        ("main_gpu", ctypes.c_int32),
        ("tensor_split", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("progress_data", ctypes.c_void_p),
        ("overrides", ctypes.c_void_p),
        ("flags", ctypes.c_bool * 7),
    ]


class ContextParams(ctypes.Structure):
    _fields_ = [
        ("n_ctx", ctypes.c_uint32),
        ("n_batch", ctypes.c_uint32),
        ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32),
        ("n_threads", ctypes.c_int32),
        ("n_threads_batch", ctypes.c_int32),
        ("rope_scaling", ctypes.c_int),
        ("pooling", ctypes.c_int),
        ("attention", ctypes.c_int),
        ("flash_attention", ctypes.c_int),
        ("rope", ctypes.c_float * 6),
        ("rope_original_context", ctypes.c_uint32),
        ("defragment", ctypes.c_float),
        ("evaluate", ctypes.c_void_p),
        ("evaluate_data", ctypes.c_void_p),
        ("type_k", ctypes.c_int),
        ("type_v", ctypes.c_int),
        ("abort", ctypes.c_void_p),
        ("abort_data", ctypes.c_void_p),
        ("flags", ctypes.c_bool * 6),
    ]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32)] + [(name, ctypes.c_void_p) for name in
                ("token", "embedding", "position", "sequence_count", "sequence", "logits")]


def library():
    """The extension module of xllamacpp, as a C library."""
    folder = pathlib.Path(importlib.util.find_spec("xllamacpp").submodule_search_locations[0])
    llama = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))
    if ctypes.c_int.in_dll(llama, "LLAMA_BUILD_NUMBER").value != 7551:
        raise SystemExit("the declarations of this script are those of build 7551: install xllamacpp==0.2.8")
    llama.llama_model_default_params.restype = ModelParams
    llama.llama_context_default_params.restype = ContextParams
    llama.llama_model_load_from_file.restype = ctypes.c_void_p
    llama.llama_model_load_from_file.argtypes = [ctypes.c_char_p, ModelParams]
    llama.llama_init_from_model.restype = ctypes.c_void_p
    llama.llama_init_from_model.argtypes = [ctypes.c_void_p, ContextParams]
    llama.llama_free.argtypes = llama.llama_model_free.argtypes = [ctypes.c_void_p]
    llama.llama_batch_get_one.restype = Batch
    llama.llama_batch_get_one.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    llama.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    llama.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
    llama.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    llama.llama_model_get_vocab.restype = ctypes.c_void_p
    llama.llama_backend_init()
    return llama


def write_f32_copy(source, path):
    """The same model with F32 weights; without a vocabulary, if the source has none."""
    reader = gguf.GGUFReader(source)
    field = lambda key: reader.fields[key].contents()
    architecture = field("general.architecture")
    has_vocabulary = "tokenizer.ggml.tokens" in reader.fields
    writer = gguf.GGUFWriter(path, architecture)
    for key in reader.fields:
        if not key.startswith(("GGUF.", "general.")):
            entry = reader.fields[key]
            inner = entry.types[1] if len(entry.types) > 1 else None
            writer.add_key_value(key, entry.contents(), entry.types[0], inner)
    for tensor in reader.tensors:
        if tensor.name == "token_embd.weight" and not has_vocabulary:
            writer.add_vocab_size(int(tensor.shape[1]))
        shape = tuple(int(length) for length in reversed(tensor.shape))
        values = np.array(tensor.data).reshape(shape) if tensor.data.dtype != np.uint8 else None
        if values is None:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    if not has_vocabulary:
        writer.add_tokenizer_model("no_vocab")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Model:
    """A model of llama.cpp, the tokens of its vocabulary and of its context."""

    def __init__(self, llama, path):
        self.llama = llama
        params = llama.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise SystemExit(f"llama.cpp does not take {path}")
        reader = gguf.GGUFReader(path)
        architecture = reader.fields["general.architecture"].contents()
        self.context = int(reader.fields[f"{architecture}.context_length"].contents())
        self.vocabulary = next(int(one.shape[1]) for one in reader.tensors if one.name == "token_embd.weight")

    def tokens(self, text):
        """The tokens of a text, as the model's own vocabulary has them, with what it puts first."""
        data, room = text.encode(), 4 * len(text) + 8
        ids = (ctypes.c_int32 * room)()
        vocabulary = ctypes.c_void_p(self.llama.llama_model_get_vocab(ctypes.c_void_p(self.model)))
        count = self.llama.llama_tokenize(vocabulary, data, len(data), ids, room, True, False)
        assert count >= 0
        return list(ids[:count])

    def run(self, prompt, count):
        """Logits after each token of the prompt and of `count` greedy ones, the last of which is not run."""
        params = self.llama.llama_context_default_params()
        params.n_ctx = max(256, len(prompt) + count)
        params.n_threads = params.n_threads_batch = 1
        params.type_k = params.type_v = TYPE_F32
        params.flash_attention = 0
        context = self.llama.llama_init_from_model(self.model, params)
        rows, known = [], list(prompt)
        while len(rows) < len(prompt) + count - 1:
            token = ctypes.c_int32(known[len(rows)])
            if self.llama.llama_decode(context, self.llama.llama_batch_get_one(ctypes.addressof(token), 1)):
                raise SystemExit("llama.cpp cannot decode")
            logits = self.llama.llama_get_logits_ith(context, -1)
            rows.append(np.ctypeslib.as_array(logits, (self.vocabulary,)).astype(np.float64))
            if len(rows) >= len(prompt):
                known.append(int(rows[-1].argmax()))
        self.llama.llama_free(context)
        return np.array(rows), known


def log_probabilities(rows):
    shifted = rows - rows.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def trace(model, prompt):
    rows, known = model.run(prompt, GREEDY_TOKENS)
    chances = log_probabilities(rows)
    best = np.sort(rows[len(prompt) - 1:], axis=1)
    return {
        "prompt": f"{len(prompt)} tokens",
        "prompt_token_ids": prompt,
        "prompt_nll_mean": float(np.mean([-chances[at, token] for at, token in enumerate(prompt[1:])])),
        "greedy_token_ids": known[len(prompt):],
        "greedy_margins": (best[:, -1] - best[:, -2]).tolist(),
        "logits_after_prompt": [round(logit, 9) for logit in rows[len(prompt) - 1].tolist()],
    }


def print_quality(llama, text, name):
    """Loss, divergence from exact arithmetic and agreement of the best token, over a text."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "f32.gguf"
        write_f32_copy(name, copy)
        exact, rounded = Model(llama, copy), Model(llama, name)
        tokens = exact.tokens(text)[: exact.context]
        p, q = (log_probabilities(model.run(tokens, 0)[0]) for model in (exact, rounded))
    actual = np.arange(len(p)), tokens[1:]
    divergences = np.sort((np.exp(p) * (p - q)).sum(axis=1))
    print(f"{name.name}: {len(p)} tokens, loss {-p[actual].mean():.5f} exact, {-q[actual].mean():.5f} rounded, "
          f"KL mean {divergences.mean():.2e}, p99 {divergences[len(p) * 99 // 100]:.2e}, "
          f"same best {100 * (p.argmax(axis=1) == q.argmax(axis=1)).mean():.2f} %")


def main():
    llama = library()
    if sys.argv[1] == "--quality":
        text = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
        for name in map(pathlib.Path, sys.argv[3:]):
            print_quality(llama, text, name)
        return
    for name in map(pathlib.Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "f32.gguf"
            write_f32_copy(name, copy)
            model = Model(llama, copy)
            prompts = [[3, 1, 4, 1, 5, 9, 2, 6], [(7 * i * i + 3 * i + 1) % model.vocabulary for i in range(70)]]
            traces = {"traces": [trace(model, prompt) for prompt in prompts]}
        name.with_suffix(".llama-cpp.json").write_text(json.dumps(traces, indent=0) + "\n")


if __name__ == "__main__":
    main()
