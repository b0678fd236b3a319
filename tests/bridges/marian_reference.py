"""What Hugging Face makes of a checkpoint."""

import numpy as np
import torch
from transformers import MarianMTModel, MarianTokenizer


class Reference:
    """A checkpoint in Hugging Face's own classes.

    Args:
        folder: The checkpoint.
    """

    def __init__(self, folder):
        self.model = MarianMTModel.from_pretrained(folder).eval()
        self.tokenizer = MarianTokenizer.from_pretrained(folder)

    def inputs(self, texts):
        return self.tokenizer(texts, return_tensors="pt", padding=True)

    def source_ids(self, texts) -> np.ndarray:
        return self.inputs(texts)["input_ids"].numpy().astype("int32")

    def exact_logits(self, source_ids, target_ids) -> np.ndarray:
        """Computes in float64: in float32, Hugging Face rounds as much as we do."""
        self.model.double()
        try:
            return self.logits(source_ids, target_ids)
        finally:
            self.model.float()

    def logits(self, source_ids, target_ids) -> np.ndarray:
        sources, targets = torch.from_numpy(source_ids).long(), torch.from_numpy(target_ids).long()
        mask = (sources != self.model.config.pad_token_id).long()
        with torch.no_grad():
            return self.model(input_ids=sources, attention_mask=mask, decoder_input_ids=targets).logits.numpy()

    def generate(self, texts) -> list[list[int]]:
        """Translates with the checkpoint's settings and returns ids, ends included."""
        rows = self.model.generate(**self.inputs(texts))[:, 1:].tolist()
        return [row[: row.index(0) + 1] if 0 in row else row for row in rows]

    def score(self, text, ids) -> float:
        """Returns the score of a translation by the formula of `generate`, ends counted: log-probability / length^penalty."""
        settings = self.model.generation_config
        start = [self.model.config.decoder_start_token_id]
        logits = self.logits(self.source_ids([text]), np.array([[*start, *ids[:-1]]]))[0].astype("float64")  # (T, V)
        log_probs = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        banned = [word[0] for word in settings.bad_words_ids or []] + list(settings.suppress_tokens or [])
        log_probs[:, banned] = -np.inf
        log_probs[: max(0, (settings.min_length or 0) - 1), 0] = -np.inf
        if settings.renormalize_logits:
            log_probs -= np.logaddexp.reduce(log_probs, axis=-1, keepdims=True)
        if len(ids) == settings.max_length - 1:
            log_probs[-1] = 0.0  # The end is forced, and free.
        penalty = 1.0 if settings.length_penalty is None else settings.length_penalty
        return float(log_probs[np.arange(len(ids)), ids].sum() / len(ids) ** penalty)
