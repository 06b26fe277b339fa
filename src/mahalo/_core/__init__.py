"""The compiled loops: edge-wise products over index pairs, Algorithm 1's projections, and the steps of a stream.

Only what is memory-bound or truly sequential is here. Every function releases the GIL, keeps no state
and writes only to the arrays it is given. Shapes are compared at every entry. Indices are checked here where they are
few beside the arithmetic; the edge-wise products and the intersections leave that to what makes their indices,
`EdgeForms` and `kernels.histograms`, once for many calls.
"""
