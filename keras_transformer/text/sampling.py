"""Subword sampling: another cut of the same text each time, as regularization in training."""

from dataclasses import dataclass

from keras_transformer.text.lattice_sampling import LatticeSampling
from keras_transformer.text.merge_dropout import MergeDropout
from keras_transformer.text.piece_model import PieceModel
from keras_transformer.text.sampler import Sampler


@dataclass(frozen=True)
class SubwordSampling:
    """How far sampled encodings stray from the usual one.

    Args:
        alpha: For a BPE model, the chance of each merge to be left out (BPE-dropout, arXiv 1910.13267): 0 changes nothing, 1
            leaves single characters; 0.1 is usual. For a unigram model, the power that is applied to the probability of each
            way to cut the text before one is drawn (subword regularization, arXiv 1804.10959): 0 makes all of them equally
            likely, a large number takes the best one nearly always; 0.1 to 0.5 is usual.

    Example:

    >>> SubwordSampling(alpha=0.2)
    SubwordSampling(alpha=0.2)
    """

    alpha: float = 0.1

    def __post_init__(self):
        if not self.alpha >= 0:
            raise ValueError(f"`alpha` must not be negative. Received: alpha={self.alpha}")


def make_sampler(model: PieceModel, sampling: SubwordSampling) -> Sampler:
    """Makes the sampler that suits a model's kind."""
    if model.has_user_defined:
        raise ValueError("Subword sampling does not know how to treat the user-defined symbols of this SentencePiece model")
    return (MergeDropout if model.is_bpe else LatticeSampling)(model, sampling.alpha)
