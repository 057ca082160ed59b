// The named accumulation modes, which describe devices. One case is missing because no mode can
// express it [MMA-Sim]: results in float16, which are rounded to nearest once more.
#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr AccumulationMode Truncating(int fraction_bits, int chunk, int promote = 0) {
  return {.kind = AccumulationKind::kAligned,
          .chunk = chunk,
          .fraction_bits = fraction_bits,
          .promote = promote};
}

constexpr AccumulationMode BytePairs() {
  AccumulationMode mode = Truncating(25, 16, 32);
  mode.order = ProductOrder::kBytePairs;
  return mode;
}

constexpr AccumulationMode RoundingDown(int chunk, ProductOrder order = ProductOrder::kAscending) {
  return {
      .kind = AccumulationKind::kAlignedDown, .chunk = chunk, .fraction_bits = 24, .order = order};
}

constexpr AccumulationMode BlockScaled(int fraction_bits,
                                       int chunk,
                                       int group,
                                       const FormatSpec& scales) {
  return {.kind = AccumulationKind::kBlockScaled,
          .format = scales,
          .chunk = chunk,
          .fraction_bits = fraction_bits,
          .group = group};
}

constexpr AccumulationMode InChunks(AccumulationKind kind, int chunk) {
  return {.kind = kind, .chunk = chunk};
}

constexpr AccumulationModeRow Measured(std::string_view name,
                                       const AccumulationMode& mode,
                                       std::string_view operands,
                                       size_t measured_inner,
                                       std::string_view note) {
  return {name, mode, operands, true, measured_inner, "Hopper-measured", note};
}

constexpr AccumulationModeRow Reported(std::string_view name,
                                       const AccumulationMode& mode,
                                       std::string_view operands,
                                       std::string_view note) {
  return {name, mode, operands, false, 0, "MMA-Sim", note};
}

constexpr AccumulationKind kExactChunks = AccumulationKind::kExactChunks;
constexpr AccumulationKind kFlushedPairs = AccumulationKind::kFlushedPairs;
constexpr ProductOrder kEvenOdd = ProductOrder::kEvenOdd;
constexpr std::string_view kFp8 = "e4m3fn, e5m2";
constexpr std::string_view kFp8Fnuz = "e4m3fnuz, e5m2fnuz";
constexpr std::string_view kFp8Fp6Fp4 = "e4m3fn, e5m2, e3m2fn, e2m3fn, e2m1fn";
constexpr FormatSpec kUe4m3fn = NamedFormat("ue4m3fn");
constexpr AccumulationMode kMxf8f6f4 = BlockScaled(25, 32, 0, kE8M0fnu);
constexpr AccumulationMode kMxf4 = BlockScaled(35, 64, 16, kE8M0fnu);
constexpr AccumulationMode kMxf4nvf4 = BlockScaled(35, 64, 16, kUe4m3fn);

// One row per mode: name, mode, operands, for measured modes the longest inner dimension that was
// compared, note.
// clang-format off
constexpr AccumulationModeRow kTable[] = {
    Measured("hopper-fp8-fast", Truncating(13, 32),         kFp8,     7168, "cuBLASLt with fast accumulation (wgmma); for each part where it splits the inner dimension"),
    Measured("hopper-fp8",      Truncating(13, 32, 128),    kFp8,     11008, "cuBLASLt without fast accumulation: promoted to float32 every 128, as in [DeepGEMM]; for each part where it splits"),
    Measured("hopper-bf16",     Truncating(25, 16),         "bf16",   8192, "cuBLASLt; for each part where it splits the inner dimension"),
    Measured("hopper-fp16",     Truncating(25, 16),         "fp16",   8192, "cuBLASLt; for each part where it splits the inner dimension"),
    Measured("hopper-mma-fp8",  BytePairs(),                "e4m3fn", 1024, "mma.sync.m16n8k32, another unit than wgmma; each 32 from zero, C added in float32"),
    Measured("hopper-tf32",     Truncating(25, 8),          "tf32",   256,  "wgmma and mma.sync (probe-device); cuBLAS promotes every 32 (trunc:25,8,32)"),
    Reported("volta-fp16",      Truncating(23, 4),          "fp16",   "mma.sync, float32 result"),
    Reported("turing-fp16",     Truncating(24, 8),          "fp16",   "mma.sync, float32 result"),
    Reported("ampere-fp16",     Truncating(24, 8),          "fp16",   "mma.sync, float32 result"),
    Reported("ampere-bf16",     Truncating(24, 8),          "bf16",   "mma.sync"),
    Reported("ampere-tf32",     Truncating(24, 4),          "tf32",   "mma.sync"),
    Reported("ada-fp16",        Truncating(24, 8),          "fp16",   "mma.sync, float32 result"),
    Reported("ada-bf16",        Truncating(24, 8),          "bf16",   "mma.sync"),
    Reported("ada-tf32",        Truncating(24, 4),          "tf32",   "mma.sync"),
    Reported("ada-fp8",         Truncating(13, 16),         kFp8,     "mma.sync, float32 result"),
    Reported("blackwell-fp16",  Truncating(25, 16),         "fp16",   "tcgen05.mma and mma.sync"),
    Reported("blackwell-bf16",  Truncating(25, 16),         "bf16",   "tcgen05.mma and mma.sync"),
    Reported("blackwell-tf32",  Truncating(25, 8),          "tf32",   "tcgen05.mma and mma.sync"),
    Reported("blackwell-fp8",   Truncating(25, 32),         kFp8,     "tcgen05.mma, and mma.sync of RTX Blackwell, no block scales; not mma.sync of B200 (docs/oracle.md)"),
    Reported("mxf8f6f4",        kMxf8f6f4,                  kFp8Fp6Fp4, "tcgen05.mma (B200) and mma.sync (RTX PRO 6000) with block scales; reported for e4m3fn and e5m2, the others by analogy"),
    Reported("mxf4",            kMxf4,                      "e2m1fn", "the same, kind::mxf4, and kind::mxf4nvf4 with scales of e8m0fnu"),
    Reported("mxf4nvf4",        kMxf4nvf4,                  "e2m1fn", "the same, kind::mxf4nvf4 with scales of ue4m3fn: NVFP4"),
    Reported("cdna1-fp16",      InChunks(kExactChunks, 4),  "fp16",   "MI100"),
    Reported("cdna1-bf16",      InChunks(kExactChunks, 2),  "bf16",   "MI100"),
    Reported("cdna2-fp16",      InChunks(kFlushedPairs, 4), "fp16",   "MI200"),
    Reported("cdna2-bf16",      InChunks(kFlushedPairs, 4), "bf16",   "MI200, instructions named _1k"),
    Reported("cdna2-bf16-2",    InChunks(kFlushedPairs, 2), "bf16",   "MI200, the other instructions"),
    Reported("cdna3-fp16",      RoundingDown(8),            "fp16",   "MI300"),
    Reported("cdna3-bf16",      RoundingDown(8),            "bf16",   "MI300"),
    Reported("cdna3-tf32",      RoundingDown(4),            "tf32",   "MI300, xf32 instructions"),
    Reported("cdna3-fp8",       RoundingDown(16, kEvenOdd), kFp8Fnuz, "MI300"),
};
// clang-format on

}  // namespace

std::span<const AccumulationModeRow> AccumulationModeTable() { return kTable; }

}  // namespace numsim
