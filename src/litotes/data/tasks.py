"""The two questions litotes asks of a text, and the ways files spell the answers."""

from litotes.core.values import Task

SENTIMENT = Task("sentiment", ("negative", "positive"))
SENTIMENT_3 = Task("sentiment", ("negative", "neutral", "positive"))
SARCASM = Task("sarcasm", ("literal", "sarcastic"))

# 0 and 1 also come as 0.0 and 1.0: a table with a missing label somewhere stores the others as
# floats
_NO = ("0", "0.0", "false", "no")
_YES = ("1", "1.0", "true", "yes")

SPELLINGS = {
    "sentiment": {
        **dict.fromkeys((*_NO, "neg", "negative"), "negative"),
        **dict.fromkeys(("neu", "neutral"), "neutral"),
        **dict.fromkeys((*_YES, "pos", "positive"), "positive"),
    },
    "sarcasm": {
        **dict.fromkeys((*_NO, "literal", "notsarc", "not_sarcastic", "non-sarcastic"), "literal"),
        **dict.fromkeys((*_YES, "sarc", "sarcastic"), "sarcastic"),
    },
}
"""For each task the spellings read, in lower case, and the word each stands for."""


def unknown_labels(task: Task) -> tuple[str, ...]:
    """The labels of sentiment or sarcasm that stand beside known ones and are not known.

    A task that has none of the known labels has words of its own, which is no mistake.
    """
    known = set(SPELLINGS.get(task.name, {}).values())
    unknown = tuple(label for label in task.labels if label not in known)
    return unknown if len(unknown) < len(task.labels) else ()
