"""Compiled kernels of the IVF index: what must run at the speed of memory.

A module here declares the types of its kernels, so that importing it compiles them, or loads them
from the cache beside the source, and no later call ever compiles. Nothing else of searchlab imports
one before it is needed: numba takes about a second.
"""
