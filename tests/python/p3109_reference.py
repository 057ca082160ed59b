"""The operations of P3109's interim report v4.0 in numbers of Python, a second implementation.

A value is a Fraction, INF, -INF or NAN. Results that are no fractions are computed to 200 decimal
digits; what stands for such a value is a fraction beside it. It shares no code with numsim: formats are
lists of their values, and rounding follows section 4.7 of the report.
"""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

INF, NAN = math.inf, math.nan
DIGITS = 200


def is_nan(x):
    return x != x


def is_infinite(x):
    return x in (INF, -INF)


class Format:
    """BinaryKpP{s|u}{e|f}, or an external format of IEEE 754 with its own codes."""

    def __init__(self, name, k, p, signed=True, extended=True, external_bias=None):
        self.name, self.k, self.p, self.signed, self.extended = name, k, p, signed, extended
        self.external = external_bias is not None
        self.bias = external_bias or (2 ** (k - p - 1) if signed else 2 ** (k - p))

    def magnitude(self, code):
        """The value of a code without sign, special codes left aside."""
        trailing, exponent = code % 2 ** (self.p - 1), code // 2 ** (self.p - 1)
        first = 0 if exponent == 0 else 1
        scale = max(exponent, 1) - self.bias
        return (first + Fraction(trailing, 2 ** (self.p - 1))) * Fraction(2) ** scale

    def decode(self, code):
        sign, top = 2 ** (self.k - 1), 2**self.k
        if self.external:
            infinity = (2 ** (self.k - self.p) - 1) * 2 ** (self.p - 1)
            magnitude = code % sign
            value = NAN if magnitude > infinity else INF if magnitude == infinity else self.magnitude(magnitude)
            return -value if code >= sign else value
        if self.signed:
            if code == sign:
                return NAN
            if self.extended and code in (sign - 1, top - 1):
                return INF if code < sign else -INF
            return self.magnitude(code) if code < sign else -self.magnitude(code - sign)
        if code == top - 1:
            return NAN
        return INF if self.extended and code == top - 2 else self.magnitude(code)

    @functools.cached_property
    def codes(self):
        """{value: code} of the numbers and infinities; for a wide external format None."""
        if self.k > 16:
            return None
        table = {}
        for code in range(2**self.k):
            value = self.decode(code)
            if not is_nan(value):
                table.setdefault(value, code)
        return table

    @property
    def nan(self):
        if self.external:
            return 2 ** (self.k - 1) - 2 ** (self.p - 2)
        return 2 ** (self.k - 1) if self.signed else 2**self.k - 1

    def encode(self, value):
        if is_nan(value):
            return self.nan
        if self.codes is not None:
            return self.codes[value]
        if value == 0:
            return 0
        sign = 2 ** (self.k - 1) if value < 0 else 0
        if is_infinite(value):
            return sign + (2 ** (self.k - self.p) - 1) * 2 ** (self.p - 1)
        exponent = max(floor_log2(abs(value)), 1 - self.bias)
        s = abs(value) * Fraction(2) ** (self.p - 1 - exponent)
        assert s.denominator == 1
        field = exponent + self.bias if s >= 2 ** (self.p - 1) else 0
        return sign + field * 2 ** (self.p - 1) + int(s) % 2 ** (self.p - 1)

    @functools.cached_property
    def max_finite(self):
        if self.codes is not None:
            return max(value for value in self.codes if not is_infinite(value))
        return (2 - Fraction(1, 2 ** (self.p - 1))) * Fraction(2) ** self.bias

    @property
    def min_finite(self):
        return -self.max_finite if self.signed else Fraction(0)


