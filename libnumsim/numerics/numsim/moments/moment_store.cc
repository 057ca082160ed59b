#include "numsim/moments/moment_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/decode.h"
#include "numsim/moments/dynamic_map.h"
#include "numsim/moments/internal/moment_layout.h"
#include "numsim/moments/internal/moment_passes_device.h"
#include "numsim/moments/moment_coat.h"
#include "numsim/moments/shared/moment_at_place.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {
namespace {

// Elements processed at a time, and the least number worth a thread. Both are even because codes of
// 4 bits share bytes.
constexpr size_t kPiece = 1024;
constexpr size_t kGrain = kMomentLossPart;
static_assert(kGrain % kPiece == 0);

// Splits [begin, end) at block boundaries and calls run(block, begin, count) for each part.
template <typename F>
void ForRuns(size_t begin, size_t end, size_t block, const F& run) {
  for (size_t next; begin < end; begin = next) {
    next = std::min(end, (begin / block + 1) * block);
    run(begin / block, begin, next - begin);
  }
}

// Calls piece(begin, count) on all threads for pieces that cover [0, n).
template <typename F>
void ForPieces(size_t n, const F& piece) {
  ParallelFor(n, kGrain, [&piece](size_t first, size_t last) {
    for (size_t begin = first; begin < last; begin += kPiece) {
      piece(begin, std::min(kPiece, last - begin));
    }
  });
}

// Returns the largest float32 <= scale for which scale * max is finite. The product may overflow if
// the tensor's largest magnitude is close to that of float32.
float FiniteScale(float scale, float max) {
  while (std::isinf(scale * max)) scale = std::nextafter(scale, 0.0f);
  return scale;
}

// Returns `format` if a store can have it.
const MomentFormat& Storable(const MomentFormat& format) {
  const FormatSpec& spec = format.format.spec;
  NUMSIM_REQUIRE((format.IsExact() || spec.Bits() <= 16) && spec.IsSigned() && format.block >= 1,
                 "MomentStore: {} bits in blocks of {}, expected a signed format of at most 16 "
                 "bits, or exact fp32, in blocks of at least 1",
                 spec.Bits(),
                 format.block);
  return format;
}

}  // namespace

MomentStore::MomentStore(const MomentFormat& format, size_t n, bool is_signed, Place place)
    : format_(Storable(format)),
      n_(n),
      signed_(is_signed),
      plan_(MakeEncodePlan(format.format.spec, format.rounding, Overflow::kSaturate)),
      scale_maker_(format.format.spec, ScaleRule::kAbsmax),
      max_(MaxFinite(format.format.spec)),
      codes_(place),
      scales_(place),
      tables_(place),
      ranges_(place) {
  const size_t bytes = MomentCodeBytes(format, n);
  if (format.scaling == MomentScaling::kDynamic) map_ = &DynamicMap::Get(is_signed);
  if (format.scaling == MomentScaling::kCoat) {
    coat_ = std::make_shared<const CoatFormat>(format.format.spec);
  }
  const std::vector<uint8_t> codes((bytes + 3) / 4 * 4, map_ != nullptr ? map_->zero_code() : 0);
  const std::vector<float> scales(MomentScaleCount(format, n), 1.0f);
  codes_ = CopyAt(codes, place);
  scales_ = CopyAt(scales, place);
  if (place.IsHost()) return;
  CheckMomentOnDevice(format);
  tables_ = MomentTablesAt(format, is_signed, place);
  ranges_ = EmptyRanges(format, n, place);
}

// Returns the number of elements per block; without blocks, one block holds all elements.
size_t MomentStore::BlockSize() const {
  return format_.HasBlocks() ? format_.block : std::max<size_t>(n_, 1);
}

size_t MomentStore::Bytes() const { return MomentCodeBytes(format_, n_) + scales_.View().Bytes(); }

// Decoding.

void MomentStore::Load(MatrixSpan<float> values) const {
  RequireSize(values.Elements(), n_, "MomentStore::Load", "values");
  OnePlace("MomentStore::Load", {place(), n_ == 0 ? place() : values.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place().IsHost()) {
      const StoredMoment stored{const_cast<uint8_t*>(codes_.View().data),  // read only
                                const_cast<float*>(scales_.View().data),
                                nullptr};
      return cuda::LoadMoment({Codec(), stored, values.data, n_}, place().Stream());
    }
  }
  const std::span<float> all = values.Span();
  ForPieces(n_, [this, all](size_t begin, size_t count) {
    DecodePiece(begin, all.subspan(begin, count));
  });
}

MomentCodec MomentStore::Codec() const {
  return {format_, signed_, reinterpret_cast<const MomentTables*>(tables_.View().data)};
}

