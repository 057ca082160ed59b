#include "numsim/gemm/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/round_to_element.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/formats/value_table.h"
#include "numsim/gemm/internal/gemm_block_scaled.h"
#include "numsim/gemm/internal/gemm_kernels_device.h"
#include "numsim/gemm/internal/gemm_packed.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_paths.h"
#include "numsim/gemm/internal/gemm_paths_digits.h"
#include "numsim/gemm/internal/gemm_paths_int8.h"
#include "numsim/gemm/internal/gemm_tiles.h"

namespace numsim {
namespace {

constexpr FormatSpec kInt8 = NamedFormat("int8");

// The scales of an operand's vectors in one segment: vector i has data[i * step].
struct VectorScales {
  const float* data;
  size_t step;  // 0 or 1
};

// Returns the scales of a segment. Scales that are not stored with step 0 or 1 are copied into the
// thread's scratch memory.
VectorScales ScalesOf(const GemmOperand& x, size_t segment, ScratchUse use) {
  static constexpr float kOne = 1;
  const GemmScales& scales = x.scales;
  if (scales.data.Empty()) return {&kOne, 0};
  const float* from =
      scales.data.data + (scales.segment == 0 ? 0 : segment * scales.segment_stride);
  if (scales.row_stride == 0) return {from, 0};
  if (scales.row_stride == 1 && scales.row_group == 1) return {from, 1};
  float* const copy = Scratch<float>(use, x.rows);
  for (size_t i = 0; i < x.rows; ++i) copy[i] = scales.At(i, segment);
  return {copy, 1};
}

bool AreFinite(const VectorScales& scales, size_t vectors) {
  const size_t n = scales.step == 0 ? 1 : vectors;
  return std::all_of(scales.data, scales.data + n, [](float x) { return std::isfinite(x); });
}

// Scales the sums of one segment and stores them, or adds them to the result from the second
// segment on.
class ScaledStore {
 public:
  ScaledStore(const GemmOperand& a,
              const GemmOperand& b,
              const AccumulationMode& mode,
              size_t segment,
              std::span<float> out)
      : segment_(segment),
        cols_(b.rows),
        nan_(std::bit_cast<float>(NanResult(mode))),
        out_(out),
        scales_a_(ScalesOf(a, segment, ScratchUse::kScalesA)),
        scales_b_(ScalesOf(b, segment, ScratchUse::kScalesB)),
        finite_(AreFinite(scales_a_, a.rows) && AreFinite(scales_b_, b.rows)) {}

  template <typename T>
  void operator()(const TilePlace& at, const T* sums) const {
    const TileScales scales{scales_a_.data + at.row * scales_a_.step,
                            scales_b_.data + at.col * scales_b_.step,
                            scales_a_.step,
                            scales_b_.step,
                            finite_,
                            segment_ != 0,
                            nan_};
    const StoredTile tile{out_.data() + at.row * cols_ + at.col, cols_, at.rows, at.cols};
    StoreScaled(sums, at.stride, scales, tile);
  }

