#include "numsim/oracle/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/oracle/internal/case_makers.h"

namespace numsim {
namespace {

constexpr int kMaxFullBits = 32;
constexpr uint64_t kMostCases = uint64_t{1} << 40;  // of random: and uniform:
// Formats of at most this many bits contribute all their codes to `edges`: as one of several
// operands, and as the only operand.
constexpr int kAllCodes = 6;
constexpr int kAllCodesOfOne = 8;
constexpr int kWidestTarget = 16;  // widest result format of which every value is tried

// The levels with a number of cases.
struct CountedKind {
  std::string_view prefix;
  CaseLevel::Kind kind;
};
constexpr CountedKind kCounted[] = {{"random:", CaseLevel::Kind::kRandom},
                                    {"uniform:", CaseLevel::Kind::kUniform}};

// Returns the edge codes or integers of an operand, the most important ones first.
std::vector<uint64_t> AwkwardNumbers(const Operation& operation, const Column& column) {
  const bool only = operation.operands() == 1;
  const auto& target = operation.results()[0].format;
  CodeList list(column.bits);
  if (column.kind == ColumnKind::kInteger) {
    list.Add(AwkwardIntegers(column.bits, column.is_signed));
    if (only && target) list.Add(IntegersAroundTies(column.bits, column.is_signed, target->spec));
    return list.codes();
  }
  if (column.kind == ColumnKind::kFloat64) return AwkwardFloat64s(target->spec);
  const FormatSpec& source = column.format->spec;
  list.Add(AwkwardCodes(source, only ? kAllCodesOfOne : kAllCodes));
  if (!only) return list.codes();
  list.Add(CodesAroundIntegers(source));
  if (target && target->spec.Bits() < source.Bits() && target->spec.Bits() <= kWidestTarget) {
    list.Add(CodesAroundValues(source, target->spec));
  }
  return list.codes();
}

// Returns the maximum length of the list of each of several operands.
size_t LengthLimit(size_t operands, size_t random_combinations) {
  const double all = static_cast<double>(kEdgeProduct) / static_cast<double>(random_combinations);
  return static_cast<size_t>(std::pow(all, 1.0 / static_cast<double>(operands)));
}

std::vector<std::vector<uint64_t>> EdgeLists(const Operation& operation) {
  const std::vector<Column>& columns = operation.inputs();
  std::vector<std::vector<uint64_t>> lists;
  size_t random_combinations = 1;
  for (size_t c = operation.operands(); c < columns.size(); ++c) {
    random_combinations *= AwkwardRandomBits(columns[c].bits).size();
  }
  const size_t limit = LengthLimit(operation.operands(), random_combinations);
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool random = columns[c].kind == ColumnKind::kRandom;
    std::vector<uint64_t> list =
        random ? AwkwardRandomBits(columns[c].bits) : AwkwardNumbers(operation, columns[c]);
    if (operation.operands() > 1 && list.size() > limit) list.resize(limit);
    std::sort(list.begin(), list.end());
    lists.push_back(std::move(list));
  }
  return lists;
}

uint64_t FullCount(const std::vector<Column>& columns) {
  int bits = 0;
  for (const Column& column : columns) bits += column.bits;
  if (bits > kMaxFullBits) {
    throw Error::Format(
        "--level full: 2^{} cases exceed the maximum of 2^{}; use random:N", bits, kMaxFullBits);
  }
  return uint64_t{1} << bits;
}

}  // namespace

CaseLevel ParseCaseLevel(std::string_view text, uint64_t seed) {
  using Kind = CaseLevel::Kind;
  if (text == "edges") return {.kind = Kind::kEdges};
  if (text == "full") return {.kind = Kind::kFull};
  for (const auto& [prefix, kind] : kCounted) {
    if (!text.starts_with(prefix)) continue;
    const std::string_view number = text.substr(prefix.size());
    uint64_t count = 0;
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), count);
    const bool whole = status == std::errc() && end == number.data() + number.size();
    if (whole && count > 0 && count <= kMostCases) {
      return {.kind = kind, .count = count, .seed = seed};
    }
  }
  throw Error::Format(
      "--level '{}' is not one of edges, full, random:N, uniform:N with N from 1 to 2^40", text);
}

std::string ToString(const CaseLevel& level) {
  if (level.kind == CaseLevel::Kind::kEdges) return "edges";
  if (level.kind == CaseLevel::Kind::kFull) return "full";
  const CountedKind& kind = kCounted[level.kind == CaseLevel::Kind::kRandom ? 0 : 1];
  return fmt::format("{}{}", kind.prefix, level.count);
}

CaseGenerator::CaseGenerator(const Operation& operation, const CaseLevel& level)
    : level_(level),
      shape_(operation.shape()),
      columns_(operation.inputs()),
      operands_(operation.operands()),
      length_(operation.length()),
      sums_(operation.SumExponents()),
      scales_(operation.scales()),
      wide_scales_(operation.scales_enter_sum()) {
  if (level.kind == CaseLevel::Kind::kFull) {
    size_ = FullCount(columns_);
  } else if (level.kind != CaseLevel::Kind::kEdges) {
    size_ = level.count;
  } else if (shape_ == CaseShape::kBlock || shape_ == CaseShape::kDot ||
             shape_ == CaseShape::kRow) {
    rows_ = EdgeRows(operation);
    size_ = rows_.size() / operands_ + kRandomEdgeRows;
  } else {
    lists_ = EdgeLists(operation);
    size_ = 1;
    for (const auto& list : lists_) size_ *= list.size();
  }
}

void CaseGenerator::Case(uint64_t i, std::span<uint64_t> inputs) const noexcept {
  NUMSIM_CHECK(i < size_ && inputs.size() == columns_.size(),
               "case {} of {}, {} of {} columns",
               i,
               size_,
               inputs.size(),
               columns_.size());
  if (level_.kind == CaseLevel::Kind::kFull) {
    for (size_t c = columns_.size(); c-- > 0; i >>= columns_[c].bits) {
      inputs[c] = i & (~uint64_t{0} >> (64 - columns_[c].bits));
    }
  } else if (!lists_.empty()) {
    for (size_t c = columns_.size(); c-- > 0; i /= lists_[c].size()) {
      inputs[c] = lists_[c][i % lists_[c].size()];
    }
  } else {
    RandomInputs(i, inputs);
    if (i * operands_ < rows_.size()) {  // a constructed row; the random bits stay
      std::copy_n(
          rows_.begin() + static_cast<std::ptrdiff_t>(i * operands_), operands_, inputs.begin());
    }
  }
}

void CaseGenerator::RandomInputs(uint64_t i, std::span<uint64_t> inputs) const noexcept {
  const RandomCaseShape shape = {
      shape_, operands_, length_, sums_.low, sums_.high, scales_, wide_scales_};
  switch (level_.kind) {
    case CaseLevel::Kind::kUniform:
      return RandomCase(columns_, shape, level_.seed, i, inputs, true);
    case CaseLevel::Kind::kRandom:
      if (shape_ == CaseShape::kDot) return RandomDotCase(columns_, shape, level_.seed, i, inputs);
      return RandomCase(columns_, shape, level_.seed, i, inputs);
    default:  // edges
      if (scales_ > 0) return RandomDotCase(columns_, shape, 0, i, inputs);
      return RandomCase(columns_, shape, 0, i, inputs);
  }
}

}  // namespace numsim
