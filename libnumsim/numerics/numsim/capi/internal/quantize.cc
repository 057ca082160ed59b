// Converts matrices to codes with given scales, and back.
#include "numsim/quantize/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/capi/internal/arrays.h"
#include "numsim/capi/internal/scaled_matrix.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode.h"

using numsim::EncodePlan;
using numsim::FormatSpec;
using numsim::capi::CheckCodeBytes;
using numsim::capi::CheckDisjoint;
using numsim::capi::Draws;
using numsim::capi::FirstError;
using numsim::capi::Memory;
using numsim::capi::WithCodes;

namespace numsim::capi {
namespace {

bool IsInfinite(float x) { return std::isinf(x); }

struct QuantizeCall {
  ScaledMatrix matrix;
  EncodePlan plan;
  Draws draws;

  numsim_status_t Read(const Memory& in,
                       const Memory& inv_scales,
                       const numsim_random_t* random,
                       const Memory& codes) noexcept {
    numsim_status_t status =
        FirstError({in.Check(),
                    inv_scales.Check(),
                    CheckCodeBytes(static_cast<int>(codes.element), plan.format),
                    draws.Read(random, in.n, DrawBits(plan))});
    if (status != NUMSIM_OK) return status;
    status = codes.Check();
    return status != NUMSIM_OK ? status : CheckDisjoint(codes, {in, inv_scales, draws.Words()});
  }

  // Computes the same as the kernel, for codes of 4 bytes and for random words of the caller, which
  // the kernel does not support.
  template <typename Code>
  void RunEach(const float* in,
               const float* inv_scales,
               bool transpose,
               std::span<Code> codes) const {
    ForEachElement(matrix.Elements(), [&](size_t i) {
      const float product = in[i] * inv_scales[matrix.ScaleOf(i)];
      codes[matrix.PlaceOf(i, transpose)] =
          static_cast<Code>(EncodeF32(plan, std::bit_cast<uint32_t>(product), draws.At(i)));
    });
  }

  template <typename Code>
  void Run(const float* in, const float* inv_scales, bool transpose, std::span<Code> codes) const {
    if constexpr (sizeof(Code) <= 2) {
      if (!draws.HasWords()) {
        return Quantize(plan,
                        HostMatrix(std::span(in, matrix.Elements()), matrix.shape),
                        matrix.layout,
                        std::span(inv_scales, matrix.Scales()),
                        codes,
                        draws.Stream(),
                        transpose);
      }
    }
    RunEach(in, inv_scales, transpose, codes);
  }
};

template <typename Code>
void RunDequantize(const FormatSpec& format,
                   std::span<const Code> codes,
                   const ScaledMatrix& matrix,
                   const float* scales,
                   float* out) {
  if constexpr (sizeof(Code) <= 2) {
    Dequantize(format,
               codes,
               matrix.layout,
               std::span(scales, matrix.Scales()),
               HostMatrix(std::span(out, codes.size()), matrix.shape));
  } else {
    ForEachElement(codes.size(), [&](size_t i) {
      out[i] = Decode(format, codes[i] & format.CodeMask()) * scales[matrix.ScaleOf(i)];
    });
  }
}

}  // namespace
}  // namespace numsim::capi

using numsim::capi::ScaledMatrix;

numsim_status_t numsim_scale_count(const numsim_scale_layout_t* layout,
                                   size_t rows,
                                   size_t cols,
                                   size_t* count) noexcept {
  ScaledMatrix matrix;
  const numsim_status_t status =
      FirstError({matrix.Read(rows, cols, layout), numsim::capi::Require(count != nullptr)});
  if (status == NUMSIM_OK) *count = matrix.Scales();
  return status;
}

numsim_status_t numsim_absmax(const float* in,
                              size_t rows,
                              size_t cols,
                              const numsim_scale_layout_t* layout,
                              float* absmax) noexcept {
  ScaledMatrix matrix;
  numsim_status_t status = matrix.Read(rows, cols, layout);
  if (status != NUMSIM_OK) return status;
  const Memory from = {in, matrix.Elements(), sizeof(float)};
  const Memory to = {absmax, matrix.Scales(), sizeof(float)};
  status = FirstError({from.Check(), to.Check()});
  if (status == NUMSIM_OK) status = CheckDisjoint(to, {from});
  if (status != NUMSIM_OK) return status;
  numsim::Absmax(numsim::HostMatrix(std::span(in, from.n), matrix.shape),
                 matrix.layout,
                 std::span(absmax, to.n));
  return NUMSIM_OK;
}

numsim_status_t numsim_quantize(const float* in,
                                size_t rows,
                                size_t cols,
                                const numsim_scale_layout_t* layout,
                                const float* inv_scales,
                                const numsim_format_t* to,
                                const numsim_rounding_t* rounding,
                                const numsim_random_t* random,
                                int transpose,
                                void* codes,
                                int code_bytes) noexcept {
  numsim::capi::QuantizeCall call;
  numsim_status_t status = FirstError(
      {call.matrix.Read(rows, cols, layout), numsim::capi::ReadPlan(to, rounding, &call.plan)});
  if (status != NUMSIM_OK) return status;
  const size_t n = call.matrix.Elements();
  status = call.Read({in, n, sizeof(float)},
                     {inv_scales, call.matrix.Scales(), sizeof(float)},
                     random,
                     {codes, n, static_cast<size_t>(code_bytes)});
  if (status != NUMSIM_OK || n == 0) return status;
  const std::span<const float> factors(inv_scales, call.matrix.Scales());
  if (!std::ranges::all_of(factors, [](float x) { return std::isfinite(x); })) {
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  WithCodes(
      codes, code_bytes, n, [&](auto span) { call.Run(in, inv_scales, transpose != 0, span); });
  return NUMSIM_OK;
}

numsim_status_t numsim_dequantize(const numsim_format_t* format,
                                  const void* codes,
                                  int code_bytes,
                                  size_t rows,
                                  size_t cols,
                                  const numsim_scale_layout_t* layout,
                                  const float* scales,
                                  float* out) noexcept {
  ScaledMatrix matrix;
  FormatSpec spec;
  numsim_status_t status =
      FirstError({matrix.Read(rows, cols, layout), numsim::capi::ReadFormatOrTable(format, &spec)});
  if (status != NUMSIM_OK) return status;
  status = CheckCodeBytes(code_bytes, spec);
  if (status != NUMSIM_OK) return status;
  const size_t n = matrix.Elements();
  const Memory from = {codes, n, static_cast<size_t>(code_bytes)};
  const Memory factors = {scales, matrix.Scales(), sizeof(float)};
  const Memory to = {out, n, sizeof(float)};
  status = FirstError({from.Check(), factors.Check(), to.Check()});
  if (status == NUMSIM_OK) status = CheckDisjoint(to, {from, factors});
  if (status != NUMSIM_OK || n == 0) return status;
  if (std::ranges::any_of(std::span(scales, matrix.Scales()), numsim::capi::IsInfinite)) {
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  WithCodes(codes, code_bytes, n, [&](auto span) {
    numsim::capi::RunDequantize(spec, span, matrix, scales, out);
  });
  return NUMSIM_OK;
}
