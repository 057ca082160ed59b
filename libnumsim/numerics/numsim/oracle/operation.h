// Operations of the oracle by name. An operation defines the columns of its test cases and computes
// the reference results.
//
// A case is a row of columns, each an unsigned number of a stated width in bits: first the
// operands, then (in a stochastic mode) the random bits R, one column per rounding. The reference
// results add the result columns and, on request, the flags (8 bits, rounding/flags.h).
// Element-wise operations have one result, block operations have several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/flags.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// Returns "after" or "before".
std::string_view ToString(Tininess tininess);
// Inverse of ToString(). Throws Error that names the value and lists the valid ones.
Tininess ParseTininess(std::string_view text);

// Returns "riscv", "arm" or "x86".
std::string_view ToString(InvalidInteger invalid);
// Inverse of ToString(). Throws Error that names the value and lists the valid ones.
InvalidInteger ParseInvalidInteger(std::string_view text);

// The kind of a column's values.
enum class ColumnKind : uint8_t {
  kCode,     // a code of a format
  kInteger,  // an integer, in two's complement if signed
  kFloat64,  // the bits of a float64
  kTruth,    // 0 or 1
  kRandom,   // the random bits R of stochastic rounding
};

// Returns "code", "integer", "float64", "truth" or "random", as files of cases name the kind.
std::string_view ToString(ColumnKind kind);

// A column of a file of cases.
struct Column {
  std::string name;  // "a", "b", "a[3]", "random", "result", "scale", "q[3]", ...
  int bits = 0;      // 1..64
  ColumnKind kind = ColumnKind::kCode;
  std::optional<Format> format = std::nullopt;  // set for kCode
  bool is_signed = false;                       // for kInteger

  // Number of hexadecimal digits of a value, including leading zeros, as TestFloat prints them.
  int Digits() const { return (bits + 3) / 4; }
};

// The user's request for an operation. An option that is left empty has the default stated here.
// It is an error to set an option that the operation does not use (see OperationInfo::options).
struct OperationRequest {
  // ("= {}" lets a designated initialiser leave members out without a warning.)
  std::string op = {};        // a name of OperationTable()
  std::string format = {};    // format of the operands, and of the result of from-*. Required,
                              // except for convert and quantize-*, where the default is fp32
  std::string format_b = {};  // format of the second operand; default: `format`
  std::string format_c = {};  // format of the third operand; default: `to`
  std::string to = {};        // format of the result; default: `format`. Required for convert and
                              // quantize-mx
  std::string scale_format =
      {};  // format of scales of scaled-* and p3109.*; default: binary8p1uf. For
           // dot: format of the block scales; default: no scales
  std::string accumulation = {};          // accumulation mode of dot; default: exact
  bool any_operands = false;              // dot: also a mode that is not for these operands
  std::optional<Rounding> rounding = {};  // default: rne
  std::optional<Overflow> overflow = {};  // default: nonsaturate; saturate for quantize-*
  std::optional<Tininess> tininess = {};  // default: after rounding
  std::optional<InvalidInteger> invalid_integer = {};  // to-*; default: riscv
  int length = 0;             // elements per block, or products of dot, at most kMostDotLength;
                              // default: 32 for MX, 16 for NVFP4 and dot; one block for dot with
                              // block scales
  bool tensor_scale = false;  // quantize-nvfp4 and dot with block scales: the scale of the tensor,
                              // or of both, as operands
  std::string profile = {};   // convert from fp32, or from-f64: a profile (profiles/profile.h)
                              // instead of rounding, overflow and tininess; has no flags
  int block = 0;  // dot with block scales: products that share a scale; default: 32 for a scale
                  // without mantissa bits (e8m0fnu), else 16
  std::string scale_rule = {};  // quantize-mx: a rule whose scales are powers of two
                                // (quantize/scale.h); default: e8m0
  std::string scale_rounding =
      {};  // p3109.ConvertToBlockMaxAbsFinite: MODE or MODE,OVERFLOW of the
           // scale; default: those of the elements
};

// The largest length of a dot product.
inline constexpr int kMostDotLength = 4096;

// The options that an operation uses.
struct OptionSet {
  bool wide_source = false;  // `format` is fp32 by default, and `to`, if used, is required
  bool format_b = false;
  bool format_c = false;
  bool to = false;
  bool scale_format = false;
  bool accumulation = false;
  bool rounding = false;
  bool overflow = false;  // also stands for tininess
  bool invalid_integer = false;
  bool length = false;
  bool tensor_scale = false;
  bool block = false;
  bool scale_rule = false;
  bool scale_rounding = false;
};

