"""Identity of the encoder that made the vectors of a model."""

from __future__ import annotations

from dataclasses import dataclass

from .json_values import Reader


@dataclass(frozen=True)
class EncoderRecord:
    """Name, version and dimension of an encoder, stored with a model; the encoder itself is not.

    Attributes
    ----------
    name : str
    version : str or None
        Digest of the encoder's files, or as the caller named it; None if unknown.
    dimension : int or None
        Length of its vectors; None if unknown.
    """

    name: str
    version: str | None = None
    dimension: int | None = None

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.name}{version}" + (f" ({self.dimension} dimensions)" if self.dimension else "")

    @staticmethod
    def read(about: Reader) -> EncoderRecord | str | None:
        """Return the entry "encoder" of `Metric.about`: a record, a name alone, or None if there is none."""
        stored = about.get("encoder")
        if stored is None or isinstance(stored, str):
            return stored
        values = about.required("encoder")
        if not (name := values.text("name")):
            raise ValueError("encoder has no name")
        return EncoderRecord(name, values.text("version"), values.count("dimension"))
