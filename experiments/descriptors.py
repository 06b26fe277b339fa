"""Local descriptors of grey images: dense SIFT and geometric blur, in plain NumPy.

Both describe where in a neighbourhood the image has edges of which direction. Pooling over neighbourhoods is linear and
separable, so each is a product of the edge channels with a matrix on either side.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

__all__ = ["dense_sift", "edge_channels", "geometric_blur"]


def edge_channels(image: np.ndarray, n_directions: int, period: float = 2 * np.pi) -> np.ndarray:
    """Strength of the gradient at each pixel, shared between its two nearest directions: (n_directions, rows, columns).

    With `period` π, opposite directions are the same.
    """
    gy, gx = np.gradient(np.asarray(image, dtype=np.float32))
    strength = np.hypot(gx, gy)
    direction = np.mod(np.arctan2(gy, gx), period) * np.float32(n_directions / period)
    lower = np.floor(direction)
    share = direction - lower
    lower = lower.astype(np.intp) % n_directions
    channels = np.zeros((n_directions, *strength.shape), dtype=np.float32)
    np.put_along_axis(channels, lower[None], (strength * (1 - share))[None], axis=0)
    np.put_along_axis(channels, ((lower + 1) % n_directions)[None], (strength * share)[None], axis=0)
    return channels


def dense_sift(image: np.ndarray, step: int = 8, cell: int = 4, floor: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """SIFT (Lowe) on a regular grid, upright and at one scale.

    Parameters
    ----------
    image : array of shape (rows, columns), values in [0, 1]
    step : int
        Pixels between neighbouring patches.
    cell : int
        Side of one of the 4 × 4 cells of a patch, in pixels.
    floor : float
        Patches whose gradients have a smaller norm are not stretched to unit norm: flat regions stay near zero.

    Returns
    -------
    descriptors : float32 array of shape (n, 128)
    positions : float32 array of shape (n, 2)
        Centres of the patches as (x, y) in [0, 1].
    """
    channels = edge_channels(image, 8)
    pool_y, centre_y = _cells(image.shape[0], step, cell)
    pool_x, centre_x = _cells(image.shape[1], step, cell)
    pooled = pool_y @ channels @ pool_x.T
    pooled = pooled.reshape(8, len(centre_y), 4, len(centre_x), 4).transpose(1, 3, 2, 4, 0)
    descriptors = np.ascontiguousarray(pooled).reshape(-1, 128)
    descriptors /= np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), floor * cell)
    np.minimum(descriptors, 0.2, out=descriptors)
    descriptors /= np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 0.5)
    y, x = np.meshgrid(centre_y / image.shape[0], centre_x / image.shape[1], indexing="ij")
    return descriptors, np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)


def _cells(size: int, step: int, cell: int) -> tuple[np.ndarray, np.ndarray]:
    """Pooling of `size` pixels into 4 cells for each patch, (patches · 4, size), and the patches' centres.

    A pixel counts for the two nearest cells in proportion to nearness, and less towards the rim of the patch.
    """
    room = size - 4 * cell
    if room < 0:
        raise ValueError(f"a side of {size} pixels is too small for patches of {4 * cell}; enlarge the image.")
    centres = (room % step) / 2 + 2 * cell + step * np.arange(room // step + 1) - 0.5
    offsets = np.array([-1.5, -0.5, 0.5, 1.5])
    middles = (centres[:, None] + cell * offsets).ravel()
    nearness = np.maximum(1 - np.abs(np.arange(size) - middles[:, None]) / cell, 0)
    rim = np.tile(np.exp(-(offsets**2) / 8), len(centres))
    return (rim[:, None] * nearness).astype(np.float32), centres


# Sample points of geometric blur around an edge point: on rings of growing radius, 51 in all.
_RINGS = ((0.0, 1), (0.1, 8), (0.25, 8), (0.45, 10), (0.7, 12), (1.0, 12))


def geometric_blur(
    image: np.ndarray, rng: np.random.Generator, n_points: int = 150, radius: float = 50.0
) -> tuple[np.ndarray, np.ndarray]:
    """Geometric blur (Berg and Malik): edges around a point, the more blurred the farther away they are.

    Parameters
    ----------
    image : array of shape (rows, columns), values in [0, 1]
    rng : Generator
        Draws the points, edges with a chance in proportion to their strength.
    n_points : int
    radius : float
        Of the neighbourhood, in pixels.

    Returns
    -------
    descriptors : float32 array of shape (n_points, 204)
        Four edge directions at 51 places, of unit norm.
    positions : float32 array of shape (n_points, 2)
        As (x, y) in [0, 1].
    """
    channels = edge_channels(gaussian_filter(np.asarray(image, dtype=np.float32), 1.0), 4, np.pi)
    strength = channels.sum(axis=0, dtype=np.float64).ravel() + 1e-9
    drawn = rng.choice(len(strength), n_points, replace=len(strength) < n_points, p=strength / strength.sum())
    y, x = np.divmod(drawn, image.shape[1])
    parts = []
    for share, n_angles in _RINGS:
        angle = 2 * np.pi * np.arange(n_angles) / n_angles
        distance = share * radius
        places = y[:, None] + distance * np.sin(angle), x[:, None] + distance * np.cos(angle)
        parts.append(_blurred(channels, 1.0 + 0.5 * distance, distance, places))
    descriptors = np.concatenate(parts, axis=1).reshape(n_points, -1)
    descriptors /= np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-6)
    positions = np.column_stack([x / image.shape[1], y / image.shape[0]])
    return descriptors.astype(np.float32), positions.astype(np.float32)


def _blurred(channels: np.ndarray, sigma: float, margin: float, places: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Channels after a Gaussian blur, at places up to `margin` pixels outside the image, where all is zero.

    The blur is evaluated on a grid of step sigma/2, fine enough to interpolate.
    """
    step = max(1.0, sigma / 2)
    grids = [np.arange(-margin - step, size + margin + 2 * step, step) for size in channels.shape[1:]]
    blur_y, blur_x = (_gaussian(grid, size, sigma) for grid, size in zip(grids, channels.shape[1:], strict=True))
    blurred = blur_y @ channels @ blur_x.T
    at = [(place - grid[0]) / step for place, grid in zip(places, grids, strict=True)]
    return np.stack([map_coordinates(channel, at, order=1) for channel in blurred], axis=-1)


def _gaussian(grid: np.ndarray, size: int, sigma: float) -> np.ndarray:
    """Blur of `size` pixels, evaluated on a grid: (len(grid), size). Zero beyond 4 sigma: denormal numbers are slow."""
    z = (grid[:, None] - np.arange(size, dtype=np.float32)) / np.float32(sigma)
    return np.where(np.abs(z) < 4, np.exp(-(z**2) / 2) / (sigma * np.sqrt(2 * np.pi)), 0).astype(np.float32)
