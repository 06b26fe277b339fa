"""HTTP on starlette and uvicorn: what the studio and the search service share, the extra ``mahalo[studio]``."""

from .bodies import parse_object
from .guard import Guard, body_refusal, host_refusal, secrets_equal
from .listening import address_of, bind_socket, run_app
from .refusal import Refusal

__all__: list[str] = []
