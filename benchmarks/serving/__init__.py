"""Serving: engines that translate text, requests that are put together, clients that wait for each answer."""
