"""The worker: takes jobs from a gateway, runs their handlers, and reports how they end."""

from .worker import Worker

__all__ = ["Worker"]
