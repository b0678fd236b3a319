"""Puts requests that wait at the same time together, as TensorFlow Serving does."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future


class Batcher:
    """Workers that translate whatever waits, up to a size, at once.

    Args:
        translate: A function from a list of texts to a list of translations. Called by all workers.
        workers: How many batches are translated at the same time.
        max_batch_size: The most texts of a batch.
    """

    def __init__(self, translate: Callable[[list[str]], list[str]], workers: int, max_batch_size: int):
        self.translate, self.max_batch_size = translate, max_batch_size
        self.waiting = queue.SimpleQueue()
        self.workers = [threading.Thread(target=self.work, daemon=True) for _ in range(workers)]
        for worker in self.workers:
            worker.start()

    def ask(self, text: str) -> str:
        """Waits for the translation of a text."""
        answer = Future()
        self.waiting.put((text, answer))
        return answer.result()

    def work(self):
        """Translates batch after batch until there is an end."""
        while (first := self.waiting.get()) is not None:
            batch = [first]
            while len(batch) < self.max_batch_size and not self.waiting.empty():
                try:
                    another = self.waiting.get_nowait()
                except queue.Empty:
                    break
                if another is None:
                    self.waiting.put(None)
                    break
                batch.append(another)
            try:
                translations = self.translate([text for text, _ in batch])
                for (_, answer), translation in zip(batch, translations, strict=True):
                    answer.set_result(translation)
            except Exception as error:  # noqa: BLE001 - whoever asked has to know.
                for _, answer in batch:
                    answer.set_exception(error)

    def close(self):
        """Lets the workers finish."""
        for _ in self.workers:
            self.waiting.put(None)
        for worker in self.workers:
            worker.join()
