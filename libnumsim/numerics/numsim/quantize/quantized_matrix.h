// Quantised matrices: codes together with their scales, on the host or on a device. All functions
// throw Error if a requirement on sizes, layouts or formats is not met.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numsim/backend/float_matrix.h"
#include "numsim/quantize/delayed_scale.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/scale.h"
#include "numsim/stats/error_measures.h"

namespace numsim {

// The order in which codes are stored: that of the input, that of its transpose, or both.
enum class CodeOrder : uint8_t { kInput, kTransposed, kBoth };

// How a matrix is quantised.
struct QuantizeOptions {
  FormatSpec format = {};  // at most 16 bits
  Rounding rounding = {};
  Overflow overflow = Overflow::kSaturate;
  ScaleLayout layout = {};
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  ArrayRandom random = {};
  CodeOrder order = CodeOrder::kInput;  // layout and random bits refer to the input in any order
  // Under ScaleRule::kMsEden: elements of a row that share a correction, a multiple of the block.
  size_t correction_run = 0;
  // Habits of other projects. Only on the host, and not under given or delayed scales.
  // A code is that of x / scale, rounded to float32, instead of x * inv_scale. Where the scale is 0 it
  // is that of a zero with the sign of x.
  bool divide = false;
  // A NaN among the elements that share a scale makes the scale NaN, and so all of these elements.
  bool nan_scales = false;

  // Returns true if the codes are those of x * inv_scale under scales of the finite elements.
  bool IsUsual() const { return !divide && !nan_scales; }
};

// A quantised rows x cols matrix of float.
//
// NaN and infinities of the input: scales are computed from finite elements only. NaN is encoded by
// the format's NaN rule. An infinity overflows, so under kSaturate it becomes the largest value. If
// the elements that share a scale are all zero, or none of them is finite, the scale is 1, or 0
// under ScaleRule::kNvfp4 and kE4m3. Zeros become zero codes. QuantizeOptions::nan_scales differs.
struct QuantizedMatrix {
  FormatSpec format;
  MatrixShape shape;  // of the input
  ScaleLayout layout;
  CodeOrder order = CodeOrder::kInput;
  // Bytes of codes of one or two bytes each, as the format needs: 1 x shape.Elements() codes in the
  // order of the input, and in that of its transpose. Those that `order` does not name are empty.
  Buffer<uint8_t> codes, transposed;
  Buffer<float> scales;  // 1 x layout.Count(rows, cols); value = code value * scale
  // Under a rule with TakesTensorMaximum (kNvfp4) 1 x 1: the scale T of the tensor, by which each of
  // `scales` is the product of T and a number of e4m3fn (GroupScaleCodes). Under kNvfp4Row one T for
  // each row, or for each column if the blocks are of columns. Otherwise empty.
  Buffer<float> tensor_scale;

  QuantizedMatrix() : QuantizedMatrix(Place()) {}
  explicit QuantizedMatrix(Place place)
      : codes(place), transposed(place), scales(place), tensor_scale(place) {}

  // The place of the codes, and whether there are codes in the order of the input and of its transpose.
  Place place() const { return scales.place(); }
  bool HasCodes() const { return order != CodeOrder::kTransposed; }
  bool HasTransposed() const { return order != CodeOrder::kInput; }
  // Returns the bytes of the codes in the order of the input, or of the transpose if there are no
  // others.
  MatrixSpan<const uint8_t> CodeBytes() const {
    return HasCodes() ? codes.View() : transposed.View();
  }
  // Return the same as codes of one or of two bytes; empty if the format needs the other size.
  // Require the host.
  std::span<const uint8_t> Codes8() const;
  std::span<const uint16_t> Codes16() const;
  // Returns the scales. Requires the host.
  std::span<const float> Scales() const { return scales.Span(); }
};

// A view of a quantised matrix, such as one in arrays of another library: what MatrixSpan is to
// Buffer. The codes are in the order of the input.
struct QuantizedSpan {
  FormatSpec format = {};
  MatrixShape shape = {};
  ScaleLayout layout = {};
  MatrixSpan<const uint8_t> codes;       // bytes: shape.Elements() codes of one or two bytes each
  MatrixSpan<const float> scales;        // layout.Count(rows, cols), at the place of the codes
  MatrixSpan<const float> tensor_scale;  // as that of QuantizedMatrix; empty: one level of scales