void MomentStore::DecodePiece(size_t begin, std::span<float> out) const {
  const size_t n = out.size();
  if (format_.IsExact()) {
    std::copy_n(values() + begin, n, out.data());
    return;
  }
  uint8_t unpacked[kPiece];
  const uint8_t* codes = codes8() + begin;
  if (PacksCodes(format_)) {
    UnpackCodes(codes8() + begin / 2, n, unpacked);
    codes = unpacked;
  }
  if (coat_ != nullptr) return DecodeCoat(begin, codes, out);
  if (map_ != nullptr) {
    for (size_t i = 0; i < n; ++i) out[i] = map_->values()[codes[i]];
  } else if (IsWide()) {
    DecodeSerial(format_.format.spec, codes16() + begin, n, out.data());
  } else {
    DecodeSerial(format_.format.spec, codes, n, out.data());
  }
  if (scales_.View().Empty()) return;
  const float* const scales = scales_.View().data;
  ForRuns(begin, begin + n, BlockSize(), [&](size_t block, size_t at, size_t count) {
    float* const run = out.data() + (at - begin);
    Multiply(run, count, scales[block], run);
  });
}

void MomentStore::DecodeCoat(size_t begin, const uint8_t* codes, std::span<float> out) const {
  thread_local CoatFactorCache cache;
  cache.Choose(coat_);
  ForRuns(begin, begin + out.size(), BlockSize(), [&](size_t block, size_t at, size_t count) {
    const float* const scales = scales_.View().data + 2 * block;
    const double absmax = static_cast<double>(scales[0]);
    const CoatFormat::Factors& factors = cache.Get(scales[1]);
    for (size_t i = at - begin; i < at - begin + count; ++i) {
      out[i] = static_cast<float>(absmax * factors[codes[i]]);
    }
  });
}

// Encoding.

MomentLoss MomentStore::Store(MatrixSpan<const float> values, RandomStream random, bool measure) {
  RequireSize(values.Elements(), n_, "MomentStore::Store", "values");
  OnePlace("MomentStore::Store", {place(), n_ == 0 ? place() : values.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place().IsHost()) {
      const StoredMoment stored{
          Codes(), Scales(), reinterpret_cast<MomentRange*>(ranges_.View().data)};
      const MomentArguments at{Codec(), stored, const_cast<float*>(values.data), n_, random};
      return cuda::StoreMoment(at, ranges_.View().Elements() / 2, measure, place());
    }
  }
  return StoreOnHost(values.Span(), random, measure);
}

MomentLoss MomentStore::StoreOnHost(std::span<const float> values,
                                    RandomStream random,
                                    bool measure) {
  FindScales(values);
  ForPieces(n_, [this, values, random](size_t begin, size_t count) {
    EncodePiece(begin, values.subspan(begin, count), random);
  });
  if (format_.scaling == MomentScaling::kTensor || format_.scaling == MomentScaling::kBlock) {
    for (float& scale : scales_.Span()) scale = FiniteScale(scale_maker_(scale).scale, max_);
  }
  return measure ? Measure(values) : MomentLoss{};
}

// Fills scales_ with the numbers that encoding needs. For kTensor and kBlock this is the absmax,
// which Store replaces by the scale afterwards; for kCoat and kDynamic it is what is stored.
void MomentStore::FindScales(std::span<const float> values) {
  if (format_.scaling == MomentScaling::kNone) return;
  const size_t block = BlockSize();
  const std::span<float> scales = scales_.Span();
  if (coat_ != nullptr) {
    ParallelFor(CeilDiv(n_, block), CeilDiv(kGrain, block), [&](size_t b, size_t end) {
      for (; b < end; ++b) {
        const auto part = values.subspan(b * block, std::min(block, n_ - b * block));
        const CoatBlock found = coat_->MakeBlock(part.data(), part.size());
        scales[2 * b] = found.absmax;
        scales[2 * b + 1] = found.exponent;
      }
    });
    return;
  }
  const ScaleLayout layout =
      format_.HasBlocks() ? ScaleLayout{Granularity::kBlock, block} : ScaleLayout{};
  Absmax(values, layout, scales);
  if (map_ == nullptr) return;
  for (float& scale : scales) scale = scale == 0 ? 1 : scale;
}

// Computes the scaled values that are then rounded to codes, for elements of one block.
void MomentStore::ScaleRun(size_t block, const float* in, size_t n, float* out) const {
  const float* const scales = scales_.View().data;
  switch (format_.scaling) {
    case MomentScaling::kNone:
      std::copy_n(in, n, out);
      break;
    case MomentScaling::kTensor:
    case MomentScaling::kBlock:
      Multiply(in, n, scale_maker_(scales[block]).inv_scale, out);
      break;
    case MomentScaling::kCoat:
      coat_->Expand({scales[2 * block], scales[2 * block + 1]}, in, n, out);
      break;
    case MomentScaling::kDynamic:
      for (size_t i = 0; i < n; ++i) out[i] = in[i] / scales[block];
      break;
  }
}

