"""What counts of words say of sarcasm on topics that they were not fitted on."""

from litotes.data.corpus import Corpus


def score_of_words(corpus: Corpus, half: int) -> float:
    """Macro-F1 of counts of words and word pairs, fitted on half of the topics, on the others."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    topics = sorted({str(example.group) for example in corpus})
    half_of = {topic: number % 2 for number, topic in enumerate(topics)}
    parts: tuple[list[tuple[str, str]], ...] = ([], [])
    for example in corpus:
        parts[half_of[str(example.group)]].append((example.text, str(example.labels["sarcasm"])))
    train, test = parts[half], parts[1 - half]
    words = CountVectorizer(ngram_range=(1, 2), min_df=2)
    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(words.fit_transform(text for text, _ in train), [label for _, label in train])
    answers = model.predict(words.transform(text for text, _ in test))
    return float(f1_score([label for _, label in test], answers, average="macro"))
