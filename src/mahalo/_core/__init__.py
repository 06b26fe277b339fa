"""Compiled loops: products over edges, projections of Algorithm 1, online steps, small systems, intersections.

Only memory-bound or sequential loops are here. Every function releases the GIL, has no state and writes only to its
arguments. Shapes are checked at every call. Indices are checked where that is cheap beside the arithmetic; for products
over edges and for intersections, `EdgeForms` and `kernels.histograms` check them once for many calls.
"""
