"""Learned metrics in other libraries: one module for each, which imports that library and says what to install."""

__all__: list[str] = []
