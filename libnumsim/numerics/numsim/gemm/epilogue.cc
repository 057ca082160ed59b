#include "numsim/gemm/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/gemm/internal/gemm_block_scaled.h"
#include "numsim/gemm/internal/gemm_of_parts.h"
#include "numsim/gemm/internal/gemm_packed.h"

namespace numsim {
namespace {

constexpr Keyword<Epilogue> kNames[] = {{"float64", Epilogue::kFloat64},
                                        {"float32:ab", Epilogue::kFloat32Product},
                                        {"float32:a,b", Epilogue::kFloat32LeftFirst},
                                        {"float32:b,a", Epilogue::kFloat32RightFirst},
                                        {"cublaslt", Epilogue::kCublasLt}};

// Does what Gemm does under a block-scaled mode. The scales of the tensors are those of the epilogue.
void GemmOfBlocks(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& mode,
                  Epilogue epilogue,
                  std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  if (a.inner != 0) BlockScaledSums(a, b, mode, out);
  const bool cublas = epilogue == Epilogue::kCublasLt;
  const Epilogue used = cublas ? Epilogue::kFloat32Product : epilogue;
  for (size_t i = 0; i < out.size(); ++i) {
    const float ta = TensorScaleOf(a, i / b.rows), tb = TensorScaleOf(b, i % b.rows);
    float& x = out[i];
    x = Scaled(x, ta, tb, used) + (cublas ? 0.0f : -0.0f);
    if (std::isnan(x)) x = std::bit_cast<float>(NanResult(mode));
  }
}

}  // namespace

std::string_view ToString(Epilogue epilogue) { return KeywordToString(kNames, epilogue); }

Epilogue ParseEpilogue(std::string_view text) { return ParseKeyword(kNames, "epilogue", text); }

std::string_view DefinitionText(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kFloat64:
      return "fl32(fl64(S * (sa * sb)))";
    case Epilogue::kFloat32Product:
      return "fl32(S * fl32(sa * sb))";
    case Epilogue::kFloat32LeftFirst:
      return "fl32(fl32(S * sa) * sb)";
    case Epilogue::kFloat32RightFirst:
      return "fl32(fl32(S * sb) * sa)";
    case Epilogue::kCublasLt:
      return "one scale per operand: fl32(S * fl32(sa * sb)) + 0; else fl32(fl32(S * sb) * sa)";
  }
  return "";
}

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          Epilogue epilogue,
          std::span<float> out) {
  if (epilogue == Epilogue::kFloat64) return Gemm(a, b, mode, out);
  RequireHost("Gemm with an epilogue", {a.place(), b.place()});
  CheckProduct(a, b, out.size());
  if (out.empty()) return;
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  if (IsBlockScaled(mode)) return GemmOfBlocks(left, right, mode, epilogue, out);
  const float nan = std::bit_cast<float>(NanResult(mode));
  const size_t length = SegmentLength(left, right);
  std::vector<float> sums(out.size());
  for (size_t s = 0; s == 0 || s * length < left.inner; ++s) {
    const InnerRange segment{s * length, std::min((s + 1) * length, left.inner)};
    SumPart(left, right, segment, mode, sums);
    StoreSums(sums, left, right, s, epilogue, nan, out);
  }
}

}  // namespace numsim
