"""The local server, with a record of what it was asked."""

from keras_transformer.serving.local.models import ServedModel
from keras_transformer.serving.local.server import LocalServer


class RecordingServer(LocalServer):
    """Keeps method, path and body of each request."""

    def __init__(self, *arguments, **options):
        self.requests = []
        super().__init__(*arguments, **options)

    def answer(self, method, path, body):
        self.requests.append((method, path, body))
        return super().answer(method, path, body)


def serving(folder, batching=None, name="toy", **options):
    """Makes a server of one model."""
    return RecordingServer([ServedModel(name, folder, batching)], **options)
