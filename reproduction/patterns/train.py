"""Trains the pattern network on random maps and writes its weights into the package.

    python -m reproduction.patterns.train [--out FILE]

Two to three minutes on one core. Prints the accuracy on random maps that it has not seen, the
confusion matrix and the file's hash, which SHA256 below must state.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn.functional import cross_entropy

from litotes.core.numbers import Counts, confusion
from litotes.core.storage import sha256_of, write_bytes
from litotes.explanation.analyses.patterns import network as network_module
from litotes.explanation.analyses.patterns.classes import CLASSES
from litotes.explanation.analyses.patterns.features import MapFeatures, map_features
from litotes.explanation.analyses.patterns.network import WEIGHTS, PatternNetwork
from reproduction.patterns.maps import generate

PACKAGE_WEIGHTS = Path(network_module.__file__).with_name(WEIGHTS)

SHA256 = "ff9ca91783c39dbe070a7ecc467b78e9f5bf11038a4c6844756e66b201fe8ea2"

SEED = 1
HELD_OUT_SEED = 2
N_MAPS = 10_000
N_HELD_OUT = 2_000
N_EPOCHS = 10

_BATCH_MAPS = 128
_RATE = 3e-3
_DECAY = 1e-2
_SMOOTHING = 0.05  # some of the maps could be given another class with a good conscience


@dataclass(frozen=True)
class LabelledMaps:
    """Random maps as the network sees them, with their classes (map,)."""

    features: MapFeatures
    classes: Tensor

    def __len__(self) -> int:
        return len(self.classes)


def label_maps(n_maps: int, *, seed: int) -> LabelledMaps:
    """Draws so many maps, the classes in turn."""
    grids, shares, classes = [], [], []
    for weights, number in generate(n_maps, seed=seed):
        features = map_features(weights[None])
        grids.append(features.grids)
        shares.append(features.shares)
        classes.append(number)
    return LabelledMaps(MapFeatures(torch.cat(grids), torch.cat(shares)), torch.tensor(classes))


def train(maps: LabelledMaps, *, n_epochs: int = N_EPOCHS, seed: int = SEED) -> PatternNetwork:
    """A network that has learned these maps.

    Half of the batches are turned by 180°, which changes no pattern.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PatternNetwork().train()
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)
        n_steps = n_epochs * -(-len(maps) // _BATCH_MAPS)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=n_steps)
        for _ in range(n_epochs):
            for places in torch.randperm(len(maps)).split(_BATCH_MAPS):
                grids = maps.features.grids[places]
                grids = grids.flip(2, 3) if torch.rand(()) < 0.5 else grids
                loss = cross_entropy(
                    network(MapFeatures(grids, maps.features.shares[places])),
                    maps.classes[places],
                    label_smoothing=_SMOOTHING,
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return network.eval()


@torch.inference_mode()
def confusion_of(network: PatternNetwork, held_out: LabelledMaps) -> Counts:
    """How often a map of one class is taken for another. (class, predicted)"""
    predicted = network(held_out.features).argmax(1)
    return confusion(held_out.classes.numpy(), predicted.numpy(), len(CLASSES))


def main() -> None:
    """Trains, writes the weights and says how well it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=PACKAGE_WEIGHTS, help="default: the file in the package"
    )
    file = parser.parse_args().out
    torch.set_num_threads(1)  # several threads add up in another order, and the hash changes
    network = train(label_maps(N_MAPS, seed=SEED))
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    write_bytes(file, save(weights, metadata={"format": "pt"}))
    counts = confusion_of(network, label_maps(N_HELD_OUT, seed=HELD_OUT_SEED))
    print(f"accuracy on {N_HELD_OUT} random maps: {counts.trace() / counts.sum():.3f}")
    for name, row in zip(CLASSES, counts, strict=True):
        print(f"{name:>18} " + " ".join(f"{count:5d}" for count in row))
    print(f"{file}: sha256 {sha256_of(file)}")


if __name__ == "__main__":
    main()
