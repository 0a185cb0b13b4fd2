"""multitask: every task its own convolution on one encoder.

Caruana 1997, hard parameter sharing.
"""

from litotes.model.heads.convolution import Convolution


class Multitask(Convolution):
    """One convolution per task over shared hidden states: y_k = W'_k (1/n Σ_t ReLU(W_k [h_{t-1};
    h_t; h_{t+1}] + b_k)) + b'_k.
    """
