"""The baseline: a service as people write it, FastAPI around `transformers.pipeline`, one text a
request.

    python bench/trials/plain_service.py --model runs/mine --port 8001

The encoder has the weights of the litotes model (before any pruning); the head is a fresh one,
which costs the same.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    pipeline,
)

from litotes.encoder import pretrained
from litotes.model.checkpoint import load_model
from litotes.model.folder import open_model


class Request(BaseModel):
    text: str


def classifier(folder: Path, max_pieces: int) -> Any:
    model = load_model(open_model(folder).models[0])
    with TemporaryDirectory() as saved:
        pretrained.save(
            pretrained.Pretrained(model.classifier.encoder, model.tokenizer, model.base, None),
            Path(saved),
        )
        try:
            tokenizer = AutoTokenizer.from_pretrained(saved)
        except (ValueError, OSError):
            tokenizer = PreTrainedTokenizerFast(
                tokenizer_file=str(Path(saved) / "tokenizer.json"), pad_token="[PAD]"
            )
        tokenizer.model_max_length = max_pieces
        network = AutoModelForSequenceClassification.from_pretrained(saved)
    return pipeline("text-classification", model=network, tokenizer=tokenizer, device="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--max-pieces", type=int, default=512)
    options = parser.parse_args()
    classify = classifier(options.model, options.max_pieces)
    app = FastAPI()

    @app.post("/predict")
    def predict(request: Request) -> dict[str, Any]:
        return dict(classify(request.text, truncation=True)[0])

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
