// One moment of one tensor in its actual storage: packed codes and scales. Calls whose requirements
// are not met throw Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/base/require.h"
#include "numsim/moments/moment_format.h"
#include "numsim/moments/moment_loss.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

class CoatFormat;    // moment_coat.h
class DynamicMap;    // dynamic_map.h
struct MomentCodec;  // moment_element.h

// One moment of one tensor, in its storage: packed codes and scales.
class MomentStore {
 public:
  // Holds n zeros. `is_signed` is false for second moments, whose values are >= 0: kDynamic then
  // uses its unsigned map, in which a negative value becomes 0; other scalings ignore it and keep
  // the format's sign bit. Requires a format that ParseMomentFormat accepts. The moment is stored at
  // `place`, with the same bytes everywhere; a device refuses formats with a subnormal gap.
  MomentStore(const MomentFormat& format, size_t n, bool is_signed, Place place = {});

  // The format, the number of elements and the place of the moment.
  const MomentFormat& format() const { return format_; }
  size_t size() const { return n_; }
  Place place() const { return codes_.place(); }

  // Decodes the stored values into `values`, a contiguous matrix at the place of the moment. Requires
  // size() elements. Several threads of a host may load at the same time.
  void Load(MatrixSpan<float> values) const;
  // Replaces the stored values by those of a contiguous matrix at the same place. Element i uses the random bits of element i of `random`. Returns
  // the error statistics if `measure` is true, else zeros; a device waits for them. Requires size()
  // elements.
  // Elements that are not finite do not affect scales: a NaN is stored as the format's NaN, or 0 if
  // it has none; infinities saturate; fp32 keeps both. Bits and sums do not depend on the number of
  // threads.
  MomentLoss Store(MatrixSpan<const float> values, RandomStream random, bool measure = false);

  // Returns the stored float32 values themselves, to be read and written directly instead of
  // through Load and Store. Requires format().IsExact() and the host.
  std::span<float> Values() {
    NUMSIM_REQUIRE(format_.IsExact(),
                   "MomentStore::Values: the moments are {}, expected fp32",
                   ToString(format_));
    return codes_.Span().empty() ? std::span<float>() : std::span<float>(values(), n_);
  }
  // The memory of the codes (of the float32 values for fp32) and of the scales, at the place. That of
  // the codes has a multiple of four bytes.
  uint8_t* Codes() { return codes_.View().data; }
  float* Scales() { return scales_.View().data; }

  // Returns the number of bytes stored. A code of at most 4 bits takes half a byte (dynamic: one),
  // of at most 8 bits one, of at most 16 bits two; a scale takes four bytes; COAT stores two
  // numbers of four bytes per block.
  size_t Bytes() const;

  // Returns the state as bytes, for checkpoints: values or codes, then scales, in the machine's
  // byte order. Restore throws Error if the length differs or the scales are not valid for this
  // format.
  std::vector<std::byte> Save() const;
  void Restore(std::span<const std::byte> state);

 private:
  // The parts of codes_: only one of them is there.
  float* values() { return reinterpret_cast<float*>(codes_.View().data); }
  const float* values() const { return reinterpret_cast<const float*>(codes_.View().data); }
  uint8_t* codes8() { return codes_.View().data; }
  const uint8_t* codes8() const { return codes_.View().data; }
  uint16_t* codes16() { return reinterpret_cast<uint16_t*>(codes_.View().data); }
  const uint16_t* codes16() const { return reinterpret_cast<const uint16_t*>(codes_.View().data); }
  bool IsWide() const { return format_.format.spec.StorageBytes() == 2; }

  MomentCodec Codec() const;  // of a device
  size_t BlockSize() const;
  MomentLoss StoreOnHost(std::span<const float> values, RandomStream random, bool measure);
  void FindScales(std::span<const float> values);
  void ScaleRun(size_t block, const float* in, size_t n, float* out) const;
  void EncodePiece(size_t begin, std::span<const float> values, RandomStream stream);
  void DecodePiece(size_t begin, std::span<float> out) const;
  void DecodeCoat(size_t begin, const uint8_t* codes, std::span<float> out) const;
  MomentLoss Measure(std::span<const float> values) const;
  void MeasurePiece(size_t begin, std::span<const float> values, MomentLoss& loss) const;
  bool Saturates(float x, size_t index) const;

  MomentFormat format_;
  size_t n_;
  bool signed_;
  EncodePlan plan_;
  ScaleFactory scale_maker_;
  float max_;                               // largest finite value of the format
  const DynamicMap* map_ = nullptr;         // kDynamic only
  std::shared_ptr<const CoatFormat> coat_;  // kCoat only
  Buffer<uint8_t> codes_;                   // packed; float32 values for fp32
  Buffer<float> scales_;     // one per tensor or per block; COAT: a and k of each block
  Buffer<uint8_t> tables_;   // a device: MomentTables
  Buffer<uint32_t> ranges_;  // a device: MomentRange per scale
};

// Returns the number of bytes that n elements take in `format`.
double MomentBytes(const MomentFormat& format, size_t n);

}  // namespace numsim
