// Operations of the oracle by name: what a case of test vectors consists of and what the right
// answer is.
//
// A case is a row of columns, each an unsigned number of a stated width in bits: first the
// operands, then (in a stochastic mode) the random bits R, one column for each rounding; the answer
// adds the result columns and, if wanted, the flags (8 bits, flags.h). Element-wise operations have
// one result; block operations several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/flags.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// Names of Tininess: after, before.

std::string_view ToString(Tininess tininess);
// Inverse of Name. Throws Error that names the value and lists the valid ones.
Tininess ParseTininess(std::string_view text);

enum class ColumnKind : uint8_t {
  kCode,     // of a format
  kInteger,  // two's complement if signed
  kTruth,    // 0 or 1
  kRandom,   // R of stochastic rounding
};

struct Column {
  std::string name;  // "a", "b", "a[3]", "random", "result", "scale", "q[3]", ...
  int bits = 0;      // 1..64
  ColumnKind kind = ColumnKind::kCode;
  std::optional<Format> format = std::nullopt;  // of kCode
  bool is_signed = false;                       // of kInteger

  // Hex digits of a value, leading zeros included, as TestFloat prints them.
  int Digits() const { return (bits + 3) / 4; }
};

// What the user asks for. An option left empty has the default stated here; one that the operation
// does not use is an error if it is given (see OperationInfo::options).
struct OperationRequest {
  // ("= {}" lets a designated initialiser leave members out without a warning.)
  std::string op = {};        // a name of OperationTable()
  std::string format = {};    // of the operands, of the result of from-*; required, but for convert
                              // and quantize-*: fp32
  std::string format_b = {};  // of the second operand: as `format`
  std::string format_c = {};  // of the third: as `to`
  std::string to = {};        // of the result: as `format`; convert and quantize-mx require it
  std::string scale_format = {};          // of the scales of scaled-*: binary8p1uf
  std::string accumulation = {};          // of dot: exact
  std::optional<Rounding> rounding = {};  // rne
  std::optional<Overflow> overflow = {};  // nonsaturate; quantize-*: saturate
  std::optional<Tininess> tininess = {};  // after rounding
  int length = 0;                         // elements of a block: 32 for MX, 16 for NVFP4 and dot
  bool tensor_scale = false;  // quantize-nvfp4: one more operand, the scale of the tensor
};

// What of a request an operation uses.
struct OptionSet {
  bool wide_source = false;  // `format` is fp32 by default, and `to`, if used, is required
  bool format_b = false;
  bool format_c = false;
  bool to = false;
  bool scale_format = false;
  bool accumulation = false;
  bool rounding = false;
  bool overflow = false;  // and tininess
  bool length = false;
  bool tensor_scale = false;
};

struct OperationInfo {
  std::string_view name;     // add, sub, mul, div, fma, sqrt, ..., quantize-mx, dot
  std::string_view summary;  // one line
  bool has_flags;
  OptionSet options;
};
// Every operation, in the order in which they are listed.
std::span<const OperationInfo> OperationTable();

// What good cases of an operation look like (cases.h).
enum class CaseShape : uint8_t {
  kElementwise,
  kProductSum,  // a * b + c
  kBlock,       // a run of operands that share a scale
  kDot,         // pairs of operands, a[0] .. a[N-1] b[0] .. b[N-1]
};

class Operation {
 public:
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const OperationInfo& info() const { return info_; }
  CaseShape shape() const { return shape_; }
  // Operands first, then random bits.
  const std::vector<Column>& inputs() const { return inputs_; }
  const std::vector<Column>& results() const { return results_; }
  bool has_flags() const { return info_.has_flags; }
  // Number of leading inputs that are not random bits.
  size_t operands() const { return operands_; }
  // Elements of a block or of a dot product; 1 for element-wise operations.
  size_t length() const { return length_; }

  // Fills results (size results().size()) from inputs (size inputs().size(), each below 2^bits);
  // returns the flags, 0 without has_flags(). Safe to call from several threads; allocates nothing.
  virtual Flags Evaluate(std::span<const uint64_t> inputs,
                         std::span<uint64_t> results) const noexcept = 0;

 protected:
  Operation(const OperationInfo& info, CaseShape shape) : info_(info), shape_(shape) {}

  OperationInfo info_;
  CaseShape shape_;
  std::vector<Column> inputs_, results_;
  size_t operands_ = 0;
  size_t length_ = 1;
};

// Throws Error naming the option at fault: unknown operation, format or accumulator, an option that
// is missing or that the operation does not use.
std::unique_ptr<Operation> MakeOperation(const OperationRequest& request);

// The columns of a case together with its answer, in the order in which files hold them.

// Inputs, results and last, where the operation has them, the flags: TestFloat's order [TestFloat].
struct CaseColumns {
  std::vector<Column> all;
  size_t inputs = 0;
  size_t results = 0;
  bool has_flags = false;

  size_t WithoutFlags() const { return inputs + results; }
  // Whether rows of that many columns hold a case with its answer; the flags may be missing.
  bool IsWidth(size_t columns) const {
    return columns == WithoutFlags() || (has_flags && columns == all.size());
  }
  // The names of the first `count` columns, "a b result", for messages; long lists are cut.
  std::string Names(size_t count) const;
};

CaseColumns ColumnsOf(const Operation& operation);

// The largest number of that many bits, 1..64.
constexpr uint64_t LargestOf(int bits) { return ~uint64_t{0} >> (64 - bits); }

}  // namespace numsim
