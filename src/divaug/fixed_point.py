"""Probabilities as whole numbers: the scale that selection and its kernel share."""

__all__ = ["BITS", "LARGEST_SUM"]

#: Bits of a probability after the point. The scalar product of two probability vectors is then
#: below 2**53, so float64 holds it and all its partial sums exactly; a squared distance is below
#: 2**54, and a sum over 64 candidates fits the 62 bits that the draw needs.
BITS = 26

#: A sum of probabilities above this is no probability vector; half precision stays well below it.
LARGEST_SUM = (1 << BITS) + (1 << (BITS - 4))
