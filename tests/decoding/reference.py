"""The plainest Transformer and the plainest beam search that can be written: numpy, float64, no cache, no batch."""

import numpy as np


class PlainTransformer:
    """A post-norm Transformer, computed from the weights of ours one sentence at a time."""

    def __init__(self, model):
        self.config = model.config
        self.weights = {variable.path: np.asarray(variable.numpy(), "float64") for variable in to_numpy(model)}

    def weight(self, name):
        return next(value for path, value in self.weights.items() if path == name or path.endswith("/" + name))

    def linear(self, x, name):
        return x @ self.weight(f"{name}/kernel") + self.weight(f"{name}/bias")

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.config.layer_norm_epsilon)
        return scaled * self.weight(f"{name}/gamma") + self.weight(f"{name}/beta")

    def attention(self, query, key, name, causal=False):
        heads = self.config.num_heads
        width = query.shape[-1] // heads
        q, k, v = (self.linear(x, f"{name}/{part}") for x, part in ((query, "query"), (key, "key"), (key, "value")))
        outputs = []
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            scores = q[:, columns] @ k[:, columns].T / np.sqrt(width)
            if causal:
                scores = np.where(np.tril(np.ones(scores.shape)), scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            outputs.append(weights / weights.sum(-1, keepdims=True) @ v[:, columns])
        return self.linear(np.concatenate(outputs, -1), f"{name}/output")

    def feed_forward(self, x, name):
        return self.linear(np.maximum(self.linear(x, f"{name}/hidden"), 0), f"{name}/output")

    def embed(self, ids, name):
        width = self.config.model_dim
        angles = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
        positions = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(ids), width)
        return self.weight(f"{name}/embeddings")[np.asarray(ids)] * np.sqrt(width) + positions

    def encode(self, ids):
        x = self.embed(ids, "source_embedding")
        for number in range(self.config.num_encoder_layers):
            block = f"encoder_block_{number}"
            x = self.norm(x + self.attention(x, x, f"{block}/self_attention"), f"{block}/self_attention_norm")
            x = self.norm(x + self.feed_forward(x, f"{block}/feed_forward"), f"{block}/feed_forward_norm")
        return x

    def log_probabilities(self, encoded, target_ids):
        """Returns the log-probabilities of what follows each target token, `(T, V)`."""
        x = self.embed(target_ids, "target_embedding")
        for number in range(self.config.num_decoder_layers):
            block = f"decoder_block_{number}"
            x = self.norm(x + self.attention(x, x, f"{block}/self_attention", True), f"{block}/self_attention_norm")
            x = self.norm(x + self.attention(x, encoded, f"{block}/cross_attention"), f"{block}/cross_attention_norm")
            x = self.norm(x + self.feed_forward(x, f"{block}/feed_forward"), f"{block}/feed_forward_norm")
        logits = self.linear(x, "logits")
        logits = logits - logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def next_log_probabilities(self, source_ids):
        """Returns a function from the tokens so far to the log-probabilities of the next one."""
        encoded = self.encode(source_ids)
        return lambda tokens: self.log_probabilities(encoded, [self.config.start_id, *tokens])[-1]


def to_numpy(model):
    """Yields the variables with a `numpy` method that works on every backend."""
    import keras

    for variable in model.variables:
        yield type("Plain", (), {"path": variable.path, "numpy": lambda self, v=variable: keras.ops.convert_to_numpy(v)})()


def penalty(length, options):
    base = (5 + length) / 6 if options.penalty == "google" else length
    return base**options.length_penalty


def allowed(position, token, options, max_length, end_id):
    if position == max_length:
        return token == end_id
    return token not in options.banned_ids and not (token == end_id and position < options.min_length)


def greedy_search(next_log_probabilities, options, max_length, end_id, events=None):
    """Takes the best token each time, and returns what it comes to as the only hypothesis: (score, log-probability, tokens)."""
    total, tokens = 0.0, ()
    while not tokens or tokens[-1] != end_id:
        values = next_log_probabilities(tokens)
        choices = [token for token in range(len(values)) if allowed(len(tokens), token, options, max_length, end_id)]
        best = max(choices, key=lambda token: values[token])
        total, tokens = total + values[best], (*tokens, best)
    return [(total / penalty(len(tokens), options), total, tokens)]


def beam_search(next_log_probabilities, options, max_length, end_id, events=None):
    """Returns the ended hypotheses, best first: (score, log-probability, tokens)."""
    events = {} if events is None else events
    alive, ended = [(0.0, ())], []
    for position in range(max_length + 1):
        candidates = []
        for log_probability, tokens in alive:
            for token, value in enumerate(next_log_probabilities(tokens)):
                if allowed(position, token, options, max_length, end_id):
                    candidates.append((log_probability + value, (*tokens, token)))
                elif token == end_id and value > -1.5:
                    events["minimum length bit"] = events.get("minimum length bit", 0) + 1
        candidates.sort(key=lambda candidate: -candidate[0])
        best = candidates[: 2 * options.beam_size]
        before = ended[:1]
        for log_probability, tokens in best:
            if tokens[-1] == end_id:
                ended.append((log_probability / penalty(position + 1, options), log_probability, tokens))
        ended = sorted(ended, key=lambda hypothesis: -hypothesis[0])[: options.beam_size]
        if before and ended[:1] != before:
            events["a later hypothesis won"] = events.get("a later hypothesis won", 0) + 1
        if len(ended) > 1 and ended[0][0] - ended[1][0] < 0.02:
            events["near tie"] = events.get("near tie", 0) + 1
        alive = [candidate for candidate in best if candidate[1][-1] != end_id][: options.beam_size]
        if not alive or is_done(alive[0][0], ended, position + 1, options, max_length):
            break
    return ended


def is_done(best_alive, ended, length, options, max_length):
    full = len(ended) == options.beam_size
    if options.stopping == "first":
        return full
    if options.stopping == "heuristic":
        return full and ended[-1][0] >= best_alive / penalty(length, options)
    kindest = max_length + 1 if options.length_penalty > 0 else length + 1
    wanted = options.num_hypotheses
    return len(ended) >= wanted and ended[wanted - 1][0] >= best_alive / penalty(kindest, options)


def exhaustive_search(next_log_probabilities, options, max_length, end_id):
    """Returns the best of all translations there are."""
    finished, open_ = [], [(0.0, ())]
    for position in range(max_length + 1):
        longer = []
        for log_probability, tokens in open_:
            for token, value in enumerate(next_log_probabilities(tokens)):
                if allowed(position, token, options, max_length, end_id):
                    longer.append((log_probability + value, (*tokens, token)))
        finished += [(lp / penalty(position + 1, options), lp, tokens) for lp, tokens in longer if tokens[-1] == end_id]
        open_ = [candidate for candidate in longer if candidate[1][-1] != end_id]
    return max(finished)
