"""What an exported file and its inputs are called, and what it says about itself.

Nothing here needs torch.
"""

FILE = "model.onnx"
NOTE = "export.json"
"""Written next to the file when it is whole, with its sha256."""
MADE_FROM = "made_from"
"""Where that note has the sha256 of the files of the model: of the built-in one, whose file is not
next to them.
"""
PRODUCER = "litotes"
PIECES, SEGMENTS = "pieces", "segments"
LAYERS = "answered_at_layer"
"""An output of files with exits: after how many layers each text was answered."""
EXITS = "exits"
"""The fact of such a file: the rule by which texts leave."""
SEVERAL = "multi_label"
"""The fact that names the tasks in which a text may have several labels."""
HASH_OF = "sha256 of "
"""Begins the facts that say which files of a model folder the file was made from."""
INT16 = "int16"
"""The precision of a file that keeps its weights in 16 bits and computes in float32."""
ONE_BY_ONE = "one text at a time"
"""The fact of a file some of whose operators add in another order for several texts."""
MOST_ROUNDS = 30
"""Of a loop in the file: `attention.simplex.MOST_ROUNDS`, which needs torch."""
OPSET = 23
"""The first with an operator for attention (ONNX 1.18)."""
IR_VERSION = 11
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators: documented in its ContribOperators.md and there on
every processor.
"""
OPERATORS: dict[str, frozenset[str]] = {
    "": frozenset({
        "Abs", "Add", "ArgMax", "Attention", "Cast", "Ceil", "Clip", "Concat", "Div", "Exp",
        "Expand", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater",
        "GreaterOrEqual", "Identity", "If", "LSTM", "LayerNormalization", "Log", "Loop", "MatMul",
        "Max", "Min", "Mul", "NonZero", "OneHot", "Pad", "Pow", "QuantizeLinear", "Range",
        "ReduceL2", "ReduceMax", "ReduceSum", "Relu", "Reshape", "RotaryEmbedding",
        "ScatterElements", "ScatterND", "Shape", "Sigmoid", "Sign", "Slice", "Softmax", "Squeeze",
        "Sub", "Tanh", "TopK", "Transpose", "Unsqueeze", "Where",
    }),
    MICROSOFT: frozenset({"FusedMatMul", "MatMulIntegerToFloat"}),
}  # fmt: skip
"""All that is ever written, by domain; a file with any other operator is refused (model_check.py).
"""
