// GEMMs whose inner dimension is cut into parts that are summed apart (split-K), as libraries do for
// few results and long sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/epilogue.h"
#include "numsim/gemm/inner_range.h"

namespace numsim {

// How K products are cut into S parts, one after the other. A k-tile has T products; the last one may
// be short.
enum class SplitPartition : uint8_t {
  // ceil(ceil(K / T) / S) k-tiles per part; the last parts may be short or empty. Every product is in
  // a part.
  kContiguous,
  // floor(K / S) products per part, rounded up to whole k-tiles: as cuBLASLt 13.1 on an H200
  // (docs/results/library-products.md). If floor(K / S) is a multiple of T, the last K mod S products
  // are in no part. Requires S <= K.
  kCublasLt,
};

// Converts between a partition and its name: contiguous, cublaslt. Parsing throws Error, listing the
// names, for any other text.
std::string_view ToString(SplitPartition partition);
SplitPartition ParseSplitPartition(std::string_view text);

// How the inner dimension of a product is cut into parts.
struct SplitK {
  static constexpr size_t kMost = size_t{1} << 30;  // limit of S and T

  size_t parts = 1;  // S, at least 1
  size_t tile = 64;  // T, at least 1
  SplitPartition partition = SplitPartition::kContiguous;
  FormatSpec partials = kFp32;  // the format to which the sum of a part is rounded, nearest even
};

// Returns the products of a k-tile of cuBLASLt on an H200, which has 128 bytes of each operand: 128 if
// both formats have at most 8 bits, else 64.
size_t CublasLtTile(const FormatSpec& a, const FormatSpec& b);

// Returns part 0 <= index < split.parts of `inner` products. Throws Error if `split` is not valid.
InnerRange PartOf(const SplitK& split, size_t inner, size_t index);

// Returns how many of the last products are in no part. Throws Error if `split` is not valid.
size_t ProductsLeftOut(const SplitK& split, size_t inner);

// Computes A B^T on the host from parts. The sum S of a result is
//   S = (... ((s[0] + s[1]) + s[2]) + ...)     in float32
// where s[i] is the sum of the products of part i under `mode`, from zero, as a float32, rounded to
// split.partials; an empty part has +0. What the epilogue makes of S is stored. With one part of
// float32 this is Gemm of gemm/epilogue.h, except that epilogue float64 rounds S to float32 first.
// The bits depend neither on backend nor on thread count, except under mode library. NaN results are
// NanResult(mode). Requires and throws what Gemm does. Throws Error, too, for operands with scales
// along the inner dimension, for block-scaled modes, and if `split` is not valid. Cost: that of Gemm,
// and a pass over the results per part.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          const SplitK& split,
          Epilogue epilogue,
          std::span<float> out);

}  // namespace numsim
