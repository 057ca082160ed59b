// Which cases of an operation to test.
//
// edges     Element-wise: every combination of the awkward codes of each column: zeros, ends of
//           subnormals and binades, one and its neighbours, largest values, infinities, NaNs; all
//           codes of formats of up to 6 bits, up to 8 bits as the only operand. A single operand
//           also gets codes around integers and, where the result's format is narrower and of at
//           most 16 bits, every value of that, every midpoint, and their neighbours on both sides.
//           Integers: ends of ranges, powers of two, ties of the result, their neighbours. Random
//           bits: 0, all ones, half, half - 1. Lists are cut so that at most kEdgeProduct
//           combinations remain; those of a single operand are not cut. Lists ascend; the last
//           column runs fastest.
//           Blocks and dots: the made-up rows of edge_rows.h, then kRandomEdgeRows as in random:N.
//           Their random bits are those of random:N with seed 0 throughout.
// full      Every combination of codes, the last column fastest: 2^32 cases at most.
// random:N  N cases. Even cases are uniform in bits. Odd cases are finite with exponents close to
//           each other, in a*b+c and dots such that terms cancel; integers of uniform length. Case
//           i is a pure function of (operation, seed, i).
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

inline constexpr uint64_t kEdgeProduct = 300'000;
inline constexpr uint64_t kRandomEdgeRows = 256;

struct CaseLevel {
  enum class Kind : uint8_t { kEdges, kFull, kRandom };
  Kind kind = Kind::kEdges;
  uint64_t count = 0;  // of kRandom
  uint64_t seed = 0;   // of kRandom

  friend bool operator==(const CaseLevel&, const CaseLevel&) = default;
};
// Reads edges, full or random:N with N >= 1. Throws Error for anything else.
CaseLevel ParseCaseLevel(std::string_view text, uint64_t seed = 0);
// The text that ParseCaseLevel reads.
std::string ToString(const CaseLevel& level);

// The cases of a level in a fixed order. Keeps no reference to the operation.
class CaseGenerator {
 public:
  // Throws Error when `full` has more than 2^32 cases, naming how many.
  CaseGenerator(const Operation& operation, const CaseLevel& level);

  uint64_t size() const { return size_; }
  // Fills `inputs` (size operation.inputs().size()) with case i < size(). Safe from several
  // threads; allocates nothing.
  void Case(uint64_t i, std::span<uint64_t> inputs) const noexcept;

 private:
  CaseLevel level_;
  CaseShape shape_;
  std::vector<Column> columns_;
  size_t operands_ = 0;
  size_t length_ = 1;
  uint64_t size_ = 0;
  std::vector<std::vector<uint64_t>> lists_;  // edges of element-wise operations, by column
  std::vector<uint64_t> rows_;                // edges of blocks, row by row
};

// Cases of a level as rows of columns, with or without the right answers, as text or as an array.

class CaseRows {
 public:
  // Inputs alone, or with results and flags. Throws Error as CaseGenerator. Keeps a reference to
  // the operation.
  CaseRows(const Operation& operation, const CaseLevel& level, bool results);

  const std::vector<Column>& columns() const { return columns_; }
  uint64_t size() const { return generator_.size(); }

  // Fills `row` (size columns().size()) with row i < size(). Safe from several threads.
  void Row(uint64_t i, std::span<uint64_t> row) const noexcept;

 private:
  const Operation& operation_;
  CaseGenerator generator_;
  std::vector<Column> columns_;
  bool results_;
};

// Hands the rows as text (see case_text.h) to `write`, in order, some MiB at a time. They are made
// on all threads.
void WriteCaseText(const CaseRows& rows, const std::function<void(std::string_view)>& write);

// What is worked out from cases with their answers. Readers (case_text.h, case_npy.h) hand the
// cases over on several threads; the outcome does not depend on how many.

class CaseTally {
 public:
  virtual ~CaseTally() = default;

  // An empty tally with the same settings, for another part of the input.
  virtual std::unique_ptr<CaseTally> Fresh() const = 0;

  // Adds one case: inputs, results and, if the input has them, flags, each below 2^bits of its
  // column. `place`: its line or row in the input.
  virtual void Add(uint64_t place, std::span<const uint64_t> row) noexcept = 0;

  // Adds what Fresh() of this tally has collected from the part that follows. Deterministic.
  virtual void Append(const CaseTally& later) = 0;
};

}  // namespace numsim
