// Products by cuBLASLt with each of its choices made by the caller: for gemm/gemm_device.cc, and
// for studies of what the library computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm_device.h"

namespace numsim {

// The element type of a result.
enum class LibraryResult : uint8_t { kInt32, kFloat32, kBfloat16, kFloat16 };
inline size_t BytesOf(LibraryResult result) {
  return result == LibraryResult::kInt32 || result == LibraryResult::kFloat32 ? 4 : 2;
}

// How the parts of a split inner dimension are joined, in cuBLASLt's words.
enum class LibraryReduction : uint8_t { kNone, kInPlace, kComputeType, kOutputType };

struct LibraryOptions {
  LibraryResult result = LibraryResult::kFloat32;
  bool fast_accumulation = false;  // fp8: the accumulator is not promoted
  bool scales = false;             // the operands' scales, by the library; else they are ignored
  bool ordered = true;             // no split: every sum runs from its first product to its last
  // Not ordered: that many parts, joined in that way; 0: whatever the library prefers.
  int split = 0;
  LibraryReduction reduction = LibraryReduction::kNone;
};

// cuBLASLt's handle, its working memory and the algorithms that it chose, one for each problem: all
// made when first used. One for each stream.
class DeviceLibrary {
 public:
  DeviceLibrary();
  ~DeviceLibrary();

  // Puts the product into the stream: a.rows x b.rows elements of options.result, row-major.
  // Returns false, and does nothing, where cuBLASLt has no algorithm for it.
  // Requires formats as of Gemm (float32 scales 0, 1 or rows many), a result of 32-bit integers for
  // int8 alone; rows and inner multiples of 16, positive; 8-bit operands not transposed; all
  // pointers aligned to 16 bytes.
  [[nodiscard]] bool Multiply(const DeviceGemmOperand& a,
                              const DeviceGemmOperand& b,
                              const LibraryOptions& options,
                              void* out,
                              DeviceStream& stream);

  // The algorithm that Multiply takes, in cuBLASLt's numbers: "algorithm 66 tile 36 ... split 1";
  // "none".
  std::string Describe(const DeviceGemmOperand& a,
                       const DeviceGemmOperand& b,
                       const LibraryOptions& options,
                       void* out);

 private:
  struct State;
  State& Ready();

  std::unique_ptr<State> state_;
};

// The copies that an operand may need: padded, transposed.
struct OperandCopies {
  DeviceArray<uint8_t> padded, turned;
};

struct DeviceGemmScratch::Parts {
  DeviceLibrary library;
  OperandCopies a, b;
  DeviceArray<uint8_t> sums;
};

}  // namespace numsim
