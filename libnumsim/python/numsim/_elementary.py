"""Correctly rounded elementary functions of typed arrays."""

from numsim._typed import unary

_LIMITS = "those of IEEE 754, the limits (libnumsim/numerics/numsim/arith/elementary.h)"

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
expm1 = unary("expm1", "e^a - 1", _LIMITS)
log1p = unary("log1p", "the natural logarithm of 1 + a", _LIMITS)
softplus = unary("softplus", "the natural logarithm of 1 + e^a", _LIMITS)
rsqrt = unary("rsqrt", "1 / sqrt(a)", _LIMITS)
sin = unary("sin", "the sine of a radians", _LIMITS)
cos = unary("cos", "the cosine of a radians", _LIMITS)
tan = unary("tan", "the tangent of a radians", _LIMITS)
asin = unary("asin", "the inverse sine of a, in radians", _LIMITS)
acos = unary("acos", "the inverse cosine of a, in radians", _LIMITS)
atan = unary("atan", "the inverse tangent of a, in radians", _LIMITS)
sinpi = unary("sinpi", "the sine of pi a", _LIMITS)
cospi = unary("cospi", "the cosine of pi a", _LIMITS)
tanpi = unary("tanpi", "the tangent of pi a", _LIMITS)
asinpi = unary("asinpi", "the inverse sine of a, over pi", _LIMITS)
acospi = unary("acospi", "the inverse cosine of a, over pi", _LIMITS)
atanpi = unary("atanpi", "the inverse tangent of a, over pi", _LIMITS)
sinh = unary("sinh", "the hyperbolic sine of a", _LIMITS)
cosh = unary("cosh", "the hyperbolic cosine of a", _LIMITS)
asinh = unary("asinh", "the inverse hyperbolic sine of a", _LIMITS)
acosh = unary("acosh", "the inverse hyperbolic cosine of a", _LIMITS)
atanh = unary("atanh", "the inverse hyperbolic tangent of a", _LIMITS)
