"""Correctly rounded elementary functions of typed arrays."""

from numsim._typed import unary

_LIMITS = "the limits of the function (libnumsim/numerics/numsim/arith/elementary.h)"

exp = unary("exp", "e^a", _LIMITS)
exp2 = unary("exp2", "2^a", _LIMITS)
log = unary("log", "the natural logarithm of a", _LIMITS)
log2 = unary("log2", "the logarithm of a to base 2", _LIMITS)
tanh = unary("tanh", "the hyperbolic tangent of a", _LIMITS)
sigmoid = unary("sigmoid", "1 / (1 + e^-a)", _LIMITS)
gelu = unary(
    "gelu", "a Phi(a), where Phi is the distribution function of the normal distribution", _LIMITS
)
gelu_tanh = unary(
    "gelu-tanh",
    "a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2, an approximation of gelu",
    _LIMITS,
)
