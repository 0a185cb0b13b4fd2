"""The kinds of models: what a recipe asks for with `kind`, and what a model folder holds."""

CLASSIFICATION = "classification"
TRANSLATION = "translation"

KINDS = {
    CLASSIFICATION: "labels for whole texts",
    "tagging": "a label for every word",
    "span": "a stretch of words, or none",
    TRANSLATION: "texts, from an encoder-decoder",
}
"""Each kind, and what its models answer. A folder or a recipe that names none is of the first."""

WORD_KINDS = ("tagging", "span")
"""Those that answer words."""
