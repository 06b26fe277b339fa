"""The page of the studio: a server on loopback for one session, the extra ``mahalo[studio]``."""

from .app import make_app
from .run import serve

__all__ = ["make_app", "serve"]
