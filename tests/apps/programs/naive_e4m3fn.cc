// A program under test: e4m3fn arithmetic as somebody would write it who has never seen numsim, of
// which it uses nothing. It reads lines of hexadecimal columns and writes each with the result
// behind.
//
//   naive_e4m3fn add|convert [--saturate] [--fault NAME]
//
// add:      a b of e4m3fn -> e4m3fn, to nearest, ties to the even code
// convert:  a float32 -> e4m3fn, as hexadecimal text too
// --saturate: overflow and infinity become 448 instead of NaN.
// --fault: a mistake that implementations make:
//   ties-away      ties go away from zero
//   saturate-480   the codes 0x7F and 0xFF are the numbers +-480 and overflow ends there
//   no-sticky      numbers below half the smallest subnormal step are cut off before rounding
//   nan-sign       every NaN result has its sign set
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Settings {
  bool convert = false;
  bool saturate = false;
  std::string fault;

  bool Has(const char* name) const { return fault == name; }
};

constexpr double kSmallest = 1.0 / 512;  // 2^-9
constexpr unsigned kNan = 0x7F;

// Values of the magnitude codes 0x00 to 0x7F; the last is what an overflow must not reach.
std::vector<double> Magnitudes() {
  std::vector<double> values;
  for (int code = 0; code < 128; ++code) {
    const int exponent = code / 8;
    const int mantissa = code % 8;
    values.push_back(exponent == 0 ? mantissa * kSmallest
                                   : std::pow(2.0, exponent - 7) * (1 + mantissa / 8.0));
  }
  return values;
}

double Decode(const std::vector<double>& magnitudes, unsigned code, const Settings& settings) {
  const unsigned magnitude = code % 128;
  if (magnitude == kNan && !settings.Has("saturate-480")) return std::nan("");
  return code >= 128 ? -magnitudes[magnitude] : magnitudes[magnitude];
}

// The nearest magnitude code of x >= 0 by trying them all; 0x7F stands for everything above 464.
unsigned Nearest(const std::vector<double>& magnitudes, double x, const Settings& settings) {
  unsigned best = 0;
  for (unsigned code = 1; code < 128; ++code) {
    const double here = std::fabs(magnitudes[code] - x);
    const double before = std::fabs(magnitudes[best] - x);
    const bool take_tie = settings.Has("ties-away") || code % 2 == 0;
    if (here < before || (here == before && take_tie)) best = code;
  }
  return best;
}

unsigned Encode(const std::vector<double>& magnitudes, double x, const Settings& settings) {
  const unsigned sign = std::signbit(x) ? 128 : 0;
  if (std::isnan(x)) return settings.Has("nan-sign") ? kNan + 128 : kNan + sign;
  double magnitude = std::fmin(std::fabs(x), 480);  // so that distances stay exact
  if (settings.Has("no-sticky") && magnitude < kSmallest) {
    magnitude = std::floor(magnitude / (kSmallest / 2)) * (kSmallest / 2);
  }
  unsigned code = Nearest(magnitudes, magnitude, settings);
  if (code == kNan && settings.saturate && !settings.Has("saturate-480")) code = 0x7E;
  return sign + code;
}

double Float32(unsigned bits) {
  float value;
  static_assert(sizeof(value) == sizeof(bits));
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

bool Parse(int argc, char** argv, Settings& settings) {
  if (argc < 2) return false;
  settings.convert = std::strcmp(argv[1], "convert") == 0;
  if (!settings.convert && std::strcmp(argv[1], "add") != 0) return false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--saturate") == 0) {
      settings.saturate = true;
    } else if (std::strcmp(argv[i], "--fault") == 0 && i + 1 < argc) {
      settings.fault = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!Parse(argc, argv, settings)) return 2;
  const std::vector<double> magnitudes = Magnitudes();
  unsigned a = 0, b = 0;
  if (settings.convert) {
    while (std::scanf("%x", &a) == 1) {
      std::printf("%08X %02X\n", a, Encode(magnitudes, Float32(a), settings));
    }
    return 0;
  }
  while (std::scanf("%x %x", &a, &b) == 2) {
    const double x = Decode(magnitudes, a, settings), y = Decode(magnitudes, b, settings);
    const double sum = std::isnan(x) || std::isnan(y) ? std::nan("") : x + y;
    std::printf("%02X %02X %02X\n", a, b, Encode(magnitudes, sum, settings));
  }
  return 0;
}
