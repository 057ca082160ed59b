// Describes observations in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "numsim/mma_probe/mma_probe.h"

namespace numsim {
namespace {

constexpr size_t kListed = 16;

const char* ToString(CutDirection direction) {
  switch (direction) {
    case CutDirection::kNearest:
      return "rounded to nearest";
    case CutDirection::kDown:
      return "rounded down";
    case CutDirection::kUp:
      return "rounded up";
    case CutDirection::kTowardZero:
      break;
  }
  return "truncated";
}

std::string Cut(const std::optional<CutDirection>& direction, const char* what) {
  return direction ? fmt::format(", {} {}", what, ToString(*direction)) : std::string();
}

std::string PositionsText(const std::vector<size_t>& positions) {
  const bool in_row = positions.back() + 1 == positions.size();
  if (in_row && positions.size() > 2) return fmt::format("0 to {}", positions.back());
  const size_t n = std::min(positions.size(), kListed);
  return fmt::format("{}{}",
                     fmt::join(positions.begin(), positions.begin() + static_cast<int>(n), ", "),
                     n < positions.size() ? ", ..." : "");
}

std::string SubnormalText(const UnitObservations& seen) {
  if (*seen.flushes_subnormals) return "treated as zero";
  if (!seen.normalises_subnormals) return "preserved";
  return *seen.normalises_subnormals ? "preserved, aligned by their own exponents"
                                     : "preserved, aligned by the format's minimum exponent";
}

}  // namespace

std::vector<std::string> ObservationLines(const UnitObservations& seen) {
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::string& text) {
    lines.push_back(fmt::format("{}: {}", what, text));
  };
  if (seen.kept_bits) {
    add("bits kept below the largest product",
        fmt::format("{}{}{}",
                    seen.kept_bits_at_least ? "at least " : "",
                    *seen.kept_bits,
                    Cut(seen.cut, "the rest")));
  }
  if (seen.result_bits) {
    add("fraction bits of a sum",
        fmt::format("{}{}", *seen.result_bits, Cut(seen.result_cut, "the rest")));
  }
  if (!seen.together.empty()) {
    add("positions added in one step with position 0", PositionsText(seen.together));
  }
  if (seen.chunk) add("products per step", fmt::format("{}", *seen.chunk));
  if (seen.promotion) {
    add("added with a different rounding", fmt::format("from position {} on", *seen.promotion));
  }
  if (seen.flushes_subnormals) add("subnormal operands", SubnormalText(seen));
  if (seen.least_bit) {
    add("lowest bit of a sum",
        fmt::format("2^{}{}", *seen.least_bit, seen.least_bit_at_most ? " or less" : ""));
  }
  for (const uint32_t bits : seen.nans) {
    const std::string line = fmt::format("NaN results: {:08X}", bits);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  add("x - x", seen.cancelled_zero == 0 ? "+0" : fmt::format("{:08X}", seen.cancelled_zero));
  if (seen.integers) lines.emplace_back("operands are integers: no exponents to align");
  return lines;
}

}  // namespace numsim