 private:
  size_t segment_;
  size_t cols_;
  float nan_;
  std::span<float> out_;
  VectorScales scales_a_, scales_b_;
  bool finite_;
};

// A GEMM and what is known about its operands.
struct Problem {
  const GemmOperand& a;
  const GemmOperand& b;
  const AccumulationMode& mode;
  OperandRange range_a = {}, range_b = {};  // set only if NeedsRanges
};

// True for an operand of int8 codes, and for an empty int8 operand.
bool IsInt8(const GemmOperand& x) {
  return x.format == kInt8 && x.values.Empty() && x.codes16.Empty();
}

// True if float32 holds every product of the operands' finite values exactly.
bool ProductsFitFloat32(const Problem& p) {
  if (p.a.format.mantissa_bits + p.b.format.mantissa_bits + 2 > 24) return false;
  if (p.range_a.zero || p.range_b.zero) return true;
  return p.range_a.unit + p.range_b.unit >= -149 &&
         p.range_a.high_exponent + p.range_b.high_exponent + 2 <= 127;
}

bool IsAlignedInVectors(const AccumulationMode& mode) {
  return mode.kind == AccumulationKind::kAligned && mode.order != ProductOrder::kEvenOdd;
}

bool IsFloat32(const AccumulationMode& mode) {
  return mode.kind == AccumulationKind::kChunked ||
         (mode.kind == AccumulationKind::kFormat && mode.format == kFp32);
}

// True if the mode rounds to a small format after each product.
bool RoundsEachStep(const AccumulationMode& mode) {
  return !IsFloat32(mode) &&
         (mode.kind == AccumulationKind::kFormat || mode.kind == AccumulationKind::kFormatUnfused);
}

// True if the path of this mode leaves infinities and NaN out of the sums.
bool LeavesSpecialsOut(const Problem& p) {
  return IsAlignedInVectors(p.mode) ||
         (p.mode.kind == AccumulationKind::kExact && !(IsInt8(p.a) && IsInt8(p.b)));
}

bool NeedsRanges(const Problem& p) {
  return LeavesSpecialsOut(p) || RoundsEachStep(p.mode) || (IsFloat32(p.mode) && !TileIsFused());
}

template <class Path, class Store>
bool RunPath(Path path, const Problem& p, InnerRange range, const Store& store) {
  MultiplyTiles(path, p.a.rows, p.b.rows, range, store);
  return true;
}

// int8 products whose sum float32 holds exactly: with |x| <= 128, 1024 of them fit its 24 bits.
constexpr size_t kInt8InFloat32 = 1024;

// Runs a path with int32 totals, or with double totals where int32 is too small.
template <template <typename> class Path, class Store>
bool RunInt8Path(const Problem& p, InnerRange range, const Store& store) {
  if (range.Size() <= kInt8InInt32) return RunPath(Path<int32_t>(p.a, p.b), p, range, store);
  return RunPath(Path<double>(p.a, p.b), p, range, store);
}

template <class Store>
bool RunInt8(const Problem& p, InnerRange range, const Store& store) {
  if (HasAmxTile()) return RunInt8Path<AmxPath>(p, range, store);
  if (HasVnniTile()) return RunInt8Path<VnniPath>(p, range, store);
  return RunPath(Float32Path<double>(p.a, p.b, kInt8InFloat32), p, range, store);
}

// Stores sums that are already in memory.
template <class Store>
bool StoreSums(const std::vector<double>& sums, const Problem& p, const Store& store) {
  ParallelFor(p.a.rows, 16, [&](size_t begin, size_t end) {
    const size_t cols = p.b.rows;
    store(TilePlace{begin, 0, end - begin, cols, cols}, sums.data() + begin * cols);
  });
  return true;
}

bool RunFormat(const Problem& p, InnerRange range, const ScaledStore& store) {
  if (p.mode.format.mantissa_bits > kMaxStepMantissa || !ProductsFitFloat32(p)) return false;
  std::vector<double> sums;
  FormatSums(p.a, p.b, p.mode, range, sums);
  return StoreSums(sums, p, store);
}

template <class Store>
void RunReference(const Problem& p, InnerRange range, const Store& store) {
  std::vector<double> sums;
  ReferenceSums(p.a, p.b, p.mode, range, sums);
  StoreSums(sums, p, store);
}

template <class Panels>
bool RunDigitsOn(int rate, const Problem& p, InnerRange range, const ScaledStore& store) {
  const auto plan = PlanDigits(p.a, p.range_a, p.b, p.range_b, range.Size(), rate);
  if (!plan) return false;
  if (plan->limbs == 1) return RunPath(DigitPath<Panels, 1>(p.a, p.b, *plan), p, range, store);
  return RunPath(DigitPath<Panels, 2>(p.a, p.b, *plan), p, range, store);
}

bool RunDigits(const Problem& p, InnerRange range, const ScaledStore& store) {
  // The rates of int8 products over float64 products, measured with all that goes with them.
  constexpr int kAmxRate = 24, kVnniRate = 8;
  if (HasAmxTile()) return RunDigitsOn<AmxPanels>(kAmxRate, p, range, store);
  return HasVnniTile() && RunDigitsOn<VnniPanels>(kVnniRate, p, range, store);
}

bool RunExact(const Problem& p, InnerRange range, const ScaledStore& store) {
  if (IsInt8(p.a) && IsInt8(p.b)) return RunInt8(p, range, store);
  if (RunDigits(p, range, store)) return true;
  if (Float64Tile().rows == 0) return false;
  std::vector<double> sums;
  return ExactSums(p.a, p.range_a, p.b, p.range_b, range, sums) && StoreSums(sums, p, store);
}

bool RunAligned(const Problem& p, InnerRange range, const ScaledStore& store) {
  const auto lanes = LanesForAligned(p.mode, FactorOf(p.a, p.range_a), FactorOf(p.b, p.range_b));
  if (!lanes) return false;
  if (*lanes == AlignedLanes::kFloatTiles) {
    return RunPath(
        AlignedTilesPath(p.a, p.range_a, p.b, p.range_b, p.mode, *lanes), p, range, store);
  }
  return RunPath(AlignedPath(p.a, p.range_a, p.b, p.range_b, p.mode, *lanes), p, range, store);
}

// Computes one segment with vector kernels of the active target. Returns false if there are none
// for it.
bool RunInVectors(const Problem& p, InnerRange range, const ScaledStore& store) {
  if (UsesScalarReference()) return false;
  if (IsFloat32(p.mode)) {
    if (!TileIsFused() && !ProductsFitFloat32(p)) return false;
    const size_t promote =
        p.mode.kind == AccumulationKind::kChunked ? static_cast<size_t>(p.mode.chunk) : 0;
    return RunPath(Float32Path<float>(p.a, p.b, promote), p, range, store);
  }
  if (p.mode.kind == AccumulationKind::kFloat64 && Float64Tile().rows != 0) {
    return RunPath(Float64Path(p.a, p.b, Slice{}, Slice{}), p, range, store);
  }
  if (p.mode.kind == AccumulationKind::kExact) return RunExact(p, range, store);
  if (IsAlignedInVectors(p.mode)) return RunAligned(p, range, store);
  return RoundsEachStep(p.mode) && RunFormat(p, range, store);
}

// Computes the product of contiguous operands on the host, in float32.
void GemmOnHost(const GemmOperand& a,
                const GemmOperand& b,
                const AccumulationMode& mode,
                std::span<float> out) {
  if (a.inner == 0) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  if (mode.kind == AccumulationKind::kLibrary) return GemmByLibrary(a, b, out);
  if (IsBlockScaled(mode)) return GemmBlockScaled(a, b, mode, out);
  const size_t length = SegmentLength(a, b);
  Problem p{a, b, mode};
  const bool vectors = !UsesScalarReference();
  if (vectors && NeedsRanges(p)) {
    p.range_a = RangeOf(a);
    p.range_b = RangeOf(b);
  }
  bool left_out = false;
  for (size_t s = 0; s * length < a.inner; ++s) {
    const InnerRange range{s * length, std::min((s + 1) * length, a.inner)};
    const ScaledStore store(a, b, mode, s, out);
    if (RunInVectors(p, range, store)) {
      left_out = LeavesSpecialsOut(p);
      continue;
    }
    RunReference(p, range, store);
  }
  if (left_out) PutSpecials(a, p.range_a, b, p.range_b, mode, length, out);
}

// Returns the place of the operands and the result. An operand without elements is at any place.
Place PlaceOf(const GemmOperand& a, const GemmOperand& b, Place out) {
  for (const GemmOperand* x : {&a, &b}) {
    if (x->data() != nullptr) OnePlace("Gemm", {x->place(), out});
  }
  return out;
}

}  // namespace

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          FloatSpan out,
          DeviceGemmEngine engine) {
  RequireContiguous(out, "Gemm");
  for (const GemmOperand* const x : {&a, &b}) RefuseTable(x->format, "Gemm");
  CheckProduct(a, b, out.Elements());
  const Place place = PlaceOf(a, b, out.place);
  if (out.Elements() == 0) return;
  const FloatSpan result(out.data, {a.rows, b.rows}, place, out.element);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return cuda::Gemm(a, b, mode, result, engine);
    if (UsesDevice() && cuda::GemmOffloaded(a, b, mode, result)) return;
  }
  PackedOperand packed_a, packed_b;
  const std::span<float> values = result.Float32().Span();
  GemmOnHost(packed_a.Of(a), packed_b.Of(b), mode, values);
  RoundToElement(result);
}

