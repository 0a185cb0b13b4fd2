"""The HTTP service: `create_app(models, settings=…)` is an ASGI app, `litotes serve` runs it."""

from litotes.service.app import create_app
from litotes.service.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]
