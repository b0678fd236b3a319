"""A server for one machine, to try an export and to test with. It is not TensorFlow Serving.

What it shares with TensorFlow Serving: the C runtime that runs the graph, and the rules of the REST interface, of batching, of
version folders, of warm-up requests and of cross-origin requests, each written after the server's source.
"""