bool GemmInt32(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out) {
  NUMSIM_REQUIRE(out.Contiguous(), "GemmInt32: a result with stride {}", out.stride);
  CheckProduct(a, b, out.Elements());
  const Place place = PlaceOf(a, b, out.place);
  NUMSIM_REQUIRE(IsInt8(a) && IsInt8(b),
                 "GemmInt32: operands of {} and {}, expected codes of int8",
                 ToString(a.format),
                 ToString(b.format));
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return cuda::GemmInt32(a, b, out), true;
  }
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice() && cuda::GemmInt32Offloaded(left, right, out)) return true;
  }
  const std::span<int32_t> result = out.Span();
  std::fill(result.begin(), result.end(), 0);
  if (result.empty() || left.inner == 0) return true;
  constexpr double kLowest = std::numeric_limits<int32_t>::min();
  constexpr double kHighest = std::numeric_limits<int32_t>::max();
  std::vector<uint8_t> outside(left.rows);
  const auto store = [&](const TilePlace& at, const auto* sums) {
    for (size_t i = at.row; i < at.row + at.rows; ++i, sums += at.stride) {
      for (size_t c = 0; c < at.cols; ++c) {
        const double bounded = std::clamp(static_cast<double>(sums[c]), kLowest, kHighest);
        if (bounded != sums[c]) outside[i] = 1;
        result[i * right.rows + at.col + c] = static_cast<int32_t>(bounded);
      }
    }
  };
  const AccumulationMode exact{};
  const Problem p{left, right, exact};
  const InnerRange range{0, left.inner};
  if (UsesScalarReference()) {
    RunReference(p, range, store);
  } else {
    RunInt8(p, range, store);
  }
  return std::find(outside.begin(), outside.end(), 1) == outside.end();
}

}  // namespace numsim
