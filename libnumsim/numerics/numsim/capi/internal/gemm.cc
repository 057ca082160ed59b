// GEMM in a given accumulation mode, and the list of named accumulation modes.
#include "numsim/gemm/gemm.h"

#include <string>
#include <string_view>
#include <vector>

#include "numsim/capi/internal/arrays.h"
#include "numsim/capi/internal/scaled_matrix.h"
#include "numsim/capi/internal/text.h"

using numsim::AccumulationMode;
using numsim::AccumulationModeRow;
using numsim::AccumulationModeTable;
using numsim::capi::CatchAll;
using numsim::capi::FirstError;
using numsim::capi::Memory;
using numsim::capi::Require;

namespace numsim::capi {
namespace {

// Returns the scales of the vectors along the inner dimension. A segment that covers the whole
// inner dimension counts as no segmentation (0).
GemmScales ScalesOf(const ScaledMatrix& matrix, const float* scales) {
  GemmScales result = {.data = std::span(scales, matrix.Scales())};
  switch (matrix.layout.granularity) {
    case Granularity::kRow:
      result.row_stride = 1;
      break;
    case Granularity::kColumn:
      result.segment = 1;
      break;
    case Granularity::kBlock:
      result.row_stride = matrix.layout.BlocksPerRow(matrix.shape.cols);
      result.segment = matrix.layout.block;
      break;
    default:
      break;
  }
  result.segment_stride = 1;
  if (result.segment >= matrix.shape.cols) result.segment = 0;
  return result;
}

// An operand of a GEMM.
class Factor {
 public:
  numsim_status_t Read(const numsim_factor_t* given, size_t vectors, size_t inner) noexcept {
    if (given == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
    constexpr numsim_scale_layout_t kNone = {NUMSIM_SCALE_TENSOR, 0, 0};
    const bool scaled = given->scales != nullptr;
    ScaledMatrix matrix;
    numsim_status_t status =
        FirstError({ReadFormat(&given->format, &operand_.format),
                    matrix.Read(vectors, inner, scaled ? &given->layout : &kNone)});
    if (status != NUMSIM_OK) return status;
    status = CheckCodeBytes(given->code_bytes, operand_.format);
    if (status != NUMSIM_OK) return status;
    codes_ = {given->codes, matrix.Elements(), static_cast<size_t>(given->code_bytes)};
    scales_ = {given->scales, scaled ? matrix.Scales() : 0, sizeof(float)};
    status = FirstError({codes_.Check(), scales_.Check()});
    if (status != NUMSIM_OK) return status;
    operand_.rows = vectors;
    operand_.inner = inner;
    operand_.transposed = given->transposed != 0;
    if (scaled) operand_.scales = ScalesOf(matrix, given->scales);
    return NUMSIM_OK;
  }

  const FormatSpec& format() const noexcept { return operand_.format; }
  const Memory& codes() const noexcept { return codes_; }
  const Memory& scales() const noexcept { return scales_; }
  size_t segment() const noexcept { return operand_.scales.segment; }

  // Returns the operand for Gemm, which refers to this object. Decodes codes whose element
  // size Gemm does not take.
  GemmOperand Operand() {
    GemmOperand operand = operand_;
    const bool as_stored = codes_.element == static_cast<size_t>(operand.format.StorageBytes());
    if (as_stored && codes_.element == 1) {
      operand.codes8 = {static_cast<const uint8_t*>(codes_.data), codes_.n};
    } else if (as_stored && codes_.element == 2) {
      operand.codes16 = {static_cast<const uint16_t*>(codes_.data), codes_.n};
    } else {
      decoded_.resize(codes_.n);
      WithCodes(codes_.data, static_cast<int>(codes_.element), codes_.n, [&](auto codes) {
        Decode(operand.format, codes, std::span(decoded_));
      });
      operand.values = decoded_;
    }
    return operand;
  }

 private:
  GemmOperand operand_;
  Memory codes_ = {nullptr, 0, 1};
  Memory scales_ = {nullptr, 0, 1};
  std::vector<float> decoded_;
};

// Parses an accumulation mode. Rejects `library`, because its bits depend on more than the
// arguments.
AccumulationMode ReadMode(const char* text) {
  if (std::string_view(text) == "library") {
    throw Error("accumulator 'library' has no defined order; the C interface does not offer it");
  }
  return ParseOrderedAccumulationMode(text);
}

// Checks the operands and the output of a call, but not the text of the accumulation mode.
numsim_status_t CheckProduct(const Factor& a, const Factor& b, const Memory& out) noexcept {
  const bool both = a.segment() != 0 && b.segment() != 0;
  return FirstError({Require(!both || a.segment() == b.segment()),
                     out.Check(),
                     CheckDisjoint(out, {a.codes(), a.scales(), b.codes(), b.scales()})});
}

// Returns the text of each accumulation mode of the table. Never freed, because callers keep
// pointers to the texts.
const std::vector<std::string>& Definitions() {
  static const std::vector<std::string>& texts = *[] {
    auto* made = new std::vector<std::string>;
    for (const AccumulationModeRow& row : AccumulationModeTable())
      made->push_back(DefinitionText(row.mode));
    return made;
  }();
  return texts;
}

// The arguments that the two GEMM functions share, except for the message.
struct GemmCall {
  const numsim_factor_t* a;
  const numsim_factor_t* b;
  size_t rows, cols, inner;
  const char* accumulator;
  float* out;

