// Converts arrays of floats to codes and back.
#include "numsim/cast/cast.h"

#include <bit>

#include "numsim/capi/internal/arrays.h"
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

// Checked arguments of an encode function, for both source types.
struct EncodeCall {
  EncodePlan plan;
  Draws draws;

  numsim_status_t Read(const Memory& in,
                       const numsim_format_t* to,
                       const numsim_rounding_t* rounding,
                       const numsim_random_t* random,
                       const Memory& codes) noexcept {
    numsim_status_t status = ReadPlan(to, rounding, &plan);
    if (status != NUMSIM_OK) return status;
    status = FirstError({in.Check(), draws.Read(random, in.n, DrawBits(plan))});
    if (status != NUMSIM_OK) return status;
    status = CheckCodeBytes(static_cast<int>(codes.element), plan.format);
    if (status != NUMSIM_OK) return status;
    status = codes.Check();
    return status != NUMSIM_OK ? status : CheckDisjoint(codes, {in, draws.Words()});
  }
};

// Sets codes[i] to encode(i).
template <typename EncodeElement>
void EncodeEach(void* codes, int code_bytes, size_t n, const EncodeElement& encode) {
  WithCodes(codes, code_bytes, n, [&]<typename Code>(std::span<Code> out) {
    ForEachElement(n, [&](size_t i) { out[i] = static_cast<Code>(encode(i)); });
  });
}

}  // namespace
}  // namespace numsim::capi

numsim_status_t numsim_encode_array_f32(const float* in,
                                        size_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        const numsim_random_t* random,
                                        void* codes,
                                        int code_bytes) noexcept {
  numsim::capi::EncodeCall call;
  const numsim_status_t status = call.Read(
      {in, n, sizeof(float)}, to, rounding, random, {codes, n, static_cast<size_t>(code_bytes)});
  if (status != NUMSIM_OK || n == 0) return status;
  if (call.draws.HasWords()) {
    numsim::capi::EncodeEach(codes, code_bytes, n, [&](size_t i) {
      return numsim::EncodeF32(call.plan, std::bit_cast<uint32_t>(in[i]), call.draws.At(i));
    });
  } else {
    WithCodes(codes, code_bytes, n, [&](auto out) {
      numsim::Encode(call.plan, std::span(in, n), out, call.draws.Stream());
    });
  }
  return NUMSIM_OK;
}

numsim_status_t numsim_encode_array_f64(const double* in,
                                        size_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        const numsim_random_t* random,
                                        void* codes,
                                        int code_bytes) noexcept {
  numsim::capi::EncodeCall call;
  const numsim_status_t status = call.Read(
      {in, n, sizeof(double)}, to, rounding, random, {codes, n, static_cast<size_t>(code_bytes)});
  if (status != NUMSIM_OK || n == 0) return status;
  if (call.draws.HasWords()) {
    numsim::capi::EncodeEach(codes, code_bytes, n, [&](size_t i) {
      return numsim::EncodeF64(call.plan, std::bit_cast<uint64_t>(in[i]), call.draws.At(i));
    });
  } else {
    WithCodes(codes, code_bytes, n, [&](auto out) {
      numsim::Encode(call.plan, std::span(in, n), out, call.draws.Stream());
    });
  }
  return NUMSIM_OK;
}

numsim_status_t numsim_decode_array_f32(const numsim_format_t* format,
                                        const void* codes,
                                        int code_bytes,
                                        size_t n,
                                        float* out) noexcept {
  FormatSpec spec;
  numsim_status_t status = numsim::capi::ReadFormatOrTable(format, &spec);
  if (status != NUMSIM_OK) return status;
  status = CheckCodeBytes(code_bytes, spec);
  if (status != NUMSIM_OK) return status;
  const Memory from = {codes, n, static_cast<size_t>(code_bytes)};
  const Memory to = {out, n, sizeof(float)};
  status = FirstError({from.Check(), to.Check()});
  if (status == NUMSIM_OK) status = CheckDisjoint(to, {from});
  if (status != NUMSIM_OK || n == 0) return status;
  WithCodes(
      codes, code_bytes, n, [&](auto span) { numsim::Decode(spec, span, std::span(out, n)); });
  return NUMSIM_OK;
}