void MomentStore::EncodePiece(size_t begin, std::span<const float> values, RandomStream stream) {
  const size_t n = values.size();
  if (format_.IsExact()) {
    std::copy_n(values.data(), n, this->values() + begin);
    return;
  }
  float scaled[kPiece];
  ForRuns(begin, begin + n, BlockSize(), [&](size_t block, size_t at, size_t count) {
    ScaleRun(block, values.data() + (at - begin), count, scaled + (at - begin));
  });
  if (map_ != nullptr || !plan_.format.HasNan()) {
    for (size_t i = 0; i < n; ++i) scaled[i] = std::isnan(scaled[i]) ? 0 : scaled[i];
  }
  const ArrayRandom random{stream, begin};
  if (IsWide()) {
    return EncodeSerial(plan_, scaled, n, codes16() + begin, random);
  }
  uint8_t unpacked[kPiece];
  uint8_t* const codes = PacksCodes(format_) ? unpacked : codes8() + begin;
  if (map_ == nullptr) {
    EncodeSerial(plan_, scaled, n, codes, random);
  } else if (format_.rounding.mode == RoundingMode::kStochastic) {
    map_->EncodeStochastic(scaled, n, format_.rounding.random_bits, random, codes);
  } else {
    map_->EncodeNearest(scaled, n, codes);
  }
  if (PacksCodes(format_)) PackCodes(codes, n, codes8() + begin / 2);
}

// Measuring. Sums are taken over parts of fixed size and added in order, so they do not depend on
// the number of threads.

MomentLoss MomentStore::Measure(std::span<const float> values) const {
  std::vector<MomentLoss> parts(CeilDiv(n_, kGrain));
  ParallelFor(parts.size(), 1, [this, values, &parts](size_t first, size_t last) {
    for (size_t part = first; part < last; ++part) {
      const size_t end = std::min(n_, (part + 1) * kGrain);
      for (size_t begin = part * kGrain; begin < end; begin += kPiece) {
        MeasurePiece(begin, values.subspan(begin, std::min(kPiece, end - begin)), parts[part]);
      }
    }
  });
  MomentLoss total;
  for (const MomentLoss& part : parts) total += part;
  return total;
}

void MomentStore::MeasurePiece(size_t begin,
                               std::span<const float> values,
                               MomentLoss& loss) const {
  float stored[kPiece];
  DecodePiece(begin, {stored, values.size()});
  for (size_t i = 0; i < values.size(); ++i) {
    AddLoss(values[i], stored[i], Saturates(values[i], begin + i), loss);
  }
}

// Returns true if x lies beyond the largest value that can be stored. Under a scale from the absmax
// no element does, except in the signed dynamic map, which ends above -1.
bool MomentStore::Saturates(float x, size_t index) const {
  if (format_.scaling == MomentScaling::kNone) return std::abs(x) > max_;
  if (map_ == nullptr || !signed_) return false;
  return x / scales_.View().data[index / format_.block] < map_->values().front();
}

// Checkpoints.

std::vector<std::byte> MomentStore::Save() const {
  const std::vector<uint8_t> codes = ToVector(codes_.View());
  const std::vector<float> scales = ToVector(scales_.View());
  std::vector<std::byte> state(Bytes());
  const size_t bytes = MomentCodeBytes(format_, n_);
  if (bytes != 0) std::memcpy(state.data(), codes.data(), bytes);
  if (!scales.empty()) std::memcpy(state.data() + bytes, scales.data(), 4 * scales.size());
  return state;
}

void MomentStore::Restore(std::span<const std::byte> state) {
  if (state.size() != Bytes()) {
    throw Error::Format("a moment of {} elements in {} takes {} bytes, got {}",
                        n_,
                        ToString(format_),
                        Bytes(),
                        state.size());
  }
  std::vector<float> scales(scales_.View().Elements());
  const size_t bytes = MomentCodeBytes(format_, n_);
  if (!scales.empty()) std::memcpy(scales.data(), state.data() + bytes, 4 * scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const bool valid = coat_ != nullptr && i % 2 != 0 ? IsCoatExponent(scales[i])
                                                      : std::isfinite(scales[i]) && scales[i] > 0;
    if (!valid) {
      throw Error::Format("a moment of {} elements in {}: scale {} has the invalid value {}",
                          n_,
                          ToString(format_),
                          i,
                          scales[i]);
    }
  }
  std::vector<uint8_t> codes(codes_.View().Elements());
  if (bytes != 0) std::memcpy(codes.data(), state.data(), bytes);
  CopyMatrix<uint8_t>(codes, codes_.View());
  CopyMatrix<float>(scales, scales_.View());
}

}  // namespace numsim