  // Checks everything and multiplies. Refuses a named accumulation mode that is not for the
  // operands, unless `any_operands` is true.
  numsim_status_t Run(bool any_operands, TextBuffer message) const noexcept {
    Factor left, right;
    const bool countable = cols == 0 || rows <= static_cast<size_t>(PTRDIFF_MAX) / cols;
    numsim_status_t status = FirstError({Require(accumulator != nullptr && countable),
                                         left.Read(a, rows, inner),
                                         right.Read(b, cols, inner)});
    const Memory result = {out, countable ? rows * cols : 0, sizeof(float)};
    if (status == NUMSIM_OK) status = CheckProduct(left, right, result);
    if (status != NUMSIM_OK) {
      message.Write(numsim_status_text(status));
      return status;
    }
    if (!any_operands) {
      status = CatchAll(message, NUMSIM_ERROR_ACCUMULATOR_OPERANDS, [&] {
        CheckOperands(
            accumulator, left.format(), right.format(), "numsim_gemm_any_operands allows it");
        return NUMSIM_OK;
      });
      if (status != NUMSIM_OK) return status;
    }
    AccumulationMode mode;
    status = CatchAll(message, NUMSIM_ERROR_UNKNOWN_ACCUMULATOR, [&] {
      mode = ReadMode(accumulator);
      return NUMSIM_OK;
    });
    if (status != NUMSIM_OK || result.n == 0) return status;
    // Scales that a block-scaled mode does not take.
    return CatchAll(message, NUMSIM_ERROR_BAD_ARGUMENT, [&] {
      Gemm(left.Operand(), right.Operand(), mode, std::span(out, result.n));
      return NUMSIM_OK;
    });
  }
};

// Lists the names for messages that do not fit the caller's buffer.
constexpr std::string_view kLister = "numsim_accumulator_info";

}  // namespace
}  // namespace numsim::capi

using numsim::capi::GemmCall;

numsim_status_t numsim_gemm(const numsim_factor_t* a,
                            const numsim_factor_t* b,
                            size_t rows,
                            size_t cols,
                            size_t inner,
                            const char* accumulator,
                            float* out,
                            char* message,
                            size_t message_size) noexcept {
  return GemmCall{a, b, rows, cols, inner, accumulator, out}.Run(
      false, {message, message_size, numsim::capi::kLister});
}

numsim_status_t numsim_gemm_any_operands(const numsim_factor_t* a,
                                         const numsim_factor_t* b,
                                         size_t rows,
                                         size_t cols,
                                         size_t inner,
                                         const char* accumulator,
                                         float* out,
                                         char* message,
                                         size_t message_size) noexcept {
  return GemmCall{a, b, rows, cols, inner, accumulator, out}.Run(
      true, {message, message_size, numsim::capi::kLister});
}

size_t numsim_accumulator_count(void) noexcept { return AccumulationModeTable().size(); }

// Texts in the table are complete string literals, so their data ends with a 0.
numsim_status_t numsim_accumulator_info(size_t index, numsim_accumulator_info_t* info) noexcept {
  if (info == nullptr || index >= AccumulationModeTable().size()) return NUMSIM_ERROR_BAD_ARGUMENT;
  return CatchAll({nullptr, 0}, NUMSIM_ERROR_INTERNAL, [&] {
    const AccumulationModeRow& row = AccumulationModeTable()[index];
    *info = {.name = row.name.data(),
             .rule = numsim::capi::Definitions()[index].c_str(),
             .operands = row.operands.data(),
             .source = row.source.data(),
             .note = row.note.data(),
             .measured = row.measured ? 1 : 0,
             .reserved = 0};
    return NUMSIM_OK;
  });
}