// The description of an operation in the lists of the oracle.
struct OperationInfo {
  std::string_view name;     // add, sub, mul, div, fma, sqrt, ..., quantize-mx, dot
  std::string_view summary;  // one line
  bool has_flags;
  OptionSet options;
};
// Returns every operation, in the order in which they are listed to the user.
std::span<const OperationInfo> OperationTable();

// Shape of an operation; determines which cases are generated for it (cases.h).
enum class CaseShape : uint8_t {
  kElementwise,
  kProductSum,  // a * b + c
  kBlock,       // a block of operands that share a scale
  kDot,         // pairs of operands, a[0] .. a[N-1] b[0] .. b[N-1]
  kRow,         // blocks with their scales
};

// Exponents from `low` to `high`, both included.
struct SumRange {
  int low = 0;
  int high = 0;
};

// An operation of the oracle under a request: its columns, and its right results.
class Operation {
 public:
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // The description of the operation and the shape of its cases.
  const OperationInfo& info() const { return info_; }
  CaseShape shape() const { return shape_; }
  // Operands first, then random bits.
  const std::vector<Column>& inputs() const { return inputs_; }
  const std::vector<Column>& results() const { return results_; }
  bool has_flags() const { return info_.has_flags; }
  // Number of leading inputs that are not random bits.
  size_t operands() const { return operands_; }
  // Number of elements of a block or of a dot product; 1 for element-wise operations.
  size_t length() const { return length_; }
  // Number of block scales, which follow the elements of a dot product.
  size_t scales() const { return scales_; }
  // Returns true if these scales enter the sum, so that their exponents decide what is cut.
  bool scales_enter_sum() const { return scales_enter_sum_; }

  // Dot products: the exponents of the smallest and of the largest value that is finite in the
  // result and in every accumulation format. Determines the cases of random:N.
  SumRange SumExponents() const { return sum_exponents_; }

  // Fills `results` (size results().size()) from `inputs` (size inputs().size(), each below
  // 2^bits). Returns the flags, or 0 if has_flags() is false. Safe to call from several threads;
  // allocates nothing.
  virtual Flags Evaluate(std::span<const uint64_t> inputs,
                         std::span<uint64_t> results) const noexcept = 0;

 protected:
  Operation(const OperationInfo& info, CaseShape shape) : info_(info), shape_(shape) {}

  OperationInfo info_;
  CaseShape shape_;
  std::vector<Column> inputs_, results_;
  size_t operands_ = 0;
  size_t length_ = 1;
  size_t scales_ = 0;
  bool scales_enter_sum_ = false;
  SumRange sum_exponents_;
};

// Creates the requested operation. Throws Error that names the option at fault: an unknown
// operation, format or accumulation mode, an option that is missing, or one that the operation does
// not use.
std::unique_ptr<Operation> MakeOperation(const OperationRequest& request);

// The columns of a case with its results, in the order of files and of TestFloat [TestFloat]:
// inputs, results and last, if the operation has them, the flags.
struct CaseColumns {
  std::vector<Column> all;
  size_t inputs = 0;
  size_t results = 0;
  bool has_flags = false;

  // Returns the number of columns that are no flags.
  size_t WithoutFlags() const { return inputs + results; }
  // Returns true if a row of that many columns is a case with its results. Flags are optional.
  bool IsWidth(size_t columns) const {
    return columns == WithoutFlags() || (has_flags && columns == all.size());
  }
  // Returns the names of the first `count` columns for messages, as in "a b result". Long lists are
  // abbreviated.
  std::string Names(size_t count) const;
};

// Returns the columns of a case with its results.
CaseColumns ColumnsOf(const Operation& operation);
// Returns the columns of a case without its results: those that `gen` writes and `answer` reads.
CaseColumns InputColumnsOf(const Operation& operation);

// Fills in the results and the flags, if the operation has them, of a row of ColumnsOf(operation)
// whose inputs are set. Safe to call from several threads.
void Complete(const Operation& operation, std::span<uint64_t> row) noexcept;

// Returns the largest number of `bits` bits. Requires 1 <= bits <= 64.
constexpr uint64_t LargestOf(int bits) { return ~uint64_t{0} >> (64 - bits); }

}  // namespace numsim