  QuantizedSpan() = default;
  QuantizedSpan(FormatSpec code_format,
                MatrixShape matrix,
                ScaleLayout groups,
                MatrixSpan<const uint8_t> bytes,
                MatrixSpan<const float> factors,
                MatrixSpan<const float> tensor = {})
      : format(code_format),
        shape(matrix),
        layout(groups),
        codes(bytes),
        scales(factors),
        tensor_scale(tensor) {}
  // Requires codes in the order of the input.
  QuantizedSpan(const QuantizedMatrix& matrix);
};

// Quantises the matrix where it lies, with the scales of options.scale_rule. Requires a contiguous
// matrix and a format of at most 16 bits. The memory of `result` is reused if it is at that place;
// to have the result in memory of the caller, let its buffers borrow that (Buffer::Borrow). Its
// previous contents do not matter; if an argument is invalid, they stay. On a device no call waits,
// except when a buffer must grow.
void QuantizeInto(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result);

// Returns the number of scales of the second level (QuantizedMatrix::tensor_scale).
size_t TensorScaleCount(ScaleRule rule, const ScaleLayout& layout, MatrixShape shape);

// Gives `result` the memory for what QuantizeInto writes for a matrix of that shape at that place,
// with uninitialised codes and scales.
void Prepare(Place place,
             MatrixShape shape,
             const QuantizeOptions& options,
             QuantizedMatrix& result);

// Returns the same in a new matrix.
QuantizedMatrix Quantize(ConstFloatSpan in, const QuantizeOptions& options);

// Do what QuantizeInto does, but under a given scale, such as one of another tensor or an earlier
// step. Require the layout kTensor and a finite scale and inverse. options.scale_rule is not read. The
// second form quantises under the current scale of `delayed`, whose state is at the place of the
// matrix, and then records the absolute maximum of the matrix.
void QuantizeUnder(const Scale& scale,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);
void QuantizeUnder(DelayedScale& delayed,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);

// Writes out(r, c) = the value of the code * its scale, rounded to float32 and then to the element of
// `out`, at the place of the matrix. Requires a contiguous `out` with as many elements.
void Dequantize(const QuantizedSpan& matrix, FloatSpan out);

// Writes the same without the scales: out(r, c) = the value of the code.
void DecodeCodes(const QuantizedSpan& matrix, FloatSpan out);

// Returns the codes of e4m3fn of the scales of the groups under two levels of scales: scale i is
// fl32(the value of code i * tensor_scale). In the order of `scales`. Requires a matrix on the host
// with a tensor_scale.
std::vector<uint8_t> GroupScaleCodes(const QuantizedMatrix& matrix);

// Returns a copy of the matrix in host memory. Waits for the device.
QuantizedMatrix OnHost(const QuantizedMatrix& matrix);

// Quantises and dequantises without storing codes. Serves every format of up to 32 bits. Returns
// the scales. Requires in.size() == out.size() == shape.Elements().
std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out);

// The error of quantising a matrix.

// Quantises and dequantises the matrix under `options` and returns measures of the error. An
// element counts as an overflow if its magnitude, divided by its scale, is at or beyond the
// midpoint between the largest finite value and the value that would follow it. The rounding mode
// does not matter for this.
ErrorMeasures QuantizationError(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options);

// Returns the error measures of a quantised matrix. `in` is the original matrix; `dequantized`
// receives the dequantised values. Requires codes in the order of the input, on the host, and spans
// of its size.
ErrorMeasures QuantizationError(std::span<const float> in,
                                const QuantizedMatrix& matrix,
                                std::span<float> dequantized);

// Returns the scale rule that a format is usually used with: kAbsmax for formats of up to 8 bits,
// kNone (a plain cast) for wider ones.
ScaleRule UsualScaleRule(const FormatSpec& format);

}  // namespace numsim
