"""The compiled loops: edge-wise products over index pairs, and Algorithm 1's projections.

Only what is memory-bound or truly sequential is here. Every function releases the GIL, keeps no state
and writes only to the arrays it is given; callers check shapes and types.
"""
