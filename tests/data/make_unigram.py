"""A small vocabulary of SentencePiece's unigram kind, and what llama.cpp makes of texts with it.

    python make_unigram.py FOLDER     writes unigram.gguf and unigram.vectors.json

Packages: numpy, gguf, sentencepiece 0.2, xllamacpp==0.2.8 (see llama_cpp.py). The pieces are learnt from story.txt. The
normalisation is a handful of rules of our own, in the form that a SentencePiece model stores them. Three vocabularies
are asked, which differ in how they treat spaces: NAME, NAME-spaces (nothing is merged, and no space is put first) and
NAME-unsaid, whose file does not say.
"""

import ctypes
import json
import pathlib
import sys
import tempfile

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

import llama_cpp

# What is replaced, and by what, as code points: ligatures, full-width letters, a line end, a composed letter, nothing.
RULES = {
    "\ufb01": "fi", "\ufb02": "fl", "\uff21": "A", "\uff22": "B", "\n": " ", "\t": " ", "\u3000": " ",
    "e\u0301": "\u00e9", "\u00ad": "", "...": "\u2026", "\u2126": "\u03c9\u03c9", "\u2117": "<turn>",
}

# Pieces that are not learnt: what decides between two ways of equal sums, and between a piece and an unknown character,
# which counts 10 less than the worst piece that is not of this kind.
UNUSED = {"Qx": -9.0, "xQ": -9.0, "Q": -4.0, "Zq": -17.0}

TEXTS = [
    "", " ", "  ", "a", " a", "a ", "a  b", "The lighthouse had been dark.", "  Marta  came\nto live in it.  ",
    "the \ufb01re and the \ufb02ame", "\uff21\uff22\u3000sea", "cafe\u0301 e\u0301", "so\u00adft", "wait...", "wait....",
    "\u2126", "snow \u96ea and \U0001F600\U0001F601 faces", "\u96ea\u96ea\u96ea", "x\u0000y", "lighthouselighthouse",
    "<turn>Marta", "a<turn> b", "<turn><turn>", "light<turn", "</s>the</s>", "Z Q 0123456789", "\ttab\t\ttab",
    "QxQ", "Zq", "Zqq", "a\u2117b", "thethethethethe", "\u2581already", "e\u0301\u0301", "....", "a\u00ad \u00adb",
]


def learn(folder):
    story = pathlib.Path(__file__).with_name("story.txt")
    rules = folder / "rules.tsv"
    points = lambda text: " ".join(f"{ord(character):X}" for character in text)
    rules.write_text("".join(f"{points(source)}\t{points(target)}\n" for source, target in RULES.items()))
    sentencepiece.SentencePieceTrainer.train(
        input=str(story), model_prefix=str(folder / "unigram"), vocab_size=260, model_type="unigram",
        normalization_rule_tsv=str(rules), user_defined_symbols=["<turn>"], num_threads=1, minloglevel=2,
        hard_vocab_limit=False, pad_id=-1,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((folder / "unigram.model").read_bytes())
    for piece, score in UNUSED.items():
        model.pieces.add(piece=piece, score=score, type=5)
    return model


def write(path, model, merges_spaces):
    kinds = {1: gguf.TokenType.NORMAL, 2: gguf.TokenType.UNKNOWN, 3: gguf.TokenType.CONTROL,
             4: gguf.TokenType.USER_DEFINED, 5: gguf.TokenType.UNUSED, 6: gguf.TokenType.BYTE}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece.piece for piece in model.pieces])
    writer.add_token_scores([piece.score for piece in model.pieces])
    writer.add_token_types([kinds[piece.type] for piece in model.pieces])
    if merges_spaces is not None:
        writer.add_add_space_prefix(merges_spaces)
        writer.add_remove_extra_whitespaces(merges_spaces)
    writer.add_precompiled_charsmap(model.normalizer_spec.precompiled_charsmap)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    # What llama.cpp wants to see of a model even where it reads the vocabulary alone.
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vectors(llama, path):
    params = llama.llama_model_default_params()
    params.flags[0] = True  # The vocabulary alone.
    model = llama.llama_model_load_from_file(str(path).encode(), params)
    vocabulary = ctypes.c_void_p(llama.llama_model_get_vocab(ctypes.c_void_p(model)))

    def tokens(text, parse_special):
        data, room = text.encode(), 4 * len(text) + 8
        ids = (ctypes.c_int32 * room)()
        count = llama.llama_tokenize(vocabulary, data, len(data), ids, room, False, parse_special)
        assert count >= 0
        return list(ids[:count])

    return [{"text": text, "ids": tokens(text, True), "plain": tokens(text, False)} for text in TEXTS]


def main():
    folder = pathlib.Path(sys.argv[1])
    llama = llama_cpp.library()
    with tempfile.TemporaryDirectory() as scratch:
        model = learn(pathlib.Path(scratch))
    result = {}
    for name, merges_spaces in (("unigram", True), ("unigram-spaces", False), ("unigram-unsaid", None)):
        write(folder / f"{name}.gguf", model, merges_spaces)
        result[name] = vectors(llama, folder / f"{name}.gguf")
    (folder / "unigram.vectors.json").write_text(json.dumps(result, indent=0) + "\n")


if __name__ == "__main__":
    main()
