// Levels of test cases: the cases of an operation that are generated.
//
// edges     Element-wise operations: every combination of the edge codes of each column. These are
//           zeros, ends of subnormals and binades, one and its neighbours, largest values,
//           infinities and NaNs. Formats of up to 6 bits contribute all their codes, and the format
//           of a single operand does so up to 8 bits. A single operand also gets codes around
//           integers. If the result's format is narrower and has at most 16 bits, it also gets
//           every value of that format, every midpoint, and their neighbours on both sides.
//           Integers: ends of ranges, powers of two, ties of the result, and their neighbours.
//           Random bits: 0, all ones, half, half - 1. The lists of several operands are truncated
//           so that at most kEdgeProduct combinations remain; the list of a single operand is not.
//           Lists ascend, and the last column varies fastest.
//           Blocks and dot products: the constructed rows of EdgeRows() (internal/case_makers.h),
//           then kRandomEdgeRows rows as in random:N. The random bits of all these rows are those
//           of random:N with seed 0.
// full      Every combination of codes, at most 2^32 cases. The last column varies fastest.
// random:N  N cases. Case i is a pure function of (operation, seed, i).
//           Element-wise operations and blocks: even cases have uniform bits. Odd cases have finite
//           operands with exponents close to each other, and integers of uniform length; in half of
//           them, the terms of a sum cancel (a + b, a*b + c).
//           Dot products: of 32 cases, 30 have finite operands whose sum stays finite in the result
//           and in an accumulation format (8 with products of close exponents, 8 with products that
//           cancel, 8 with products of far exponents, 6 with products of one sign), 1 has a sum
//           around the largest value, and 1 has one to three special operands: zero, the smallest
//           and the largest value, infinity, NaN or any code.
// uniform:N N cases of uniform bits. Most of the dot products of many elements are NaN or infinite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/operation.h"

namespace numsim {

// Limits of the level `edges`: the largest product of the numbers of edge codes that is enumerated, and the number of
// random rows that are added.
inline constexpr uint64_t kEdgeProduct = 300'000;
inline constexpr uint64_t kRandomEdgeRows = 256;

// A level: which cases of an operation are generated.
struct CaseLevel {
  // The kinds of levels.
  enum class Kind : uint8_t { kEdges, kFull, kRandom, kUniform };
  Kind kind = Kind::kEdges;
  uint64_t count = 0;  // number of cases of kRandom and kUniform
  uint64_t seed = 0;   // seed of kRandom and kUniform

  friend bool operator==(const CaseLevel&, const CaseLevel&) = default;
};
// Parses "edges", "full", "random:N" or "uniform:N" with N >= 1. Throws Error for any other text.
CaseLevel ParseCaseLevel(std::string_view text, uint64_t seed = 0);
// Returns the text that ParseCaseLevel() parses to `level`; the seed is not part of it.
std::string ToString(const CaseLevel& level);

// Generates the cases of a level in a fixed order. Keeps no reference to the operation.
class CaseGenerator {
 public:
  // Throws Error that states the number of cases if level `full` would have more than 2^32.
  CaseGenerator(const Operation& operation, const CaseLevel& level);

  // Returns the number of cases.
  uint64_t size() const { return size_; }
  // Fills `inputs` (size operation.inputs().size()) with case i < size(). Safe to call from several
  // threads; allocates nothing.
  void Case(uint64_t i, std::span<uint64_t> inputs) const noexcept;

 private:
  void RandomInputs(uint64_t i, std::span<uint64_t> inputs) const noexcept;

  CaseLevel level_;
  CaseShape shape_;
  std::vector<Column> columns_;
  size_t operands_ = 0;
  size_t length_ = 1;
  SumRange sums_;      // Operation::SumExponents()
  size_t scales_ = 0;  // block scales
  bool wide_scales_ = false;
  uint64_t size_ = 0;
  std::vector<std::vector<uint64_t>> lists_;  // edge codes of element-wise operations, per column
  std::vector<uint64_t> rows_;  // edge rows of blocks and dot products, one after the other
};

// Cases of a level as rows of columns, with or without the expected results.

// The rows of a level's cases.
class CaseRows {
 public:
  // Each row holds the inputs, and also the results and flags if `results` is true. Throws Error if
  // level `full` would have more than 2^32 cases. Keeps a reference to the operation.
  CaseRows(const Operation& operation, const CaseLevel& level, bool results);

  // Return the columns of a row, and the number of rows.
  const std::vector<Column>& columns() const { return columns_; }
  uint64_t size() const { return generator_.size(); }

  // Fills `row` (size columns().size()) with row i < size(). Safe to call from several threads.
  void Row(uint64_t i, std::span<uint64_t> row) const noexcept;

 private:
  const Operation& operation_;
  CaseGenerator generator_;
  std::vector<Column> columns_;
  bool results_;
};

// Formats the rows as text (format: see case_text.h) on all threads, and passes the text to `write`
// in order, in pieces of about 256 KiB.
void WriteCaseText(const CaseRows& rows, const std::function<void(std::string_view)>& write);

// Accumulates a statistic over cases and the results that an implementation gave. The readers
// (case_text.h, case_npy.h) add the cases on several threads; the outcome does not depend on the
// number of threads.

// A statistic over cases.
class CaseTally {
 public:
  virtual ~CaseTally() = default;

  // Returns an empty tally with the same settings, for another part of the input.
  virtual std::unique_ptr<CaseTally> Fresh() const = 0;

  // Adds one case. `row` holds the inputs, the results and, if the input has them, the flags; each
  // number is below 2^bits of its column. `place` is the line or row of the case in the input.
  virtual void Add(uint64_t place, std::span<const uint64_t> row) noexcept = 0;

  // Adds the cases of `later`, a tally from Fresh() that collected the following part of the input.
  // Deterministic.
  virtual void Append(const CaseTally& later) = 0;
};

}  // namespace numsim