def floor_log2(x):
    """floor(log2 x) of a fraction above 0."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if x >= Fraction(2) ** n else n - 1


# --- Rounding and saturation, sections 4.7.3 to 4.7.5


def rounds_away(mode, nu, positive, even, bits, r):
    if mode == "rtz":
        return False
    if mode == "rtp":
        return nu > 0 and positive
    if mode == "rtn":
        return nu > 0 and not positive
    if mode == "rna":
        return nu >= Fraction(1, 2)
    if mode == "rne":
        return nu > Fraction(1, 2) or (nu == Fraction(1, 2) and not even)
    if mode == "odd":
        return nu > 0 and even
    scaled = nu * 2**bits
    if mode == "sr-a":
        return math.floor(scaled) + r >= 2**bits
    if mode == "sr-b":
        return math.floor(2 * scaled) + 2 * r + 1 >= 2 ** (bits + 1)
    return round(scaled) + r >= 2**bits  # Python rounds ties to even


def round_to_precision(x, p, bias, mode, bits=0, r=0):
    if is_nan(x) or is_infinite(x) or x == 0:
        return x
    q = max(floor_log2(abs(x)), 1 - bias) - p + 1
    s = abs(x) / Fraction(2) ** q
    floor = math.floor(s)
    even = floor % 2 == 0 if p > 1 else floor == 0 or (q + bias) % 2 == 0
    if rounds_away(mode, s - floor, x > 0, even, bits, r):
        floor += 1
    return (floor if x > 0 else -floor) * Fraction(2) ** q


def saturate(x, f, mode, saturation):
    low, high = f.min_finite, f.max_finite
    if is_nan(x) or low <= x <= high:
        return x
    if saturation == "saturate":
        return high if x > high else low
    if saturation == "propagate":
        if x == INF:
            return INF if f.extended else high
        if x == -INF:
            return -INF if f.signed and f.extended else low
        return high if x > high else low
    if x == INF:
        return INF if f.extended else high
    if x == -INF:
        return (-INF if f.extended else low) if f.signed else NAN
    if x > high:
        if mode == "odd" and not f.signed and f.extended or mode in ("rtz", "rtn"):
            return high
        return INF if f.extended else high
    if mode in ("rtz", "rtp"):
        return low
    if not f.signed:
        return NAN
    return -INF if f.extended else low


def project(x, f, mode="rne", saturation="nonsaturate", bits=0, r=0):
    return f.encode(saturate(round_to_precision(x, f.p, f.bias, mode, bits, r), f, mode, saturation))


# --- Real functions


def decimals(function):
    """A function of Decimals as one of a Fraction: a fraction so near that it stands for the value."""

    @functools.lru_cache(maxsize=None)
    def of(*x):
        with localcontext() as context:
            context.prec, context.Emin, context.Emax = DIGITS + 120, -10**9, 10**9
            y = function(*(Decimal(v.numerator) / Decimal(v.denominator) for v in x))
            context.prec = DIGITS
            y = +y
            if y.adjusted() > 200:
                return Fraction(10) ** 200 * (1 if y > 0 else -1) * 7 / 3
            if y.adjusted() < -400:
                return Fraction(1, 10**400) * (1 if y > 0 else -1) * 7 / 3
            value = Fraction(y)
        # A number of few bits so near that the difference is an error of the computation.
        n = floor_log2(abs(value)) - 300 if value else 0
        near = round(value / Fraction(2) ** n) * Fraction(2) ** n
        short = near != 0 and (near.numerator.bit_length() <= 100)
        if short and abs(near - value) < abs(value) / 10 ** (DIGITS - 5):
            return near
        return value

    return of


@functools.cache
def pi():
    """pi by Machin, to DIGITS + 130 digits."""
    one = 10 ** (DIGITS + 150)

    def inverse(n):
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    with localcontext() as context:  # whatever context calls it first
        context.prec = DIGITS + 160
        return Decimal(4 * (4 * inverse(5) - inverse(239))).scaleb(-(DIGITS + 150))


def sine(x):
    x = x % (2 * pi())
    total = term = x
    k = 1
    while abs(term) > Decimal(10) ** -(DIGITS + 110):
        term = -term * x * x / ((k + 1) * (k + 2))
        total += term
        k += 2
    return total


def cosine(x):
    return sine(x + pi() / 2)


def small(x):
    return abs(x) < Decimal(10) ** -30


def series(x, sign):
    """x + sign x^3 / 3 + x^5 / 5 + ..., which is artanh for sign 1 and atan for -1."""
    total, power, k = x, x, 3
    while power != 0 and abs(power) > abs(x) * Decimal(10) ** -(DIGITS + 100):
        power = power * x * x * sign
        total += power / k
        k += 2
    return total


def arctan(x):
    if abs(x) > 1:
        return (pi() / 2 if x > 0 else -pi() / 2) - arctan(1 / x)
    halvings = 0
    while abs(x) > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    return series(x, -1) * 2**halvings


def artanh(x):
    return series(x, 1) if abs(x) < Decimal("0.05") else ((1 + x) / (1 - x)).ln() / 2


def arcsin(x):
    return pi() / 2 * x if abs(x) == 1 else arctan(x / ((1 - x) * (1 + x)).sqrt())


def arccos(x):
    if x <= -1:
        return pi()
    return 2 * arctan(((1 - x) / (1 + x)).sqrt())


def sinh(x):
    if small(x):
        return x + x**3 / 6 + x**5 / 120 + x**7 / 5040
    return (x.exp() - (-x).exp()) / 2


def expm1(x):
    if small(x):
        return x + x**2 / 2 + x**3 / 6 + x**4 / 24 + x**5 / 120 + x**6 / 720 + x**7 / 5040
    return x.exp() - 1


def log1p(x):
    return 2 * artanh(x / (2 + x))


def softplus(x):
    if x > 200:
        return x + Decimal(10) ** -80  # just above x; it stands for e^-x
    return x + log1p((-x).exp()) if x > 0 else log1p(x.exp())


def arctan2(y, x):
    if x > 0:
        return arctan(y / x)
    return arctan(y / x) + (pi() if y > 0 else -pi())


def small_sine(x):
    return x - x**3 / 6 + x**5 / 120 - x**7 / 5040 if small(x) else sine(x)


def arcsinh(x):
    return artanh(x / (1 + x * x).sqrt())


def arccosh(x):
    return artanh(((x - 1) * (x + 1)).sqrt() / x)


def turn(x):
    """pi x, with x reduced exactly."""
    return pi() * (x % 2)


REAL = {
    "Sqrt": lambda x: x.sqrt(),
    "RSqrt": lambda x: 1 / x.sqrt(),
    "Exp": lambda x: x.exp() if x < 2000 else Decimal(10) ** 800,
    "ExpMinusOne": lambda x: expm1(x) if x < 2000 else Decimal(10) ** 800,
    "Exp2": lambda x: Decimal(2) ** x if x < 3000 else Decimal(10) ** 800,
    "Log": lambda x: x.ln(),
    "Log2": lambda x: x.ln() / Decimal(2).ln(),
    "LogOnePlus": log1p,
    "Softplus": softplus,
    "Sin": small_sine,
    "Cos": cosine,
    "Tan": lambda x: small_sine(x) / cosine(x),
    "ArcSin": arcsin,
    "ArcCos": arccos,
    "ArcTan": arctan,
    "SinPi": lambda x: sine(turn(x)),
    "CosPi": lambda x: cosine(turn(x)),
    "TanPi": lambda x: sine(turn(x)) / cosine(turn(x)),
    "ArcSinPi": lambda x: arcsin(x) / pi(),
    "ArcCosPi": lambda x: arccos(x) / pi(),
    "ArcTanPi": lambda x: arctan(x) / pi(),
    "Sinh": lambda x: sinh(x) if abs(x) < 2000 else Decimal(10) ** 800 * (1 if x > 0 else -1),
    "Cosh": lambda x: (x.exp() + (-x).exp()) / 2 if abs(x) < 2000 else Decimal(10) ** 800,
    "Tanh": lambda x: sinh(x) / ((x.exp() + (-x).exp()) / 2) if abs(x) < 200 else (1 - Decimal(10) ** -190) * (1 if x > 0 else -1),
    "ArcSinh": arcsinh,
    "ArcCosh": arccosh,
    "ArcTanh": artanh,
    "Hypot": lambda x, y: (x * x + y * y).sqrt(),
    "ArcTan2": arctan2,
    "ArcTan2Pi": lambda y, x: arctan2(y, x) / pi(),
}
REAL = {name: decimals(function) for name, function in REAL.items()}

# --- The operations, sections 4.10 and 4.11: special values first

# Values at -inf, 0 and +inf, and the domain of the other arguments.
AT = {
    "Sqrt": (NAN, 0, INF, lambda x: x >= 0),
    "RSqrt": (NAN, NAN, 0, lambda x: x > 0),
    "Exp": (0, 1, INF, None),
    "ExpMinusOne": (Fraction(-1), 0, INF, None),
    "Exp2": (0, 1, INF, None),
    "Log": (NAN, -INF, INF, lambda x: x > 0),
    "Log2": (NAN, -INF, INF, lambda x: x > 0),
    "LogOnePlus": (NAN, 0, INF, lambda x: x >= -1),
    "Softplus": (0, None, INF, None),
    "Sin": (NAN, 0, NAN, None),
    "Cos": (NAN, 1, NAN, None),
    "Tan": (NAN, 0, NAN, None),
    "ArcSin": (NAN, 0, NAN, lambda x: abs(x) <= 1),
    "ArcCos": (NAN, None, NAN, lambda x: abs(x) <= 1),
    "ArcTan": ("-pi/2", 0, "pi/2", None),
    "SinPi": (NAN, 0, NAN, None),
    "CosPi": (NAN, 1, NAN, None),
    "TanPi": (NAN, 0, NAN, lambda x: (2 * x).denominator != 1 or (2 * x) % 2 == 0),
    "ArcSinPi": (NAN, 0, NAN, lambda x: abs(x) <= 1),
    "ArcCosPi": (NAN, Fraction(1, 2), NAN, lambda x: abs(x) <= 1),
    "ArcTanPi": (Fraction(-1, 2), 0, Fraction(1, 2), None),
    "Sinh": (-INF, 0, INF, None),
    "Cosh": (INF, 1, INF, None),
    "Tanh": (Fraction(-1), 0, Fraction(1), None),
    "ArcSinh": (-INF, 0, INF, None),
    "ArcCosh": (NAN, NAN, INF, lambda x: x >= 1),
    "ArcTanh": (NAN, 0, NAN, lambda x: abs(x) <= 1),
}
# Zeros and infinities at other numbers.
EXACT = {
    ("Log", 1): 0,
    ("Log2", 1): 0,
    ("LogOnePlus", -1): -INF,
    ("ArcCos", 1): 0,
    ("ArcCosPi", 1): 0,
    ("ArcCosh", 1): 0,
    ("ArcTanh", 1): INF,
    ("ArcTanh", -1): -INF,
}


@functools.cache
def pi_fraction():
    return Fraction(pi())


def number(x):
    if isinstance(x, str):
        return pi_fraction() / 2 * (-1 if x[0] == "-" else 1)
    return x if isinstance(x, float) else Fraction(x)


def elementary(op, x):
    low, zero, high, domain = AT[op]
    if is_nan(x):
        return NAN
    if is_infinite(x):
        return number(low if x < 0 else high)
    if x == 0 and zero is not None:
        return number(zero)
    if (op, x) in EXACT:
        return number(EXACT[op, x])
    if domain is not None and not domain(x):
        return NAN
    if op in ("SinPi", "CosPi", "TanPi"):  # zeros, which decimals of pi do not give
        shifted = x if op != "CosPi" else x + Fraction(1, 2)
        if shifted.denominator == 1:
            return Fraction(0)
    return REAL[op](x)


def add(x, y):
    if is_nan(x) or is_nan(y) or (is_infinite(x) and y == -x):
        return NAN
    return x if is_infinite(x) else y if is_infinite(y) else x + y


def multiply(x, y):
    if is_nan(x) or is_nan(y):
        return NAN
    if is_infinite(x) or is_infinite(y):
        return NAN if x == 0 or y == 0 else INF if (x > 0) == (y > 0) else -INF
    return x * y


def divide(x, y):
    if is_nan(x) or is_nan(y) or y == 0 or (is_infinite(x) and is_infinite(y)):
        return NAN
    if is_infinite(x):
        return x if y > 0 else -x
    return Fraction(0) if is_infinite(y) else x / y


def negate(x):
    return -x


def arc_tan_2(op, y, x):
    if is_nan(x) or is_nan(y) or (x == 0 and y == 0) or (is_infinite(x) and is_infinite(y)):
        return NAN
    half = Fraction(1, 2) if op == "ArcTan2Pi" else pi_fraction() / 2
    if x == INF or (y == 0 and x > 0):
        return Fraction(0)
    if y == INF or (x == 0 and y > 0):
        return half
    if x == -INF or (y == 0 and x < 0):
        return 2 * half
    if y == -INF or (x == 0 and y < 0):
        return -half
    return REAL[op](y, x)


def extremum(op, x, y):
    maximum = op.startswith("Maximum")
    if is_nan(x) or is_nan(y):
        if not op.endswith(("Number", "Finite")):
            return NAN
        return y if is_nan(x) else x
    if op.endswith("Finite") and is_infinite(x) != is_infinite(y):
        return y if is_infinite(x) else x
    if "Magnitude" in op and abs(x) != abs(y):
        return x if (abs(x) > abs(y)) == maximum else y
    return max(x, y) if maximum else min(x, y)


def clamp(x, low, high):
    if is_nan(x) or is_nan(low) or is_nan(high) or low > high:
        return NAN
    return low if x <= low else high if x >= high else x


def hypot(x, y):
    if is_nan(x) or is_nan(y):
        return NAN
    if is_infinite(x) or is_infinite(y):
        return INF
    if x == 0 or y == 0:
        return abs(x) + abs(y)
    return REAL["Hypot"](x, y)


def copy_sign(x, y):
    return NAN if is_nan(x) or is_nan(y) else -abs(x) if y < 0 else abs(x)


OPERATIONS = {
    "Convert": lambda x: x,
    "Abs": abs,
    "Negate": negate,
    "Recip": lambda x: divide(Fraction(1), x),
    **{op: functools.partial(elementary, op) for op in AT},
    "CopySign": copy_sign,
    "Add": add,
    "Subtract": lambda x, y: add(x, -y),
    "Multiply": multiply,
    "Divide": divide,
    "Hypot": hypot,
    "ArcTan2": functools.partial(arc_tan_2, "ArcTan2"),
    "ArcTan2Pi": functools.partial(arc_tan_2, "ArcTan2Pi"),
    **{
        op: functools.partial(extremum, op)
        for end in ("", "Number", "Magnitude", "MagnitudeNumber", "Finite")
        for op in ("Minimum" + end, "Maximum" + end)
    },
    "FMA": lambda x, y, z: add(multiply(x, y), z),
    "FAA": lambda x, y, z: NAN if {x, y, z} >= {INF, -INF} else add(add(x, y), z),
    "Clamp": clamp,
}

# --- Comparisons and classes, sections 4.12, 4.13 and 4.16

COMPARISONS = {
    "CompareLess": lambda x, y: x < y,
    "CompareLessEqual": lambda x, y: x <= y,
    "CompareEqual": lambda x, y: x == y,
    "CompareGreaterEqual": lambda x, y: x >= y,
    "CompareGreater": lambda x, y: x > y,
    "TotalOrder": lambda x, y: is_nan(x) or x <= y,
}


def is_normal(x, f):
    return is_number(x) and x != 0 and abs(x) >= Fraction(2) ** (1 - f.bias)


def is_number(x):
    return not is_nan(x) and not is_infinite(x)


PREDICATES = {
    "IsZero": lambda x, f: x == 0,
    "IsOne": lambda x, f: x == 1,
    "IsNaN": lambda x, f: is_nan(x),
    "IsInfinite": lambda x, f: is_infinite(x),
    "IsFinite": lambda x, f: is_number(x),
    "IsSignMinus": lambda x, f: x < 0,
    "IsNormal": is_normal,
    "IsSubnormal": lambda x, f: is_number(x) and x != 0 and not is_normal(x, f),
}


def class_of(x, f):
    if is_nan(x):
        return 0
    if x == 0:
        return 4
    rank = 3 if is_infinite(x) else 2 if is_normal(x, f) else 1
    return 4 - rank if x < 0 else 4 + rank


def neighbour(x, f, above):
    """The nearest value above or below, or NaN."""
    others = [y for y in f.codes if (y > x if above else y < x)]
    return NAN if is_nan(x) or not others else min(others) if above else max(others)


# --- Blocks, section 5


def block_project(x, s):
    if is_nan(s) or is_nan(x):
        return NAN
    if s == 0 or x == 0:
        return Fraction(0)
    if is_infinite(s):
        return Fraction(1 if (x > 0) == (s > 0) else -1)
    return divide(x, s)


def max_abs_finite(values):
    return functools.reduce(functools.partial(extremum, "MaximumFinite"), map(abs, values), NAN)


def reduce_add(values):
    return functools.reduce(add, values, Fraction(0))


def reduce_multiply(values):
    return functools.reduce(multiply, values, Fraction(1))
